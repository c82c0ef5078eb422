"""Coverage of every 95 % interval, on columns of every shape, beside the share offered.

    python benchmarks/intervals.py [--verb lm quantile] [--shape counts] [--n 2000] [--eps 1]
                                   [--runs 200] [--delta 1e-6] [--wide 1 100]

Each run draws new rows from a population of a million (see shapes.py) and fits once;
the truth is what the verb says of the population without noise. A line is one cell:
least, mean and most coverage over the numbers that a fit prints an interval for, each
over the runs in which it is offered; the mean share of intervals offered; seconds a
fit. With --wide the bounds of x1..x5 are declared so many times as wide. * marks a mean
coverage outside .93-.97 by more than two Monte-Carlo standard errors.
"""

import argparse
import time
import warnings
from itertools import product

import numpy as np
import pandas as pd
import shapes
import statsmodels.api as sm

import dpmodels as dp

DESIGN = "x1 + x2 + x3 + x4 + x5"
NAMES = DESIGN.split(" + ")


def ends(frame):
    return frame[["lower", "upper"]].to_numpy(float)


def regression(fit, design, family=None):
    """Return what a model without noise says of a whole population."""
    x = sm.add_constant(design[NAMES])
    model = sm.OLS(design[fit], x) if family is None else sm.GLM(design[fit], x, family=family)
    return model.fit().params.to_numpy()


def mean(pop):
    return pop.groupby("g").x1.mean().to_numpy(), "x1 ~ g", dp.dp_mean


def var(pop):
    return pop.groupby("g").x1.var(ddof=0).to_numpy(), "x1 ~ g", dp.dp_var


def quantile(pop):
    truth = np.quantile(pop.x1, [0.25, 0.5, 0.75], method="inverted_cdf")
    return truth, "~ x1", dp.dp_quantile


def grouped(pop):
    probs = [0.25, 0.5, 0.75]
    truth = [np.quantile(group, probs, method="inverted_cdf") for _, group in pop.groupby("g").x1]
    return np.concatenate(truth), "x1 ~ g", dp.dp_quantile


def hist(pop):
    bins = pd.cut(pop.x1, np.linspace(*pop.attrs["bounds"], 11), include_lowest=True)
    return bins.value_counts(normalize=True, sort=False).to_numpy(), "~ x1", dp.dp_hist


def table(pop):
    return pop.groupby(["event50", "g"]).size().to_numpy() / len(pop), "~ event50 + g", dp.dp_table


def lm(pop):
    return regression("y", pop), f"y ~ {DESIGN}", dp.dp_lm


def uneven(pop):
    return regression("uneven", pop), f"uneven ~ {DESIGN}", dp.dp_lm


def glm(rate):
    def rare(pop):
        return regression(rate, pop, sm.families.Binomial()), f"{rate} ~ {DESIGN}", dp.dp_glm

    return rare


def poisson(pop):
    return regression("visits", pop, sm.families.Poisson()), f"visits ~ {DESIGN}", dp.dp_glm


def covariance(pop):
    matrix = np.cov(pop[NAMES].T, ddof=0)
    return matrix[np.triu_indices(5)], f"~ {DESIGN}", dp.dp_cov


def pca(pop):
    return None, f"~ {DESIGN}", dp.dp_pca


VERBS = {
    "mean": (mean, {}),
    "var": (var, {}),
    "quantile": (quantile, {}),
    "quantile g": (grouped, {}),
    "hist": (hist, {}),
    "table": (table, {}),
    "lm": (lm, {}),
    "lm HC": (uneven, {"vcov": "HC"}),
    "prediction": (lm, {}),
    "glm 2%": (glm("event2"), {}),
    "glm 10%": (glm("event10"), {}),
    "glm 50%": (glm("event50"), {}),
    "poisson": (poisson, {"family": "poisson"}),
    "cov": (covariance, {}),
    "pca": (pca, {"mechanism": "gauss"}),
}


def held(verb, fit, truth, sample):
    """Return the ends of a fit's intervals and what they should hold."""
    if verb == "prediction":
        ahead = fit.get_prediction(sample, clip=True)
        return ahead[["obs_ci_lower", "obs_ci_upper"]].to_numpy(float), sample.y.to_numpy()
    return ends(fit.conf_int()), truth


def eigenvalues(pop, fit):
    """Return the population's in the units of the fit."""
    scaled = pop[NAMES].to_numpy() / fit.call.divisor
    return np.linalg.eigvalsh(np.cov(scaled.T))[::-1]


def cell(verb, population, count, words, runs, wide=1):
    """Return coverage and share offered of each number, over runs."""
    describe, spec = VERBS[verb]
    truth, formula, call = describe(population.rows)
    wider = {name: tuple(wide * end for end in population.codebook[name]) for name in NAMES}
    book = dp.codebook(**(population.codebook | wider))
    hits, offered = [], []
    for seed in range(runs):
        rows = population.sample(count, seed)
        with dp.simulation(seed=seed):
            try:
                fit = call(formula, rows, codebook=book, **words, **spec)
                sample = population.sample(40, runs + seed)
                if verb == "pca":
                    truth = eigenvalues(population.rows, fit)
                intervals, truths = held(verb, fit, truth, sample)
            except dp.errors.NotAvailable:
                intervals, truths = np.full((1, 2), np.nan), np.zeros(1)
        is_offered = np.isfinite(intervals).all(axis=1)
        offered.append(is_offered.mean())
        hit = (intervals[:, 0] <= truths) & (truths <= intervals[:, 1])
        hits.append(np.where(is_offered, hit, np.nan))
    size = max(map(len, hits))
    lost = np.full(size, np.nan)
    return np.array([hit if len(hit) == size else lost for hit in hits]), float(np.mean(offered))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verb", nargs="*", default=list(VERBS), choices=list(VERBS))
    parser.add_argument("--shape", nargs="*", default=list(shapes.SHAPES))
    parser.add_argument("--n", type=int, nargs="*", default=[500, 2_000, 20_000, 100_000])
    parser.add_argument("--eps", type=float, nargs="*", default=[0.3, 1.0, 5.0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--wide", type=float, nargs="*", default=[1])
    words = parser.parse_args()
    warnings.simplefilter("error")
    print(f"{'':42s}{'least':>7s}{'mean':>7s}{'most':>7s}{'offered':>9s}{'s a fit':>9s}")
    for shape in words.shape:
        population = shapes.population(shape)
        for verb in words.verb:
            for count in words.n:
                for eps, wide in product(words.eps, words.wide):
                    began = time.perf_counter()
                    budget = {"eps": eps, "delta": words.delta}
                    hits, offered = cell(verb, population, count, budget, words.runs, wide)
                    took = (time.perf_counter() - began) / words.runs
                    times = "" if wide == 1 else f", {wide:g}x"
                    line(f"{verb}, {shape}, n={count:,}, eps={eps:g}{times}", hits, offered, took)


def line(name, hits, offered, took):
    n_offered = np.isfinite(hits).sum(axis=0)
    often = n_offered >= 10
    if not often.any():
        print(f"{name:42s}{'':21s}{offered:9.2f}{took:9.2f}", flush=True)
        return
    rates = np.nanmean(hits[:, often], axis=0)
    mean = float(np.nanmean(hits))
    error = 2 * np.sqrt(mean * (1 - mean) / len(hits))
    mark = "*" if not 0.93 - error <= mean <= 0.97 + error else ""
    print(
        f"{name:42s}{rates.min():7.3f}{mean:7.3f}{rates.max():7.3f}"
        f"{offered:9.2f}{took:9.2f} {mark}",
        flush=True,
    )


if __name__ == "__main__":
    main()
