"""dp_pca and dp_cov on Parquet files against pyarrow and plain X.T @ X by chunk.

    python benchmarks/parquet.py [--rows 2000000] [--columns 50] [--repeats 5] [--folder F]

Seconds and CPU seconds are medians over interleaved repeats, with the files in the page
cache, and so are the ratios; every job runs in a process of its own, whose peak resident
memory is printed too. Absolute times mean nothing; the ratios do.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from memory import write

START = """
import json, resource, sys, time
from pathlib import Path
import numpy as np
path, columns = sys.argv[1], int(sys.argv[2])
names = [f"x{i}" for i in range(columns)]
PREPARE
def job():
    JOB
start, cpu = time.perf_counter(), time.process_time()
job()
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([seconds, cpu, peak]))
"""

PLAIN = (
    """import pyarrow.parquet as pq
def batches():
    for file in sorted(Path(path).glob("*.parquet")):
        with pq.ParquetFile(file) as opened:
            yield from opened.iter_batches(131_072, columns=names)""",
    """total = np.zeros((columns, columns))
    for batch in batches():
        X = np.stack([column.to_numpy() for column in batch.columns]).T
        total += X.T @ X""",
)
READ = (PLAIN[0], "sum(batch.num_rows for batch in batches())")
OURS = """import dpmodels as dp
book = dp.codebook.uniform(names, (0, 1))
warm = {{name: [0.0, 1.0] for name in names}}
words = dict(codebook=book, eps=1.0, delta=1e-6)
dp.{verb}("~ .", warm, **words)"""
JOBS = {
    "pyarrow and X.T @ X": (*PLAIN, ""),
    "pyarrow alone": (*READ, ""),
    "dp_cov": (OURS.format(verb="dp_cov"), 'dp.dp_cov("~ .", path, **words).cov', "<= 2"),
    "dp_pca": (OURS.format(verb="dp_pca"), 'dp.dp_pca("~ .", path, **words).loadings', "<= 2"),
}


def measured(prepare, job, folder, columns):
    """Run a job in a fresh process: seconds, CPU seconds, peak resident MB."""
    code = START.replace("PREPARE", prepare).replace("JOB", job)
    words = [sys.executable, "-c", code, str(folder), str(columns)]
    # On matrices of 50 columns one thread of BLAS is faster than two.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="files of another run, to be read again")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as fresh:
        folder = words.folder or Path(fresh)
        if not list(folder.glob("*.parquet")):
            folder.mkdir(exist_ok=True)
            for number in range(words.files):
                path = folder / f"part-{number}.parquet"
                write(path, words.rows // words.files, words.columns)
        runs = {name: [] for name in JOBS}
        for _ in range(words.repeats):
            for name, (prepare, job, _) in JOBS.items():
                runs[name].append(measured(prepare, job, folder, words.columns))
    print(f"{words.rows:,} x {words.columns} float64 in {words.files} files")
    print(f"{'':22s}{'seconds':>9s}{'ratio':>7s}{'CPU s':>8s}{'ratio':>7s}{'peak MB':>9s}   asked")
    bases = [statistics.median(run[at] for run in runs["pyarrow and X.T @ X"]) for at in (0, 1)]
    for name, (_, _, limit) in JOBS.items():
        seconds, cpu, peak = (statistics.median(column) for column in zip(*runs[name], strict=True))
        print(
            f"{name:22s}{seconds:9.2f}{seconds / bases[0]:7.2f}{cpu:8.2f}{cpu / bases[1]:7.2f}"
            f"{peak:9.0f}   {limit and f'ratio {limit}, peak <= 600 MB'}"
        )


if __name__ == "__main__":
    main()
