"""Rank errors of quantiles on columns of every shape, in tight bounds and wide ones.

    python benchmarks/quantile.py [--shape counts] [--n 2000] [--eps 1] [--runs 20] [--plain]
    python benchmarks/quantile.py --median [--wide 1 10] [--runs 150]

A rank error is how far, in shares of the rows, the share asked for is from those of the rows
below and up to a quantile's value, here to 1e-4 of the tight range. The mean over runs and
quantiles is printed, of one, three and 99 quantiles, with intervals and without; then the mean
share of the rows in an interval. --plain leaves the mechanisms out that the verb does not choose.

--median is of one median: mean rank errors, to 1e-5 of the tight range, with an interval and
without, their ratio and its standard error; the share of rows in the interval and that in one by
refined counts, their ratio; how often the interval has the population's median, and the rows' own.
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


def errors(ordered, values, probs, distance_near):
    low = share_below(ordered, values - distance_near, "left")
    high = share_below(ordered, values + distance_near, "right")
    lost = np.maximum(probs, 1 - np.array(probs))
    return np.where(np.isnan(values), lost, np.maximum(np.maximum(low - probs, probs - high), 0))


def cell(population, count, eps, wide, at, words, runs):
    """Return the mean rank error and the mean share of the rows in an interval."""
    low, high = population.codebook["x1"]
    book = dp.codebook(x1=(low * wide, high * wide))
    probs, errors_found, widths = PROBS[at], [], []
    for seed in range(runs):
        rows = population.sample(count, seed)
        ordered = np.sort(rows.x1.to_numpy())
        with dp.simulation(seed=seed):
            fit = dp.dp_quantile("~ x1", rows, codebook=book, eps=eps, probs=probs, **words)
        values = fit.params.to_numpy()[0]
        errors_found.append(errors(ordered, values, probs, NEAR * (high - low)).mean())
        if fit.level is not None:
            lower, upper = fit.conf_int().to_numpy().T
            share_inside = share_below(ordered, upper, "right") - share_below(
                ordered, lower, "left"
            )
            widths.append(np.mean(share_inside))
    return float(np.mean(errors_found)), float(np.mean(widths)) if widths else np.nan


def medians(population, count, eps, wide, runs):
    """Return rank errors with an interval and without, shares in two intervals, and two hits."""
    low, high = population.codebook["x1"]
    book, probs = dp.codebook(x1=(low * wide, high * wide)), [0.5]
    truth = population.rows.x1.quantile(0.5, interpolation="lower")
    ways = ({}, {"level": None}, {"mechanism": "refined"})
    lines = []
    for seed in range(runs):
        rows = population.sample(count, seed)
        ordered = np.sort(rows.x1.to_numpy())
        middle = ordered[(count - 1) // 2]
        with dp.simulation(seed=seed):
            fits = [
                dp.dp_quantile("~ x1", rows, codebook=book, eps=eps, probs=probs, **way)
                for way in ways
            ]
        distance_near = NEAR / 10 * (high - low)
        ranks = [
            errors(ordered, fit.params.to_numpy()[0], probs, distance_near)[0] for fit in fits[:2]
        ]
        ends = [fit.conf_int().to_numpy()[0] for fit in fits[::2]]
        shares = [
            share_below(ordered, upper, "right") - share_below(ordered, lower, "left")
            for lower, upper in ends
        ]
        lower, upper = ends[0]
        lines.append([*ranks, *shares, lower <= truth <= upper, lower <= middle <= upper])
    return np.array(lines, dtype=float)


def compare_medians(words):
    print(f"{'':30s}{'with':>10s}{'alone':>10s}{'ratio':>8s}{'+-':>6s}", end="")
    print(f"{'length':>8s}{'refined':>8s}{'ratio':>7s}{'conf':>7s}{'noise':>7s}")
    ratios = []
    for shape in words.shape:
        population = shapes.population(shape)
        for wide in words.wide:
            for count in words.n:
                for eps in words.eps:
                    lines = medians(population, count, eps, wide, words.runs)
                    first_error, alone, length, refined, conf, noise = lines.mean(axis=0)
                    # An error below a tenth of a row is none: a value that many rows share.
                    is_clear = max(first_error, alone) * count > 0.1
                    ratio = first_error / alone if is_clear and alone > 0 else np.nan
                    error = (
                        lines[:, :2].std(axis=0)
                        / np.sqrt(words.runs)
                        / np.array([first_error, alone])
                    )
                    ratios.append(ratio)
                    print(
                        f"{f'{shape}, x{wide:g}, n={count:,}, eps={eps:g}':30s}{first_error:10.5f}"
                        f"{alone:10.5f}{ratio:8.2f}{ratio * np.hypot(*error):6.2f}{length:8.4f}"
                        f"{refined:8.4f}{length / refined:7.2f}{conf:7.3f}{noise:7.3f}",
                        flush=True,
                    )
    print(f"ratio of rank errors: median {np.nanmedian(ratios):.2f}, worst {np.nanmax(ratios):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", nargs="*", default=list(shapes.SHAPES))
    parser.add_argument("--n", type=int, nargs="*", default=[500, 2_000, 20_000])
    parser.add_argument("--eps", type=float, nargs="*", default=[0.1, 1.0])
    parser.add_argument("--wide", type=float, nargs="*", default=[1.0, 100.0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--median", action="store_true")
    words = parser.parse_args()
    if words.median:
        with np.errstate(divide="ignore", invalid="ignore"):
            compare_medians(words)
        return
    kinds = [("intervals", {}), ("none", {"level": None})]
    if not words.plain:
        kinds += [(name, {"level": None, "mechanism": name}) for name in ("exponential", "refined")]
    print(f"{'':44s}" + "".join(f"{name:>14s}" for name, _ in kinds) + f"{'held':>9s}")
    for shape in words.shape:
        population = shapes.population(shape)
        for wide in words.wide:
            for count in words.n:
                for eps in words.eps:
                    for at in PROBS:
                        task = partial(cell, population, count, eps, wide, at, runs=words.runs)
                        got = [task(words=figures) for _, figures in kinds]
                        name = f"{shape}, x{wide:g}, n={count:,}, eps={eps:g}, {at} probs"
                        line = "".join(f"{error:14.5f}" for error, _ in got)
                        print(f"{name:44s}{line}{got[0][1]:9.4f}", flush=True)


if __name__ == "__main__":
    main()
