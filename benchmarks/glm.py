"""Private logistic and Poisson regressions and support vector machines: losses and coverage.

    DPMODELS_DATA=../shared/data python benchmarks/glm.py [--runs 200] [--coverage]

--poisson, --shapes and --svm instead of --coverage, see below.

Excess: mean log-loss of the released coefficients on the rows they were fitted
to, less that of the maximum likelihood estimate; median over runs, with the
standard error of that median. Neighbours replace one row.

- cms: objective perturbation as published (Chaudhuri, Monteleoni and Sarwate
  2011) in the form that diffprivlib's LogisticRegression gives it: sum of the
  losses plus |w|²/2, data norm of the rows with their constant, noise
  exp(-eps' |b| / (2 data norm)). Columns in [0, 1], data norm from the codebook.
- cms, our rows: the same on columns centred and scaled as they are here.
- objective, gradients: this package, the whole budget in the coefficients.

Coverage: of nominal 95 % intervals for the population's coefficients
(conf_int) and the maximum likelihood estimate (noise_int), five terms of which
two are skewed; the share of runs that offer none stands beside. The same for
Poisson regressions by noisy gradients (--poisson).

Shapes (--shapes): excess log-loss for the population of shapes.py, 10 % events,
of objective and gradients, with a share for intervals and without; "wide" are
normal columns in bounds a hundred times too wide. Median over at most 20 runs.

Machines (--svm): accuracy on a third of Adult that is held out, of machines
fitted to the rest; median over runs.
"""

import argparse
import math
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import shapes
from scipy.special import expit

import dpmodels as dp
from dpmodels.design import row_coder
from dpmodels.errors import BudgetError
from dpmodels.formula.response import two_sided
from dpmodels.mechanisms.minimise import minimise, spherical
from dpmodels.mechanisms.protocol import RegressionFacts, passes
from dpmodels.mechanisms.regression import NoisyGradients, Objective, Output
from dpmodels.mechanisms.tuning import in_codebook
from dpmodels.models.glm import dp_glm
from dpmodels.models.linear import linear
from dpmodels.noise import source
from dpmodels.privacy import adjacency
from dpmodels.request import Request
from dpmodels.statistics.double_double import EXACT_ROWS
from dpmodels.statistics.gradient import (
    Gradients,
    Slopes,
    precise_integers,
    precise_sums,
    precise_total,
)
from dpmodels.statistics.losses import Huber, Logistic

BESIDE = Path(__file__).parents[2] / "shared" / "data"
GROUPS = ("workclass", "marital_status", "occupation", "relationship", "race", "sex")
FORMULA = (
    "income ~ age + education_num + log1p(capital_gain) + log1p(capital_loss) + hours_per_week + "
    + " + ".join(GROUPS)
)
TRUTH = np.array([-0.3, 1.0, -0.5, 0.0, 1.5, 0.7])
TERMS = ["x1", "x2", "x3", "x4", "x5"]
BUDGETS = ((0.1, 0.0), (1.0, 0.0), (0.1, 1e-6), (1.0, 1e-6))


def adult(folder):
    """Adult with a codebook written by hand from the file's description."""
    frame = pd.read_parquet(Path(folder) / "adult.parquet")
    book = dp.codebook(
        age=(17, 90),
        education_num=(1, 16),
        capital_gain=(0, 100_000),
        capital_loss=(0, 5_000),
        hours_per_week=(1, 99),
        income=["<=50K", ">50K"],
        **{name: sorted(map(str, frame[name].cat.categories)) for name in GROUPS},
    )
    return frame[list(book)], book


class Held(Gradients):
    """Rows of a design in memory, for many runs."""

    __slots__ = ("block", "signs", "z")

    def hold(self):
        parts = list(self._each(lambda block: block.copy()))
        return self.read(np.hstack([part for part, _ in parts]))

    def read(self, block):
        self.block = block
        self.z = self._predictors.read(block, self.lattice)
        self.signs = self._predictors.labels(block)
        return self

    def within(self, predictors, loss=None):
        if predictors == self._predictors and loss in (None, self._loss):
            return self
        rows_within = Held(self.designs, predictors, loss or self._loss, self.lattice)
        return rows_within.read(self.block)

    def slopes(self, parameter, loss):
        return slopes(self.z, self.signs, parameter, loss)

    def precise_slopes(self, parameter, loss, linear=()):
        return precise_slopes(self.z, self.signs, parameter, loss, linear)

    @property
    def rows(self):
        return len(self.signs)


def slopes(z, signs, parameter, loss):
    margins = signs * (parameter @ z)
    bent = (z * loss.bend(margins)) @ z.T
    gradient = -z @ (signs * loss.slope(margins))
    value = float(loss.value(margins).sum())
    return Slopes(value, gradient, bent, float(np.einsum("ij,ij->", z, z)))


def precise_slopes(z, signs, parameter, loss, linear=()):
    parts = (
        (precise_sums(z[:, at : at + EXACT_ROWS], signs[at : at + EXACT_ROWS], parameter, loss), 0)
        for at in range(0, len(signs), EXACT_ROWS)
    )
    exact, _ = precise_integers(parts, len(z))
    return precise_total(exact, linear), len(signs)


def log_loss(z, signs, parameter):
    return float(np.logaddexp(0, -signs * (parameter @ z)).mean())


def in_memory(z, signs):
    return SimpleNamespace(
        slopes=lambda parameter, loss: slopes(z, signs, parameter, loss),
        precise_slopes=lambda *arguments: precise_slopes(z, signs, *arguments),
    )


def best(z, signs):
    return minimise(in_memory(z, signs), Logistic(), 1e-9, np.zeros(len(z)), 1e-6).rounded


def cms(z, signs, norm, eps, entropy):
    """The published method on rows of a data norm, ridge 1."""
    left, right = eps - 2 * math.log1p(0.25 * norm), 0.0
    if left <= 0:
        left, right = eps / 2, max(0.25 * norm / math.expm1(eps / 4) - 1.0, 0.0)
    tilt = spherical(len(z), 2 * norm / left, entropy)
    return minimise(in_memory(z, signs), Logistic(), 1.0 + right, tilt, 1e-3).rounded


def unit_columns(frame, book):
    """Coded columns in [0, 1] under a constant, and their longest row by the codebook."""
    sides = two_sided(FORMULA, book)
    low, high = sides.terms.lower[:, None], sides.terms.upper[:, None]
    x = (row_coder(sides.terms)(frame) - low) / (high - low)
    return np.vstack([np.ones(x.shape[1]), x]), math.sqrt(1 + len(sides.terms.blocks))


def hold(frame, book, loss):
    words, relation = {"scale": "range", "row_norm": None}, adjacency("replace")
    bound = linear(Request("glm", FORMULA, book, dp.ZCDP(1.0), relation, words))
    facts, design = RegressionFacts(bound.predictors, loss, relation), bound.design.bind(frame)
    rows = passes(design, facts)
    training = Held((design,), bound.predictors, loss, rows.lattice)
    return training.hold(), facts


def machines(words, folder):
    frame, book = adult(folder)
    public = np.random.default_rng(0).random(len(frame)) < 1 / 3
    loss = Huber(0.5)
    training, facts = hold(frame[~public], book, loss)
    test, _ = hold(frame[public], book, loss)

    def accuracy(point):
        return float((np.sign(point @ test.z) == test.signs)[test.signs != 0].mean())

    minimum = minimise(training, loss, 1e-3, np.zeros(len(training.z)), 1e-4).rounded
    majority = max(np.mean(test.signs == -1), np.mean(test.signs == 1))
    print(
        f"Adult, {len(training.signs):,} rows, {len(test.signs):,} held out, "
        f"{len(training.z)} columns"
    )
    print(f"without noise {accuracy(minimum):.4f}, always the larger class {majority:.4f}")
    for eps, delta in BUDGETS:
        budget = dp.PureDP(eps) if delta == 0 else dp.ApproxDP(eps, delta)
        for strategy in (Objective(inference=False), Output()):
            plan = strategy.plan(facts, budget)
            with dp.simulation(seed=1):
                accuracies = np.array(
                    [
                        accuracy(strategy.release(training, plan, source()).coefficients)
                        for _ in range(words.runs)
                    ]
                )
            spread = 1.2533 * accuracies.std(ddof=1) / math.sqrt(len(accuracies))
            line = f"{strategy.info.name:>10s}{eps:6g}{delta:8g}{np.median(accuracies):10.4f}"
            print(f"{line} ±{spread:.4f}", flush=True)


def excess(words, folder):
    frame, book = adult(folder)
    training, facts = hold(frame, book, Logistic())
    unit, norm = unit_columns(frame, book)
    unit, signs = unit[:, training.signs != 0], training.signs
    z, ours = training.z, 1.0
    smallest = log_loss(z, signs, best(z, signs))
    print(f"Adult, {z.shape[1]:,} rows, {len(z)} coefficients, least log-loss {smallest:.5f}")
    print(f"{'':>24s}{'eps':>6s}{'delta':>8s}{'excess':>12s}")
    for eps, delta in BUDGETS:
        budget = dp.PureDP(eps) if delta == 0 else dp.ApproxDP(eps, delta)
        with dp.simulation(seed=1):
            if delta == 0:
                for name, z_scaled, size in (("cms", unit, norm), ("cms, our rows", z, ours)):
                    losses = [
                        log_loss(z_scaled, signs, cms(z_scaled, signs, size, eps, source()))
                        for _ in range(words.runs)
                    ]
                    show(name, eps, delta, losses, smallest)
            for strategy in (Objective(inference=False), NoisyGradients(inference=False)):
                losses = many(strategy, training, facts, budget, words.runs)
                if losses:
                    show(strategy.info.name, eps, delta, losses, smallest)


def many(strategy, training, facts, budget, runs):
    try:
        plan = strategy.plan(facts, budget)
    except BudgetError:
        return []
    losses = []
    for _ in range(runs if strategy.info.name == "objective" else min(runs, 20)):
        release = strategy.release(training, plan, source())
        losses.append(
            log_loss(
                training.z,
                training.signs,
                in_codebook(release, facts.predictors, training.scaling),
            )
        )
    return losses


def show(name, eps, delta, losses, smallest):
    excess = np.array(losses) - smallest
    spread = 1.2533 * excess.std(ddof=1) / math.sqrt(len(excess))
    print(f"{name:>24s}{eps:6g}{delta:8g}{np.median(excess):12.5f} ±{spread:.5f}", flush=True)


def regressors(rows, rng):
    """Five terms, two of them skewed."""
    x = rng.uniform(-1, 1, (5, rows))
    x[3] = np.minimum(rng.exponential(0.2, rows), 1.0)
    x[4] = rng.random(rows) < 0.2
    return x


def drawn(rows, rng):
    x = regressors(rows, rng)
    label = rng.random(rows) < expit(TRUTH[0] + TRUTH[1:] @ x)
    data = {f"x{i}": column for i, column in enumerate(x)}
    return data | {"y": np.where(label, "b", "a")}


def coverage(words):
    book = dp.codebook(**{f"x{i}": (-1, 1) for i in range(3)}, x3=(0, 1), x4=(0, 1), y=["a", "b"])
    sides = two_sided("y ~ .", book)
    rng = np.random.default_rng(1)
    heading()
    for rows in (1_000, 10_000, 100_000):
        for eps in (0.5, 1.0, 5.0):
            for delta in (0.0, 1e-6):
                errors = [tried(rows, eps, delta, book, sides, rng) for _ in range(words.runs)]
                print(f"{rows:8d}{eps:6g}{delta:8g}  {covered(errors, TRUTH)}", flush=True)


def heading():
    print(
        f"{'n':>8s}{'eps':>6s}{'delta':>8s}  conf_int by coefficient{'':14s}noise_int  none  width"
    )


def counted(words):
    """Poisson counts declared up to 30, of which means are 0.6 to 9."""
    book = dp.codebook(**{f"x{i}": (-1, 1) for i in range(3)}, x3=(0, 1), x4=(0, 1), y=(0, 30))
    truth = np.array([0.5, 0.5, -0.3, 0.0, 0.8, 0.4])
    rng = np.random.default_rng(1)
    heading()
    for rows in (10_000, 100_000):
        for eps in (0.5, 1.0, 5.0):
            rates = [counts(rows, eps, book, truth, rng) for _ in range(words.runs)]
            print(f"{rows:8d}{eps:6g}{1e-6:8g}  {covered(rates, truth)}", flush=True)


def counts(rows, eps, book, truth, rng):
    x = regressors(rows, rng)
    y = np.minimum(rng.poisson(np.exp(truth[0] + truth[1:] @ x)), 30.0)
    data = {f"x{i}": column for i, column in enumerate(x)} | {"y": y}
    with dp.simulation(seed=int(rng.integers(2**62))):
        fit = dp_glm("y ~ .", data, codebook=book, family="poisson", eps=eps, delta=1e-6)
    if fit.sandwich is None:
        return None
    point, z = truth.copy(), np.vstack([np.ones(rows), x])
    for _ in range(8):
        mean = np.exp(point @ z)
        point = point + np.linalg.solve((z * mean) @ z.T, z @ (y - mean))
    return fit, point


def choice(words):
    """Objective against gradients on columns of six shapes."""
    print(f"{'':28s}{'with inference':>24s}{'without':>24s}")
    for shape in [*shapes.SHAPES, "wide"]:
        population = shapes.population(shape if shape != "wide" else "normal", 300_000)
        book = dict(population.codebook)
        if shape == "wide":
            book |= dict.fromkeys(TERMS, (-400.0, 400.0))
        public = population.rows[-100_000:]
        z, signs = np.vstack([np.ones(len(public)), public[TERMS].T]), 2 * public.event10 - 1
        smallest = log_loss(z, signs.to_numpy(), best(z, signs.to_numpy()))
        for rows in (2_000, 20_000):
            for eps in (0.3, 1.0, 5.0):
                estimates = []
                for inference in (True, False):
                    for name in ("objective", "gradients"):
                        covered_by_interval = []
                        for seed in range(min(words.runs, 20)):
                            with dp.simulation(seed=seed):
                                fit = dp_glm(
                                    f"event10 ~ {' + '.join(TERMS)}",
                                    population.sample(rows, seed),
                                    codebook=dp.codebook(**book),
                                    eps=eps,
                                    delta=1e-6,
                                    mechanism=name,
                                    inference=inference,
                                )
                            covered_by_interval.append(
                                log_loss(z, signs.to_numpy(), fit.params_released.to_numpy())
                            )
                        estimates.append(np.median(covered_by_interval) - smallest)
                line = "".join(f"{estimate:12.5f}" for estimate in estimates)
                print(f"{shape:10s}{rows:10d}{eps:8g}{line}", flush=True)


def tried(rows, eps, delta, book, both, rng):
    data = drawn(rows, rng)
    with dp.simulation(seed=int(rng.integers(2**62))):
        fit = dp_glm("y ~ .", data, codebook=book, eps=eps, delta=delta)
    if fit.sandwich is None:
        return None
    z = np.vstack([np.ones(rows), row_coder(both.terms)(data)])
    return fit, best(z, np.where(data["y"] == "b", 1.0, -1.0))


def covered(estimates, truth):
    """Coverage of each conf_int, of all noise_int, the share without any, and widths."""
    hits, hits_near, widths = [], [], []
    for fit, mle in filter(None, estimates):
        ends, close = fit.conf_int().to_numpy(), fit.noise_int().to_numpy()
        hits.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        hits_near.append((close[:, 0] <= mle) & (mle <= close[:, 1]))
        widths.append(ends[:, 1] - ends[:, 0])
    if not hits:
        return "none offered"
    cells = " ".join(f"{share:.3f}" for share in np.mean(hits, axis=0))
    none = 1 - len(hits) / len(estimates)
    return f"{cells}  {np.mean(hits_near):.3f}  {none:5.2f}  {np.median(widths):.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    for name in ("coverage", "poisson", "shapes", "svm"):
        parser.add_argument(f"--{name}", action="store_true")
    words = parser.parse_args()
    if words.shapes:
        choice(words)
        return
    if words.coverage or words.poisson:
        (coverage if words.coverage else counted)(words)
        return
    folder = os.environ.get("DPMODELS_DATA", BESIDE)
    if not (Path(folder) / "adult.parquet").exists():
        print("no Adult: set DPMODELS_DATA to a folder that holds adult.parquet")
        return
    (machines if words.svm else excess)(words, folder)


if __name__ == "__main__":
    main()
