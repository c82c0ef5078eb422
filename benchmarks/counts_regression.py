"""Poisson regressions with two numbers and two factors: coefficients offered, and coverage.

    python benchmarks/counts_regression.py [--runs 100] [--rows 20000] [--mechanism auto]

Means of about 1 in bounds up to 30, and of about 8 up to 200; Poisson's counts and
negative-binomial ones of size 2; without and with the offset of an exposure; eps = 1, delta = 1e-6,
one row replaced.
Nine coefficients. Offered: the share of coefficients with a standard error. Covered: the share of
nominal 95 % intervals of these that contain the truth, with its standard error over fits. Ratio:
the median of their standard errors over those of statsmodels (HC0).
"""

import argparse

import numpy as np
import statsmodels.api as sm

import dpmodels as dp

SLOPES = np.array([0.3, -0.3, 0.2, -0.2, 0.4, -0.1, 0.02, 0.03])
LEVELS = (list("abc"), list("vwxyz"))


def drawn(rng, rows, mean, size, exposed):
    """Rows, the coded design, and the true coefficients."""
    x1, x2 = rng.normal(50, 12, rows).clip(0, 100), rng.gamma(2, 5, rows).clip(0, 60)
    f, g = (
        rng.choice(3, rows, p=[0.5, 0.3, 0.2]),
        rng.choice(5, rows, p=[0.3, 0.25, 0.2, 0.15, 0.1]),
    )
    years = np.exp(rng.normal(0, 0.5, rows)).clip(0.05, 20)
    dummies = [f == at for at in (1, 2)] + [g == at for at in (1, 2, 3, 4)]
    design = np.column_stack([*dummies, x1, x2]).astype(float)
    constant = np.log(mean) - 1.45
    rate = np.exp(constant + design @ SLOPES) * (years if exposed else 1.0)
    counts = (
        rng.poisson(rate) if size is None else rng.negative_binomial(size, size / (size + rate))
    )
    names = (np.array(levels)[at] for levels, at in zip(LEVELS, (f, g), strict=True))
    table = dict(
        zip(("y", "x1", "x2", "t", "f", "g"), (counts, x1, x2, years, *names), strict=True)
    )
    return table, sm.add_constant(design), np.append(constant, SLOPES)


def cell(runs, rows, mean, upper, size, exposed, mechanism):
    """Offered, covered with its error, and the ratio of errors."""
    book = dp.codebook(
        y=(0, upper), x1=(0, 100), x2=(0, 60), t=(0.05, 20), f=LEVELS[0], g=LEVELS[1]
    )
    formula = "y ~ f + g + x1 + x2" + " + offset(log(t))" * exposed
    words = {"eps": 1.0, "delta": 1e-6, "family": "poisson", "mechanism": mechanism}
    offered, covered, ratios = [], [], []
    for run in range(runs):
        table, design, truth = drawn(np.random.default_rng(run), rows, mean, size, exposed)
        fit = dp.dp_glm(formula, table, codebook=book, **words)
        offered.append(fit.identified.mean())
        if not fit.identified.any():
            continue
        low, high = fit.conf_int().to_numpy()[fit.identified].T
        covered.append(((low <= truth[fit.identified]) & (truth[fit.identified] <= high)).mean())
        if run < 10:
            offset = np.log(table["t"]) if exposed else None
            reference = sm.GLM(table["y"], design, family=sm.families.Poisson(), offset=offset)
            ratios += (fit.bse / reference.fit(cov_type="HC0").bse).dropna().tolist()
    error = np.std(covered) / max(np.sqrt(len(covered)), 1)
    return np.mean(offered), np.mean(covered), error, np.median(ratios)


def main():
    """Print a line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--mechanism", default="auto")
    args = parser.parse_args()
    for mean, upper in ((1, 30), (8, 200)):
        for size in (None, 2):
            for exposed in (False, True):
                figures = cell(args.runs, args.rows, mean, upper, size, exposed, args.mechanism)
                law = "Poisson" if size is None else f"negative binomial, size {size}"
                offset = ", offset" * exposed
                print(
                    f"mean {mean} up to {upper}, {law}{offset}: offered {figures[0]:.2f}, "
                    f"covered {figures[1]:.3f} ± {figures[2]:.3f}, ratio {figures[3]:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
