"""What protecting persons costs: dp_mean and dp_lm on Parquet, with person= and without.

    python benchmarks/persons.py [--rows 10000000] [--persons 1000000] [--repeats 3] [--text]

Persons are drawn for each row, so that the rows of each lie all over the file. Every fit runs in a
process of its own, after a small one that imports all; the jobs take turns. Printed are medians of
seconds and CPU seconds, their ratios to the same fit by row, and peak resident memory.

Asked are ratios of 2.5. On one core of a shared machine, of 10⁷ rows of 10⁶ persons, they were:

    named by        dp_mean, rows=4   rows="mean"   dp_lm, rows=4   rows="mean"
    whole numbers               7.5           7.2             3.1           4.4
    text                         26            25             8.4          10.0

By row dp_mean takes 20 ns a row, and decoding whole numbers twice already takes 19 ns more.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FIT = """
import json, resource, sys, time
import dpmodels as dp
path, verb, words = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
words |= dict(codebook=dp.codebook(x=(0, 1), y=(0, 1)), eps=1.0, delta=1e-6)
fit = {"dp_mean": lambda rows: dp.dp_mean("~ y", rows, **words),
       "dp_lm": lambda rows: dp.dp_lm("y ~ x", rows, **words)}[verb]
fit({"id": [1, 2] * 500, "x": [0.2, 0.8] * 500, "y": [0.3, 0.6] * 500})
start, cpu = time.perf_counter(), time.process_time()
fit(path)
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
print(json.dumps([seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
BY_ROW = {}
UNITS = {
    "rows": BY_ROW,
    "persons, rows=4": {"person": "id", "rows": 4},
    'persons, rows="mean"': {"person": "id", "rows": "mean"},
}


def write(path, rows, persons, *, text, group=1_000_000):
    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, group):
        size = min(group, rows - start)
        ids = pa.array(rng.integers(0, persons, size))
        ids = pa.array([f"p{person:08d}" for person in ids.to_pylist()]) if text else ids
        table = pa.table({"id": ids, "x": rng.random(size), "y": rng.random(size)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def fit(path, verb, words):
    """Return seconds, CPU seconds and MB of one fit in a process of its own."""
    command = [sys.executable, "-c", FIT, str(path), verb, json.dumps(words)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--text", action="store_true", help="persons are named by text")
    words = parser.parse_args()
    limit_mb = 600 + 40 * words.persons / 2**20
    print(f"asked: ratios <= 2.5, MB <= {limit_mb:.0f}")
    print(f"{'verb':9s}{'unit':22s}{'s':>8s}{'CPU s':>8s}{'ratio':>8s}{'CPU':>8s}{'MB':>8s}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, words.rows, words.persons, text=words.text)
        for verb in ("dp_mean", "dp_lm"):
            times_by_unit = {unit: [] for unit in UNITS}
            for _ in range(words.repeats):
                for unit, options in UNITS.items():
                    times_by_unit[unit].append(fit(path, verb, options))
            by_row = [
                statistics.median(times) for times in zip(*times_by_unit["rows"], strict=True)
            ]
            for unit, runs in times_by_unit.items():
                options = [statistics.median(figures) for figures in zip(*runs, strict=True)]
                ratio, cpu = (
                    figure / base for figure, base in zip(options[:2], by_row[:2], strict=True)
                )
                print(
                    f"{verb:9s}{unit:22s}{options[0]:8.2f}{options[1]:8.2f}{ratio:8.2f}{cpu:8.2f}"
                    f"{options[2]:8.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
