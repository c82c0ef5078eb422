"""Exact moments, dp_pca and dp_lm against plain X.T @ X, and columns of text, in one run.

    python benchmarks/speed.py [--rows 1000000] [--columns 50] [--repeats 9]

Prints medians over interleaved repeats of the CPU time, and their ratio to
``X.T @ X``, with what is asked of each. Absolute times mean nothing; the ratios do.
`taskset -c 0` gives the ratios on one thread.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas as pd

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import moments


def timed(job, clock=time.process_time):
    start = clock()
    job()
    return clock() - start


def process_seconds(*words):
    return timed(
        lambda: subprocess.run([sys.executable, *words], check=True, capture_output=True),
        time.perf_counter,
    )


def text_jobs(folder, rows):
    """Return counts of three columns of text in Parquet, and reading the file alone."""
    rng = np.random.default_rng(1)
    levels = {name: [f"{name} level {i}" for i in range(12)] for name in "abc"}
    frame = pd.DataFrame(
        {name: np.array(texts, object)[rng.integers(0, 12, rows)] for name, texts in levels.items()}
    ).assign(x=rng.random(rows))
    path = f"{folder}/text.parquet"
    frame.to_parquet(path)
    book = dp.codebook(**levels, x=(0, 1))
    words = {"codebook": book, "eps": 1.0}
    return {
        "pandas.read_parquet, text": lambda: pd.read_parquet(path),
        "dp_table of 3 columns of text": lambda: dp.dp_table("~ a + b + c", path, **words),
        "dp_margins of 3 columns of text": lambda: dp.dp_margins("~ a * b + c", path, **words),
        "dp_mean by 2 columns of text": lambda: dp.dp_mean("x ~ a + b", path, **words),
    }


def process_cpu_seconds(code, folder):
    """Return user and system time of a fresh interpreter that finds bytecode in a folder."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_verb_ratio(repeats, folder):
    """Return CPU time of the first verb over that of numpy, pandas and scipy.special alone.

    All are compiled beforehand, as installed packages are: compiling takes as long again.
    """
    codes = ("import dpmodels as dp; dp.dp_mean", "import numpy, pandas, scipy.special")
    for code in codes:
        process_cpu_seconds(code, folder)
    pairs = [[process_cpu_seconds(code, folder) for code in codes] for _ in range(repeats)]
    first, base = map(statistics.median, zip(*pairs, strict=True))
    return first / base


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=9)
    words = parser.parse_args()
    array = np.random.default_rng(0).random((words.rows, words.columns))
    names = [f"x{i}" for i in range(words.columns)]
    book = dp.codebook.uniform(names, (0, 1))
    frame = pd.DataFrame(array, columns=names)
    split = pd.DataFrame({name: array[:, i].copy() for i, name in enumerate(names)})
    lattice = Lattice(20, words.columns)
    views = {name: array[:, i] for i, name in enumerate(names)}

    def fit(data, mechanism="auto"):
        words = {"codebook": book, "eps": 1.0, "delta": 1e-6, "mechanism": mechanism}
        return dp.dp_pca("~ .", data, **words).loadings

    eleven, few = np.ascontiguousarray(array[:, :11]), split[names[:11]].copy()

    def line():
        return dp.dp_lm("x0 ~ .", few, codebook=book.select(names[:11]), eps=1.0, delta=1e-6)

    def exact(data):
        return moments(private_design("~ .", data, book), lattice)

    jobs = {
        "X.T @ X": (lambda: array.T @ array, ""),
        "exact moments, frame of one array": (lambda: exact(frame), "<= 1.8"),
        "exact moments, frame of columns": (lambda: exact(split), "<= 1.8"),
        "exact moments, strided views": (lambda: exact(views), "<= 1.8"),
        "dp_pca by gauss, frame of one array": (lambda: fit(frame, "gauss"), "<= 1.4"),
        "dp_pca, frame of one array": (lambda: fit(frame), "<= 3"),
        "dp_pca, frame of columns": (lambda: fit(split), "<= 3"),
        "X.T @ X, 11 columns": (lambda: eleven.T @ eleven, ""),
        "dp_lm, 11 columns": (line, "<= 12 x that of 11 columns"),
    }
    folder = tempfile.TemporaryDirectory()
    jobs |= {name: (job, "") for name, job in text_jobs(folder.name, 2 * words.rows).items()}
    for job, _ in jobs.values():
        job()
    seconds = {name: [] for name in jobs}
    for _ in range(words.repeats):
        for name, (job, _) in jobs.items():
            seconds[name].append(timed(job))
    base = statistics.median(seconds["X.T @ X"])
    print(f"{words.rows:,} x {words.columns} float64, median of {words.repeats}")
    print(f"{'':34s}{'seconds':>9s}{'ratio':>8s}   asked")
    for name, (_, limit) in jobs.items():
        middle = statistics.median(seconds[name])
        print(f"{name:34s}{middle:9.3f}{middle / base:8.2f}   {limit}")
    print(f"\n{'start-up, median of 5':34s}{'seconds':>9s}           asked")
    for name, limit, command in (
        ("import dpmodels", "< 1.2", ("-c", "import dpmodels")),
        ("python -m dpmodels", "< 5", ("-m", "dpmodels")),
    ):
        middle = statistics.median(process_seconds(*command) for _ in range(5))
        print(f"{name:34s}{middle:9.2f}           {limit}")
    ratio = first_verb_ratio(words.repeats, f"{folder.name}/bytecode")
    print(f"\n{'CPU time, median of ' + str(words.repeats):34s}{'ratio':>9s}           asked")
    print(f"{'dp.dp_mean to what it stands on':34s}{ratio:9.2f}           <= 1.6")


if __name__ == "__main__":
    main()
