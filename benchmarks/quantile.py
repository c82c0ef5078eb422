"""Rank errors of quantiles on columns of every shape, in tight bounds and wide ones.

    python benchmarks/quantile.py [--shape counts] [--n 2000] [--eps 1] [--runs 20] [--plain]

A rank error is how far, in shares of the rows, the share asked for is from those of the rows
below and up to a quantile's value, here to 1e-4 of the tight range. The mean over runs and
quantiles is printed, of one, three and 99 quantiles, with intervals and without; then the mean
share of the rows in an interval. --plain leaves the mechanisms out that the verb does not choose.
"""

import argparse
from functools import partial

import numpy as np
import shapes

import dpmodels as dp

PROBS = {1: [0.5], 3: [0.25, 0.5, 0.75], 99: list(np.arange(1, 100) / 100)}
NEAR = 1e-4


def share_below(ordered, values, side):
    return np.searchsorted(ordered, values, side) / len(ordered)


def errors(ordered, values, probs, near):
    low = share_below(ordered, values - near, "left")
    high = share_below(ordered, values + near, "right")
    lost = np.maximum(probs, 1 - np.array(probs))
    return np.where(np.isnan(values), lost, np.maximum(np.maximum(low - probs, probs - high), 0))


def cell(population, count, eps, wide, asked, words, runs):
    """Return the mean rank error and the mean share of the rows in an interval."""
    low, high = population.codebook["x1"]
    book = dp.codebook(x1=(low * wide, high * wide))
    probs, found, widths = PROBS[asked], [], []
    for seed in range(runs):
        rows = population.sample(count, seed)
        ordered = np.sort(rows.x1.to_numpy())
        with dp.simulation(seed=seed):
            fit = dp.dp_quantile("~ x1", rows, codebook=book, eps=eps, probs=probs, **words)
        values = fit.params.to_numpy()[0]
        found.append(errors(ordered, values, probs, NEAR * (high - low)).mean())
        if fit.level is not None:
            lower, upper = fit.conf_int().to_numpy().T
            held = share_below(ordered, upper, "right") - share_below(ordered, lower, "left")
            widths.append(np.mean(held))
    return float(np.mean(found)), float(np.mean(widths)) if widths else np.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", nargs="*", default=list(shapes.SHAPES))
    parser.add_argument("--n", type=int, nargs="*", default=[500, 2_000, 20_000])
    parser.add_argument("--eps", type=float, nargs="*", default=[0.1, 1.0])
    parser.add_argument("--wide", type=float, nargs="*", default=[1.0, 100.0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--plain", action="store_true")
    words = parser.parse_args()
    kinds = [("intervals", {}), ("none", {"level": None})]
    if not words.plain:
        kinds += [(name, {"level": None, "mechanism": name}) for name in ("exponential", "refined")]
    print(f"{'':44s}" + "".join(f"{name:>14s}" for name, _ in kinds) + f"{'held':>9s}")
    for shape in words.shape:
        population = shapes.population(shape)
        for wide in words.wide:
            for count in words.n:
                for eps in words.eps:
                    for asked in PROBS:
                        own = partial(cell, population, count, eps, wide, asked, runs=words.runs)
                        got = [own(words=one) for _, one in kinds]
                        name = f"{shape}, x{wide:g}, n={count:,}, eps={eps:g}, {asked} probs"
                        line = "".join(f"{error:14.5f}" for error, _ in got)
                        print(f"{name:44s}{line}{got[0][1]:9.4f}", flush=True)


if __name__ == "__main__":
    main()
