"""Coverage of 95 % intervals of summaries, variances, quantiles and margins under survey designs.

    python benchmarks/design_summaries.py [--rows 20000] [--cv 0.5 1 1.5] [--icc 0.05 0.3]
                                          [--eps 1] [--protect rows psus] [--runs 50]

The populations and samples are those of `designs.py`. A line is one cell. Each number is the
coverage of the population's value, by `conf_int`, or of the weighted estimate of the sample, by
`noise_int`, over all groups, levels and probabilities: of means and shares of a summary by two
groups, of the mean of both groups together, of variances, of quantiles and of margins.
"""

import argparse
import warnings
from itertools import product

import numpy as np
import pandas as pd
from designs import BOOKS, BOUND, PROBS, Population, quantiles_of

import dpmodels as dp

FORMULA = "y + cut(y, [0, 42, 58, 120]) ~ (x > 0.5)"
EDGES = [0, 42, 58, 120]


def values_of(y: np.ndarray, x: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return means by group, shares by group and level, mean and variance, and quantiles."""
    groups = [weights * (x <= 0.5), weights * (x > 0.5)]
    levels = np.clip(np.searchsorted(EDGES, y) - 1, 0, 2)
    shares = [np.bincount(levels, group, 3) for group in groups]
    mean, table = np.average(y, weights=weights), np.array(shares)
    margins = np.concatenate([table.sum(axis=1), table.sum(axis=0), table.ravel()])
    return {
        "margin totals": margins,
        "margins": margins / weights.sum(),
        "means": np.array([np.average(y, weights=group) for group in groups]),
        "totals": np.ravel(shares),
        "shares": np.ravel(shares) / weights.sum(),
        "all": np.array([mean]),
        "variance": np.array([np.average((y - mean) ** 2, weights=weights)]),
        "quantiles": quantiles_of(y, weights),
    }


def intervals(
    data: pd.DataFrame, design: object, eps: float, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return intervals of the population's values, and of those of the sample."""
    options = {"codebook": BOOKS["uniform"], "design": design, "eps": eps, "delta": 1e-6}
    with dp.simulation(seed=seed):
        summary = dp.dp_summary(FORMULA, data, **options)
        variance = dp.dp_var("~ y", data, **options)
        quantiles = dp.dp_quantile("~ y", data, probs=list(PROBS), **options)
        margins = dp.dp_margins("~ (x > 0.5) * cut(y, [0, 42, 58, 120])", data, **options)
    means, counts = summary["y"], summary[summary.variables[1]]
    overall = summary.overall().iloc[0]
    half = 1.96 * overall["std_error"]
    population = {
        "means": means.conf_int().to_numpy(),
        "shares": counts.conf_int().to_numpy(),
        "all": np.array([[overall["estimate"] - half, overall["estimate"] + half]]),
        "variance": variance.conf_int().to_numpy(),
        "quantiles": quantiles.conf_int().to_numpy(),
        "margins": margins.conf_int().to_numpy(),
    }
    sample = {
        "means": means.noise_int().to_numpy(),
        "totals": counts.noise_int().to_numpy(),
        "variance": variance.noise_int().to_numpy(),
        "margin totals": margins.noise_int().to_numpy(),
    }
    return population, sample


def coverage(rows: int, cv: float, icc: float, eps: float, protect: str, runs: int) -> pd.Series:
    """Return the coverage of one cell."""
    population, lines = Population(rows, cv, icc, seed=rows), []
    truth = values_of(population.y, population.x, np.ones(len(population.y)))
    psu = "cluster" if protect == "psus" else None
    design = dp.design(
        weights="w", strata="stratum", psu=psu, bounds=(1, BOUND), weights_are="design"
    )
    for seed in range(runs):
        data = population.sample(seed, protect)
        exact = values_of(*(data[name].to_numpy(float) for name in "yxw"))
        interval_pair = zip(
            (truth, exact), intervals(data, design, eps, seed), ("", " (noise)"), strict=True
        )
        lines.append(
            {
                f"{name}{kind}": np.mean((ends[:, 0] <= true[name]) & (true[name] <= ends[:, 1]))
                for true, interval, kind in interval_pair
                for name, ends in interval.items()
            }
        )
    return pd.DataFrame(lines).mean()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    numbers = {"rows": [20_000], "cv": [0.5, 1.0, 1.5], "icc": [0.05, 0.3], "eps": [1.0]}
    for name, values in numbers.items():
        parser.add_argument(f"--{name}", nargs="+", type=type(values[0]), default=values)
    parser.add_argument("--protect", nargs="+", default=["rows", "psus"])
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = product(options.rows, options.cv, options.icc, options.eps, options.protect)
    for cell in cells:
        line = coverage(*cell, options.runs).round(3).to_dict()
        print(*cell, line, flush=True)


if __name__ == "__main__":
    main()
