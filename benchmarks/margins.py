"""Margins from one budget: their noise beside the closed form, and beside each alone; the tests.

    python benchmarks/margins.py [variances] [sizes] [time] [--runs 1000] [--quick]

- variances: all two-way margins of 20 variables with 5 levels. The sum of the noise variances of
  all cells, by the law and as measured in one release, over the closed form of the best residual
  planner at the same rho, and over that of every margin released alone with its part of the
  budget. Pure budgets have no such closed form. A variable has one level more than declared, for
  what is missing: both sides count it.
- sizes: share of rejections at 5 % by the test of independence of two variables, and of two given a
  third, where they are independent: all releases, those without a test counted as accepted; and
  the share that have one.
- time: all two-way margins of 40 variables with 5 levels: seconds, with all counts, and peak
  memory, in a process of its own.

Numbers after +- are Monte-Carlo standard errors.
"""

import argparse
import math
import resource
import subprocess
import sys
import time
from itertools import combinations

import numpy as np
import pandas as pd

import dpmodels as dp
from dpmodels.privacy import ZCDP, PureDP

LEVELS = 5


def names(count):
    return [f"v{at}" for at in range(count)]


def book(count, levels=LEVELS):
    return dp.codebook(**{name: list(range(levels)) for name in names(count)})


def rows(rng, count, variables, levels=LEVELS):
    shares = np.arange(levels, 0, -1) / (levels * (levels + 1) / 2)
    return {name: rng.choice(levels, count, p=shares) for name in names(variables)}


def closed_form(sizes, cost):
    """Return the least sum of variances of all cells, of all margins of two variables.

    `cost` is the sum of squared moves of a row, each over its noise variance.
    """
    terms = list(combinations(range(len(sizes)), 2))
    parts = {part for term in terms for k in range(3) for part in combinations(term, k)}
    total = 0.0
    for part in parts:
        factor = math.prod(1 - 1 / sizes[i] for i in part)
        variance = sum(
            math.prod(sizes[i] for i in term)
            * factor
            / math.prod(sizes[i] for i in term if i not in part) ** 2
            for term in terms
            if set(part) <= set(term)
        )
        total += math.sqrt(factor * variance)
    return total**2 / cost


def alone(sizes, budget, changed):
    """Return the sum where each margin is released with an equal part of the budget."""
    terms = list(combinations(sizes, 2))
    if isinstance(budget, PureDP):
        scale = len(terms) * changed / budget.eps
        variance = 1 / (2 * math.sinh(0.5 / scale) ** 2)
    else:
        variance = len(terms) * changed / (2 * budget.rho)
    return variance * sum(math.prod(term) for term in terms)


def variances(_):
    rng, count = np.random.default_rng(1), 20
    formula = "~ (" + " + ".join(names(count)) + ")**2"
    print(f"\nAll two-way margins of {count} variables, {LEVELS} levels, asked <= 1.02 and <= 0.7")
    data, codebook = rows(rng, 10_000, count), book(count)
    for budget in (ZCDP(0.05), ZCDP(0.5), PureDP(1.0)):
        for neighbours in ("add-remove", "replace"):
            with dp.simulation(seed=1):
                fit = dp.dp_margins(
                    formula, data, codebook=codebook, budget=budget, adjacency=neighbours
                )
            law, measured, sizes = 0.0, 0.0, fit.source.sizes
            for first, two in combinations(names(count), 2):
                margin = fit.table(first, two)
                exact = np.zeros((LEVELS, LEVELS))
                np.add.at(exact, (data[first], data[two]), 1)
                law += math.prod(sizes[:2]) * margin.noise_sd**2
                own_error = np.sum((margin.released.to_numpy() - exact) ** 2)
                measured += own_error * math.prod(sizes[:2]) / LEVELS**2
            changed = 2 if neighbours == "replace" else 1
            best = math.nan
            if isinstance(budget, ZCDP):
                best = law / closed_form(sizes, 2 * budget.rho / changed)
            print(
                f"{budget!s:14s}{neighbours:12s}{fit.release.info.name:10s} over closed form "
                f"{best:.4f}, over each alone {law / alone(sizes, budget, changed):.4f}, "
                f"measured over law {measured / law:.3f}",
                flush=True,
            )


def share(hits):
    p = float(np.mean(hits))
    return f"{p:.4f} +-{math.sqrt(max(p * (1 - p), 1e-9) / len(hits)):.4f}"


def sizes(runs):
    print(f"\nSize of the chi-square tests at 5 %, {runs} runs; asked .04 to .06")
    rng, codebook = np.random.default_rng(2), book(3, 3)
    budgets = {"rho = 0.5": ZCDP(0.5), "rho = 0.05": ZCDP(0.05), "eps = 1": PureDP(1.0)}
    for name, budget in budgets.items():
        for count in (1_000, 10_000, 100_000):
            plain, conditional = [], []
            for seed in range(runs):
                with dp.simulation(seed=seed):
                    fit = dp.dp_margins(
                        "~ v0*v1*v2", rows(rng, count, 3, 3), codebook=codebook, budget=budget
                    )
                plain.append(fit.chi2_test("v0", "v1").pvalue)
                conditional.append(fit.chi2_test("v0", "v1", given="v2").pvalue)
            line = "".join(
                f"   {about} {share(np.nan_to_num(errors_of_kind, nan=1.0) < 0.05)} "
                f"(tested {np.isfinite(errors_of_kind).mean():.2f})"
                for about, errors_of_kind in (
                    ("plain", np.array(plain)),
                    ("given", np.array(conditional)),
                )
            )
            print(f"{name:12s} n = {count:<9,}{line}", flush=True)


def forty():
    """Release all two-way margins of 40 variables, and print seconds and MB."""
    count = 40
    data = pd.DataFrame(rows(np.random.default_rng(3), 50_000, count))
    formula, codebook = "~ (" + " + ".join(names(count)) + ")**2", book(count)
    for words in ({"delta": 1e-6}, {}):
        began = time.perf_counter()
        fit = dp.dp_margins(formula, data, codebook=codebook, eps=1.0, **words)
        released = time.perf_counter() - began
        total = sum(int(fit.table(*pair).counts.sum()) for pair in combinations(names(count), 2))
        fit.tidy()
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{fit.release.info.name:10s} {released:6.1f} s, with {total:,} rows in whole counts "
            f"and a frame {seconds:6.1f} s, peak {peak:,.0f} MB",
            flush=True,
        )


def timed(_):
    print("\nAll two-way margins of 40 variables, 50,000 rows; asked <= 60 s", flush=True)
    subprocess.run([sys.executable, __file__, "forty"], check=True)


PARTS = {"variances": variances, "sizes": sizes, "time": timed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--quick", action="store_true", help="100 runs")
    words = parser.parse_args()
    if words.part == ["forty"]:
        forty()
        return
    for part in words.part or PARTS:
        PARTS[part](100 if words.quick else words.runs)


if __name__ == "__main__":
    main()
