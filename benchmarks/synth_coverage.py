"""Coverage of 95 % intervals from synthetic tables, over samples of simulated populations.

    python benchmarks/synth_coverage.py [design ...] [--rho .002 .02 .2] [--samples 100] [--rows N]

Every sample has a release of its own, of five to seven columns: numbers in cells that are bought.
Truths are those of 2,000,000 rows of the population, analysed without cells or limits. Each kind of
estimate has a line: the coverage of `conf_int()`, and of `noise_int()` for these rows; then, of the
coefficient that is covered least, its coverage, the median of errors over standard errors, and the
standard deviation of estimates over the median standard error; then the median length of
`conf_int()` over that of intervals from the rows themselves, of the median coefficient, and the
fraction of coefficients that are reported. Estimates with a flag are apart, as are those that are
refused or not identified.

- normal: correlated numbers, least squares and a logit on both, a binary column, three groups.
- counts: skewed counts on a log scale, with bounds ten times too wide.
- binary: 0/1 columns alone, beside one number.
- clusters: numbers in two clusters each.
- lognormal: amounts whose logarithm has a standard deviation of 1, bounds a hundred times wider.
- zeros: amounts, 60 % of them 0.
- clumps: counts that lie at a few numbers, which decide their means.
- pareto: amounts with a Pareto tail of exponent 1.5, up to the bounds.
- wide: normal numbers with bounds a hundred times too wide.
- narrow: normal numbers of which 98 % lie beyond bounds a hundred times too narrow.
- rare: normal numbers beside a constant, and a level of 5 rows.
- heavy: log-normal amounts whose logarithm has a standard deviation of 2.
- weibull: amounts with a Weibull distribution of shape 1/2.
- ages: whole ages of adults, two thirds of them rounded to fives.
- inflated: negative binomial counts, 30 % of which are 0 besides.
- point: numbers that are 40 for two rows of five, and spread evenly over the bounds else.
- ushaped: beta numbers with shapes of 1/2, most at the bounds.
- broad: normal numbers with bounds fifty times their standard deviation apart.
- five: whole numbers from 0 to 4.
- uniform: numbers that are uniform on their bounds, or sums of two such numbers.
- adult: ages, years of schooling and hours of the shared table, drawn with replacement.
- pums: ages, years of schooling and incomes of the shared table of California, likewise.
- wine: sugar, sulphur and alcohol of the shared table, likewise.
"""

import argparse
import os
import sys
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import dpmodels as dp
from dpmodels.errors import NotAvailable

DATA = Path(os.environ.get("DPMODELS_DATA", "../shared/data"))
POPULATION = 2_000_000
Z_95 = 1.96


def _yes(rng, log_odds):
    return np.where(rng.random(len(log_odds)) < 1 / (1 + np.exp(-log_odds)), "yes", "no")


def _groups(rng, n):
    return rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])


def normal(rng, n):
    g = _groups(rng, n)
    u = rng.normal(50, 12, n)
    v = 0.6 * (u - 50) + rng.normal(30, 10, n) + 4 * (g == "b")
    y = 20 + 0.5 * u - 0.4 * v + 6 * (g == "c") + rng.normal(0, 10, n)
    b = _yes(rng, -0.5 + 0.05 * (u - 50) - 0.06 * (v - 30))
    return {"u": u, "v": v, "y": y, "g": g, "b": b}, (-100, 200)


def counts(rng, n):
    g = _groups(rng, n)
    u = rng.poisson(np.exp(0.9 + 0.4 * (g == "b") + 0.6 * rng.normal(size=n)))
    v = rng.poisson(np.exp(0.3 + 0.7 * rng.normal(size=n)) + 0.3 * u)
    y = rng.poisson(rng.gamma(1.5, (1 + 0.5 * u + 0.5 * v + 2 * (g == "c")) / 1.5))
    b = _yes(rng, -1 + 0.12 * u + 0.1 * v)
    return {"u": u, "v": v, "y": y, "g": g, "b": b}, (0, 400)


def binary(rng, n):
    g = _groups(rng, n)
    u = (rng.random(n) < 0.3 + 0.2 * (g == "b")).astype(int)
    v = (rng.random(n) < 0.15 + 0.4 * u).astype(int)
    y = np.clip(30 + 8 * u - 5 * v + 4 * (g == "c") + rng.normal(0, 10, n), 0, 100)
    b = _yes(rng, -0.7 + 1.2 * u - 0.8 * v)
    return {"u": u, "v": v, "y": y, "g": g, "b": b}, (0, 100)


def clusters(rng, n):
    of = rng.random(n) < 0.4
    g = np.where(rng.random(n) < 0.6, np.where(of, "a", "b"), _groups(rng, n))
    u = np.where(of, 15, 70) + rng.normal(0, 4, n)
    v = np.where(rng.random(n) < 0.25 + 0.5 * of, 40, 90) + rng.normal(0, 3, n)
    y = 10 + 0.4 * u + 0.3 * v + 5 * (g == "c") + rng.normal(0, 6, n)
    b = _yes(rng, -1.5 + 0.03 * u + 0.005 * v)
    return {"u": u, "v": v, "y": y, "g": g, "b": b}, (-200, 400)


def lognormal(rng, n):
    g = _groups(rng, n)
    u = np.exp(rng.normal(3, 1, n))
    v = np.exp(0.4 * np.log(u) + rng.normal(1.5, 0.8, n))
    y = 5 + 0.3 * u + 0.4 * v + 6 * (g == "c") + rng.gamma(2, 8, n)
    b = _yes(rng, -1 + 0.015 * u + 0.01 * v)
    return {"u": u, "v": v, "y": y, "g": g, "b": b}, (0, 100_000)


def zeros(rng, n):
    g = _groups(rng, n)
    u = np.where(rng.random(n) < 0.6, 0, rng.gamma(2, 20, n))
    v = np.where(rng.random(n) < 0.4 + 0.2 * (u == 0), 0, rng.gamma(2, 10, n))
    y = 10 + 0.2 * u + 0.3 * v + 3 * (g == "c") + rng.normal(0, 5, n)
    b = _yes(rng, -1 + 0.02 * u + 0.02 * v)
    return {"u": u, "v": v, "y": y, "g": g, "b": b}, (0, 2_000)


def clumps(rng, n):
    g = _groups(rng, n)
    of = rng.choice([2, 9, 40], n, p=[0.5, 0.35, 0.15])
    u = rng.poisson(of) + 2 * (g == "b")
    v = rng.poisson(np.where(rng.random(n) < 0.7, of / 2, 25.0))
    y = rng.poisson(3 + 0.5 * u + 0.3 * v + 4 * (g == "c"))
    b = _yes(rng, -1 + 0.03 * u + 0.02 * v)
    return {"u": u, "v": v, "y": y, "g": g, "b": b}, (0, 200)


def pareto(rng, n):
    g = _groups(rng, n)
    u = 10 * rng.random(n) ** (-1 / 1.5)
    v = 5 * rng.random(n) ** (-1 / 1.5) + 0.2 * np.minimum(u, 100)
    y = 5 + 0.3 * np.minimum(u, 1_000) + 0.4 * np.minimum(v, 1_000) + 6 * (g == "c")
    b = _yes(rng, -1 + 0.01 * u + 0.01 * v)
    return {"u": u, "v": v, "y": y + rng.gamma(2, 8, n), "g": g, "b": b}, (0, 1_000)


def wide(rng, n):
    columns, (low, high) = normal(rng, n)
    return columns, (100 * low, 100 * high)


def narrow(rng, n):
    columns, _ = normal(rng, n)
    return columns, (0.0, 25.0)


def rare(rng, n):
    columns, bounds = normal(rng, n)
    columns["k"] = np.full(n, 20.0)
    columns["g"] = np.where(rng.random(n) < 0.0005, "c", rng.choice(["a", "b"], n))
    return columns, bounds


def _with_response(rng, u, v, bounds, noise, scale):
    """Add a response and groups to two columns that are related already."""
    g = _groups(rng, len(u))
    y = 0.3 * u + 0.4 * v + 0.3 * scale * (g == "c") + noise * scale
    b = _yes(rng, -1 + (0.4 * u + 0.3 * v) / scale)
    return {"u": u, "v": v, "y": y, "g": g, "b": b}, bounds


def heavy(rng, n):
    u = np.exp(rng.normal(3, 2, n))
    v = np.exp(0.3 * np.log(u) + rng.normal(2, 1.5, n))
    return _with_response(
        rng, np.minimum(u, 1e5), np.minimum(v, 1e5), (0, 1e5), rng.gamma(2, 1, n), 100
    )


def weibull(rng, n):
    u = 20 * rng.weibull(0.5, n)
    v = 10 * rng.weibull(0.5, n) + 0.3 * u
    return _with_response(rng, u, v, (0, 5_000), rng.gamma(2, 1, n), 60)


def ages(rng, n):
    u = np.clip(18 + rng.gamma(4, 7, n), 18, 95)
    v = np.clip(0.7 * u + rng.normal(10, 8, n), 18, 95)
    rounded = rng.random((2, n)) < 2 / 3
    u, v = (
        np.where(r, 5 * np.round(x / 5), np.round(x)) for x, r in zip((u, v), rounded, strict=True)
    )
    return _with_response(rng, u.astype(int), v.astype(int), (0, 120), rng.normal(0, 1, n), 13)


def inflated(rng, n):
    is_counted = rng.random((2, n)) < 0.7
    u = rng.poisson(rng.gamma(2, 4, n)) * is_counted[0]
    v = rng.poisson(rng.gamma(2, 2, n) + 0.3 * u) * is_counted[1]
    columns, bounds = _with_response(rng, u, v, (0, 300), rng.gamma(2, 0.5, n), 5)
    return {**columns, "y": np.round(columns["y"]).astype(int)}, bounds


def point(rng, n):
    u = np.where(rng.random(n) < 0.4, 40.0, rng.uniform(0, 100, n))
    v = np.where(rng.random(n) < 0.4, 40.0, 0.5 * u + rng.uniform(0, 50, n))
    return _with_response(rng, u, v, (0, 100), rng.normal(0.5, 0.3, n), 20)


def ushaped(rng, n):
    u = 100 * rng.beta(0.5, 0.5, n)
    v = np.where(rng.random(n) < 0.4, u, 100 * rng.beta(0.5, 0.5, n))
    return _with_response(rng, u, v, (0, 100), rng.normal(0.5, 0.3, n), 35)


def broad(rng, n):
    columns, _ = normal(rng, n)
    return columns, (-250, 350)


def five(rng, n):
    u = rng.binomial(4, 0.4, n)
    v = np.minimum(rng.binomial(3, 0.4, n) + (rng.random(n) < 0.2 + 0.1 * u), 4)
    return _with_response(rng, u, v, (0, 4), np.clip(rng.normal(1, 0.3, n), 0, 2), 1)


def uniform(rng, n):
    u = rng.uniform(0, 100, n)
    v = 0.5 * u + rng.uniform(0, 50, n)
    return _with_response(rng, u, v, (0, 100), rng.uniform(0, 1, n), 25)


@cache
def _adults():
    columns = ["age", "education_num", "hours_per_week", "marital_status", "income"]
    return pd.read_parquet(DATA / "adult.parquet", columns=columns)


def adult(rng, n):
    rows = _adults().iloc[rng.integers(len(_adults()), size=n)]
    numbers = zip("uvy", ("age", "education_num", "hours_per_week"), strict=True)
    status = rows["marital_status"].astype(str)
    groups = np.select(
        [status.str.startswith("Married"), status == "Never-married"], ["a", "b"], "c"
    )
    yes = np.where(rows["income"].astype(str).str.startswith(">"), "yes", "no")
    columns = {name: rows[column].to_numpy(int) for name, column in numbers}
    return {**columns, "g": groups, "b": yes}, (0, 100)


@cache
def _shared(name):
    return pd.read_parquet(DATA / name)


def pums(rng, n):
    table = _shared("pums_california_10000.parquet")
    rows = table.iloc[rng.integers(len(table), size=n)]
    names = {"u": "age", "v": "educ", "y": "income"}
    columns = {name: rows[column].to_numpy(int) for name, column in names.items()}
    groups = np.select([rows["latino"] == 1, rows["asian"] == 1], ["a", "b"], "c")
    columns |= {"g": groups, "b": np.where(rows["married"] == 1, "yes", "no")}
    return columns, {"u": (0, 100), "v": (0, 20), "y": (-20_000, 1_000_000)}


def wine(rng, n):
    table = _shared("wine_quality.parquet")
    rows = table.iloc[rng.integers(len(table), size=n)]
    names = {"u": "residual_sugar", "v": "total_sulfur_dioxide", "y": "alcohol"}
    columns = {name: rows[column].to_numpy(float) for name, column in names.items()}
    groups = np.select([rows["quality"] <= 5, rows["quality"] == 6], ["a", "b"], "c")
    columns |= {"g": groups, "b": np.where(rows["colour"] == "white", "yes", "no")}
    return columns, {"u": (0, 100), "v": (0, 500), "y": (0, 20)}


KINDS = (
    *(normal, counts, binary, clusters, lognormal, zeros, clumps, pareto, wide, narrow, rare),
    *(heavy, weibull, ages, inflated, point, ushaped, broad, five, uniform),
    *(adult, pums, wine),
)
DESIGNS = {kind.__name__: kind for kind in KINDS}


def columns_of(kind, seed, n):
    """Return the columns of a sample, two of which carry no information on others."""
    rng = np.random.default_rng(seed)
    columns, bounds = DESIGNS[kind](rng, n)
    columns["r"] = rng.choice(["n", "s"], n)
    numbers = {name: col for name, col in columns.items() if col.dtype.kind in "if"}
    if not isinstance(bounds, dict):
        bounds = dict.fromkeys(numbers, bounds)
    limited = {name: np.clip(col, *bounds[name]) for name, col in numbers.items()}
    return {**columns, **limited}, bounds


def book_of(columns, bounds):
    book = {}
    for name, column in columns.items():
        if column.dtype.kind == "f":
            book[name] = bounds[name]
        elif column.dtype.kind == "i":
            book[name] = dp.Integer(*((0, 1) if column.max() == 1 else bounds[name]))
        else:
            book[name] = sorted(set(column.tolist()))
    return dp.codebook(**book)


def truths(columns):
    """Return estimates of rows by kind, as those of the synthetic table."""
    n, y = len(columns["y"]), columns["y"].astype(float)
    u, v = (columns[name].astype(float) for name in "uv")
    groups = [columns["g"] == level for level in "abc"]
    yes = (columns["b"] == "yes").astype(float)
    wide = np.column_stack([np.ones(n), groups[1], groups[2], u, v])
    narrow = np.column_stack([np.ones(n), u, v])
    cells = [np.mean(group & (yes == level)) for group in groups for level in (0, 1)]
    return {
        "ols": np.linalg.solve(wide.T @ wide, wide.T @ y),
        "ols u ~ y": np.linalg.lstsq(np.column_stack([np.ones(n), y]), u, rcond=None)[0],
        "logit": logit(narrow, yes),
        "means": np.array([y[group].mean() for group in groups]),
        "mean": np.array([u.mean()]),
        "table": np.array(cells),
    }


def logit(x, y):
    params = np.zeros(x.shape[1])
    for _ in range(30):
        mean = 1 / (1 + np.exp(-(x @ params)))
        step = np.linalg.solve(x.T @ ((mean * (1 - mean))[:, None] * x), x.T @ (y - mean))
        params = params + step
        if np.abs(step).max() < 1e-10:
            break
    return params


ESTIMATES = {
    "ols": lambda syn: syn.lm("y ~ u + v + g"),
    "ols u ~ y": lambda syn: syn.lm("u ~ y"),
    "logit": lambda syn: syn.glm("b ~ u + v"),
    "means": lambda syn: syn.mean("y ~ g"),
    "mean": lambda syn: syn.mean("~ u"),
    "table": lambda syn: syn.table("~ g + b"),
}


def coverage(kind, rho, n_samples, n_rows):
    combined, bounds = columns_of(kind, 10**6, POPULATION)
    book, population = book_of(combined, bounds), truths(combined)
    lines = {}
    for seed in range(n_samples):
        columns, _ = columns_of(kind, seed, n_rows)
        of_rows = truths(columns)
        with dp.simulation(seed=seed):
            rows = pd.DataFrame(columns)
            syn = dp.dp_synth("~ .", rows, codebook=book, budget=dp.ZCDP(rho))
        for name, estimate in ESTIMATES.items():
            try:
                fit = estimate(syn)
            except NotAvailable:
                lines.setdefault(f"{name} (refused)", []).append(None)
                continue
            params, sd = fit.params.to_numpy(), fit.bse.to_numpy()
            inside = [
                np.where(np.isfinite(params), (ends[:, 0] <= exact) & (exact <= ends[:, 1]), np.nan)
                for ends, exact in (
                    (fit.conf_int().to_numpy(), population[name]),
                    (fit.noise_int().to_numpy(), of_rows[name]),
                )
            ]
            label = f"{name} (flagged)" if fit.assumes else name
            ends, exact = fit.conf_int().to_numpy(), of_rows[name] - population[name]
            line = (*inside, params - population[name], sd, ends[:, 1] - ends[:, 0], exact)
            lines.setdefault(label, []).append(line)
    return lines


def report(kind, rho, lines):
    print(f"{kind}, rho {rho:g}", flush=True)
    for name, runs in lines.items():
        if runs[0] is None:
            print(f"  {name:18s} {len(runs)}")
            continue
        full, noise, gaps, sds, lengths, exact = (
            np.array(part, dtype=float) for part in zip(*runs, strict=True)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bias = np.nanmedian(gaps / sds, axis=0)
            spread = np.nanstd(gaps, axis=0) / np.nanmedian(sds, axis=0)
            by_term = np.nanmean(full, axis=0)
            k = int(np.nanargmin(by_term)) if np.isfinite(by_term).any() else 0
            of_rows = 2 * Z_95 * np.sqrt(np.mean(exact**2, axis=0))
            longer = np.nanmedian(np.nanmedian(lengths, axis=0) / of_rows)
            shares = (np.nanmean(full), np.nanmean(noise), by_term[k], bias[k], spread[k], longer)
            shares += (np.isfinite(full).mean(),)
        n_of = int(np.isfinite(full).all(axis=1).sum())
        numbers = "  ".join(f"{number:6.3f}" for number in shares)
        print(f"  {name:18s} {numbers}  term {k}, samples {n_of}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("designs", nargs="*", choices=[*DESIGNS, []], default=[])
    parser.add_argument("--rho", nargs="*", type=float, default=[0.002, 0.02, 0.2])
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args()
    print(f"{'':20s} conf    noise   worst   bias    sd    length  reported")
    for kind in options.designs or DESIGNS:
        for rho in options.rho:
            start = time.process_time()
            report(kind, rho, coverage(kind, rho, options.samples, options.rows))
            print(f"  {time.process_time() - start:.0f} s CPU", flush=True)


if __name__ == "__main__":
    sys.exit(main())
