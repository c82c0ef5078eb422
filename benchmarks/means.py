"""Means, variances, t-tests and quantiles: coverage of intervals, and errors beside a baseline.

    python benchmarks/means.py [--repeats 400] [--only mean var ttest quantile errors wide few]

Rows are skewed, new at each repetition: incomes lognormal with sd 0.6 of the
logarithm, clipped to the declared 0 to 250,000, which holds all but 3 in
100,000, and groups of 70, 25 and 5 per cent. The guarantee is eps alone,
neighbours replace one row.

Coverage: shares of 95 % intervals that hold the value on the rows ("noise")
and the population's ("conf"); "not" is the share of groups told to be lost in
noise, whose intervals are the whole range and not counted.

Errors: root mean squared distance to the value on the rows, in ranges for
means and variances and in shares of rows for quantiles, beside
- a mean with Laplace noise of sensitivity (b - a) / n, and a variance with
  that of sensitivity (b - a)**2 / n, which is what diffprivlib has: the number
  of complete rows public, no interval;
- the exponential mechanism on the gaps between sorted rows, as in diffprivlib,
  the budget divided between the probs.
The verbs buy numbers of complete rows along, and the mean the variance too.

Wide bounds: root mean squared distance to the value on the rows, of columns of every
shape (shapes.py, and wages where DPMODELS_DATA has them) with bounds 1, 10 and 100
times as wide as the tight ones, over that of one release with the tight ones, which
is in standard errors of the value without privacy; and the share of 95 % intervals
that hold the population's value, of the rows as they are and not as they were held. "few" is
the same for few rows and small budgets, of columns with most rows at zero, in heaps, or with
heavy tails.
"""

import argparse
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import shapes
from scipy import stats
from scipy.integrate import quad

import dpmodels as dp

EPS = (0.5, 1.0, 5.0)
SIZES = (1_000, 10_000, 100_000)
TOP, LOG_SD = 250_000, 0.6
BOOK = dp.codebook(y=(0, TOP), g=["u", "v", "w"], h=["p", "q"])
SHARES = (0.7, 0.25, 0.05)
PROBS = (0.1, 0.5, 0.9)
LAW = stats.lognorm(LOG_SD, scale=math.exp(10))


def moment(power, centre=0.0):
    """A moment of the clipped law."""
    inside = quad(lambda y: (y - centre) ** power * LAW.pdf(y), 0, TOP, limit=200, epsabs=0)[0]
    return inside + (TOP - centre) ** power * LAW.sf(TOP)


MEAN = moment(1)
VARIANCE = moment(2, MEAN)


def sample(rows, rng):
    return {
        "y": np.minimum(rng.lognormal(10, LOG_SD, rows), TOP),
        "g": rng.choice(["u", "v", "w"], rows, p=SHARES),
        "h": rng.choice(["p", "q"], rows),
    }


class Coverage:
    """Hits of both intervals and how many there were."""

    def __init__(self):
        self.noise, self.conf, self.lost = [], [], []

    def add(self, estimates, noise, conf, own, truth):
        is_finite = np.isfinite(np.asarray(estimates, float))
        self.lost += (~is_finite).tolist()
        if noise is not None:
            self.noise += _hits(noise, own)[is_finite].tolist()
        self.conf += _hits(conf, truth)[is_finite].tolist()

    def __str__(self):
        return f"{_share(self.noise)} {_share(self.conf)} {np.mean(self.lost):6.2f}"


def _hits(ends, value):
    lower, upper = np.asarray(ends, float).reshape(-1, 2).T
    return (lower <= value) & (value <= upper)


def _share(hits):
    if not hits:
        return "           -"
    share = np.mean(hits)
    error = math.sqrt(max(share * (1 - share), 1 / len(hits)) / len(hits))
    return f"{share:6.3f}±{error:.3f}"


def cells(sizes):
    for rows in sizes:
        for eps in EPS:
            yield rows, eps, np.random.default_rng([rows, int(10 * eps)])


def report_means(repeats, sizes):
    heads = ("all", "70 %", "25 %", "5 %")
    print("dp_mean: noise conf not, for all rows and by three groups")
    for rows, eps, rng in cells(sizes):
        coverages = {head: Coverage() for head in heads}
        for _ in range(repeats):
            data = sample(rows, rng)
            fit = dp.dp_mean("~ y", data, codebook=BOOK, eps=eps)
            coverages["all"].add(
                fit.params, fit.noise_int(), fit.conf_int(), data["y"].mean(), MEAN
            )
            fit = dp.dp_mean("y ~ g", data, codebook=BOOK, eps=eps)
            noise, conf = fit.noise_int(), fit.conf_int()
            for head, level in zip(heads[1:], "uvw", strict=True):
                average = data["y"][data["g"] == level].mean()
                ends = noise.loc[[level]], conf.loc[[level]]
                coverages[head].add(fit.params.loc[[level]], *ends, average, MEAN)
        print(f"{rows:8,}{eps:5}  ", " | ".join(f"{h}: {coverages[h]}" for h in heads), flush=True)


def report_variances(repeats, sizes):
    print("dp_var: noise conf not; conf of the interval without privacy, by the fourth moment")
    for rows, eps, rng in cells(sizes):
        coverage, plain = Coverage(), []
        for _ in range(repeats):
            data = sample(rows, rng)
            y = data["y"]
            fit = dp.dp_var("~ y", data, codebook=BOOK, eps=eps)
            variance = y.var(ddof=1)
            coverage.add(fit.params, fit.noise_int(), fit.conf_int(), variance, VARIANCE)
            sd = math.sqrt(((y - y.mean()) ** 2).var() / rows)
            plain.append(abs(variance - VARIANCE) <= 1.96 * sd)
        print(f"{rows:8,}{eps:5}   {coverage}   {_share(plain)}", flush=True)


def report_tests(repeats, sizes):
    print("dp_ttest: size at 5 %, conf, power at 2.8 standard errors (non-private: 0.80), not")
    for rows, eps, rng in cells(sizes):
        size, cover, power, lost = [], [], [], []
        step = 2.8 * 2 * math.sqrt(VARIANCE / rows)
        for _ in range(repeats):
            data = sample(rows, rng)
            fit = dp.dp_ttest("y ~ h", data, codebook=BOOK, eps=eps)
            lost.append(not np.isfinite(fit.params))
            if not lost[-1]:
                size.append(fit.pvalue < 0.05)
                cover += _hits(fit.conf_int(), 0.0).tolist()
            shifted = {**data, "y": np.minimum(data["y"] + step * (data["h"] == "p"), TOP)}
            power.append(dp.dp_ttest("y ~ h", shifted, codebook=BOOK, eps=eps).pvalue < 0.05)
        line = f"{_share(size)} {_share(cover)} {_share(power)} {np.mean(lost):6.2f}"
        print(f"{rows:8,}{eps:5}   {line}", flush=True)


def report_quantiles(repeats, sizes):
    print(f"dp_quantile, probs {PROBS} together: conf not width, in shares of rows")
    truth = LAW.ppf(PROBS)
    for rows, eps, rng in cells(sizes):
        coverages = [Coverage() for _ in PROBS]
        widths = np.zeros(len(PROBS))
        for _ in range(repeats):
            data = sample(rows, rng)
            fit = dp.dp_quantile("~ y", data, codebook=BOOK, eps=eps, probs=PROBS)
            ends = fit.conf_int().to_numpy()
            widths += np.diff(LAW.cdf(ends), axis=1).ravel() / repeats
            for i, coverage in enumerate(coverages):
                coverage.add(fit.params.to_numpy()[:, i], None, ends[i], 0.0, truth[i])
        parts = zip(coverages, widths, strict=True)
        line = " | ".join(f"{_share(o.conf)} {np.mean(o.lost):4.2f} {w:.3f}" for o, w in parts)
        print(f"{rows:8,}{eps:5}   {line}", flush=True)


def plain_quantile(ordered, prob, eps, rng):
    """The exponential mechanism on the gaps between sorted rows in the unit interval."""
    ends = np.concatenate([[0.0], ordered, [1.0]])
    gaps = np.diff(ends)
    score = -np.abs(np.arange(len(gaps)) - prob * len(ordered)) * eps / 2
    with np.errstate(divide="ignore"):
        logs = np.log(gaps) + score
    chances = np.exp(logs - logs.max())
    place = np.searchsorted(np.cumsum(chances), rng.uniform(0, chances.sum()))
    return rng.uniform(ends[place], ends[place + 1])


def report_errors(repeats, sizes):
    print("errors: verb / baseline = ratio; mean, variance, quantiles by share of rows")
    for rows, eps, rng in cells(sizes):
        errors = {kind: ([], []) for kind in ("mean", "var", *PROBS)}
        for _ in range(repeats):
            data = sample(rows, rng)
            y = data["y"] / TOP
            fit = dp.dp_mean("~ y", data, codebook=BOOK, eps=eps)
            errors["mean"][0].append(fit.params.iloc[0] / TOP - y.mean())
            errors["mean"][1].append(rng.laplace(scale=1 / (rows * eps)))
            fit = dp.dp_var("~ y", data, codebook=BOOK, eps=eps)
            errors["var"][0].append(fit.params.iloc[0] / TOP**2 - y.var(ddof=1))
            errors["var"][1].append(rng.laplace(scale=1 / (rows * eps)))
            words = {"codebook": BOOK, "eps": eps, "probs": PROBS, "level": None}
            estimates = dp.dp_quantile("~ y", data, **words).params.to_numpy()[0] / TOP
            ordered = np.sort(y)
            for prob, place in zip(PROBS, estimates, strict=True):
                plain_value = plain_quantile(ordered, prob, eps / len(PROBS), rng)
                for error, value in zip(errors[prob], (place, plain_value), strict=True):
                    error.append(np.searchsorted(ordered, value) / rows - prob)
        print(f"{rows:8,}{eps:5}  ", " | ".join(map(_ratio, errors, errors.values())), flush=True)


def _ratio(kind, pair):
    ours, plain_error = (math.sqrt(np.nanmean(np.square(errors))) for errors in pair)
    return f"{kind}: {ours:.2g} / {plain_error:.2g} = {ours / plain_error:.2f}"


def columns():
    """Populations of one column with tight bounds, by shape."""
    for name in shapes.SHAPES:
        population = shapes.population(name, 300_000)
        yield name, population.rows.x1.to_numpy(), *population.codebook["x1"]
    wages = Path(os.environ.get("DPMODELS_DATA", "")) / "cps_asec_2024_wages.parquet"
    if wages.is_file():
        yield "wages", pd.read_parquet(wages).WSAL_VAL.to_numpy(float), 0, 1_500_000


def sparse_columns():
    """Populations with tight bounds that a search for a range finds hard."""
    rng, rows = np.random.default_rng(7), 200_000
    lognormal = np.minimum(rng.lognormal(0, 0.8, rows), 25)
    yield "lognormal", lognormal, 0, 25
    yield "pareto", np.minimum(rng.pareto(2.2, rows) + 1, 100), 0, 100
    yield "zeros", np.where(rng.random(rows) < 0.9, 0, lognormal), 0, 25
    yield "halves", (rng.random(rows) < 0.5).astype(float), 0, 1
    yield "tenths", (rng.random(rows) < 0.1).astype(float), 0, 1
    yield "0 to 5", rng.integers(0, 6, rows).astype(float), 0, 5
    heaps = rng.choice([-3.0, 3.0], rows) + rng.normal(0, 0.5, rows)
    yield "bimodal", np.clip(heaps, -5, 5), -5, 5
    centres = rng.normal(0, 2, 40)[rng.integers(0, 40, rows)]
    yield "clustered", np.clip(centres + rng.normal(0, 0.1, rows), -6, 6), -6, 6
    yield "far", rng.normal(1_000, 10, rows), 0, 1_100
    yield "ages", np.clip(rng.normal(45, 18, rows), 18, 95).round(), 0, 120


FEW = ((500, 0.1), (500, 1.0), (2_000, 0.3), (20_000, 0.1), (20_000, 1.0))


def report_few(repeats, _):
    """Print the same of rows and budgets with which a range is hard to find."""
    budgets = [(rows, eps, np.random.default_rng([rows, int(10 * eps)])) for rows, eps in FEW]
    normal = next(columns())
    report_wide(repeats, budgets=budgets, populations=(normal, *sparse_columns()))


def report_wide(repeats, sizes=(), budgets=None, populations=None):
    print("wide bounds: tight, in standard errors; ratios of auto at 1, 10, 100 times; conf")
    for name, values, *bounds in populations or columns():
        for rows, eps, rng in budgets or cells(sizes):
            samples = [rng.choice(values, rows) for _ in range(repeats)]
            for kind, verb, before, value, spread in WIDE:
                error = math.sqrt(spread(values) / rows)

                def tried(times, mechanism, drawn=samples, eps=eps, verb=verb, value=value):
                    book = dp.codebook(y=tuple(times * end for end in bounds))  # noqa: B023
                    words = {"codebook": book, "eps": eps, "mechanism": mechanism}
                    fits = [verb("~ y", {"y": x}, **words) for x in drawn]
                    away = [f.params.iloc[0] - value(x) for f, x in zip(fits, drawn, strict=True)]
                    hits = [_hits(fit.conf_int(), value(values))[0] for fit in fits]  # noqa: B023
                    return math.sqrt(np.mean(np.square(away))), np.mean(hits)

                tight, _ = tried(1, before)
                timings = [tried(times, "auto") for times in (1, 10, 100)]
                line = "  ".join(f"{size / tight:6.2f} ({hit:.2f})" for size, hit in timings)
                head = f"{kind:5}{name:9}{rows:8,}{eps:5}"
                print(f"{head}  {tight / error:8.2f}  {line}", flush=True)


def _square_spread(x):
    return ((x - x.mean()) ** 2).var()


def _variance(x):
    return x.var(ddof=1)


# Word, verb, what it was with tight bounds, the value on rows, the spread of what is averaged.
WIDE = (
    ("mean", dp.dp_mean, "paired", np.mean, np.var),
    ("var", dp.dp_var, "geometric", _variance, _square_spread),
)
REPORTS = {
    "mean": report_means,
    "var": report_variances,
    "ttest": report_tests,
    "quantile": report_quantiles,
    "errors": report_errors,
    "wide": report_wide,
    "few": report_few,
}


def main():
    parser = argparse.ArgumentParser(description="Coverage and errors of the verbs on one number.")
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--only", nargs="+", choices=REPORTS, default=tuple(REPORTS))
    args = parser.parse_args()
    with dp.simulation(seed=20):
        for kind in args.only:
            REPORTS[kind](args.repeats, args.sizes)


if __name__ == "__main__":
    main()
