"""dp_lm on simulated surveys: which slopes have useful intervals, and whether these cover.

    python benchmarks/surveys.py [--n 2000 5000 20000] [--eps 1] [--fits 100]
        [--tables mixed skewed alike factors binary incomes costs]
        [--mechanisms moments ellipsoid scores]

Seven tables of 6 to 15 coefficients: a survey with a quadratic age and ordered levels ("mixed"),
skewed and zero-inflated numbers with rare levels ("skewed"), eight correlated numbers ("alike"),
two factors of 10 and 4 levels with heavy tails ("factors"), a binary response ("binary"), and
responses in currency, skewed and partly zero, whose spread grows with their mean ("incomes",
"costs").
Each fit draws new rows from a population of 400,000. Columns, over slopes and fits: the share
with an interval ("offered"), with one at most three times as long as the non-private one
("within 3"), the median ratio of lengths, the median distance to the non-private slope in its
standard errors, and the shares of 95 % intervals that hold the population's slope ("conf") and
the non-private one of the same rows ("noise"), each with the least over slopes. Monte-Carlo
errors of shares are at most 0.5 / sqrt(fits x slopes). The last column is the ratio of lengths
over that of the first mechanism named.
"""

import argparse
import warnings

import numpy as np
import pandas as pd

import dpmodels as dp

POPULATION, SEED, DELTA, Z = 400_000, 99, 1e-6, 1.959964


def _names(letters, codes):
    return np.array(list(letters))[codes]


def mixed(n, rng):
    age, sex = rng.integers(18, 81, n), rng.integers(0, 2, n)
    educ = rng.choice(5, n, p=[0.08, 0.27, 0.3, 0.25, 0.1])
    region = rng.choice(4, n, p=[0.2, 0.25, 0.35, 0.2])
    married = (rng.random(n) < 1 / (1 + np.exp(-(age - 35) / 12))).astype(int)
    hours = np.clip(np.round(rng.normal(38, 11, n)), 0, 80)
    health = np.clip(np.round(7 + 1.8 * rng.normal(size=n) - 0.02 * (age - 45)), 0, 10)
    y = 9.6 + 0.012 * (age - 45) - 0.0006 * (age - 45) ** 2 - 0.22 * sex + 0.08 * married
    y += np.array([-0.3, 0, 0.15, 0.45, 0.7])[educ] + np.array([0, 0.05, -0.06, 0.1])[region]
    y += 0.018 * (hours - 38) + 0.03 * (health - 6.5) + 0.65 * rng.normal(size=n)
    columns = {"age": age, "married": married, "hours": hours, "health": health}
    columns |= {"educ": _names("abcde", educ), "sex": _names("fm", sex)}
    bounds = {"age": (18, 80), "married": (0, 1), "hours": (0, 80), "health": (0, 10)}
    bounds |= {"educ": list("abcde"), "sex": list("fm"), "region": list("ensw"), "y": (5, 14)}
    return columns | {"region": _names("ensw", region), "y": np.clip(y, 5, 14)}, bounds


def skewed(n, rng):
    income, children = np.minimum(rng.lognormal(3, 0.8, n), 300), rng.poisson(0.8, n).clip(0, 8)
    capital = np.where(rng.random(n) < 0.85, 0, rng.exponential(8, n)).clip(0, 100)
    job = rng.choice(8, n, p=[0.3, 0.25, 0.15, 0.1, 0.08, 0.06, 0.04, 0.02])
    region = rng.choice(5, n)
    y = 10 + 0.03 * income + 0.5 * children + 0.02 * capital + 0.3 * (region == 2)
    y += np.array([0, 0.3, 0.6, -0.5, 0.9, 0.2, -0.8, 1.0])[job] + rng.gamma(2, 1.2, n)
    columns = {"income": income, "children": children, "capital": capital}
    columns |= {"job": _names("abcdefgh", job), "region": _names("vwxyz", region)}
    bounds = {"income": (0, 300), "children": (0, 8), "capital": (0, 100), "y": (0, 40)}
    bounds |= {"job": list("abcdefgh"), "region": list("vwxyz")}
    return columns | {"y": np.clip(y, 0, 40)}, bounds


def alike(n, rng):
    common = np.linalg.cholesky(0.4 * np.eye(8) + 0.6 * np.ones((8, 8)))
    x = (rng.normal(size=(n, 8)) @ common.T).clip(-4, 4)
    group = rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    y = x @ np.linspace(-0.5, 0.8, 8) + np.array([0, 0.4, -0.3, 0.5])[group]
    columns = {f"x{at}": x[:, at] for at in range(8)} | {"g": _names("abcd", group)}
    bounds = {f"x{at}": (-4, 4) for at in range(8)} | {"g": list("abcd"), "y": (-9, 9)}
    return columns | {"y": (y + rng.normal(size=n)).clip(-9, 9)}, bounds


def factors(n, rng):
    first = rng.choice(10, n, p=np.array([20, 15, 13, 12, 10, 10, 8, 6, 4, 2]) / 100)
    second, sex = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]), rng.integers(0, 2, n)
    age, usual = rng.integers(18, 90, n), rng.random(n) < 0.3
    hours = np.where(usual, 40, rng.normal(38, 12, n).round()).clip(1, 99)
    y = 8 + 0.02 * age + 0.03 * hours + 0.8 * sex + np.linspace(-1, 1, 10)[first]
    y += 0.4 * (second == 3) + rng.standard_t(4, n)
    columns = {"age": age, "hours": hours, "a": _names("abcdefghij", first)}
    columns |= {"b": _names("pqrs", second), "s": _names("fm", sex), "y": np.clip(y, -5, 25)}
    bounds = {"age": (18, 90), "hours": (1, 99), "a": list("abcdefghij"), "b": list("pqrs")}
    return columns, bounds | {"s": list("fm"), "y": (-5, 25)}


def binary(n, rng):
    x, z = rng.exponential(1, n).clip(0, 8), rng.beta(2, 5, n)
    group, w = rng.choice(5, n, p=[0.5, 0.2, 0.15, 0.1, 0.05]), rng.integers(0, 11, n)
    score = -1.5 + 0.6 * x + 1.2 * z + 0.1 * w + np.array([0, 0.4, -0.4, 0.8, -0.8])[group]
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    columns = {"x": x, "z": z, "w": w, "g": _names("abcde", group), "y": y}
    return columns, {"x": (0, 8), "z": (0, 1), "w": (0, 10), "g": list("abcde"), "y": (0, 1)}


def incomes(n, rng):
    """Incomes: lognormal with a spread that grows with education, a fifth of them zero."""
    age, educ = rng.integers(18, 91, n), rng.binomial(15, 0.6, n) + 1
    sex, married = rng.integers(0, 2, n), rng.integers(0, 2, n)
    level = 9.2 + 0.1 * educ + 0.03 * (age - 45) - 0.0011 * (age - 45) ** 2
    level += 0.3 * (sex == 1) + 0.1 * married
    y = np.exp(level + (0.6 + 0.02 * educ) * rng.normal(size=n)) * (rng.random(n) > 0.2)
    columns = {"age": age, "age2": (age - 45) ** 2 / 100, "educ": educ, "married": married}
    columns |= {"sex": _names("fm", sex), "y": np.clip(y, 0, 400_000)}
    bounds = {"age": (18, 90), "age2": (0, 20.25), "educ": (1, 16), "married": (0, 1)}
    return columns, bounds | {"sex": list("fm"), "y": (0, 400_000)}


def costs(n, rng):
    """Costs: three fifths are zero, the others gamma with a mean that factors and age multiply."""
    age, chronic = rng.integers(0, 100, n), rng.poisson(0.6, n).clip(0, 6)
    region, plan = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]), rng.choice(3, n, p=[0.6, 0.3, 0.1])
    mean = 800 * np.exp(0.015 * age + 0.35 * chronic + np.array([0, 0.2, 0.5])[plan])
    y = np.where(rng.random(n) < 0.6, 0.0, rng.gamma(0.8, mean / 0.8))
    columns = {"age": age, "chronic": chronic, "y": np.clip(y, 0, 100_000)}
    columns |= {"region": _names("ensw", region), "plan": _names("abc", plan)}
    bounds = {"age": (0, 100), "chronic": (0, 6), "region": list("ensw"), "plan": list("abc")}
    return columns, bounds | {"y": (0, 100_000)}


TABLES = {
    table.__name__: table for table in (mixed, skewed, alike, factors, binary, incomes, costs)
}


def least_squares(frame, bounds):
    """Slopes and their standard errors, named as dp_lm names them."""
    columns = {"Intercept": np.ones(len(frame))}
    for name, declared in bounds.items():
        if isinstance(declared, list):
            codes = frame[name].to_numpy()
            columns |= {f"{name}[T.{level}]": codes == level for level in declared[1:]}
        elif name != "y":
            columns[name] = frame[name].to_numpy()
    design = np.column_stack([column.astype(float) for column in columns.values()])
    response = frame["y"].to_numpy(float)
    slopes = np.linalg.lstsq(design, response, rcond=None)[0]
    left = response - design @ slopes
    variance = left @ left / (len(frame) - len(slopes))
    errors = np.sqrt(variance * np.diagonal(np.linalg.inv(design.T @ design)))
    return (pd.Series(array[1:], list(columns)[1:]) for array in (slopes, errors))


def fits_of(name, n, eps, fits, mechanism):
    """By fit and slope: interval ends, noise ends, estimates, and what they are held against."""
    columns, bounds = TABLES[name](POPULATION, np.random.default_rng(SEED))
    population, rng = pd.DataFrame(columns), np.random.default_rng(1)
    truth, _ = least_squares(population, bounds)
    formula = f"y ~ {' + '.join(bound for bound in bounds if bound != 'y')}"
    words = {"codebook": dp.codebook(**bounds), "eps": eps, "delta": DELTA}
    for _ in range(fits):
        rows = population.iloc[rng.integers(0, POPULATION, n)].reset_index(drop=True)
        plain, errors = least_squares(rows, bounds)
        fit = dp.dp_lm(formula, rows, mechanism=mechanism, **words)
        names = list(plain.index)
        yield np.column_stack(
            [
                fit.conf_int().loc[names].to_numpy(),
                fit.noise_int().loc[names].to_numpy(),
                fit.params[names].to_numpy(),
                plain.to_numpy(),
                errors.to_numpy(),
                truth[names].to_numpy(),
            ]
        )


def summary(cells):
    """Figures of one cell, shape of `cells`: (fits, slopes, 8)."""
    low, high, noise_low, noise_high, estimate, plain, error, truth = np.moveaxis(cells, 2, 0)
    offered = np.isfinite(low) & np.isfinite(high)
    ratio = np.where(offered, (high - low) / (2 * Z * error), np.inf)
    figures = [offered.mean(), (ratio <= 3).mean(), np.median(ratio)]
    figures.append(np.median(np.abs(estimate - plain) / error))
    for ends, target in (((low, high), truth), ((noise_low, noise_high), plain)):
        covered = np.where(offered, (ends[0] <= target) & (target <= ends[1]), np.nan)
        rates = [np.nanmean(hits) for hits in covered.T if np.isfinite(hits).any()]
        figures += [np.nanmean(covered), min(rates)] if rates else [np.nan, np.nan]
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[2_000, 5_000, 20_000])
    parser.add_argument("--eps", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--mechanisms", nargs="+", default=["moments", "ellipsoid", "scores"])
    options = parser.parse_args()
    warnings.simplefilter("ignore", dp.errors.BudgetWarning)
    heads = ["offered", "within 3", "ratio", "error", "conf", "least", "noise", "least", "over"]
    print(f"{'table':>8}{'n':>8}{'mechanism':>11}" + "".join(f"{head:>10}" for head in heads))
    for name in options.tables:
        for n in options.n:
            first = None
            for mechanism in options.mechanisms:
                cells = np.array(list(fits_of(name, n, options.eps, options.fits, mechanism)))
                figures = summary(cells)
                first = figures[2] if first is None else first
                figures.append(figures[2] / first if np.isfinite(figures[2]) else np.inf)
                line = "".join(f"{figure:10.2f}" for figure in figures)
                print(f"{name:>8}{n:8,}{mechanism:>11}{line}", flush=True)


if __name__ == "__main__":
    main()
