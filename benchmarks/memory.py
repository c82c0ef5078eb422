"""Peak memory of dp_pca on Parquet files of growing length.

    python benchmarks/memory.py [--rows 100000 10000000] [--columns 20]

Each fit runs in a fresh process; printed is its peak resident memory.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FIT = """
import resource, sys
import dpmodels as dp
path, columns = sys.argv[1], int(sys.argv[2])
book = dp.codebook.uniform([f"x{i}" for i in range(columns)], (0, 1))
dp.dp_pca("~ .", path, codebook=book, eps=1.0, delta=1e-6).loadings
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def write(path, rows, columns, group=100_000):
    rng = np.random.default_rng(0)
    schema = pa.schema([(f"x{i}", pa.float64()) for i in range(columns)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, group):
            size = min(group, rows - start)
            arrays = [pa.array(rng.random(size)) for _ in range(columns)]
            writer.write_table(pa.table(arrays, schema=schema))


def peak(path, columns):
    """Return the peak resident memory of one fit, in MB."""
    words = [sys.executable, "-c", FIT, str(path), str(columns)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--columns", type=int, default=20)
    words = parser.parse_args()
    print(f"{'rows':>12s}{'file MB':>10s}{'peak MB':>10s}{'ratio':>8s}   asked: ratio about 1")
    first = None
    for rows in words.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.parquet"
            write(path, rows, words.columns)
            used = peak(path, words.columns)
            first = first or used
            size = path.stat().st_size / 2**20
            print(f"{rows:12,d}{size:10.0f}{used:10.0f}{used / first:8.2f}", flush=True)


if __name__ == "__main__":
    main()
