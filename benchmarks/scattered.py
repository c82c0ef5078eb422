"""Exact moments of a Dask data frame: two worker processes against one, and against no Dask.

    python benchmarks/scattered.py [--rows 10000000] [--columns 20] [--folder F]

Each job runs in a process of its own, on Parquet files in the page cache; the time is
that of the statistic, without the start of the cluster and with the workers warm. Speeds
are given against Dask with one worker and against the folder read by one process on one
core. CPU is that of all workers or of the process; "busiest" that of the busiest worker,
or of the process by its cores: where other work keeps the cores from the workers, speeds
are to be read there. The load of the machine before and after is printed. Peak memory is
that of the client. The integers of all jobs are compared. Verbs that read the rows several
times are in ``scattered_passes.py``.

Dask starts its workers with MALLOC_TRIM_THRESHOLD_=65536, so that glibc gives every array
back to the system and asks for it anew. "Memory kept" is with 1 GiB in its place and
MALLOC_MMAP_THRESHOLD_ at its largest, 32 MiB.
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

DASK, FOLDER = "Dask, one worker process", "folder, one process on one core"
ONE_CORE = -1
TRIMMED, KEPT = 0, 1
JOB = """
import hashlib, json, os, resource, sys, time
import numpy as np
import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import moments

def statistic(data, columns):
    names = [f"x{i}" for i in range(columns)]
    design = private_design("~ .", data, dp.codebook.uniform(names, (0, 1)))
    return moments(design, Lattice(20, columns)).cross()

def main(files, columns, workers, kept):
    if workers < 1:
        if workers < 0:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
        cores = len(os.sched_getaffinity(0))
        statistic(files[:1], columns)
        return timed(files, columns, lambda: [time.process_time() / cores] * cores)
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster
    if kept:
        started = "distributed.nanny.pre-spawn-environ"
        dask.config.set({f"{started}.MALLOC_TRIM_THRESHOLD_": 2**30})
        dask.config.set({f"{started}.MALLOC_MMAP_THRESHOLD_": 2**25})
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    )
    with cluster, Client(cluster) as client:
        data = dd.read_parquet(files)
        statistic(dd.read_parquet(files[:1] * 2), columns)
        return timed(data, columns, lambda: client.run(time.process_time).values())

def timed(data, columns, clocks):
    before, start = clocks(), time.perf_counter()
    exact, rows = statistic(data, columns)
    seconds = time.perf_counter() - start
    spent = [after - own for after, own in zip(clocks(), before)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    known = hashlib.sha256(repr((exact.tolist(), rows)).encode()).hexdigest()
    return [seconds, max(spent), sum(spent), peak, known, rows]

if __name__ == "__main__":
    print(json.dumps(main(sys.argv[4:], *map(int, sys.argv[1:4]))))
"""


def measured(script, files, columns, workers, kept):
    """Run a job afresh: seconds, CPU seconds of the busiest and of all, MB, integers, rows."""
    words = [sys.executable, str(script), *map(str, (columns, workers, kept, *files))]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="files of another run, to be read again")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as fresh:
        folder, script = words.folder or Path(fresh) / "rows", Path(fresh) / "job.py"
        script.write_text(JOB)
        folder.mkdir(exist_ok=True)
        if not list(folder.glob("*.parquet")):
            for number in range(words.files):
                path = folder / f"part-{number:03d}.parquet"
                write(path, words.rows // words.files, words.columns)
        files = sorted(folder.glob("*.parquet"))
        jobs = {
            DASK: (files, 1, TRIMMED),
            "Dask, two worker processes": (files, 2, TRIMMED),
            "Dask, one, memory kept": (files, 1, KEPT),
            "Dask, two, memory kept": (files, 2, KEPT),
            FOLDER: (files, ONE_CORE, TRIMMED),
            "folder, one process on all cores": (files, 0, TRIMMED),
            "Dask, two, a quarter of the rows": (files[: len(files) // 4], 2, TRIMMED),
        }
        load = os.getloadavg()[0]
        runs = {name: [] for name in jobs}
        for _ in range(words.repeats):
            for name, (job, workers, expected) in jobs.items():
                runs[name].append(measured(script, job, words.columns, workers, expected))
    print(f"{words.rows:,} x {words.columns} float64 in {len(files)} files")
    print(f"load average before {load:.1f}, after {os.getloadavg()[0]:.1f}: these jobs make 1 to 2")
    print("asked: two worker processes at least 1.5 times as fast as one")
    _print(runs, words.rows)


def _print(runs, rows):
    middle = {
        name: [statistics.median(run[at] for run in runs_of_job) for at in range(4)]
        for name, runs_of_job in runs.items()
    }
    print(f"{'':34s}{'seconds':>9s}{'x Dask 1':>10s}{'x core':>8s}", end="")
    print(f"{'busiest':>10s}{'x Dask 1':>10s}{'x core':>8s}{'CPU s':>8s}{'client MB':>11s}")
    for name, (took, busiest, spent, peak) in middle.items():
        share = runs[name][0][5] / rows
        wall = [middle[base][0] * share / took for base in (DASK, FOLDER)]
        cpu = [middle[base][1] * share / busiest for base in (DASK, FOLDER)]
        print(f"{name:34s}{took:9.2f}{wall[0]:10.2f}{wall[1]:8.2f}", end="")
        print(f"{busiest:10.2f}{cpu[0]:10.2f}{cpu[1]:8.2f}{spent:8.2f}{peak:11.0f}")
    checksums = {run[4] for runs_of_job in runs.values() for run in runs_of_job if run[5] == rows}
    print(f"integers: {'the same' if len(checksums) == 1 else 'DIFFERENT'} in all runs")


if __name__ == "__main__":
    main()
