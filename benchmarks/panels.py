"""Coverage of 95 % intervals on panels: persons with many rows that are alike, by person.

    python benchmarks/panels.py [--verb mean pca] [--shape normal] [--persons 20000] [--icc .3 .8]
                                [--rows mean 4] [--eps 1 5] [--runs 200] [--delta 1e-6]

Each run draws persons, with all their rows, with replacement from a population of 100,000,
so that the population's values are known exactly; with rows="mean" each person counts once,
with rows=m each of its rows as often as it is among the m that are drawn of them. Those who
are higher in the latent variable have more rows, 1 to 20, so that the two differ. A line is
one cell: least, mean and most coverage over the numbers that a fit prints an interval for,
the length of the intervals by that of the 95 % range of their middles, seconds a fit. * marks
a mean coverage outside .93-.97 by more than two Monte-Carlo standard errors.
"""

import argparse
import time
import warnings
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit

import dpmodels as dp

PERSONS, MOST = 100_000, 20
SHAPES = {
    "normal": (lambda z: z, (-6, 6)),
    "skewed": (np.exp, (0, 60)),
    "counts": (lambda z: np.maximum(np.floor(3 * z - 1), 0), (0, 30)),
    "dummy": (lambda z: (z > 1.3).astype(float), (0, 1)),
    "heavy": (lambda z: stdtrit(3, ndtr(z)), (-40, 40)),
    "wide": (lambda z: z, (-100, 100)),
}


class Panel:
    """A population of persons: their rows, and how many each has."""

    def __init__(self, shape, icc):
        rng = np.random.default_rng(7)
        shape_rows, bounds = SHAPES[shape]
        u = rng.normal(size=PERSONS)
        self.sizes = 1 + rng.binomial(MOST - 1, ndtr(u + rng.normal(size=PERSONS)))
        who = np.repeat(np.arange(PERSONS), self.sizes)
        shared, spread = np.sqrt(icc), np.sqrt(1 - icc)
        z = shared * u[who] + spread * rng.normal(size=len(who))
        fixed = rng.normal(size=PERSONS)
        self.rows = pd.DataFrame({"id": who, "y": np.clip(shape_rows(z), *bounds)})
        self.rows["x"] = np.clip(fixed[who] + 0.3 * rng.normal(size=len(who)), -5, 5)
        self.rows["g"] = rng.choice(["a", "b", "c"], len(who), p=[0.5, 0.3, 0.2])
        self.rows["s"] = np.where(fixed + rng.normal(size=PERSONS) > 0, "f", "m")[who]
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.codebook = dp.codebook(y=bounds, x=(-5, 5), g=["a", "b", "c"], s=["f", "m"])

    def weights(self, rows):
        """How much each row counts in the population that an estimate is of."""
        size = self.sizes[self.rows.id]
        return (np.minimum(size, 1 if rows == "mean" else rows)) / size

    def sample(self, persons, seed):
        rng = np.random.default_rng([seed, 11])
        persons_sampled = rng.integers(PERSONS, size=persons)
        size = self.sizes[persons_sampled]
        ids = np.repeat(np.arange(persons), size)
        inside = np.arange(len(ids)) - np.repeat(np.cumsum(size) - size, size)
        rows = self.rows.take(np.repeat(self.starts[persons_sampled], size) + inside)
        return rows.assign(id=ids)


def by(name):
    def truth(rows, weights, fit):
        means = [
            np.average(person_rows.y, weights=weights[person_rows.index])
            for _, person_rows in rows.groupby(name)
        ]
        return np.array(means)

    return truth


def everyone(rows, weights, fit):
    return np.array([np.average(rows.y, weights=weights)])


def apart(rows, weights, fit):
    return -np.diff(by("s")(rows, weights, fit))


def variance(rows, weights, fit):
    return np.array([np.cov(rows.y, aweights=weights, ddof=0)])


def share(rows, weights, fit):
    return np.array([weights[rows.s == sex].sum() / weights.sum() for sex in "fm"])


def quantile(rows, weights, fit):
    order = np.argsort(rows.y.to_numpy())
    below = np.cumsum(weights[order]) / weights.sum()
    return rows.y.to_numpy()[order][np.searchsorted(below, [0.25, 0.5, 0.75])]


def covariance(rows, weights, fit):
    return np.cov(rows[["x", "y"]].T, aweights=weights, ddof=0)[np.triu_indices(2)]


def eigenvalues(rows, weights, fit):
    scaled = (rows[["x", "y"]] / fit.call.divisor).T
    return np.linalg.eigvalsh(np.cov(scaled, aweights=weights, ddof=0))[::-1]


GAUSS = {"mechanism": "gauss"}
VERBS = {
    "mean": (dp.dp_mean, "~ y", everyone, {}),
    "mean by wave": (dp.dp_mean, "y ~ g", by("g"), {}),
    "mean by sex": (dp.dp_mean, "y ~ s", by("s"), {}),
    "ttest by sex": (dp.dp_ttest, "y ~ s", apart, {}),
    "var": (dp.dp_var, "~ y", variance, {}),
    "table": (dp.dp_table, "~ s", share, {}),
    "quantile": (dp.dp_quantile, "~ y", quantile, {"level": 0.95}),
    "cov": (dp.dp_cov, "~ x + y", covariance, GAUSS),
    "pca": (dp.dp_pca, "~ x + y", eigenvalues, GAUSS),
}


def cell(verb, panel, persons, rows, budget, runs):
    """Return of each number whether it was covered, and how long intervals are, over runs."""
    call, formula, truth, verb_truth = VERBS[verb]
    weights, hits, middles, lengths, truth_found = panel.weights(rows), [], [], [], None
    for seed in range(runs):
        data = panel.sample(persons, seed)
        with dp.simulation(seed=seed):
            options = {
                "codebook": panel.codebook,
                "person": "id",
                "rows": rows,
                **budget,
                **verb_truth,
            }
            fit = call(formula, data, **options)
            ends = fit.conf_int()[["lower", "upper"]].to_numpy(float)
        truth_found = (
            truth(panel.rows, weights, fit) if truth_found is None or verb == "pca" else truth_found
        )
        hits.append((ends[:, 0] <= truth_found) & (truth_found <= ends[:, 1]))
        middles.append(ends.mean(axis=1))
        lengths.append(np.diff(ends, axis=1)[:, 0])
    spread = 2 * 1.96 * np.std(middles, axis=0)
    return np.array(hits), float(np.mean(np.mean(lengths, axis=0) / spread))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verb", nargs="*", default=list(VERBS), choices=list(VERBS))
    parser.add_argument("--shape", nargs="*", default=["normal"], choices=list(SHAPES))
    parser.add_argument("--persons", type=int, default=20_000)
    parser.add_argument("--icc", type=float, nargs="*", default=[0.3, 0.8])
    parser.add_argument("--rows", nargs="*", default=["mean", "4"])
    parser.add_argument("--eps", type=float, nargs="*", default=[1.0, 5.0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--delta", type=float, default=1e-6)
    words = parser.parse_args()
    warnings.simplefilter("error")
    print(f"{'':48s}{'least':>7s}{'mean':>7s}{'most':>7s}{'length':>8s}{'s a fit':>9s}")
    for shape, icc in product(words.shape, words.icc):
        panel = Panel(shape, icc)
        for verb, rows, eps in product(words.verb, words.rows, words.eps):
            began = time.perf_counter()
            counted = rows if rows == "mean" else int(rows)
            budget = {"eps": eps, "delta": words.delta}
            hits, longer = cell(verb, panel, words.persons, counted, budget, words.runs)
            took = (time.perf_counter() - began) / words.runs
            rates, mean = hits.mean(axis=0), hits.mean()
            error = 2 * np.sqrt(mean * (1 - mean) / len(hits))
            mark = "*" if not 0.93 - error <= mean <= 0.97 + error else ""
            name = f"{verb}, {shape}, icc={icc:g}, rows={rows}, eps={eps:g}"
            numbers = (
                f"{rates.min():7.3f}{mean:7.3f}{rates.max():7.3f}{longer:8.2f}{took:9.2f} {mark}"
            )
            print(f"{name:48s}{numbers}", flush=True)


if __name__ == "__main__":
    main()
