"""Frobenius errors of every covariance mechanism at the same zCDP budget.

    DPMODELS_DATA=../shared/data python benchmarks/covariance.py [--repeats 10]

The grids of "Differentially Private Covariance Revisited" (Dong, Liang and Yi
2022): their Zipf synthetic, and MNIST where the data folder holds mnist.npz.
Second moments about zero of rows in the unit ball, neighbours replace one row.

- published: zero, gauss (equal noise on and above the diagonal, nearest
  positive semidefinite matrix), separate, adaptive, iterative and coinpress
  (both up to 50 columns), as in their papers.
- ours: gauss (isometric coordinates, denoised), adaptive (the same within the
  private radius), shells, and rounds, which mechanism="auto" takes here.

The last columns are the best of ours over the best published, its standard
error, and the best of ours over zero.

    python benchmarks/covariance.py --intervals 20000 [--repeats 40]

prints what intervals of dp_cov cost and give at eps = 1, delta = 1e-6, without
and with inference=True: mean lengths of conf_int over those of intervals from
the rows themselves with known fourth moments, on the diagonal and off it;
coverage of the population by conf_int, and of the rows' own covariances by
noise_int; and the relative error of the matrix in Frobenius norm.
"""

import argparse
import math
import os
from pathlib import Path

import numpy as np

import dpmodels as dp
from dpmodels.datasets.papers import paper_table, zipf_rows
from dpmodels.design import private_design
from dpmodels.mechanisms import Facts
from dpmodels.mechanisms.covariance.adaptive import Adaptive, Shells
from dpmodels.mechanisms.covariance.coinpress import CoinPress
from dpmodels.mechanisms.covariance.gauss import AnalyzeGauss, Gauss
from dpmodels.mechanisms.covariance.rounds import Rounds
from dpmodels.mechanisms.covariance.separate import Iterative, Separate
from dpmodels.noise import source
from dpmodels.postprocess import denoise, nearest_psd
from dpmodels.privacy import adjacency

BESIDE = Path(__file__).parents[2] / "shared" / "data"
SLOW = 50

PUBLISHED = {
    "gauss": AnalyzeGauss(),
    "separate": Separate(),
    "adaptive": Adaptive(denoise=None),
    "iterative": Iterative(),
    "coinpress": CoinPress(),
}
OURS = {"+gauss": Gauss(), "+adaptive": Adaptive(), "+shells": Shells(), "+rounds": Rounds()}


def estimate(strategy, release, rows):
    """The estimate a mechanism stands for, divided by the number of rows."""
    if release.estimate is not None:
        unit = 1.0 if release.ball is None else release.ball.radius**2
        return release.estimate / rows * unit
    if isinstance(strategy, (Gauss, Rounds)):
        # Rows about a public origin stay about it; the ball gives them another unit.
        unit = 1.0 if release.ball is None else release.ball.radius**2
        second, off = release.second / rows * unit, release.noise.off / rows * unit
        return denoise(second, off, "auto", 1.0)
    return nearest_psd(release.second / rows, 1.0)


def measured(strategies, table, bounds):
    """One statistic for each strategy, from the rows by the verbs' own path."""
    book = dp.codebook.uniform([f"x{i}" for i in range(table.shape[1])], bounds)
    columns = {f"x{i}": column for i, column in enumerate(table.T)}
    design = private_design("~ .", columns, book, center=False, scale=None, row_norm=1.0)
    facts = Facts(table.shape[1], adjacency("replace"), centred=False)
    return design, facts


def report(title, table, bounds, budgets, repeats):
    rows, columns = table.shape
    truth = table.T.astype(float) @ table / rows
    names = [
        name for name in PUBLISHED if columns <= SLOW or name not in ("iterative", "coinpress")
    ]
    strategies = {name: PUBLISHED[name] for name in names} | OURS
    design, facts = measured(strategies, table, bounds)
    statistics = {}
    for rho in budgets:
        errors = {"zero": np.full(repeats, np.linalg.norm(truth))}
        for name, strategy in strategies.items():
            plan = strategy.plan(facts, dp.ZCDP(rho))
            key = (strategy.measure.__code__.co_code, type(strategy).__name__, plan.lattice.bits)
            if key not in statistics:
                statistics[key] = strategy.measure(design, plan)
            with dp.simulation(seed=1):
                errors[name] = np.array(
                    [
                        np.linalg.norm(
                            estimate(
                                strategy, strategy.release(statistics[key], plan, source()), rows
                            )
                            - truth
                        )
                        for _ in range(repeats)
                    ]
                )
        show(title, rho, errors, repeats)


def show(title, rho, errors, repeats):
    mean = {name: error.mean() for name, error in errors.items()}
    best = min((name for name in errors if name in PUBLISHED), key=mean.get)
    ours = min((name for name in errors if name in OURS), key=mean.get)
    spread = math.hypot(
        *(errors[name].std(ddof=1) / mean[name] / math.sqrt(repeats) for name in (best, ours))
    )
    ratio = mean[ours] / mean[best]
    cells = "".join(
        f"{mean[name]:10.5f}" if name in mean else f"{'-':>10s}"
        for name in ("zero", *PUBLISHED, *OURS)
    )
    print(
        f"{title:>12s}{rho:6g}{cells}{ratio:8.2f} ±{ratio * spread:.2f}"
        f"{mean[ours] / mean['zero']:8.2f}  {ours[1:]} / {best}",
        flush=True,
    )


# Rows of three columns, and their bounds.
MIXED = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
SHAPES = {
    "normal, 4 sd": (lambda rng, n: rng.multivariate_normal(np.zeros(3), MIXED, n), (-4, 4)),
    "uniform": (lambda rng, n: rng.random((n, 3)), (0, 1)),
    "gamma 4": (lambda rng, n: rng.gamma(4.0, 1.0, (n, 3)), (0, 12)),
    "poisson 9": (lambda rng, n: rng.poisson(9.0, (n, 3)).astype(float), (0, 22)),
    "normal, 5 sd": (lambda rng, n: rng.multivariate_normal(np.zeros(3), MIXED, n), (-5, 5)),
    "lognormal .6": (lambda rng, n: np.exp(0.6 * rng.normal(size=(n, 3))), (0, 20)),
    "lognormal 1": (lambda rng, n: np.exp(rng.normal(size=(n, 3))), (0, 60)),
    "zero-inflated": (
        lambda rng, n: rng.gamma(2.0, 1.0, (n, 3)) * (rng.random((n, 3)) < 0.3),
        (0, 15),
    ),
    "clustered": (
        lambda rng, n: rng.choice([-2.0, 0.0, 2.0], (n, 1)) + 0.3 * rng.normal(size=(n, 3)),
        (-6, 6),
    ),
    "10 x too wide": (lambda rng, n: rng.multivariate_normal(np.zeros(3), MIXED, n), (-40, 40)),
    "too narrow": (lambda rng, n: rng.multivariate_normal(np.zeros(3), MIXED, n), (-0.5, 0.5)),
}


def interval_figures(draw, bounds, rows, repeats, inference):
    """Lengths, coverages and errors of one shape, one line a table."""
    upper = np.triu_indices(3)
    diagonal = upper[0] == upper[1]
    rng = np.random.default_rng(11)
    population = np.clip(draw(rng, 1_000_000), *bounds)
    truth = np.cov(population.T)[upper]
    centred = population - population.mean(axis=0)
    oracle = 2 * 1.96 * (centred[:, upper[0]] * centred[:, upper[1]]).std(axis=0) / math.sqrt(rows)
    book, matrices = dp.codebook.uniform(["a", "b", "c"], bounds), []
    for _ in range(repeats):
        table = draw(rng, rows)
        fit = dp.dp_cov(
            "~ a + b + c",
            dict(zip("abc", table.T, strict=True)),
            codebook=book,
            eps=1.0,
            delta=1e-6,
            inference=inference,
        )
        clipped = np.cov(np.clip(table, *bounds).T)
        ends, inner = (
            interval()[["lower", "upper"]].to_numpy().T
            for interval in (fit.conf_int, fit.noise_int)
        )
        length = (ends[1] - ends[0]) / oracle
        covered = (ends[0] <= truth) & (truth <= ends[1])
        exact = clipped[upper]
        inside = (inner[0] <= exact) & (exact <= inner[1])
        error = np.linalg.norm(fit.cov.to_numpy() - clipped) / np.linalg.norm(clipped)
        parts = (length, covered, inside)
        matrices.append([part[where].mean() for part in parts for where in (diagonal, ~diagonal)])
        matrices[-1].append(error)
    return np.array(matrices)


def report_intervals(rows, repeats):
    heads = ("length", "off", "covered", "off", "of rows", "off", "error")
    print(f"n = {rows:,}, {repeats} tables{'':10}" + "".join(f"{head:>15s}" for head in heads))
    with dp.simulation(seed=11):
        for name, (draw, bounds) in SHAPES.items():
            figures = [
                interval_figures(draw, bounds, rows, repeats, inference)
                for inference in (False, True)
            ]
            for label, figures_of_label in zip(("before", "after"), figures, strict=True):
                spread = figures_of_label.std(axis=0, ddof=1) / math.sqrt(repeats)
                cells = zip(figures_of_label.mean(axis=0), spread, strict=True)
                text = "".join(f"{mean:9.3f} ±{sd:5.3f}" for mean, sd in cells)
                print(f"{name:>20s} {label:>7s}{text}", flush=True)
            ratios = (figures[1].mean(axis=0) / figures[0].mean(axis=0))[[0, 1, 6]]
            print(
                f"{'':>20s} after/before: lengths {ratios[0]:.2f}, off {ratios[1]:.2f}, "
                f"error {ratios[2]:.2f}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--columns", type=int, nargs="*", default=[10, 50, 200, 800])
    parser.add_argument("--images", type=int, nargs="*", default=[6_000, 60_000])
    parser.add_argument("--intervals", type=int, nargs="*", default=[], metavar="N")
    words = parser.parse_args()
    if words.intervals:
        for rows in words.intervals:
            report_intervals(rows, words.repeats)
        return
    heads = "".join(f"{name:>10s}" for name in ("zero", *PUBLISHED, *OURS))
    print(f"{'':>12s}{'rho':>6s}{heads}   ratio          /zero  ours / published")
    for columns in words.columns:
        table = zipf_rows(columns)
        report(f"zipf {columns}", table, (-1, 1), (0.01, 0.1, 1.0), words.repeats)
    folder = os.environ.get("DPMODELS_DATA", BESIDE)
    if not (Path(folder) / "mnist.npz").exists():
        print("no MNIST: set DPMODELS_DATA to a folder that holds mnist.npz")
        return
    for rows in words.images:
        images = paper_table("mnist", folder=folder).rows[:rows] / 28
        report(f"mnist {rows}", images, (0, 1 / 28), (0.01, 0.1, 1.0, 10.0), words.repeats)


if __name__ == "__main__":
    main()
