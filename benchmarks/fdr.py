"""False discoveries and power of ``dp_fdr``, on tables drawn as their sums.

``python benchmarks/fdr.py [tables]`` prints, for each size and budget, the shares of false
discoveries and of effects found by Benjamini and Hochberg's procedure on exact tests, by each
mechanism, and by the procedure of Dwork, Su and Zhang as it was published. Columns and response
are -1 or 1 with equal chances; sums with the response are drawn from their normal law, which large
tables have, and released by the package's own mechanisms. Before, rates at several q for columns
that fill their bounds and that do not, beside tests that know the scatters.
"""

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri
from statsmodels.stats.multitest import multipletests

import dpmodels as dp
from dpmodels.mechanisms import SCREENING
from dpmodels.mechanisms.screening_plan import ScreenFacts
from dpmodels.noise import source
from dpmodels.privacy import adjacency
from dpmodels.results.call import ScreenCall
from dpmodels.results.discoveries import FDRResult
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import box_lattice, reach

COLUMNS, MOST, EFFECT, Q, DELTA = 1_000, 100, 4.0, 0.1, 1e-6
CELLS = ((10_000, 1.0), (100_000, 0.5), (100_000, 1.0), (1_000_000, 0.5), (1_000_000, 1.0))
BOOK = dp.codebook(y=(0, 1))


def drawn(
    rng: np.random.Generator,
    rows: int,
    effects: int,
    *,
    alike: float = 0.0,
    columns: int = COLUMNS,
    filled: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw z-statistics, `alike` the correlation of true null ones, and the sums behind them.

    `filled` is the standard deviation of columns in half-ranges.
    """
    z = np.sqrt(1 - alike) * rng.normal(size=columns) + np.sqrt(alike) * rng.normal()
    z[:effects] = EFFECT + rng.normal(size=effects)
    limit = reach(box_lattice(columns + 1))
    half = np.rint(filled * np.sqrt(rows) * rng.normal(size=columns))
    y = int(np.rint(np.sqrt(rows) * rng.normal()))
    exact = np.empty((3, columns + 2), dtype=object)
    exact[0] = [rows, *(limit * half).astype(int).tolist(), limit * y]
    exact[1] = [rows, *[round(rows * (filled * limit) ** 2)] * columns, rows * limit**2]
    products = (
        np.rint(limit**2 * (filled * np.sqrt(rows) * z + half * y / rows)).astype(int).tolist()
    )
    exact[2] = [limit * y, *products, rows * limit**2]
    return z, exact


def released(
    exact: np.ndarray,
    eps: float,
    mechanism: str,
    *,
    alternative: str = "larger",
    most: int = MOST,
    method: str = "bh",
) -> FDRResult:
    """Release sums as ``dp_fdr`` does."""
    columns = exact.shape[1] - 2
    facts = ScreenFacts(columns, most, alternative, adjacency("replace"))
    strategy = SCREENING[mechanism]()
    plan = strategy.plan(facts, dp.ApproxDP(eps, DELTA))
    statistic = Statistic("associations", exact, int(exact[0, 0]))
    release = strategy.release(statistic, plan, source())
    names = tuple(f"x{place}" for place in range(columns))
    call = ScreenCall(". ~ y", BOOK, names, "y", most, alternative)
    return FDRResult(call, release, Q, method)


def shares(selected: list[int], effects: int) -> tuple[float, float]:
    """Return the shares of false ones among those found, and of effects that were found."""
    true = sum(place < effects for place in selected)
    return (len(selected) - true) / max(len(selected), 1), true / max(effects, 1)


def exact_tests(z: np.ndarray) -> list[int]:
    """Step up over exact one-sided tests."""
    return np.flatnonzero(multipletests(ndtr(-z), Q, "fdr_bh")[0]).tolist()


def published(rng: np.random.Generator, z: np.ndarray, rows: int, eps: float) -> list[int]:
    """Peel logarithms of p-values as Dwork, Su and Zhang do, with the sensitivity of a z-test."""
    smallest = Q / (2 * len(z))
    change = log_ndtr(2 / np.sqrt(rows) + ndtri(smallest)) - np.log(smallest)
    scale = change * np.sqrt(10 * MOST * np.log(1 / DELTA)) / (2 * eps)
    logs, left, reported = np.maximum(log_ndtr(-z), np.log(smallest)), np.arange(len(z)), []
    for _ in range(MOST):
        place = int(np.argmin(logs[left] + rng.laplace(0, scale, len(left))))
        reported.append((logs[left[place]] + rng.laplace(0, scale), int(left[place])))
        left = np.delete(left, place)
    reported.sort()
    cuts = np.log(Q * np.arange(1, MOST + 1) / len(z)) - 2 * scale * np.log(6 * MOST / Q)
    below = np.flatnonzero(np.array([level for level, _ in reported]) <= cuts)
    return [place for _, place in reported[: below[-1] + 1]] if len(below) else []


def found(fit: FDRResult) -> list[int]:
    """Return which columns are rejected."""
    return [int(name[1:]) for name in fit.rejected]


def cell(
    rows: int,
    eps: float,
    effects: int,
    tables: int,
    column: Callable[[np.ndarray, np.ndarray], list[int]],
    *,
    alike: float = 0.0,
) -> tuple[float, float, float]:
    """Return the false discovery rate, its standard error and the power over many tables."""
    rng = np.random.default_rng()
    rejections = []
    for _ in range(tables):
        rejections.append(shares(column(*drawn(rng, rows, effects, alike=alike)), effects))
    false, power = np.array(rejections).T
    return float(false.mean()), float(false.std() / np.sqrt(tables)), float(power.mean())


def known_scatter(fit: FDRResult, rows: int, filled: float) -> list[int]:
    """Step up over the same sums, divided by their true standard deviations."""
    release, p_values = fit.release, np.ones(fit.hypotheses)
    sd = np.sqrt(rows * filled**2 + release.product_sd**2)
    p_values[release.chosen.astype(int)] = 2 * ndtr(-np.abs(release.products) / sd)
    return np.flatnonzero(multipletests(p_values, fit.q, "fdr_bh")[0]).tolist()


def by_level(tables: int, filled: float) -> None:
    """Print rates and power at several q, beside those with known scatters, and the ratio."""
    rng, columns, effects = np.random.default_rng(3), 200, 20
    print(
        f"{columns} columns with an sd of {filled} half-ranges, 30 looked at; known scatters; ratio"
    )
    for rows in (20_000, 100_000):
        for name in ("peeling", "moments"):
            figures: dict[float, list[tuple[float, ...]]] = {0.05: [], 0.1: [], 0.2: []}
            for _ in range(tables):
                _, exact = drawn(rng, rows, effects, columns=columns, filled=filled)
                fit = released(exact, 1.0, name, alternative="two-sided", most=30)
                for q, rates in figures.items():
                    at = replace(fit, q=q)
                    scatter = known_scatter(at, rows, filled)
                    rates.append((*shares(found(at), effects), *shares(scatter, effects)))
            for q, rates in figures.items():
                rate, power, known_rate, known_power = np.mean(rates, axis=0)
                error = np.std(rates, axis=0)[0] / np.sqrt(tables)
                print(
                    f"{rows:>9} {name:<8} q = {q:<4}  {rate:.3f} ± {error:.3f} {power:.3f}  "
                    f"{known_rate:.3f} {known_power:.3f}  {power / max(known_power, 1e-9):.2f}",
                    flush=True,
                )


def main(tables: int) -> None:
    """Print rates and power by q, by size and budget, and by number of effects."""
    with dp.simulation(seed=1):
        for filled in (1.0, 0.33):
            by_level(tables, filled)
    print(f"m = {COLUMNS}, {MOST} looked at, 50 effects of {EFFECT:g}, q = {Q}, {tables} tables")
    names = ("exact", *SCREENING, "published")
    print(f"{'n':>9} {'eps':>4}  {' '.join(f'{name:>12}' for name in names)}")
    rng = np.random.default_rng()
    with dp.simulation(seed=1):
        for rows, eps in CELLS:
            line = [cell(rows, eps, 50, tables, lambda z, _: exact_tests(z))]
            for name in SCREENING:
                line.append(
                    cell(rows, eps, 50, tables, lambda _, e: found(released(e, eps, name)))  # noqa: B023
                )
            line.append(cell(rows, eps, 50, tables, lambda z, _: published(rng, z, rows, eps)))  # noqa: B023
            texts = " ".join(f"{figure[0]:>6.3f} {figure[2]:>5.3f}" for figure in line)
            print(f"{rows:>9} {eps:>4}  {texts}", flush=True)
        print(
            "false discovery rates of peeling, eps = 1, two-sided: independent; nulls alike by .5"
        )
        for rows in (100_000, 1_000_000):
            for effects in (0, 5, 50):
                texts = []
                for alike in (0.0, 0.5):
                    rate, error, power = cell(
                        rows,
                        1.0,
                        effects,
                        tables,
                        lambda _, e: found(released(e, 1.0, "peeling", alternative="two-sided")),
                        alike=alike,
                    )
                    texts.append(f"{rate:.3f} ± {error:.3f} (power {power:.2f})")
                print(f"{rows:>9} {effects:>3} effects  {'   '.join(texts)}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
