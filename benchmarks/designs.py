"""Coverage of 95 % intervals over simulated survey designs, and noise beside sampling error.

    python benchmarks/designs.py [--rows 20000] [--cv 0.5 1 1.5] [--icc 0.05 0.3] [--eps 1]
                                 [--protect rows psus] [--runs 200] [--hindsight] [--counts]
                                 [--estimands mean total slope logit poisson zeros]
                                 [--term uniform normal zeros lognormal pareto clusters]

A finite population of persons in clusters in strata is sampled. With ``--protect psus`` in two
stages: clusters with replacement within strata, as printed errors assume, then each person with
probability 1/v, v an integer that depends on the response. With ``--protect rows`` persons are
drawn with replacement within strata, with probabilities in proportion to 1/v. Weights are
integers with the coefficient of variation --cv. The response has the correlation --icc within
clusters.

Slopes are of least squares, of a logit of ``y > 55``, and of log-linear models of counts with about
two events a row (``poisson``) and with 60 % zeros (``zeros``). With --term the regressor has
another distribution, within wide declared bounds, and the same part in the variance of the
response: 70 % zeros and lognormal numbers, lognormal or Pareto numbers (2.5), or three clusters
about 5, 20 and 60, within 0 and 80.

A line is one cell and one estimand: coverage of `conf_int` of the population's value, of
`noise_int` of the weighted estimate of this sample, the fraction of runs with intervals, the
weighted estimate's standard deviation over samples, and the errors by noise and by the cap of the
weights in units of it. Then how many times as large as these two errors the printed ones are, in
the median run: of sampling, and of noise with the cap and the step. All but the fraction is of runs
with intervals. With --hindsight, the smallest root mean square of noise and bias over fixed public
caps, and how many times as large that of the bought cap is.

With --counts instead the coverage of a table of 12 cells, its totals, shares and noise intervals,
and of five quantiles of a histogram of 60 bins, whose intervals end at breaks.
"""

import argparse
import warnings
import zlib
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

import dpmodels as dp

BOUND = 50
STRATA = [f"s{number:02}" for number in range(20)]
FIRST_STAGE = 2  # For each draw the population has so many clusters
MEAN_WEIGHT = 10
SIZE = 50  # Persons of a cluster on average
MOST_EVENTS = 15
CAPS = (4, 8, 12, 16, 20, 26, 34, 42, 50)


TERMS = {
    "uniform": (0, 1),
    "normal": (-5, 5),
    "zeros": (0, 80),
    "lognormal": (0, 80),
    "pareto": (0, 80),
    "clusters": (0, 80),
}


def shaped(term: str, uniform: np.ndarray) -> np.ndarray:
    """Return a regressor by its quantiles, within its declared bounds."""
    amounts = np.exp(ndtri(np.maximum((uniform - 0.7) / 0.3, 1e-300)))
    ends, middles = np.array([0.0, 0.6, 0.9, 1.0]), np.array([5.0, 20.0, 60.0])
    lump = np.searchsorted(ends[1:-1], uniform)
    within = (uniform - ends[lump]) / np.diff(ends)[lump]
    quantiles = {
        "uniform": uniform,
        "normal": ndtri(uniform),
        "zeros": np.where(uniform > 0.7, amounts, 0.0),
        "lognormal": np.exp(ndtri(uniform)),
        "pareto": (1 - uniform) ** (-1 / 2.5),
        "clusters": middles[lump] + ndtri(np.clip(within, 1e-6, 1 - 1e-6)),
    }
    return np.clip(quantiles[term], *TERMS[term])


class Population:
    """Persons in clusters in strata, with the values that a census would find."""

    def __init__(self, rows: int, cv: float, icc: float, seed: int, term: str = "uniform") -> None:
        rng = np.random.default_rng(seed)
        n_clusters = MEAN_WEIGHT * rows // SIZE
        self.stratum = np.sort(rng.permutation(n_clusters) % len(STRATA))
        self.cluster = np.repeat(np.arange(n_clusters), rng.poisson(SIZE - 10, n_clusters) + 10)
        n = len(self.cluster)
        between, within = rng.normal(size=n_clusters)[self.cluster], rng.normal(size=n)
        residual = np.sqrt(icc) * between + np.sqrt(1 - icc) * within
        effect = np.linspace(-1, 1, len(STRATA))[self.stratum[self.cluster]]
        self.term, self.x = term, shaped(term, rng.uniform(0, 1, n))
        part = self.x
        if term != "uniform":
            part = 0.5 + (self.x - self.x.mean()) / self.x.std() / np.sqrt(12)
        self.y = np.clip(50 + 10 * (residual + effect + part), 0, 120)
        # Lognormal weights in the sample are lognormal in the population too, and larger.
        spread = np.sqrt(np.log1p(cv**2))
        rough = -0.3 * residual + np.sqrt(1 - 0.3**2) * rng.normal(size=n)
        typical = np.log(MEAN_WEIGHT / FIRST_STAGE) + spread**2 / 2
        rounded = np.rint(np.exp(typical + spread * rough))
        self.within = np.clip(rounded, 1, BOUND // FIRST_STAGE).astype(int)
        self.mean, self.total = float(self.y.mean()), float(self.y.sum())
        terms = np.stack([np.ones(n), self.x], axis=1)
        self.slope = float(np.linalg.lstsq(terms, self.y, rcond=None)[0][1])
        events, rate = np.random.default_rng(seed + 1), np.exp(0.4 + 0.5 * part + 0.3 * residual)
        self.count = np.minimum(events.poisson(rate), MOST_EVENTS)
        self.rare = self.count * (events.random(n) < 0.45)
        columns = {name: getattr(self, name) for name in ("x", "y", "count", "rare")}
        self.logit, self.poisson, self.zeros = (
            link_slope(name, columns, np.ones(n)) for name in LINKS
        )

    def sample(self, seed: int, protect: str) -> pd.DataFrame:
        """Draw clusters within strata, then persons within clusters; or persons alone."""
        rng = np.random.default_rng(seed)
        if protect == "rows":
            # Each draw takes a person with a probability in proportion to 1/v.
            expected = np.cumsum(1 / (FIRST_STAGE * self.within))
            first = np.searchsorted(self.stratum[self.cluster], np.arange(len(STRATA) + 1))
            ends = np.append(0.0, expected)[first]
            n_drawn = np.diff(np.floor(ends + rng.random())).astype(int)
            low, high = np.repeat(ends[:-1], n_drawn), np.repeat(ends[1:], n_drawn)
            drawn = np.searchsorted(expected, low + (high - low) * rng.random(len(low)))
            return self._table(np.minimum(drawn, len(expected) - 1))
        # Clusters are sorted by stratum; one that is drawn twice is two units of the sample.
        sizes = np.bincount(self.stratum)
        starts, n_drawn = np.cumsum(sizes) - sizes, sizes // FIRST_STAGE
        offsets = rng.random(n_drawn.sum()) * np.repeat(sizes, n_drawn)
        clusters = np.repeat(starts, n_drawn) + offsets.astype(int)
        n_persons = np.bincount(self.cluster)
        first = (np.cumsum(n_persons) - n_persons)[clusters]
        unit = np.repeat(np.arange(len(clusters)), n_persons[clusters])
        within_unit = np.arange(len(unit)) - np.searchsorted(unit, unit)
        persons = first[unit] + within_unit
        is_sampled = rng.random(len(persons)) * self.within[persons] < 1
        return self._table(persons[is_sampled]).assign(cluster=unit[is_sampled])

    def _table(self, persons: np.ndarray) -> pd.DataFrame:
        cluster = self.cluster[persons]
        return pd.DataFrame(
            {
                "y": self.y[persons],
                "x": self.x[persons],
                "count": self.count[persons],
                "rare": self.rare[persons],
                "stratum": np.array(STRATA)[self.stratum[cluster]],
                "cluster": cluster,
                "w": FIRST_STAGE * self.within[persons],
            }
        )


EVENTS = (0, MOST_EVENTS)
BOOKS = {
    term: dp.codebook(y=(0, 120), x=bounds, count=EVENTS, rare=EVENTS, stratum=STRATA)
    for term, bounds in TERMS.items()
}
LINKS = {"logit": "y > 55", "poisson": "count", "zeros": "rare"}
Z95 = 2 * 1.959964
ESTIMANDS = ("mean", "total", "slope", *LINKS)


def link_slope(name: str, data: dict | pd.DataFrame, weights: np.ndarray) -> float:
    """Return the slope of a weighted logistic or log-linear regression, by Newton's method."""
    x, is_logit = np.asarray(data["x"]), name == "logit"
    response = np.asarray(data["y"]) > 55 if is_logit else np.asarray(data[LINKS[name]])
    terms, beta = np.stack([np.ones(len(x)), x], axis=1), np.zeros(2)
    for _ in range(40):
        rate = np.exp(terms @ beta)
        mean = rate / (1 + rate) if is_logit else rate
        bread = terms.T @ (terms * (weights * mean * (1 - mean * is_logit))[:, None])
        step = np.linalg.solve(bread, terms.T @ (weights * (response - mean)))
        beta += step
        if np.abs(step).max() < 1e-10:
            break
    return float(beta[1])


def weighted(data: pd.DataFrame, cap: float = np.inf) -> dict[str, float]:
    """Return the estimates without privacy, with weights up to a cap."""
    w = np.minimum(data["w"], cap)
    x, y = data["x"] - np.average(data["x"], weights=w), data["y"]
    return {
        "mean": float(np.average(y, weights=w)),
        "total": float(w @ y),
        "slope": float((w * x) @ y / ((w * x) @ x)),
    } | {name: link_slope(name, data, w.to_numpy()) for name in LINKS}


def fitted(name: str, data: pd.DataFrame, options: dict) -> tuple[Any, int]:
    """Return a fit, and the position of the estimand in its parameters."""
    if name in ("mean", "total"):
        return getattr(dp, f"dp_{name}")("~ y", data, **options), 0
    if name == "slope":
        return dp.dp_lm("y ~ x", data, **options), 1
    family = "binomial" if name == "logit" else "poisson"
    return dp.dp_glm(f"{LINKS[name]} ~ x", data, family=family, **options), 1


def released(
    data: pd.DataFrame,
    protect: str,
    eps: float,
    seed: int,
    cap: float | None = None,
    estimands: tuple[str, ...] = ESTIMANDS,
    term: str = "uniform",
) -> dict[str, tuple[float, np.ndarray, np.ndarray]]:
    """Return each estimate, its conf_int and its noise_int."""
    psu = "cluster" if protect == "psus" else None
    upper = BOUND if cap is None else cap
    if cap is not None:
        data = data.assign(w=np.minimum(data["w"], cap))
    design = dp.design(
        weights="w", strata="stratum", psu=psu, bounds=(1, upper), weights_are="design"
    )
    options = {"codebook": BOOKS[term], "design": design, "eps": eps, "delta": 1e-6}
    results = {}
    with dp.simulation(seed=seed):
        fits = {name: fitted(name, data, options) for name in estimands}
    for name, (fit, at) in fits.items():
        try:
            ends = [np.asarray(part, float)[at] for part in (fit.conf_int(), fit.noise_int())]
        except dp.errors.NotAvailable:
            ends = [np.array([-np.inf, np.inf])] * 2
        results[name] = (float(np.asarray(fit.params, float)[at]), *ends)
    return results


def cell(
    rows: int,
    cv: float,
    icc: float,
    eps: float,
    protect: str,
    runs: int,
    estimands: tuple[str, ...],
    term: str,
) -> pd.DataFrame:
    """Return one line for each estimand and run."""
    population, lines = Population(rows, cv, icc, seed=rows, term=term), []
    truths = {name: getattr(population, name) for name in ESTIMANDS}
    # Noise of its own in each cell, so that cells are independent evidence.
    start = zlib.crc32(repr((rows, cv, icc, eps, protect)).encode())
    for seed in range(runs):
        data = population.sample(seed, protect)
        exact = weighted(data)
        fits = released(data, protect, eps, start + seed, estimands=estimands, term=term)
        for name, (estimate, full, noise) in fits.items():
            lines.append(
                {
                    "estimand": name,
                    "covers": full[0] <= truths[name] <= full[1],
                    "covers noise": noise[0] <= exact[name] <= noise[1],
                    "finite": np.isfinite(full).all(),
                    "sampling": exact[name] - truths[name],
                    "off": estimate - exact[name],
                    "printed": np.diff(full)[0] / Z95,
                    "printed noise": np.diff(noise)[0] / Z95,
                }
            )
    return pd.DataFrame(lines)


def hindsight(rows: int, cv: float, icc: float, eps: float, protect: str, runs: int) -> pd.Series:
    """Return the smallest root mean square of what noise and a fixed cap add, by estimand."""
    population = Population(rows, cv, icc, seed=rows)
    squares = {cap: dict.fromkeys(ESTIMANDS, 0.0) for cap in CAPS}
    for seed, cap in product(range(runs), CAPS):
        data = population.sample(seed, protect)
        exact = weighted(data)
        for name, (estimate, *_) in released(data, protect, eps, seed, cap).items():
            squares[cap][name] += (estimate - exact[name]) ** 2 / runs
    return pd.DataFrame(squares).min(axis=1) ** 0.5


EDGES = [0, 35, 42, 50, 58, 65, 120]
PROBS = (0.1, 0.25, 0.5, 0.75, 0.9)


def cells_of(y: np.ndarray, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the sums of weights by cell."""
    place = 2 * np.clip(np.searchsorted(EDGES, y) - 1, 0, len(EDGES) - 2) + (x > 0.5)
    return np.bincount(place, weights, 2 * len(EDGES) - 2)


def quantiles_of(y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return weighted quantiles."""
    order = np.argsort(y)
    running = np.cumsum(weights[order])
    return y[order][np.searchsorted(running, np.array(PROBS) * running[-1])]


def counted(rows: int, cv: float, icc: float, eps: float, protect: str, runs: int) -> pd.Series:
    """Return the coverage of tables and of quantiles of histograms."""
    population, lines = Population(rows, cv, icc, seed=rows), []
    ones = np.ones(len(population.y))
    totals, places = cells_of(population.y, population.x, ones), quantiles_of(population.y, ones)
    psu = "cluster" if protect == "psus" else None
    fields = {"weights": "w", "strata": "stratum", "psu": psu, "bounds": (1, BOUND)}
    options = {"design": dp.design(**fields, weights_are="design"), "codebook": BOOKS["uniform"]}
    breaks = np.linspace(0, 120, 61).tolist()
    for seed in range(runs):
        data = population.sample(seed, protect)
        y, x, w = (data[name].to_numpy(float) for name in "yxw")
        with dp.simulation(seed=seed):
            budget = {"eps": eps, "delta": 1e-6}
            fit = dp.dp_table(f"~ cut(y, {EDGES}) + (x > 0.5)", data, **options, **budget)
            hist = dp.dp_hist("~ y", data, breaks=breaks, **options, **budget).quantile(PROBS)
        table, sums, exact = fit.tidy(), cells_of(y, x, w), quantiles_of(y, w)
        pairs = {
            "total": (table["conf_low"], totals, table["conf_high"]),
            "share": (table["proportion_low"], totals / totals.sum(), table["proportion_high"]),
            "noise": (table["noise_low"], sums, table["noise_high"]),
            "quantile": (hist["conf_low"], places, hist["conf_high"]),
            "its noise": (hist["noise_low"], exact, hist["noise_high"]),
        }
        line = {name: ((a <= true) & (true <= b)).mean() for name, (a, true, b) in pairs.items()}
        sampling = np.sqrt(table["std_error"] ** 2 - table["noise_sd"] ** 2)
        lines.append(line | {"noise/sampling": (table["noise_sd"] / sampling).median()})
    return pd.DataFrame(lines).mean()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", nargs="+", type=int, default=[20_000])
    parser.add_argument("--cv", nargs="+", type=float, default=[0.5, 1.0, 1.5])
    parser.add_argument("--icc", nargs="+", type=float, default=[0.05, 0.3])
    parser.add_argument("--eps", nargs="+", type=float, default=[1.0])
    parser.add_argument("--protect", nargs="+", default=["rows"], choices=["rows", "psus"])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--hindsight", type=int, default=0, help="runs for each fixed cap")
    parser.add_argument("--estimands", nargs="+", default=ESTIMANDS, choices=ESTIMANDS)
    parser.add_argument("--term", default="uniform", choices=TERMS)
    parser.add_argument("--counts", action="store_true", help="tables and histograms instead")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"weights declared from 1 to {BOUND}, {len(STRATA)} strata, {args.runs} runs")
    print(
        "  rows  cv  icc eps protect estimand  cover noise finite sampling off/sampling best "
        "printed: sampling noise"
    )
    cells = product(args.rows, args.cv, args.icc, args.eps, args.protect)
    for rows, cv, icc, eps, protect in cells:
        if args.counts:
            line = counted(rows, cv, icc, eps, protect, args.runs).round(3).to_dict()
            print(f"{rows:6} {cv:3} {icc:4} {eps:3g} {protect:7} {line}", flush=True)
            continue
        runs = cell(rows, cv, icc, eps, protect, args.runs, tuple(args.estimands), args.term)
        best = None
        if args.hindsight:
            best = hindsight(rows, cv, icc, eps, protect, args.hindsight)
        for name, lines in runs.groupby("estimand", sort=False):
            sampling, is_finite = (
                float(np.sqrt((lines["sampling"] ** 2).mean())),
                lines["finite"].mean(),
            )
            lines = lines[lines["finite"]]
            off = float(np.sqrt((lines["off"] ** 2).mean()))
            ratio = np.nan if best is None else off / best[name]
            claimed = np.sqrt((lines["printed"] ** 2 - lines["printed noise"] ** 2).clip(0))
            claims = claimed.median() / sampling, lines["printed noise"].median() / off
            print(
                f"{rows:6} {cv:3} {icc:4} {eps:3g} {protect:7} {name:8} "
                f"{lines['covers'].mean():6.3f} {lines['covers noise'].mean():5.3f} "
                f"{is_finite:6.2f} {sampling:8.4g} {off / sampling:12.2f} "
                f"{ratio:4.2f} {claims[0]:17.2f} {claims[1]:5.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
