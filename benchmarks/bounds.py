"""Bounds nobody knows: what dp_bounds finds, and what is fitted with them.

    python benchmarks/bounds.py [--runs 100] [--rows 10000] [--only found fitted clipped]

Found: ten columns of one shape at once, with bounds a hundred times as wide as
tight ones, eps = .1, alone and with delta = 1e-6. A column is found where at
least 97 % of its rows are inside and the range is at most three times that of
the middle 98 %. Printed are the share of columns found, the share of runs in
which all ten are, the least share of rows inside in 95 of 100 columns, the
median and the 95 % point of the ratio of ranges, and the share left as declared.

Fitted: a mean, a regression of five terms and two components of a correlation
matrix, eps = 1 in all and delta = 1e-6: with the found bounds (eps = .1 for
them, the rest for the fit) and with the bounds a hundred times too wide, beside
tight ones. Printed are ratios of root mean squared errors: to the value on the
rows ("noise"), and with sampling added ("error"), which is what a standard
error is of. Medians of columns, coefficients or the whole space.
"""

import argparse
import time
from itertools import product

import numpy as np

import dpmodels as dp

EPS, DELTA = 0.1, 1e-6
COLUMNS, FEW = 10, 6
WIDER = 100
FAR, SIGNS = (0.97, 0.03), (-1, 1, 1, 1, 1)


def rounded(x):
    return np.rint(np.clip(x, 0, None))


# A draw of n rows, tight bounds, and the step of whole numbers.
SHAPES = {
    "normal about 0": (lambda g, n: g.normal(0, 1, n), (-5, 5), 0),
    "normal about 5 sd": (lambda g, n: g.normal(50, 10, n), (0, 100), 0),
    "normal about 17 sd": (lambda g, n: g.normal(170, 10, n), (0, 250), 0),
    "log-normal .5": (lambda g, n: g.lognormal(10, 0.5, n), (0, 150_000), 0),
    "log-normal 1": (lambda g, n: g.lognormal(0, 1, n), (0, 50), 0),
    "log-normal 1.5": (lambda g, n: g.lognormal(5, 1.5, n), (0, 30_000), 0),
    "60 % zeros": (lambda g, n: g.lognormal(7, 1, n) * (g.random(n) < 0.4), (0, 50_000), 0),
    "counts": (lambda g, n: g.poisson(3, n), (0, 15), 1),
    "half zeros, counts": (lambda g, n: g.poisson(4, n) * (g.random(n) < 0.5), (0, 15), 1),
    "ages": (lambda g, n: rounded(np.clip(g.normal(45, 17, n), 18, 90)), (0, 100), 1),
    "dummy": (lambda g, n: (g.random(n) < 0.3) * 1.0, (0, 1), 1),
    "uniform": (lambda g, n: g.uniform(0, 100, n), (0, 100), 0),
    "Student 2": (lambda g, n: g.standard_t(2, n), (-10, 10), 0),
    "gamma .5": (lambda g, n: g.gamma(0.5, 10, n), (0, 100), 0),
    "beta .2": (lambda g, n: g.beta(0.2, 0.2, n), (0, 1), 0),
    "two clumps": (lambda g, n: g.choice([10, 80], n) + g.normal(0, 1, n), (0, 100), 0),
    "skewed below": (lambda g, n: 100 - g.gamma(2, 8, n), (0, 100), 0),
    "one to five": (lambda g, n: g.choice(5, n, p=[0.1, 0.2, 0.4, 0.2, 0.1]) + 1.0, (0, 5), 1),
    "3 % far away": (lambda g, n: g.normal(10, 2, n) * g.choice([1, 50], n, p=FAR), (0, 1000), 0),
    "years": (lambda g, n: g.integers(1930, 2005, n), (0, 2030), 1),
    "shifted": (lambda g, n: 1000 + g.exponential(50, n), (0, 1500), 0),
    "gains and losses": (lambda g, n: g.lognormal(3, 1, n) * g.choice(SIGNS, n), (-500, 500), 0),
}


def declared(bounds, step, wider=1):
    low, high = (end * wider for end in bounds)
    return dp.Numeric(low, high, step=step)


def found(name, rows, runs, words, rng):
    """One line: how often, and how well, ten columns of a shape are found."""
    draw, bounds, step = SHAPES[name]
    names = [f"x{i}" for i in range(COLUMNS)]
    book = dp.codebook.uniform(names, declared(bounds, step, WIDER))
    inside, ratios, identified = [], [], []
    for _ in range(runs):
        data = {name: draw(rng, rows) for name in names}
        fit = dp.dp_bounds("~ .", data, codebook=book, eps=EPS, **words)
        for own, bound in fit.found.items():
            inside.append(np.mean((data[own] >= bound.lower) & (data[own] <= bound.upper)))
            ratios.append(
                (bound.upper - bound.lower) / np.ptp(np.quantile(data[own], [0.01, 0.99]))
            )
            identified.append(not bound.is_narrowed)
    inside, ratios = (np.array(values).reshape(runs, COLUMNS) for values in (inside, ratios))
    good = (inside >= 0.97) & (ratios <= 3)
    print(
        f"  {name:20s} {good.mean():7.3f} {good.all(axis=1).mean():7.2f} "
        f"{np.quantile(inside, 0.05):7.3f} {np.median(ratios):7.2f} "
        f"{np.quantile(ratios, 0.95):8.2f} {np.mean(identified):7.3f}",
        flush=True,
    )


def table_of(kind, rows, rng):
    """Six columns that depend on each other, and their tight bounds."""
    z = rng.normal(size=(rows, FEW))
    z[:, 1:] = 0.6 * z[:, :1] + 0.8 * z[:, 1:]
    columns = {
        "normal": (50 + 10 * z, (0, 100), 0),
        "skewed": (np.exp(0.7 * z), (0, 20), 0),
        "zeros": (np.where(z > 0, np.exp(0.5 * z), 0), (0, 10), 0),
        "counts": (rounded(3 + 1.7 * z), (0, 12), 1),
    }
    values, bounds, step = columns[kind]
    return {f"x{i}": values[:, i] for i in range(FEW)}, bounds, step


def fits(data, book, eps):
    """A mean, slopes and a space, as three vectors."""
    words = {"codebook": book, "delta": DELTA, "eps": eps}
    mean = dp.dp_mean("~ x1", data, **words).params.to_numpy()
    terms = " + ".join(f"x{i}" for i in range(1, FEW))
    slopes = dp.dp_lm(f"x0 ~ {terms}", data, **words).params.to_numpy()
    loadings = dp.dp_pca("~ .", data, scale="sd", ncomp=2, **words).loadings.to_numpy()
    return mean, slopes, (loadings @ loadings.T).ravel()


def exact(data):
    x = np.column_stack(list(data.values()))
    terms = np.column_stack([np.ones(len(x)), x[:, 1:]])
    slopes = np.linalg.lstsq(terms, x[:, 0], rcond=None)[0]
    vectors = np.linalg.eigh(np.corrcoef(x.T))[1][:, -2:]
    return x[:, 1].mean(keepdims=True), slopes, (vectors @ vectors.T).ravel()


def fitted(kind, rows, runs, rng):
    """One line: errors with found and with wide bounds over those with tight ones."""
    errors = {way: ([], [], []) for way in ("tight", "found", "wide")}
    values = ([], [], [])
    for _ in range(runs):
        data, bounds, step = table_of(kind, rows, rng)
        tight, wide = (
            dp.codebook.uniform(data, declared(bounds, step, wider)) for wider in (1, WIDER)
        )
        book = dp.dp_bounds("~ .", data, codebook=wide, eps=EPS, delta=DELTA).codebook
        bounds_exact = exact(data)
        for way, (declared_by, eps) in {
            "tight": (tight, 1.0),
            "found": (book, 1.0 - EPS),
            "wide": (wide, 1.0),
        }.items():
            for place, value in enumerate(fits(data, declared_by, eps)):
                errors[way][place].append(value - bounds_exact[place])
        for place, value in enumerate(bounds_exact):
            values[place].append(value)
    for place, verb in enumerate(("dp_mean", "dp_lm", "dp_pca")):
        sampling = np.var(values[place], axis=0)
        noise = {way: np.mean(np.square(error[place]), axis=0) for way, error in errors.items()}
        if verb == "dp_pca":
            sampling, noise = (
                sampling.sum(),
                {way: noise_of_way.sum() for way, noise_of_way in noise.items()},
            )
        cells = []
        for way in ("found", "wide"):
            cells.append(np.median(np.sqrt(noise[way] / noise["tight"])))
            ratio = (noise[way] + sampling) / (noise["tight"] + sampling)
            cells.append(np.median(np.sqrt(ratio)))
        print(f"  {kind:10s} {verb:8s}" + "".join(f"{cell:9.2f}" for cell in cells), flush=True)


def clipped(verb, formula, share, words, rows, runs, rng):
    """Print what counts of values beyond the bounds cost, and what they say."""
    data = {f"x{i}": rng.uniform(0, 1, rows) for i in range(4)}
    book = dp.codebook({**dict.fromkeys(data, (0, 1)), "x0": (-1, max(1 - share, 1e-6))})
    noise, cpu, shares, warned = {}, {}, [], 0
    for counts in (True, False):
        start = time.process_time()
        for _ in range(runs):
            with dp.options(clipping=counts):
                fit = verb(formula, data, codebook=book, eps=1.0, **words)
            noise[counts] = np.median(fit.tidy()["noise_sd"])
            if counts and fit.release.clipping is not None:
                shares.append(fit.clipped().loc["x0", ["above", "noise_sd"]])
                warned += bool(fit.release.clipping.much())
        cpu[counts] = time.process_time() - start
    mean, sd = np.mean(shares, axis=0) if shares else (np.nan, np.nan)
    print(
        f"  {verb.__name__:9s}{share:7.2f}{noise[True] / noise[False]:9.3f}"
        f"{cpu[True] / cpu[False]:9.2f}{mean:9.3f}{sd:9.3f}{warned / runs:9.2f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--only", nargs="+", default=["found", "fitted", "clipped"])
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    if "found" in args.only:
        for words in ({"delta": DELTA}, {}):
            print(f"found: {args.rows:,} rows, eps = {EPS}, {words or 'delta = 0'}")
            heads = ("columns", "runs", "inside", "ratio", "95%", "kept")
            print(" " * 22 + "".join(f"{head:>8s}" for head in heads))
            for name in SHAPES:
                found(name, args.rows, args.runs, words, rng)
    if "fitted" in args.only:
        print(f"fitted: {args.rows:,} rows, errors over those with tight bounds")
        print(" " * 20 + "".join(f"{heading:>9s}" for heading in ("found:", "", "wide:", "")))
        print(" " * 20 + "".join(f"{heading:>9s}" for heading in ("noise", "error") * 2))
        for kind in ("normal", "skewed", "zeros", "counts"):
            fitted(kind, args.rows, args.runs, rng)
    if "clipped" in args.only:
        calls = ((dp.dp_mean, "~ x0"), (dp.dp_cov, "~ ."), (dp.dp_lm, "x1 ~ x0 + x2 + x3"))
        for words in ({"delta": DELTA}, {}):
            print(f"clipped: {args.rows:,} rows, eps = 1, {words or 'delta = 0'}")
            heads = ("share", "noise", "CPU", "released", "sd", "warned")
            print(" " * 9 + "".join(f"{head:>9s}" for head in heads))
            for (verb, formula), share in product(calls, (0.0, 0.02, 0.1, 1.0)):
                if words or verb is dp.dp_mean:
                    clipped(verb, formula, share, words, args.rows, args.runs, rng)


if __name__ == "__main__":
    main()
