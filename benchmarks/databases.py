"""Verbs on a table of a database against the database's own queries, and against streamed rows.

    python benchmarks/databases.py [--rows 1000000] [--repeats 3]

Prints medians over interleaved repeats and their ratios. DuckDB runs in this process with one
thread, in CPU time; PostgreSQL is started in a temporary folder, and its server's time is in
seconds on the clock. Absolute times mean nothing; the ratios do.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

import dpmodels as dp
from dpmodels.design import rows, sql

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from postgres_server import running

NUMBERS = [f"x{at}" for at in range(6)]
BOOK = dp.codebook(
    {
        "sex": ["F", "M"],
        "region": list("abcdefgh"),
        "age": dp.Integer(0, 100),
        **dict.fromkeys(NUMBERS, (-9, 9)),
    }
)
COUNTS = {
    "dp_table": ("~ sex + region", "SELECT sex, region, count(*) FROM t GROUP BY ALL"),
    "dp_hist": ("~ age", "SELECT age, count(*) FROM t GROUP BY ALL"),
    "dp_levels": ("~ region", "SELECT region, count(*) FROM t GROUP BY ALL"),
    "dp_margins": (
        "~ sex*region + age:sex",
        "SELECT sex, region, age, count(*) FROM t GROUP BY ALL",
    ),
    "dp_mean": ("age ~ sex", "SELECT sex, age, count(*) FROM t GROUP BY ALL"),
    "dp_quantile": ("age ~ sex", "SELECT sex, age, count(*) FROM t GROUP BY ALL"),
}


def table(n_rows):
    rng = np.random.default_rng(0)
    numbers = {name: rng.normal(size=n_rows).round(6) * 3 for name in NUMBERS}
    sex, region = rng.choice(["F", "M"], n_rows), rng.choice(list("abcdefgh"), n_rows)
    return pd.DataFrame(
        {"sex": sex, "region": region, "age": rng.integers(-3, 120, n_rows), **numbers}
    )


def compared(jobs, repeats, clock):
    """Return the median time of each job, of interleaved repeats after a first one."""
    times = {name: [] for name in jobs}
    for repeat in range(repeats + 1):
        for name, job in jobs.items():
            start = clock()
            job()
            if repeat:
                times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def printed(label, medians, requirement=""):
    ours = medians["own"]
    ratios = "  ".join(f"{name} {value / ours:6.2f}" for name, value in medians.items())
    print(f"{label:22} own query {ours:7.3f} s   ratios: {ratios}   {requirement}", flush=True)


def streamed():
    """Let no source group its rows."""
    return patch.object(rows, "grouping", lambda *args: None)


def duckdb_counts(frame, repeats):
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        connection = duckdb.connect(f"{folder}/t.duckdb")
        connection.execute("SET threads = 1")
        connection.execute("CREATE TABLE t AS SELECT * FROM frame")
        source = dp.sql(connection, table="t")
        for name, (formula, query) in COUNTS.items():

            def fit(data, name=name, formula=formula):
                getattr(dp, name)(formula, data, codebook=BOOK, eps=1.0, delta=1e-6)

            def of_rows(fit=fit):
                with streamed():
                    fit(source)

            jobs = {
                "own": lambda query=query: connection.execute(query).fetchall(),
                "grouped": lambda fit=fit: fit(source),
                "streamed": of_rows,
                "frame": lambda fit=fit: fit(frame),
            }
            printed(f"DuckDB {name}", compared(jobs, repeats, time.process_time), "asked: 3")


def postgres_moments(frame, repeats):
    import psycopg

    pairs = [f"sum({a} * {b})" for at, a in enumerate(NUMBERS) for b in NUMBERS[at:]]
    query = f"SELECT count(*), {', '.join([f'sum({x})' for x in NUMBERS] + pairs)} FROM t"
    with running() as url, psycopg.connect(url, autocommit=True) as connection:
        columns = ", ".join(f"{name} double precision" for name in NUMBERS)
        connection.execute(f"CREATE TABLE t ({columns})")
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            copy.write(frame[NUMBERS].to_csv(sep="\t", index=False, header=False))
        connection.execute("ANALYZE t")
        connection.execute("SET max_parallel_workers_per_gather = 0")
        source = dp.sql(url, table="t")

        def fit(clipping):
            with dp.options(clipping=clipping):
                formula = f"~ {' + '.join(NUMBERS)}"
                dp.dp_cov(formula, source, codebook=BOOK, eps=1.0, delta=1e-6, mechanism="gauss")

        def of_rows():
            with patch.object(sql, "MOST_COLUMNS", 0):
                fit(False)

        jobs = {
            "own": lambda: connection.execute(query).fetchall(),
            "summed": lambda: fit(False),
            "with counts of clipped": lambda: fit(True),
            "streamed": of_rows,
        }
        printed("PostgreSQL dp_cov", compared(jobs, repeats, time.perf_counter), "asked: 3")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    words = parser.parse_args()
    frame = table(words.rows)
    duckdb_counts(frame, words.repeats)
    postgres_moments(frame, words.repeats)


if __name__ == "__main__":
    main()
