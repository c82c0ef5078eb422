"""Randomized response: coverage, standard deviations beside their formulas, regression.

    python benchmarks/responses.py [coverage] [regression] [--runs 400] [--quick]

- coverage: of 95 % intervals for the population's shares (`conf_int`) and for these rows'
  (`noise_int`), of one level with share p, the other levels alike, and of all levels together; the
  standard deviations of the estimate of that level, for the population and for these rows, over
  those of the formulas. Rows are drawn anew in each run and randomise themselves.
- regression: logistic, of answers that came in randomised, by a number and a group: coverage of the
  coefficients' 95 % intervals, and the mean of their standard errors over the standard deviation
  of the estimates, of those runs in which the device and the rows identify the coefficients.

Numbers after +- are Monte-Carlo standard errors; that of a ratio of standard deviations is about
0.7 over the root of the number of runs.
"""

import argparse
import math
from zlib import crc32

import numpy as np
from scipy.special import expit

import dpmodels as dp

SHARES = (0.01, 0.1, 0.5)
ROWS = (500, 5_000, 50_000)
EPS = (0.5, 1.0, 3.0)
LEVELS = (2, 5)
COEFFICIENTS = np.array([-1.0, 0.8, 0.5])


def laws(share, count, eps, levels):
    """Return the standard deviations of the estimate of a level, by rows drawn and by these."""
    all_of = math.exp(eps) + levels - 1
    true, false_chance = math.exp(eps) / all_of, 1 / all_of
    chance = false_chance + share * (true - false_chance)
    variance = chance * (1 - chance)
    variance_true = share * true * (1 - true) + (1 - share) * false_chance * (1 - false_chance)
    return tuple(
        math.sqrt(law_variance / count) / (true - false_chance)
        for law_variance in (variance, variance_true)
    )


def coverage(runs):
    print(f"\nCoverage of 95 % intervals, {runs} runs; asked .93 to .97, and within 2 % of the sd")
    print(
        f"{'':36s}{'conf_int':>17s}{'all levels':>11s}{'noise_int':>17s}{'all levels':>11s}"
        f"{'sd / formula':>14s}{'of these rows':>14s}"
    )
    rng = np.random.default_rng(6)
    ratios = []
    for levels in LEVELS:
        cells = list(range(levels))
        for share in SHARES:
            shares = np.array([share] + [(1 - share) / (levels - 1)] * (levels - 1))
            for count in ROWS:
                for eps in EPS:
                    conf, noise, away, false_alarms = [], [], [], []
                    device = dp.randomized_response(cells, eps=eps)
                    about = f"k = {levels}, p = {share}, n = {count:,}, eps = {eps:g}"
                    first = crc32(about.encode())
                    for seed in range(first, first + runs):
                        counts = rng.multinomial(count, shares)
                        with dp.simulation(seed=seed):
                            answers = {"a": device.randomize(np.repeat(cells, counts))}
                        fit = dp.dp_survey("~ a", answers, device={"a": device})
                        low, high = fit.conf_int().to_numpy().T
                        conf.append((low <= shares) & (shares <= high))
                        low, high = fit.noise_int().to_numpy().T
                        noise.append((low <= counts / count) & (counts / count <= high))
                        away.append(fit.estimate.to_numpy()[0] - share)
                        false_alarms.append(fit.estimate.to_numpy()[0] - counts[0] / count)
                    law, laws_found = laws(share, count, eps, levels)
                    sds = np.std(away, ddof=1) / law, np.std(false_alarms, ddof=1) / laws_found
                    ratios.append(sds)
                    print(
                        f"{about:36s}{hits(conf)}{hits(noise)}{sds[0]:14.3f}{sds[1]:14.3f}",
                        flush=True,
                    )
    every = np.square(ratios)
    spread = np.sqrt(2 / (len(every) * runs)) / 2
    mean = np.sqrt(every.mean(axis=0))
    print(f"all together: sd / formula {mean[0]:.4f} and {mean[1]:.4f} +-{spread:.4f}")


def hits(results):
    """Return the share of hits of the first level with its error, and of all levels."""
    hits_array = np.array(results)
    p = hits_array[:, 0].mean()
    error = math.sqrt(max(p * (1 - p), 1e-9) / len(hits_array))
    return f"{p:9.4f} +-{error:.3f}{hits_array.mean():11.4f}"


def regression(runs):
    print(f"\nLogistic regression, {runs} runs: coverage, and standard error over deviation")
    rng = np.random.default_rng(7)
    book = dp.codebook(age=(-2, 2), sex=["F", "M"])
    for count in ROWS:
        for eps in EPS:
            device = dp.randomized_response(["no", "yes"], eps=eps)
            estimates, hits_inside, errors = [], [], []
            about = f"n = {count:,}, eps = {eps:g}"
            first = crc32(about.encode())
            for seed in range(first, first + runs):
                age, male = rng.uniform(-2, 2, count), rng.random(count) < 0.5
                line = COEFFICIENTS[0] + COEFFICIENTS[1] * age + COEFFICIENTS[2] * male
                truths = np.where(rng.random(count) < expit(line), "yes", "no")
                with dp.simulation(seed=seed):
                    answers = {
                        "drug": device.randomize(truths),
                        "age": age,
                        "sex": np.where(male, "M", "F"),
                    }
                words = {"codebook": book, "device": {"drug": device}}
                fit = dp.dp_survey("drug ~ age + sex", answers, **words)
                if not fit.identified:
                    continue
                low, high = fit.conf_int().loc[["Intercept", "age", "sex[T.M]"]].to_numpy().T
                hits_inside.append((low <= COEFFICIENTS) & (high >= COEFFICIENTS))
                estimates.append(fit.params[["Intercept", "age", "sex[T.M]"]])
                errors.append(fit.bse[["Intercept", "age", "sex[T.M]"]])
            rates = np.mean(hits_inside, axis=0) if hits_inside else np.full(3, math.nan)
            shown = "  ".join(
                f"{p:.3f} +-{math.sqrt(p * (1 - p) / len(hits_inside)):.3f}" for p in rates
            )
            ratio = np.median(errors, axis=0) / np.std(estimates, axis=0, ddof=1)
            ratios = "  ".join(f"{figure:.2f}" for figure in ratio)
            print(
                f"{about:22s}{shown}   {ratios}   identified {len(hits_inside) / runs:.3f}",
                flush=True,
            )


PARTS = {"coverage": coverage, "regression": regression}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--quick", action="store_true", help="50 runs")
    words = parser.parse_args()
    for part in words.part or PARTS:
        PARTS[part](50 if words.quick else words.runs)


if __name__ == "__main__":
    main()
