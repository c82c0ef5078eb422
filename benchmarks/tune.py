"""Does a ridge that is chosen privately foretell better than the mechanism's own?

    python benchmarks/tune.py [--way glm glm-delta glm-output svm] [--shape normal skewed ...]
                              [--rows 2000 20000] [--eps 1] [--runs 20]

A line is one cell. `own` is how much more a fit misses on 20,000 public rows than the truth does,
Brier score or share of wrong labels in thousandths, with the mechanism's own ridge; `constant` the
same of a constant alone. `tuned` is the ratio to `own` of ``dp.tune`` over what the mechanism would
take, and 60 and 600 times that; `fixed` that of the best of the three by hindsight, each for the
whole budget, which nobody can have. Above 1 is worse than no tuning.
"""

import argparse
from functools import partial

import numpy as np
from scipy.special import expit

import dpmodels as dp

COLUMNS = 6
PUBLIC = 20_000
GLM = partial(dp.dp_glm, inference=False)
WAYS = {
    "glm": partial(GLM, mechanism="objective"),
    "glm-delta": partial(GLM, mechanism="objective", delta=1e-6),
    "glm-output": partial(GLM, mechanism="output"),
    "svm": partial(dp.dp_svm, mechanism="objective"),
}
SHAPES = {
    "normal": lambda rng, size: rng.normal(0, 0.3, size),
    "skewed": lambda rng, size: rng.exponential(0.2, size) - 0.5,
    "zeros": lambda rng, size: rng.poisson(2, size) * (rng.random(size) < 0.3) / 10,
    "dummy": lambda rng, size: (rng.random(size) < 0.2).astype(float),
    "heavy": lambda rng, size: 0.1 * rng.standard_t(2, size),
    "wide": lambda rng, size: rng.normal(0, 0.02, size),
}
NAMES = [f"x{number}" for number in range(COLUMNS)]


def table(seed, rows, shape):
    """Rows of a logistic model, as strong in all shapes, and their log odds."""
    rng = np.random.default_rng(seed)
    x = SHAPES[shape](rng, (rows, COLUMNS)).clip(-1, 1)
    population = SHAPES[shape](np.random.default_rng(0), 100_000).clip(-1, 1)
    linear = (x - population.mean()) / population.std() @ np.linspace(1.2, -0.8, COLUMNS)
    labels = np.where(rng.random(rows) < expit(linear), "yes", "no")
    return {**dict(zip(NAMES, x.T, strict=True)), "y": labels}, linear


def missed(params, truth, way):
    """Brier score of log odds, or share of wrong labels."""
    if way == "svm":
        return float(np.mean((params > 0) != truth))
    return float(np.mean((expit(params) - truth) ** 2))


def cell(way, shape, rows, eps, runs):
    """Print one line."""
    book = dp.codebook(**dict.fromkeys(NAMES, (-1, 1)), y=["no", "yes"])
    fitted = partial(WAYS[way], "y ~ " + " + ".join(NAMES), codebook=book, eps=eps)
    public, linear = table(1, PUBLIC, shape)
    truth = public.pop("y") == "yes"
    errors = []
    for run in range(runs):
        data, _ = table(100 + run, rows, shape)
        with dp.simulation(seed=run):
            own = fitted(data)
            values = [None, 60 * own.release.ridge, 600 * own.release.ridge]
            fits = [own, *(fitted(data, ridge=ridge) for ridge in values[1:])]
            fits.append(fitted(data, ridge=dp.tune(values)))
        errors.append(
            [missed(fit.decision_function(public, clip=True), truth, way) for fit in fits]
        )
    smallest = missed(linear, truth, way)
    own, second, third, tuned = np.mean(errors, axis=0) - smallest
    constant = missed(np.log(truth.mean() / (1 - truth.mean())), truth, way) - smallest
    print(
        f"{way:11} {shape:8} {rows:7,} {eps:5g} {1000 * constant:9.1f} {1000 * own:7.1f} "
        f"{tuned / own:7.2f} {min(own, second, third) / own:7.2f}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--shape", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--rows", nargs="+", type=int, default=[2_000, 20_000])
    parser.add_argument("--eps", nargs="+", type=float, default=[1.0])
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    print("way         shape       rows   eps  constant     own   tuned   fixed")
    for way in given.way:
        for shape in given.shape:
            for rows in given.rows:
                for eps in given.eps:
                    cell(way, shape, rows, eps, given.runs)
