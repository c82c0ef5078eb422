"""Principal components of ordinary tables: counts at the edge of their bounds, and wide bounds.

    DPMODELS_DATA=../shared/data python benchmarks/survey.py [--repeats 6]

Small counts of a survey and normal columns of a physical table, both simulated;
wages (CPS), persons (PUMS) and Adult's numbers where the data folder holds them.
Each with the bounds of its codebook, and with upper bounds so many times too
high. Prints, for every strategy, the share of the non-private energy of the
first components and the relative Frobenius error of ``fit.cov``, means over
repetitions with the same noise for all; * marks the least error of a line. With --pure
without delta, strategies with Laplace noise.
"""

import argparse
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import dpmodels as dp

BESIDE = Path(__file__).parents[2] / "shared" / "data"
STRATEGIES = ("gauss", "shells", "adaptive", "coinpress", "rounds", "auto")
PURE = ("laplace", "adaptive_pure", "rounds_pure", "auto")


class Table(NamedTuple):
    """Rows with the public bounds of their columns."""

    rows: pd.DataFrame
    bounds: dict[str, tuple[float, float]]


def survey(rows=9_822, columns=84):
    """Zero-inflated counts up to 9 with six factors behind them."""
    rng = np.random.default_rng(1)
    loadings = rng.normal(size=(columns, 6)) * rng.uniform(0.2, 1, size=6)
    mixed = rng.normal(size=(rows, 6)) @ loadings.T + rng.normal(size=(rows, columns))
    spread = np.sqrt(1 + (loadings**2).sum(axis=1))
    rate = np.exp(0.5 * mixed / spread + rng.uniform(-2, 1.2, size=columns))
    return _table(np.minimum(rng.poisson(rate), 9.0), 0.0, 9.0)


def physical(rows=92_962, columns=11):
    """Normal columns with four factors, within eight units of the middle."""
    rng = np.random.default_rng(2)
    mixed = rng.normal(size=(rows, 4)) @ rng.normal(size=(4, columns))
    return _table(np.clip(mixed + 0.5 * rng.normal(size=mixed.shape), -8, 8) + 8, 0.0, 16.0)


def _table(values, lower, upper):
    frame = pd.DataFrame(values, columns=[f"v{at}" for at in range(values.shape[1])])
    return Table(frame, dict.fromkeys(frame, (lower, upper)))


def held(folder, file, bounds):
    """A table of the data folder, complete rows of the columns that have bounds."""
    frame = pd.read_parquet(Path(folder) / file, columns=list(bounds)).dropna().astype(float)
    return Table(frame, bounds)


FILES = {
    "cps": (
        "cps_asec_2024_wages.parquet",
        {"educ_years": (0, 22), "experience": (0, 58), "female": (0, 1), "WSAL_VAL": (0, 1.5e6)},
    ),
    "pums": (
        "pums_california_10000.parquet",
        {"age": (18, 93), "educ": (1, 16), "income": (-10_000, 713_000), "married": (0, 1)},
    ),
    "adult": (
        "adult.parquet",
        {"age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99)},
    ),
}


def tables(folder):
    yield "survey", survey()
    yield "physical", physical()
    for name, (file, bounds) in FILES.items():
        if (Path(folder) / file).is_file():
            yield name, held(folder, file, bounds)


def widened(bounds, times):
    return {name: (low, low + times * (high - low)) for name, (low, high) in bounds.items()}


def line(table, times, eps, components, repeats, pure=False):
    """Energy and error of every strategy, in means over repetitions."""
    book = dp.codebook(**widened(table.bounds, times))
    half = np.array([(high - low) / 2 for low, high in widened(table.bounds, times).values()])
    truth = np.cov(table.rows.to_numpy().T / half[:, None])
    best = np.linalg.eigvalsh(truth)[-components:].sum()
    errors = {}
    for strategy in PURE if pure else STRATEGIES:
        runs = []
        for seed in range(repeats):
            with dp.simulation(seed=seed):
                words = {"eps": eps, "ncomp": components, "mechanism": strategy}
                words["delta"] = 0.0 if pure else 1e-6
                fit = dp.dp_pca("~ .", table.rows, codebook=book, **words)
            frame = fit.loadings.transpose("variable", "component").to_numpy()
            energy = np.einsum("ij,ij->", frame, truth @ frame) / best
            runs.append((energy, np.linalg.norm(fit.cov.to_numpy() - truth)))
        errors[strategy] = np.mean(runs, axis=0) / (1, np.linalg.norm(truth))
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--eps", type=float, nargs="*", default=[0.3, 1.0])
    parser.add_argument("--times", type=int, nargs="*", default=[1, 10, 100])
    parser.add_argument("--pure", action="store_true")
    words = parser.parse_args()
    names = PURE if words.pure else STRATEGIES
    print(f"{'':30s}" + "".join(f"{name:>18s}" for name in names))
    for name, table in tables(os.environ.get("DPMODELS_DATA", BESIDE)):
        count, columns = table.rows.shape
        components = min(6, columns - 1)
        for times in words.times:
            for eps in words.eps:
                line_errors = line(table, times, eps, components, words.repeats, words.pure)
                smallest = min(error for _, error in line_errors.values())
                cells = "".join(
                    f"{energy:9.3f}{error:8.3g}{'*' if error == smallest else ' '}"
                    for energy, error in line_errors.values()
                )
                what = f"{name} {count:,}x{columns} {times}x eps={eps:g}"
                print(f"{what:30s}{cells}", flush=True)


if __name__ == "__main__":
    main()
