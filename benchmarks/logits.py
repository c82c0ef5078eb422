"""dp_glm on strong and ordinary effects: coverage of intervals, and errors of both estimates.

    python benchmarks/logits.py [--n 20000] [--eps 1 3] [--fits 100]
        [--tables normal exponential lognormal survey] [--effects 0.5 1.25] [--plain] [--pure 0.35]

Four tables: three normal columns, two of which one is exponential or lognormal, and a survey of
a skewed, a normal and an ordered number, two factors (of 6 and 2 levels, the rarest of 2 and
10 %). Effects are slopes per standard deviation; 30 % have the outcome. Each fit draws new rows
from a population of 300,000. Columns, over coefficients and fits: the share with an interval
("offered"), the shares of 95 % intervals that hold the population's value ("conf") and the
maximum-likelihood estimate of the same rows ("noise"), each with the least over coefficients;
the median ratio of lengths to the non-private interval; and the root mean square error of the
linear predictor against that of the rows' own maximum-likelihood estimate, median over fits, for
the debiased estimate, the released one and, with --plain, that of inference=False, and of
diffprivlib's LogisticRegression, which has to be installed. --pure fits by Objective(pure=True)
with that share for intervals. Monte-Carlo errors of shares are at most
0.5 / sqrt(fits) for one coefficient.
"""

import argparse
import warnings

import numpy as np
from scipy.special import expit

import dpmodels as dp
from dpmodels.mechanisms.regression import Objective

POPULATION, SEED, DELTA, Z, RATE = 300_000, 99, 1e-6, 1.959964, 0.3


def normal(n, rng):
    x = rng.normal(size=(n, 3)).clip(-4, 4)
    return {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}, dict.fromkeys("abc", (-4, 4))


def exponential(n, rng):
    x, z = rng.exponential(1, n).clip(0, 15), rng.normal(size=n).clip(-4, 4)
    return {"a": x, "b": z}, {"a": (0, 15), "b": (-4, 4)}


def lognormal(n, rng):
    x, z = rng.lognormal(0, 1, n).clip(0, 50), rng.normal(size=n).clip(-4, 4)
    return {"a": x, "b": z}, {"a": (0, 50), "b": (-4, 4)}


def survey(n, rng):
    columns = {
        "income": rng.lognormal(0, 0.8, n).clip(0, 20),
        "age": rng.normal(size=n).clip(-3, 3),
    }
    columns["steps"] = rng.integers(0, 5, n).astype(float)
    columns["job"] = rng.choice(list("abcdef"), n, p=[0.4, 0.25, 0.15, 0.1, 0.08, 0.02])
    columns["sex"] = rng.choice(list("fm"), n, p=[0.9, 0.1])
    bounds = {"income": (0, 20), "age": (-3, 3), "steps": (0, 4), "job": list("abcdef")}
    return columns, bounds | {"sex": list("fm")}


TABLES = {shape.__name__: shape for shape in (normal, exponential, lognormal, survey)}
SIGNS = (1.0, -0.8, 0.9, 0.5, -0.6, 0.4, -0.5, 0.6, 0.5)


def coded(columns, bounds):
    """Names and columns of the design, as dp_glm names them."""
    design = {"Intercept": np.ones(len(next(iter(columns.values()))))}
    for name, declared in bounds.items():
        if isinstance(declared, list):
            levels = {f"{name}[T.{level}]": columns[name] == level for level in declared[1:]}
            design |= {level: share.astype(float) for level, share in levels.items()}
        else:
            design[name] = columns[name]
    return list(design), np.column_stack(list(design.values()))


def likeliest(x, y):
    """Maximum-likelihood coefficients and the curvature there."""
    theta = np.zeros(x.shape[1])
    for _ in range(60):
        p = expit(x @ theta)
        bend = (x * (p * (1 - p))[:, None]).T @ x
        step = np.linalg.solve(bend + 1e-9 * np.eye(len(theta)), x.T @ (y - p))
        theta += step * min(1.0, 4 / np.abs(x @ step).max())
        if np.abs(step).max() < 1e-9:
            break
    return theta, bend


def population(name, effect):
    rng = np.random.default_rng(SEED)
    columns, bounds = TABLES[name](POPULATION, rng)
    names, x = coded(columns, bounds)
    scaled = (x - x.mean(axis=0))[:, 1:]
    line = scaled / np.where(scaled.std(axis=0) > 0.4, scaled.std(axis=0), 1.0)
    line = effect * line @ np.array(SIGNS[: line.shape[1]])
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(line + middle).mean() < RATE else (low, middle)
    y = (rng.random(POPULATION) < expit(line + low)).astype(float)
    return columns, bounds, names, x, y, likeliest(x, y)[0]


def diffprivlib_fit(columns, bounds, y, eps, names):
    """Coefficients of diffprivlib, of columns scaled to [0, 1] by their public bounds."""
    from diffprivlib.models import LogisticRegression

    x = coded(columns, bounds)[1][:, 1:]
    ends = [(0, 1) if "[" in name else bounds[name] for name in names[1:]]
    low, high = np.array(ends, dtype=float).T
    model = LogisticRegression(epsilon=eps, data_norm=np.sqrt(len(low) + 1), max_iter=1000)
    model.fit((x - low) / (high - low), y)
    slopes = model.coef_[0] / (high - low)
    return np.append(model.intercept_ - slopes @ low, slopes)


def fits_of(name, effect, n, eps, options):
    """By fit: interval ends, noise ends, rows' estimate, its errors and truth; and errors."""
    columns, bounds, names, x, y, truth = population(name, effect)
    rng, book = np.random.default_rng(1), dp.codebook(**bounds, y=[0, 1])
    formula, words = f"y ~ {' + '.join(bounds)}", {"codebook": book, "eps": eps, "delta": DELTA}
    mechanism = Objective(pure=True, share=options.pure) if options.pure else "auto"
    for at in range(options.fits):
        rows = rng.integers(0, POPULATION, n)
        data = {key: column[rows] for key, column in columns.items()}
        mle, bend = likeliest(x[rows], y[rows])
        labels = {"y": y[rows].astype(int)}

        def error(estimate, bend=bend, mle=mle):
            off = np.asarray(estimate) - mle
            return np.sqrt(off @ bend @ off / len(off))

        with dp.simulation(seed=1000 * n + 10_000_000 * int(10 * eps) + at):
            fit = dp.dp_glm(formula, data | labels, mechanism=mechanism, **words)
        released = fit.params_released
        errors = [error(fit.params[names]), error(released[names])]
        if options.plain:
            with dp.simulation(seed=1000 * n + 10_000_000 * int(10 * eps) + at):
                alone = dp.dp_glm(formula, data | labels, inference=False, **words)
            errors.append(error(alone.params[names]))
            errors.append(error(diffprivlib_fit(data, bounds, y[rows], eps, names)))
        blank = np.full((len(names), 2), np.nan)
        ends = [fit.conf_int(), fit.noise_int()] if fit.identified.any() else None
        ends = [blank, blank] if ends is None else [bound.loc[names].to_numpy() for bound in ends]
        sds = np.sqrt(np.diagonal(np.linalg.inv(bend)))
        yield np.column_stack([*ends, mle, sds, truth]), errors


def summary(cells):
    low, high, noise_low, noise_high, mle, sd, truth = np.moveaxis(cells, 2, 0)
    offered = np.isfinite(low)
    figures = [offered.mean()]
    for ends, target in (((low, high), truth), ((noise_low, noise_high), mle)):
        covered = np.where(offered, (ends[0] <= target) & (target <= ends[1]), np.nan)
        rates = [np.nanmean(hits) for hits in covered.T if np.isfinite(hits).sum() > 9]
        figures += [np.nanmean(covered) if offered.any() else np.nan, min(rates, default=np.nan)]
    return [*figures, np.median(np.where(offered, (high - low) / (2 * Z * sd), np.inf))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, nargs="+", default=[20_000])
    parser.add_argument("--eps", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--effects", type=float, nargs="+", default=[0.5, 1.25])
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--pure", type=float)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = "effect       n  eps  offered   conf  least  noise  least  ratio  errors"
    print(f"{'table':12s}{heads}")
    for name in options.tables:
        for effect in options.effects:
            for n in options.n:
                for eps in options.eps:
                    fits_found = list(fits_of(name, effect, n, eps, options))
                    figures = summary(np.stack([fit for fit, _ in fits_found]))
                    errors = np.median([reference for _, reference in fits_found], axis=0)
                    numbers = "".join(f"{figure:7.3f}" for figure in figures)
                    line = " ".join(f"{error:.2f}" for error in errors)
                    print(f"{name:12s}{effect:6.2f}{n:8d}{eps:5g}  {numbers}  {line}", flush=True)


if __name__ == "__main__":
    main()
