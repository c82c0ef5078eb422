"""Coverage of 95 % intervals where rows of a person are alike, beside statsmodels' own.

    python benchmarks/clustered.py [--verb lm glm] [--shape normal heavy] [--persons 20000]
                                   [--rows mean 4] [--eps 1 5] [--icc .3 .8] [--runs 200]

Persons have 1 to 20 rows, one number `x` that varies among them and one, `z`, that does not; what
is not explained has the correlation --icc among them. A line is one cell and one coefficient:
coverage of the intervals offered, the share offered, the mean private standard error over the
standard deviation of the private estimates; coverage of statsmodels' clustered intervals on the
same rows (with rows=4, on four of each person's), coverage of its row-level ones, and how many
times as long the private intervals are as its clustered ones.
"""

import argparse
import time
import warnings
from itertools import product

import numpy as np
import pandas as pd
import statsmodels.api as sm

import dpmodels as dp

SLOPES = np.array([1.0, 0.5, -0.3])
LAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "skewed": lambda rng, size: rng.exponential(size=size) - 1,
    "heavy": lambda rng, size: rng.standard_t(3, size) / np.sqrt(3),
}
SHAPES = (*LAWS, "dummy", "wide", "counts")


def persons(seed, size, shape):
    """Return a generator, whose the rows are, how many each has, and both columns."""
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 21, size)
    whose = np.repeat(np.arange(size), count)
    if shape == "dummy":
        return rng, whose, count, rng.random(len(whose)) < 0.2, (rng.random(size) < 0.3)[whose]
    return rng, whose, count, rng.uniform(-1, 1, len(whose)), rng.uniform(-1, 1, size)[whose]


def lm(seed, size, icc, shape):
    """A response that is linear in both, and what a linear regression says of it."""
    rng, whose, count, x, z = persons(seed, size, shape)
    mean = SLOPES @ np.vstack([np.ones(len(x)), x, z])
    if shape == "counts":
        shared = rng.gamma(1 / icc, icc, size)[whose]
        y = (rng.poisson(2 * mean * shared) * (rng.random(len(x)) < 0.5)).clip(0, 60)
    else:
        law = LAWS.get(shape, LAWS["normal"])
        by_person, by_row = law(rng, size)[whose], law(rng, len(x))
        y = (mean + np.sqrt(icc) * by_person + np.sqrt(1 - icc) * by_row).clip(-10, 10)
    times = 10 if shape == "wide" else 1
    book = dp.codebook(
        y=(0, 60) if shape == "counts" else (-10 * times, 10 * times),
        **dict.fromkeys("xz", (0, 1) if shape == "dummy" else (-times, times)),
    )
    data = pd.DataFrame(
        {"y": y, "x": 1.0 * x, "z": 1.0 * z, "id": whose, "share": 1 / count[whose]}
    )
    return data, book, dp.dp_lm


def glm(seed, size, icc, shape):
    """Two levels whose log odds are linear in both, with a shift of each person's own.

    What a logistic regression says of a whole population is read from a larger draw.
    """
    rng, whose, count, x, z = persons(seed, size, shape)
    shift = np.sqrt(icc / (1 - icc)) * 1.8 * LAWS.get(shape, LAWS["normal"])(rng, size)[whose]
    mean = np.array([-0.5, 0.8, -0.6]) @ np.vstack([np.ones(len(x)), x, z])
    b = mean + shift + rng.logistic(size=len(x)) > 0
    times = 10 if shape == "wide" else 1
    bounds = (0, 1) if shape == "dummy" else (-times, times)
    book = dp.codebook(y=["no", "yes"], x=bounds, z=bounds)
    columns = {"b": 1.0 * b, "x": 1.0 * x, "z": 1.0 * z, "id": whose, "share": 1 / count[whose]}
    return pd.DataFrame({"y": np.where(b, "yes", "no"), **columns}), book, dp.dp_glm


VERBS = {"lm": lm, "glm": glm}


def without(data, rows, number):
    """Return estimates, clustered errors and row-level ones, without privacy."""
    rows_used = data if rows == "mean" else data[data.groupby("id").cumcount() < int(rows)]
    x, y = sm.add_constant(rows_used[["x", "z"]]), rows_used[number or "y"]
    weights = rows_used.share if rows == "mean" else None
    if number is None:
        model = sm.WLS(y, x, weights=1.0 if weights is None else weights)
    else:
        model = sm.GLM(y, x, family=sm.families.Binomial(), freq_weights=weights)
    fit = model.fit(cov_type="cluster", cov_kwds={"groups": rows_used["id"].to_numpy()})
    return fit.params.to_numpy(), fit.bse.to_numpy(), model.fit(cov_type="HC1").bse.to_numpy()


def cell(verb, shape, persons, rows, eps, icc, runs, delta):
    truth, number = SLOPES, None if verb == "lm" else "b"
    if verb == "glm":
        truth = without(VERBS[verb](10**6, 20 * persons, icc, shape)[0], rows, number)[0]
    estimates, references = [], []
    for seed in range(runs):
        data, book, fitted = VERBS[verb](seed, persons, icc, shape)
        words = {"person": "id", "rows": rows if rows == "mean" else int(rows)}
        with dp.simulation(seed=seed):
            fit = fitted("y ~ x + z", data, codebook=book, eps=eps, delta=delta, **words)
        if fit.identified.any():
            ends, bse = fit.conf_int().to_numpy(float), fit.bse.to_numpy()
        else:
            ends, bse = np.full((3, 2), np.nan), np.full(3, np.nan)
        is_finite = np.isfinite(ends).all(axis=1)
        holds = np.where(is_finite, (ends[:, 0] <= truth) & (truth <= ends[:, 1]), np.nan)
        estimates.append(
            [
                fit.params.to_numpy(),
                bse,
                holds,
                np.where(is_finite, ends[:, 1] - ends[:, 0], np.nan),
            ]
        )
        fit_without, clustered, plain = without(data, rows, number)
        off = np.abs(fit_without - truth) / 1.96
        references.append([off <= clustered, off <= plain, 2 * 1.96 * clustered])
    return np.array(estimates), np.array(references, dtype=float)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--verb", nargs="+", default=["lm"], choices=VERBS)
    parser.add_argument("--shape", nargs="+", default=["normal"], choices=SHAPES)
    parser.add_argument("--persons", type=int, default=20_000)
    parser.add_argument("--rows", nargs="+", default=["mean", "4"])
    parser.add_argument("--eps", nargs="+", type=float, default=[1.0, 5.0])
    parser.add_argument("--icc", nargs="+", type=float, default=[0.3, 0.8])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--delta", type=float, default=1e-6)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{args.persons:,} persons with 1 to 20 rows, {args.runs} runs")
    print("verb shape   icc rows eps coef    cover offered se/sd  cluster    rows  times  s/run")
    cells = product(args.verb, args.shape, args.icc, args.rows, args.eps)
    for verb, shape, icc, rows, eps in cells:
        start = time.perf_counter()
        ratios, references = cell(verb, shape, args.persons, rows, eps, icc, args.runs, args.delta)
        seconds = (time.perf_counter() - start) / args.runs
        offered, cover = np.isfinite(ratios[:, 2]).mean(axis=0), np.nanmean(ratios[:, 2], axis=0)
        ratio = np.nanmean(ratios[:, 1], axis=0) / np.nanstd(ratios[:, 0], axis=0)
        clustered, plain, length = references.mean(axis=0)
        times = np.nanmean(ratios[:, 3], axis=0) / length
        for at, name in enumerate(("const", "x", "z")):
            print(
                f"{verb:4} {shape:7} {icc:3} {rows:>4} {eps:3g} {name:5} {cover[at]:7.3f} "
                f"{offered[at]:7.2f} {ratio[at]:5.2f} {clustered[at]:8.3f} {plain[at]:7.3f} "
                f"{times[at]:6.2f} {seconds:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
