"""Verbs that read the rows several times: a local Dask cluster against a frame in memory.

    python benchmarks/scattered_passes.py [--rows 1000000] [--workers 1 2 4] [--verbs pca glm]

Partitions are made on the workers and persisted; the frame has the same rows. Each verb runs on
both in turn. "Wall" and "CPU" are ratios to the frame: wall time, and CPU time of the workers, and
of workers and client. Workers beyond the number of cores share them. The releases, under one seed,
are compared. Asked, with two workers: wall at most 2 for dp_pca and dp_glm, CPU of a pass at most
1.3. The law of cost is fitted to the CPU of the workers for a quarter, a half and all of the rows:
``passes × (cells × c + partitions × p)``.
"""

import argparse
import os
import statistics
import time

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster, wait

import dpmodels as dp
from dpmodels.digest import release_digest
from dpmodels.frames import dask_rows

NAMES = [f"x{i}" for i in range(9)]
BOOK = dp.codebook(**dict.fromkeys(NAMES, (0, 1)), y=dp.Categorical([0, 1]))
TERMS = " + ".join(NAMES)
COMMON = {"codebook": BOOK, "eps": 2.0}
VERBS = {
    "cov": lambda data: dp.dp_cov(f"~ {TERMS}", data, delta=1e-6, mechanism="gauss", **COMMON),
    "pca": lambda data: dp.dp_pca(f"~ {TERMS}", data, delta=1e-6, **COMMON),
    "lm": lambda data: dp.dp_lm(f"x0 ~ {' + '.join(NAMES[1:])}", data, delta=1e-6, **COMMON),
    "glm": lambda data: dp.dp_glm(f"y ~ {TERMS}", data, **COMMON),
    "mean": lambda data: dp.dp_mean("x0 ~ y", data, **COMMON),
}
# glibc otherwise returns every array to the system and asks for it anew.
KEPT = {"MALLOC_TRIM_THRESHOLD_": 2**30, "MALLOC_MMAP_THRESHOLD_": 2**25}


def part(seed, n_rows):
    rng = np.random.default_rng(seed)
    columns = {name: rng.random(n_rows) for name in NAMES}
    odds = np.exp(-4 * (columns["x0"] - 0.5))
    return pd.DataFrame({**columns, "y": (rng.random(n_rows) < 1 / (1 + odds)).astype(int)})


def timed(verb, data, client):
    """Wall seconds, CPU seconds of workers and of the client, passes, and the release."""
    before = sum(client.run(time.process_time).values())
    start, processor_start = time.perf_counter(), time.process_time()
    with Passes() as passes, dp.simulation(seed=3):
        release = VERBS[verb](data).release
    wall, cpu = time.perf_counter() - start, time.process_time() - processor_start
    spent = sum(client.run(time.process_time).values()) - before
    return wall, spent, cpu, passes.count, release_digest(release)


class Passes:
    """Counts distributed computations."""

    def __enter__(self):
        self.count, self.summed = 0, dask_rows.DaskRows.summed

        def summed(*args, **kwargs):
            self.count += 1
            return self.summed(*args, **kwargs)

        dask_rows.DaskRows.summed = summed
        return self

    def __exit__(self, *_):
        dask_rows.DaskRows.summed = self.summed


def compared(words, workers, client):
    """Print a line for each verb, and return the points of the law of cost."""
    size, points = words.rows // words.partitions, []
    parts = dd.from_map(part, range(words.partitions), n_rows=size, meta=part(0, 1)).persist()
    wait(parts)
    frame = pd.concat([part(seed, size) for seed in range(words.partitions)], ignore_index=True)
    for verb in words.verbs:
        VERBS[verb](parts.partitions[:1])
        runs = [
            (timed(verb, frame, client), timed(verb, parts, client)) for _ in range(words.repeats)
        ]
        of_frame, of_parts = (
            [statistics.median(run[at][i] for run in runs) for i in range(4)] for at in (0, 1)
        )
        wall, cpu = of_parts[0] / of_frame[0], of_parts[1] / of_frame[2]
        ratio = (of_parts[1] + of_parts[2]) / of_frame[2]
        same = "same" if runs[0][0][4] == runs[0][1][4] else "close or other"
        print(f"{workers:7d} {verb:5s}{of_parts[3]:7.0f}{of_frame[0]:9.2f}{wall:7.2f}", end="")
        print(f"{of_frame[2]:9.2f}{cpu:9.2f}{ratio:9.2f}  {same}", flush=True)
    for n_parts in (words.partitions // 4, words.partitions // 2, words.partitions):
        _, spent, _, passes, _ = timed("pca", parts.partitions[:n_parts], client)
        points.append((n_parts, passes, spent))
    return points


def law(words, points):
    """Print the cost of a cell and of a pass over a partition."""
    cells = words.rows // words.partitions * len(NAMES)
    slope = np.polyfit([n * passes for n, passes, _ in points], [point for *_, point in points], 1)[
        0
    ]
    print(f"dp_pca: {slope * 1e3:.1f} ms of CPU for each partition of {cells:,} cells and pass,")
    print(f"{slope / cells * 1e9:.1f} ns for a cell, what a task costs by itself included")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--verbs", nargs="+", choices=VERBS, default=list(VERBS))
    parser.add_argument("--repeats", type=int, default=3)
    words = parser.parse_args()
    started = "distributed.nanny.pre-spawn-environ"
    dask.config.set({f"{started}.{name}": value for name, value in KEPT.items()})
    size = f"{words.rows:,} x {len(NAMES) + 1} in {words.partitions} partitions"
    print(f"{size}, {os.cpu_count()} cores")
    print(f"load average {os.getloadavg()[0]:.1f}")
    print("workers verb  passes  frame s   wall  frame CPU  workers  and client  release")
    for workers in words.workers:
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        )
        with cluster, Client(cluster) as client:
            law(words, compared(words, workers, client))


if __name__ == "__main__":
    main()
