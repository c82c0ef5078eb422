"""Running totals over time: their noise beside the least there is, and the coverage of intervals.

    python benchmarks/series.py [--runs 100] [--quick]

- The root mean square of the noise in all running totals, by the law and as measured, under rho =
  0.005 and eps = 0.1, a row more or fewer or another, of periods by the day over a month, a year
  and eleven years. `least` is that over the bound which no unbiased factorisation is below, by the
  nuclear norm of running totals, for rho and a row more or fewer; `flat` is the error of running
  totals of a histogram with noise in every period by itself, as a multiple of the law's.
- Coverage of 95 % noise intervals: running totals, windows of seven periods and single ones.

Rows are by day of the week, with a wave over the year; numbers after +- are Monte-Carlo errors.
"""

import argparse
import math

import numpy as np

import dpmodels as dp
from dpmodels.privacy import ZCDP, PureDP

SPANS = {"a month": 31, "a year": 365, "eleven years": 4_096}
BUDGETS = (ZCDP(0.005), PureDP(0.1))


def least(periods, rho):
    """Return the least root mean square of running totals by noise of variance 1/(2 rho)."""
    k = np.arange(1, periods + 1)
    singular = 1 / (2 * np.sin((2 * k - 1) * math.pi / (2 * (2 * periods + 1))))
    return singular.sum() / periods / math.sqrt(2 * rho)


def rates(periods):
    day = np.arange(periods)
    wave = 20 + 8 * np.sin(2 * math.pi * day / 365)
    return np.where(day % 7 < 5, wave, 0.2 * wave)


def held(table, exact):
    low, high = table["noise_low"].to_numpy(), table["noise_high"].to_numpy()
    return np.mean((low <= exact) & (exact <= high))


def one(counts, periods, budget, neighbours, seed):
    """Return the law's and the measured mean square of totals, and the coverage of three sums."""
    rows = {"day": np.repeat(np.arange(periods), counts)}
    book = dp.codebook(day=dp.Integer(0, periods - 1))
    with dp.simulation(seed=seed):
        fit = dp.dp_series(
            "~ 1", rows, time="day", codebook=book, budget=budget, adjacency=neighbours
        )
    running, exact = fit.running(), np.cumsum(counts)
    weeks = np.append(0, exact)
    squares = np.mean(running["noise_sd"] ** 2), np.mean((running["released"] - exact) ** 2)
    shares = (
        held(running, exact),
        held(fit.window(7), weeks[7:] - weeks[:-7]),
        held(fit.window(1), counts),
    )
    return fit.release.info.name, squares, shares


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="20 runs")
    words = parser.parse_args()
    runs = 20 if words.quick else words.runs
    print(f"{runs} runs")
    print(
        f"{'':40s}{'mechanism':>15s}{'law':>9s}{'measured / law':>17s}{'least':>7s}{'flat':>7s}"
        f"{'totals':>16s}{'weeks':>16s}{'periods':>16s}"
    )
    rng = np.random.default_rng(8)
    for name, periods in SPANS.items():
        for budget in BUDGETS:
            for neighbours in ("add-remove", "replace"):
                errors = [
                    one(rng.poisson(rates(periods)), periods, budget, neighbours, seed)
                    for seed in range(runs)
                ]
                (mechanism, (law, _), _), *_ = errors
                measured = np.array([error[1][1] for error in errors]) / law
                shares = np.array([error[2] for error in errors])
                pure = isinstance(budget, PureDP)
                single = 2 / 0.1**2 if pure else 1 / (2 * budget.rho)
                flat = math.sqrt(single * (periods + 1) / 2 / law)
                bound = math.sqrt(law) / least(periods, budget.rho) if not pure else math.nan
                changed = neighbours == "replace"
                if changed:
                    bound = flat = math.nan
                about = f"{name}, {type(budget).__name__}, {neighbours}"
                error = measured.std(ddof=1) / math.sqrt(runs) / 2
                spread = shares.std(axis=0, ddof=1) / math.sqrt(runs)
                covered = "".join(
                    f"{mean:8.4f} +-{deviation:.4f}"
                    for mean, deviation in zip(shares.mean(axis=0), spread, strict=True)
                )
                print(
                    f"{about:40s}{mechanism:>15s}{math.sqrt(law):9.1f}"
                    f"{math.sqrt(measured.mean()):10.3f} +-{error:.3f}{bound:7.3f}{flat:7.2f}"
                    f"{covered}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
