"""Histograms and tables: coverage, the size of the test of independence, error beside others.

    python benchmarks/counts.py [--runs 400]
    python benchmarks/counts.py --auto [--runs 8]
    python benchmarks/counts.py --plane [--runs 8]

- Coverage of nominal 95 % intervals, all cells together and the worst cell:
  `noise_int` for the counts of these rows, `conf_int` for the population's
  shares. Rows are drawn anew in each run. Cells have from 0.2 to 60 % of rows.
- Size and power of `chi2_test` at 5 %: share of rejections among the runs with
  a test, and the share of runs that have one. Power: two percent of all rows
  moved to the diagonal.
- Error: root mean square error of a bin's count, the rows' own histogram being
  the truth. Beside it, at the same guarantee between neighbours that replace
  one row: Laplace noise of scale 2/eps in each bin (Dwork et al. 2006),
  geometric noise of sensitivity 2 cut at 0, which is what diffprivlib's
  histogram gives when asked for eps/2, its own guarantee being for a row added
  or removed. As shipped, asked for eps, it has half of that noise and gives
  2 eps where a row is replaced; that column is beside for comparison.

Numbers after +- are Monte-Carlo standard errors.

--auto: mean absolute errors of bins and of 200 ranges by "auto", "flat", "tree" and "partition" on
seven shapes of rows. Printed are the geometric mean of both for "auto", and for "tree" or "flat",
whichever it would take without "partition", over the best of all: the median and the worst shape.

--plane: mean absolute errors of 100 rectangles by "auto", "grid" and "partition" over those of the
adaptive grid (benchmarks/algorithms.py) with the same guarantee, for random ends and for squares.
"""

import argparse
import math
import warnings

import numpy as np
import pandas as pd
from algorithms import agrid

import dpmodels as dp

EPS = (0.1, 1.0, 5.0)
WAYS = (
    ("geometric", 0.0, "replace"),
    ("gaussian", 1e-6, "replace"),
    ("geometric", 0.0, "add-remove"),
)
SHARES = np.array([0.002, 0.018, 0.08, 0.3, 0.6])
TABLES = {
    "2 x 3": ((5, 4), (5, 3, 2)),
    "4 x 5": ((4, 3, 2, 1), (5, 4, 3, 2, 1)),
    "3 x 3 sparse": ((90, 7, 3), (90, 7, 3)),
}


def book(**levels):
    return dp.codebook(**{name: list(range(size)) for name, size in levels.items()})


def share(hits):
    """A share of successes and its standard error."""
    p = float(np.mean(hits))
    return f"{p:.3f} +- {math.sqrt(max(p * (1 - p), 1e-9) / np.size(hits)):.3f}"


def histogram_coverage(runs):
    rng = np.random.default_rng(1)
    cb = dp.codebook(x=(0, 5))
    lines = []
    for rows in (1_000, 10_000, 100_000):
        for eps in EPS:
            for name, delta, adjacency in WAYS:
                noise, population = [], []
                for _ in range(runs):
                    counts = rng.multinomial(rows, SHARES)
                    data = {"x": np.repeat(np.arange(5) + 0.5, counts)}
                    words = {"mechanism": name, "adjacency": adjacency, "delta": delta}
                    fit = dp.dp_hist("~ x", data, codebook=cb, eps=eps, breaks=5, **words)
                    low, high = fit.noise_int().to_numpy().T
                    noise.append((low <= counts) & (counts <= high))
                    low, high = fit.conf_int().to_numpy().T
                    population.append((low <= SHARES) & (high >= SHARES))
                lines.append((rows, eps, name, adjacency, *covered(noise), *covered(population)))
    heads = ["n", "eps", "noise", "neighbours", "noise_int", "worst", "conf_int", "worst"]
    return pd.DataFrame(lines, columns=heads)


def covered(hits):
    cells = np.mean(hits, axis=0)
    return share(np.array(hits)), f"{cells.min():.3f}"


def table_coverage(runs):
    rng = np.random.default_rng(2)
    cb, shares = book(a=2, b=3), np.outer([0.7, 0.3], [0.6, 0.3, 0.1]).ravel()
    lines = []
    for rows in (1_000, 10_000):
        for eps in EPS:
            noise, population = [], []
            for _ in range(runs):
                counts = rng.multinomial(rows, shares)
                fit = dp.dp_table("~ a + b", cells(counts, 2, 3), codebook=cb, eps=eps)
                low, high = fit.noise_int().to_numpy().T
                noise.append((low <= counts) & (counts <= high))
                low, high = fit.conf_int().to_numpy().T
                population.append((low <= shares) & (shares <= high))
            lines.append((rows, eps, *covered(noise), *covered(population)))
    return pd.DataFrame(lines, columns=["n", "eps", "noise_int", "worst", "conf_int", "worst"])


def cells(counts, rows, columns):
    """Rows that have these counts."""
    places = np.repeat(np.arange(rows * columns), counts)
    return {"a": places // columns, "b": places % columns}


def independence(runs):
    rng = np.random.default_rng(3)
    lines = []
    for name, (a, b) in TABLES.items():
        shape = (len(a), len(b))
        even = np.outer(a, b) / (sum(a) * sum(b))
        shifted = even.copy()
        shifted[0, 0], shifted[1, 1] = shifted[0, 0] + 0.01, shifted[1, 1] + 0.01
        shifted[0, 1], shifted[1, 0] = shifted[0, 1] - 0.01, shifted[1, 0] - 0.01
        cb = book(a=shape[0], b=shape[1])
        for rows in (500, 5_000, 50_000):
            for eps in EPS:
                for law, delta in (("geometric", 0.0), ("gaussian", 1e-6)):
                    words = {"codebook": cb, "eps": eps, "delta": delta, "mechanism": law}
                    rates = [
                        rejections(runs, rng, rows, shares, shape, words)
                        for shares in (even, shifted)
                    ]
                    lines.append((name, rows, eps, law, *rates[0], rates[1][0]))
    heads = ["table", "n", "eps", "noise", "size at 5 %", "tested", "power"]
    return pd.DataFrame(lines, columns=heads)


def rejections(runs, rng, rows, shares, shape, words):
    values = []
    for _ in range(runs):
        data = cells(rng.multinomial(rows, shares.ravel()), *shape)
        values.append(dp.dp_table("~ a + b", data, **words).chi2_test().pvalue)
    finite = np.array([value for value in values if np.isfinite(value)])
    return share(finite < 0.05) if len(finite) > runs // 20 else "-", f"{len(finite) / runs:.2f}"


def error(runs):
    rng = np.random.default_rng(4)
    cb = dp.codebook(x=(0, 1))
    lines = []
    for rows, bins in ((10_000, 10), (10_000, 100)):
        data = {"x": rng.beta(2, 12, rows)}
        exact, _ = np.histogram(data["x"], np.linspace(0, 1, bins + 1))
        for eps in EPS:
            errors_by_kind = {
                "dp_hist counts": [],
                "released": [],
                "Laplace 2/eps": [],
                "cut at 0": [],
            }
            shipped, deltas = [], []
            for _ in range(runs):
                fit = dp.dp_hist("~ x", data, codebook=cb, eps=eps, breaks=bins)
                errors_by_kind["dp_hist counts"].append(fit.counts.to_numpy() - exact)
                errors_by_kind["released"].append(fit.released.to_numpy() - exact)
                errors_by_kind["Laplace 2/eps"].append(rng.laplace(0, 2 / eps, bins))
                errors_by_kind["cut at 0"].append(cut_geometric(rng, exact, eps / 2) - exact)
                shipped.append(cut_geometric(rng, exact, eps) - exact)
                normal = dp.dp_hist(
                    "~ x", data, codebook=cb, eps=eps, delta=1e-6, breaks=bins, mechanism="gaussian"
                )
                deltas.append(normal.counts.to_numpy() - exact)
            errors_by_kind["shipped, 2 eps"], errors_by_kind["gaussian, 1e-6"] = shipped, deltas
            lines.append((rows, bins, eps, *map(size, errors_by_kind.values())))
    return pd.DataFrame(lines, columns=["n", "bins", "eps", *errors_by_kind])


def cut_geometric(rng, exact, eps):
    """Geometric noise of sensitivity 1, results below 0 set to 0."""
    p = -math.expm1(-eps)
    return np.maximum(exact + rng.geometric(p, exact.size) - rng.geometric(p, exact.size), 0)


def size(errors):
    """Root mean square of errors, and its standard error by runs."""
    squares = np.mean(np.square(errors), axis=1)
    rms = math.sqrt(squares.mean())
    spread = squares.std() / math.sqrt(len(squares)) / (2 * max(rms, 1e-12))
    return f"{rms:.2f} +- {spread:.2f}"


def bins_of(shape, rng, n, bins):
    """Draw the bins of n rows."""
    fixed = np.random.default_rng(bins)
    draws = {
        "uniform": lambda: rng.integers(0, bins, n),
        "smooth": lambda: rng.normal(0.5, 0.15, n) * bins,
        "zeros": lambda: np.where(rng.random(n) < 0.5, 0, rng.exponential(0.1, n) * bins),
        "tail": lambda: rng.pareto(1.5, n) * bins / 100,
        "spiky": lambda: rng.choice(bins, n, p=few_of(fixed, bins)),
        "rough": lambda: rng.choice(bins, n, p=scaled(fixed.exponential(size=bins) ** 2)),
        "heaps": lambda: rng.choice(bins, n, p=scaled(np.where(np.arange(bins) % 10, 1, 10))),
    }
    return np.clip(draws[shape](), 0, bins - 1).astype(int) if shape else tuple(draws)


def few_of(rng, bins):
    share = np.zeros(bins)
    some = rng.choice(bins, max(bins // 20, 2), replace=False)
    share[some] = rng.dirichlet(np.full(len(some), 0.5))
    return share


def scaled(weights):
    return weights / weights.sum()


def chosen(runs):
    lines = []
    for bins in (128, 256, 2048):
        for rows in (300, 1_000, 10_000, 100_000):
            for eps in (0.1, 1.0):
                ratios = np.array(
                    [ratios_of(shape, rows, bins, eps, runs) for shape in bins_of("", None, 0, 1)]
                )
                middle, worst = np.median(ratios, axis=0), ratios.max(axis=0)
                lines.append((bins, rows, eps, middle[1], worst[1], middle[0], worst[0]))
    heads = ["bins", "n", "eps", "before: median", "worst", "auto: median", "worst"]
    return pd.DataFrame(lines, columns=heads).round(2)


def ratios_of(shape, rows, bins, eps, runs):
    """Return errors by "auto", and by what it takes where n is private, over the best."""
    book, errors = dp.codebook(x=(0, bins)), {}
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        values = bins_of(shape, rng, rows, bins)
        exact = np.bincount(values, minlength=bins)
        ends = np.sort(rng.integers(0, bins + 1, (200, 2)), axis=1)
        table = {"x": values + 0.5}
        hidden = dp.dp_hist("~ x", table, codebook=book, eps=eps / 2, breaks=bins, **PRIVATE_N)
        before = hidden.release.info.name
        for name in {"auto", "flat", "tree", "partition", before}:
            with dp.simulation(seed=seed):
                words = {"codebook": book, "eps": eps, "breaks": bins, "mechanism": name}
                wrong = dp.dp_hist("~ x", table, **words).counts.to_numpy() - exact
            sums = np.append(0, np.cumsum(wrong))[ends]
            error_pair = np.abs(wrong).mean(), np.abs(sums[:, 1] - sums[:, 0]).mean()
            errors.setdefault(name, []).append(error_pair)
    size = {
        name: math.sqrt(np.prod(np.mean(error_pair, axis=0))) for name, error_pair in errors.items()
    }
    return size["auto"] / min(size.values()), size[before] / min(size.values())


PRIVATE_N = {"adjacency": "add-remove"}
SIDE, CLUSTERS = 256, 12


def points(kind, rng, n):
    """Draw n points of the unit square."""
    if kind == "uniform":
        return rng.random((n, 2))
    if kind == "tail":
        return np.minimum(rng.pareto(1.2, (n, 2)) / 30, 1)
    if kind == "lines":
        along, angle = rng.random(n) - 0.5, np.array([0.2, 1.1, 2.3, 0.7])[rng.integers(4, size=n)]
        line = 0.5 + along * np.array([np.cos(angle), np.sin(angle)])
        return np.clip(line.T + rng.normal(0, 0.004, (n, 2)), 0, 1)
    fixed = np.random.default_rng(7)
    centres, spread = fixed.random((CLUSTERS, 2)), 0.01 + 0.05 * fixed.random(CLUSTERS)
    of = rng.choice(CLUSTERS, n, p=fixed.dirichlet(np.ones(CLUSTERS)))
    return np.clip(centres[of] + spread[of, None] * rng.normal(size=(n, 2)), 0, 1)


def planes(runs):
    lines, book = [], dp.codebook(x=(0, 1), y=(0, 1))
    names = ("auto", "grid", "partition")
    for kind in ("uniform", "clusters", "lines", "tail"):
        for eps in (0.3, 1.0):
            errors = {name: [] for name in ("agrid", *names)}
            for seed in range(runs):
                rng = np.random.default_rng(seed)
                x, y = points(kind, rng, 10_000).T
                exact, *_ = np.histogram2d(x, y, SIDE, ((0, 1), (0, 1)))
                ends = np.sort(rng.integers(0, SIDE + 1, (2, 100, 2)), axis=2)
                ends[:, 50:, 0] = np.minimum(ends[:, 50:, 0], SIDE - SIDE // 10)
                ends[:, 50:, 1] = ends[:, 50:, 0] + SIDE // 10
                words = {"codebook": book, "eps": eps, "breaks": SIDE}
                with dp.simulation(seed=seed):
                    tables = {
                        name: dp.dp_hist(
                            "~ x + y", {"x": x, "y": y}, mechanism=name, **words
                        ).counts.to_numpy()
                        for name in names
                    }
                    # Its eps is of a row more or fewer, and replacing one is both.
                    tables["agrid"] = agrid(exact.astype(np.int64), eps / 2)
                for name, table in tables.items():
                    sums = np.zeros((SIDE + 1, SIDE + 1))
                    sums[1:, 1:] = (table - exact).cumsum(axis=0).cumsum(axis=1)
                    (x0, x1), (y0, y1) = ends.transpose(0, 2, 1)
                    wrong = sums[x1, y1] - sums[x0, y1] - sums[x1, y0] + sums[x0, y0]
                    errors[name].append(np.abs(wrong).reshape(2, 50).mean(axis=1))
            mean = {name: np.mean(error_pair, axis=0) for name, error_pair in errors.items()}
            for place, ends in enumerate(("random", "squares")):
                ratios = (mean[name][place] / mean["agrid"][place] for name in names)
                lines.append((kind, eps, ends, round(mean["agrid"][place], 1), *ratios))
    heads = ["points", "eps", "rectangles", "adaptive grid", *(f"{name} over it" for name in names)]
    return pd.DataFrame(lines, columns=heads).round(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--auto", action="store_true")
    parser.add_argument("--plane", action="store_true")
    words = parser.parse_args()
    runs = words.runs
    warnings.simplefilter("error")
    parts = (("What auto chooses", chosen),) if words.auto else (("Planes", planes),)
    parts = (
        parts
        if words.auto or words.plane
        else (
            ("Coverage, histogram of 5 bins", histogram_coverage),
            ("Coverage, table 2 x 3", table_coverage),
            ("Independence", independence),
            ("Error of a bin", error),
        )
    )
    for title, part in parts:
        print(f"\n{title}, {runs} runs")
        print(part(runs).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
