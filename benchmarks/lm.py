"""Linear regression: coverage of dp_lm's intervals, its errors beside the peers', its time.

    DPMODELS_DATA=../shared/data python benchmarks/lm.py [--repeats 200] [--coverage] [--errors]
        [--pure] [--time] [--bounds]

Coverage: five regressors, one uniform, two skewed (exponential; lognormal), a
rare and a common indicator, new rows at each repetition. "noise" is the share
of 95 % noise intervals that hold the non-private coefficient, "conf" that of
95 % confidence intervals that hold the population's; the least and the largest
over the six coefficients among intervals that have ends, and "not" the share
that have none: there the result says "not identified". --pure: the same with
delta = 0, Laplace noise.

Errors: root mean squared distance to the non-private coefficients over
coefficients, median over repetitions, at equal (eps, delta = 1e-6):
- split: separate Gaussian noise on X'X, X'y and y'y with a third of eps and
  delta each, the classical sqrt(2 ln(1.25/delta))/eps, columns scaled to
  [-1, 1]; the calibration of dp-econometrics' OLS, with its L2 sensitivities
  of entries on and above the diagonal.
- functional: the functional mechanism (Zhang et al., 2012) as diffprivlib's
  LinearRegression calibrates it: private means with 1/(p + 1) of eps, then
  Laplace noise on y'y, X'y and X'X, an equal share of the rest for each entry,
  each of the sensitivity of its own bounds. Pure, so its delta is unused.
- ours: moments and adassp, and pure (moments with delta = 0).
The last column is moments over the better of split and functional.

Bounds: distances to the non-private coefficients in their standard errors, root
mean square over coefficients, medians over repetitions, for one release
("moments") and for moments in an ellipsoid found first, with the bounds of the
tables and upper bounds ten and a hundred times as far; the last columns are the
ratio, the share of fits that stayed in the codebook's ball, and the distance
from the non-private coefficients to those of the rows as they were shortened.

Time: dp_lm and dp_pca on the same 10^6 rows, 50 columns in all.
"""

import argparse
import math
import os
import time
from pathlib import Path

import numpy as np
import shapes
import survey

import dpmodels as dp
from dpmodels.models.lm import dp_lm

BESIDE = Path(__file__).parents[2] / "shared" / "data"
DELTA = 1e-6
EPS = (0.5, 1.0, 5.0)
TRUTH = np.array([1.0, 0.8, -1.0, 1.5, 0.6, 0.0])
BOOK = dp.codebook(y=(-4, 6), x1=(-1, 1), x2=(0, 1), x3=(0, 8), x4=[0, 1], x5=[0, 1])
FORMULA = "y ~ x1 + x2 + I(x3 / 8) + x4 + x5"
# The coefficients in the order of the fit's columns, categories first.
NAMES = ("Intercept", "x1", "x2", "I(x3 / 8)", "x4[T.1]", "x5[T.1]")
WAGES = {
    "cps": (
        "cps_asec_2024_wages.parquet",
        {
            "educ_years": (0, 22),
            "experience": (0, 58),
            "experience_sq": (0, 3364),
            "female": (0, 1),
            "log_wage": (0, 15),
        },
    ),
    "cps + wage": (
        "cps_asec_2024_wages.parquet",
        {
            "educ_years": (0, 22),
            "experience": (0, 58),
            "experience_sq": (0, 3364),
            "female": (0, 1),
            "WSAL_VAL": (0, 1.5e6),
            "log_wage": (0, 15),
        },
    ),
    "pums": (
        "pums_california_10000.parquet",
        {
            "age": (18, 93),
            "educ": (1, 16),
            "married": (0, 1),
            "sex": (0, 1),
            "income": (-1e4, 713e3),
        },
    ),
    "adult": (
        "adult.parquet",
        {
            "age": (17, 90),
            "education_num": (1, 16),
            "capital_gain": (0, 99_999),
            "hours_per_week": (1, 99),
        },
    ),
}


def skewed(rng, rows):
    """Five regressors and a response of known coefficients, all but never clipped."""
    columns = {
        "x1": rng.uniform(-1, 1, rows),
        "x2": np.minimum(rng.exponential(0.15, rows), 1),
        "x3": np.minimum(rng.lognormal(0, 0.6, rows), 8),
        "x4": (rng.random(rows) < 0.4).astype(int),
        "x5": (rng.random(rows) < 0.1).astype(int),
    }
    design = np.column_stack([np.ones(rows), *columns.values()])
    design[:, 3] /= 8
    return columns | {"y": design @ TRUTH + 0.7 * rng.normal(size=rows)}, design


def coverage(rows, eps, repeats, rng, delta):
    """Hits and ends of both intervals, by coefficient."""
    hits = {"noise": np.zeros(6), "conf": np.zeros(6)}
    ends = {"noise": np.zeros(6), "conf": np.zeros(6)}
    for _ in range(repeats):
        table, design = skewed(rng, rows)
        plain = np.linalg.lstsq(design, table["y"], rcond=None)[0]
        fit = dp_lm(FORMULA, table, codebook=BOOK, eps=eps, delta=delta)
        interval_pairs = (("noise", fit.noise_int(), plain), ("conf", fit.conf_int(), TRUTH))
        for kind, interval, truth in interval_pairs:
            lower, upper = interval.loc[list(NAMES)].to_numpy().T
            is_finite = np.isfinite(lower)
            ends[kind] += is_finite
            hits[kind] += is_finite & (lower <= truth) & (truth <= upper)
    return hits, ends


def report_coverage(repeats, sizes, delta):
    print(
        f"coverage of 95% intervals, d = 5, skewed regressors, delta = {delta:g}; standard error "
        f"of a cell {math.sqrt(0.95 * 0.05 / repeats):.3f}"
    )
    print(f"{'n':>8}{'eps':>6}   noise: least mean most  not    conf: least mean most  not")
    for rows in sizes:
        for eps in EPS:
            with dp.simulation(seed=rows + int(10 * eps)):
                hits, ends = coverage(rows, eps, repeats, np.random.default_rng(7), delta)
            cells = ""
            for kind in ("noise", "conf"):
                enough = ends[kind] >= repeats / 4
                share = hits[kind][enough] / ends[kind][enough]
                lowest, mean, highest = (
                    (share.min(), share.mean(), share.max()) if enough.any() else (math.nan,) * 3
                )
                none = 1 - ends[kind].mean() / repeats
                cells += f"   {lowest:10.3f}{mean:6.3f}{highest:6.3f}{none:6.2f}"
            print(f"{rows:8,}{eps:6}{cells}", flush=True)


def split_budget(design, response, eps, rng):
    """Least squares from X'X, X'y and y'y with noise of their own, columns in [-1, 1]."""
    scale = 3 * math.sqrt(2 * math.log(1.25 * 3 / DELTA)) / eps
    columns = design.shape[1]
    # A replaced row moves each entry by at most 2, the constant's own not at all.
    upper = math.sqrt(columns * (columns + 1) / 2 - 1)
    noise = np.triu(rng.normal(size=(columns, columns))) * 2 * upper * scale
    noise[0, 0] = 0.0
    gram = design.T @ design + np.triu(noise) + np.triu(noise, 1).T
    cross = design.T @ response + rng.normal(size=columns) * 2 * math.sqrt(columns) * scale
    return np.linalg.lstsq(gram, cross, rcond=None)[0]


def functional(design, response, eps, rng):
    """Minimise the quadratic loss with Laplace noise on its coefficients, columns in [-1, 1]."""
    terms, rows = design[:, 1:], len(design)
    size = terms.shape[1]
    lead = eps / (size + 1)
    means = terms.mean(0) + rng.laplace(size=size) * 2 * size / (rows * lead)
    middle = response.mean() + rng.laplace() * 2 / (rows * lead)
    eps_each = (eps - lead) / (1 + size + size * (size + 1) / 2)
    terms, response = terms - means, response - middle
    x_most = 1 + np.abs(means)
    # Products of centred columns lie between (1 + |a|)(1 + |b|) and its least corner.
    spread = _spread(means, means)
    np.fill_diagonal(spread, x_most**2)
    noise = np.triu(rng.laplace(size=(size, size)) * spread / eps_each)
    gram = terms.T @ terms + noise + np.triu(noise, 1).T
    cross = terms.T @ response
    cross += rng.laplace(size=size) * _spread(means, np.array([middle]))[:, 0] / eps_each
    slopes = np.linalg.lstsq(gram, cross, rcond=None)[0]
    return np.concatenate([[middle - means @ slopes], slopes])


def _spread(left, right):
    """Range of products of columns in [-1 - a, 1 - a] and [-1 - b, 1 - b]."""
    corners = [np.outer(s - left, t - right) for s in (-1, 1) for t in (-1, 1)]
    return np.max(corners, axis=0) - np.min(corners, axis=0)


def errors(title, table, book, formula, names, repeats):
    y, *terms = names
    centre, half = ({name: f(book[name]) for name in names} for f in (_centre, _half))
    scaled = {name: (np.asarray(table[name], float) - centre[name]) / half[name] for name in names}
    design = np.column_stack([np.ones(len(scaled[y])), *(scaled[name] for name in terms)])
    matrix = np.diag([half[y], *(half[y] / half[name] for name in terms)])
    matrix[0, 1:] = [-half[y] * centre[name] / half[name] for name in terms]
    shift = np.zeros(len(names))
    shift[0] = centre[y]
    plain = matrix @ np.linalg.lstsq(design, scaled[y], rcond=None)[0] + shift
    rng = np.random.default_rng(3)
    for eps in EPS:
        cells = {}
        for peer in (split_budget, functional):
            estimates = [matrix @ peer(design, scaled[y], eps, rng) + shift for _ in range(repeats)]
            cells[peer.__name__] = _rmse(estimates, plain)
        for mechanism, delta in (("moments", DELTA), ("adassp", DELTA), ("moments", 0.0)):
            with dp.simulation(seed=int(10 * eps)):
                words = {"codebook": book, "eps": eps, "delta": delta, "mechanism": mechanism}
                ours = [dp_lm(formula, table, **words).params.to_numpy() for _ in range(repeats)]
            cells[mechanism if delta else "pure"] = _rmse(ours, plain)
        best = min(cells["split_budget"][0], cells["functional"][0])
        ratio, error = cells["moments"][0] / best, cells["moments"][1] / best
        line = "".join(f"{f'{m:.3g} ±{e:.1g}':>16}" for m, e in cells.values())
        print(f"{title:>12}{eps:6}{line}{ratio:11.3f} ±{error:.2g}", flush=True)


def _centre(declared):
    return (declared.upper + declared.lower) / 2


def _half(declared):
    return (declared.upper - declared.lower) / 2


def _rmse(estimates, plain):
    """Median over repetitions of the root mean square over coefficients, and its error."""
    errors = np.sqrt(((np.array(estimates) - plain) ** 2).mean(axis=1))
    spread = 1.2533 * (np.quantile(errors, 0.75) - np.quantile(errors, 0.25)) / 1.349
    return float(np.median(errors)), float(spread / math.sqrt(len(errors)))


def report_errors(repeats):
    heads = ("split", "functional", "moments", "adassp", "pure")
    print(f"{'':>12}{'eps':>6}{''.join(f'{head:>16}' for head in heads)}   moments / better peer")
    rng = np.random.default_rng(1)
    names = [f"x{j}" for j in range(1, 9)]
    columns = dict(zip(names, rng.uniform(-1, 1, (8, 20_000)), strict=True))
    slopes = rng.uniform(-0.5, 0.5, 8)
    y = sum(b * x for b, x in zip(slopes, columns.values(), strict=True))
    columns["y"] = np.clip(y + 0.3 * rng.normal(size=20_000), -2, 2)
    book = dp.codebook.uniform(names, (-1, 1)) | {"y": (-2, 2)}
    errors("synthetic", columns, book, "y ~ " + " + ".join(names), ["y", *names], repeats)
    path = Path(os.environ.get("DPMODELS_DATA", BESIDE)) / "cps_asec_2024_wages.parquet"
    if not path.exists():
        print("no CPS wages: set DPMODELS_DATA to a folder that holds cps_asec_2024_wages.parquet")
        return
    import pandas as pd

    table = pd.read_parquet(path)
    bounds = {"log_wage": (0, 15), "educ_years": (0, 22), "experience": (0, 60)}
    book = dp.codebook(**bounds, experience_sq=(0, 3600), female=(0, 1))
    cps = ["log_wage", "educ_years", "experience", "experience_sq", "female"]
    errors("CPS wages", table, book, "log_wage ~ " + " + ".join(cps[1:]), cps, repeats)


def bounds_tables(folder, rows):
    """Tables and bounds by name, the response last."""
    normal = survey.physical(rows, 6)
    yield "physical", normal.rows, normal.bounds
    for name in shapes.SHAPES:
        population = shapes.population(name, 200_000)
        columns = [f"x{at}" for at in range(1, 6)] + ["y"]
        yield name, population.sample(rows, 0)[columns].astype(float), population.codebook
    for name, (file, bounds) in WAGES.items():
        if (Path(folder) / file).is_file():
            table = survey.held(folder, file, bounds).rows
            yield name, table.sample(min(rows, len(table)), random_state=0), bounds


def held_in(ball, divisor, rows):
    """The rows as they were shortened."""
    units = ((rows - ball.centre) / divisor) @ np.linalg.inv(ball.axes).T
    units *= np.minimum(1, ball.radius / np.linalg.norm(units, axis=1))[:, None]
    return ball.centre + (units @ ball.axes.T) * divisor


def by_least_squares(rows):
    """Coefficients and their standard errors."""
    design = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    plain = np.linalg.lstsq(design, rows[:, -1], rcond=None)[0]
    left = rows[:, -1] - design @ plain
    spread = np.sqrt(np.diagonal(np.linalg.inv(design.T @ design)))
    return plain, spread * math.sqrt(left @ left / (len(rows) - design.shape[1]))


def report_bounds(repeats, rows, eps):
    print(
        f"{'':>12}{'n':>8}{'bounds':>8}{'eps':>5}{'moments':>10}{'ellipsoid':>11}{'ratio':>8}"
        f"{'stayed':>8}{'moved by':>10}"
    )
    for title, table, bounds in bounds_tables(os.environ.get("DPMODELS_DATA", BESIDE), rows):
        names, values = list(table), table.to_numpy()
        plain, errors = by_least_squares(values)
        formula = f"{names[-1]} ~ {' + '.join(names[:-1])}"
        for times in (1, 10, 100):
            wide = survey.widened({name: bounds[name] for name in names}, times)
            words = {"codebook": dp.codebook(**wide), "eps": eps, "delta": DELTA}
            found, moved_errors, stayed = {"moments": [], "ellipsoid": []}, [], 0
            for seed in range(repeats):
                for mechanism, errors_of_mechanism in found.items():
                    with dp.simulation(seed=seed):
                        fit = dp_lm(formula, table, mechanism=mechanism, **words)
                    errors_of_mechanism.append(
                        np.sqrt(np.mean(((fit.params - plain) / errors) ** 2))
                    )
                ball = fit.release.ball
                stayed += ball is None
                if ball is not None:
                    errors_of_mechanism = by_least_squares(held_in(ball, fit.call.divisor, values))[
                        0
                    ]
                    moved_errors.append(
                        np.sqrt(np.mean(((errors_of_mechanism - plain) / errors) ** 2))
                    )
            first_median, second_median = (float(np.median(ratios)) for ratios in found.values())
            print(
                f"{title:>12}{len(table):8,}{times:7}x{eps:5g}{first_median:10.2f}{second_median:11.2f}"
                f"{second_median / first_median:8.2f}{stayed / repeats:8.2f}"
                f"{np.median(moved_errors) if moved_errors else math.nan:10.2f}",
                flush=True,
            )


def report_time():
    """Both fits alternate, so that what else runs on the machine slows both."""
    rng = np.random.default_rng(2)
    names = [f"x{j}" for j in range(49)] + ["y"]
    table = {name: rng.uniform(-1, 1, 1_000_000) for name in names}
    book = dp.codebook.uniform(names, (-1, 1))
    fits = {"dp_lm": (dp_lm, "y ~ ."), "dp_pca": (dp.dp_pca, "~ .")}
    times_by_name = {name: [] for name in fits}
    for _ in range(5):
        for name, (verb, formula) in fits.items():
            start = time.perf_counter()
            verb(formula, table, codebook=book, eps=1.0, delta=DELTA)
            times_by_name[name].append(time.perf_counter() - start)
    smallest = {name: min(times) for name, times in times_by_name.items()}
    timings = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in smallest.items())
    ratio = smallest["dp_lm"] / smallest["dp_pca"]
    print(f"10^6 x 50, least of 5: {timings}, ratio {ratio:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--eps", type=float, nargs="*", default=[1.0])
    for part in ("coverage", "errors", "pure", "time", "bounds"):
        parser.add_argument(f"--{part}", action="store_true")
    words = parser.parse_args()
    every = not (words.coverage or words.errors or words.pure or words.time or words.bounds)
    if words.time or every:
        report_time()
    if words.errors or every:
        report_errors(words.repeats)
    if words.bounds or every:
        for rows in (20_000, 5_000):
            for eps in words.eps:
                report_bounds(words.repeats, rows, eps)
    if words.coverage or every:
        report_coverage(words.repeats, words.sizes, DELTA)
    if words.pure or every:
        report_coverage(words.repeats, words.sizes, 0.0)


if __name__ == "__main__":
    main()
