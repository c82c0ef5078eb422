"""``evaluate``: compare algorithms on public tables, before any budget is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from dpmodels.arguments import checked_keywords, integer, option, real
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, quoted
from dpmodels.evaluation.histograms import histograms, require_names
from dpmodels.evaluation.recipe import (
    WORKLOADS,
    Cell,
    Outcomes,
    Recipe,
    Score,
    Task,
    bias,
    checked,
    recipes,
    run,
    seed_of,
)
from dpmodels.evaluation.recipe import recipes as read_recipes
from dpmodels.evaluation.shapes import standard
from dpmodels.evaluation.study import Study, StudySettings
from dpmodels.typing import Floats

LEVEL: Final = 0.95
Truth = Callable[[pd.DataFrame], object]


@dataclass(frozen=True, repr=False, eq=False)
class Samples:
    """Public rows by name, from which tables are drawn with replacement at every scale."""

    frames: Mapping[str, pd.DataFrame]
    scales: tuple[int, ...]
    codebook: Codebook
    exact: Truth
    error: str

    @property
    def about(self) -> str:
        """Description of the error."""
        return MEASURES[self.error].about

    @property
    def baselines(self) -> tuple[Recipe, ...]:
        """An answer that reads no rows, if there is one of the kind."""
        return recipes(blind) if (blind := MEASURES[self.error].blind) else ()

    def settings(self) -> list[Cell]:
        """Return tables and scales."""
        return [
            Cell(name, scale, (), math.nan) for name, scale in product(self.frames, self.scales)
        ]

    def draw(self, cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
        """Draw rows with replacement."""
        frame = self.frames[cell.table]
        return frame.iloc[rng.integers(0, len(frame), size=cell.scale)].reset_index(drop=True)

    def times(self, table: pd.DataFrame, copies: int) -> pd.DataFrame:
        """Return every row `copies` times."""
        return table.iloc[np.tile(np.arange(len(table)), copies)].reset_index(drop=True)

    def truth(self, table: pd.DataFrame) -> Floats:
        """Return the exact answer of the rows."""
        return np.asarray(self.exact(table), dtype=np.float64)

    def score(self, recipe: Recipe, table: pd.DataFrame, eps: float, seed: int) -> Score:
        """Measure the error of an answer relative to the exact one for the same rows."""
        measure, truth = MEASURES[self.error], self.truth(table)
        if recipe.is_verb:
            answer = recipe.of_rows(table, self.codebook, eps, seed)
        else:
            answer = recipe.of_counts(truth, eps, seed)
        if self.error == "coverage" and hasattr(answer, "noise_int"):
            answer = answer.noise_int(LEVEL)
        return measure.score(recipe.array(answer, measure.read), truth)


@dataclass(frozen=True)
class Measure:
    """An error: how an answer is read and compared with the truth."""

    about: str
    read: tuple[str, ...]
    score: Callable[[Floats, Floats], Score]
    blind: Mapping[str, Callable[..., object]]


def _alike(answer: Floats, truth: Floats) -> None:
    if answer.shape != truth.shape:
        raise ArgumentError(
            f"its answer has the shape {answer.shape}, but the truth {truth.shape}: truth= must "
            "return the same numbers in the same order"
        )


def _distance(answer: Floats, truth: Floats, *, is_mean: bool = False) -> Score:
    _alike(answer, truth)
    signed = np.ravel(answer - truth) / (math.sqrt(truth.size) if is_mean else 1.0)
    return Score(float(np.linalg.norm(signed)), signed, answer)


def _energy(answer: Floats, truth: Floats) -> Score:
    """Measure directions, columns of `answer`, by the second moment matrix `truth`."""
    if answer.ndim != 2 or truth.shape != (len(answer), len(answer)):
        raise ArgumentError(
            f"its answer has the shape {answer.shape}, but the truth {truth.shape}: expected "
            "loadings, variables by components, and truth= the covariance of the variables"
        )
    basis, _ = np.linalg.qr(answer)
    best = np.linalg.eigvalsh(truth)[::-1][: basis.shape[1]].sum()
    return Score(1 - float(np.trace(basis.T @ truth @ basis) / best), answer=answer)


def _coverage(answer: Floats, truth: Floats) -> Score:
    """Measure intervals, rows of `answer`, by their mean width and coverage."""
    _alike(answer, np.stack([truth.ravel()] * 2, axis=1))
    low, high = answer.T
    covered = float(((low <= truth.ravel()) & (truth.ravel() <= high)).mean())
    return Score(float((high - low).mean()), answer=answer.mean(axis=1), coverage=covered)


def _zero(truth: Floats, eps: float) -> Floats:
    return np.zeros_like(truth)


def _random(truth: Floats, eps: float, rng: np.random.Generator) -> Floats:
    return np.linalg.qr(rng.normal(size=(len(truth), 1)))[0]


MEASURES: Final[Mapping[str, Measure]] = {
    "frobenius": Measure(
        "Frobenius norm of the error of a matrix", ("cov",), _distance, {"zero": _zero}
    ),
    "energy": Measure(
        "1 - energy that directions capture over the largest possible",
        ("loadings",),
        _energy,
        {"random": _random},
    ),
    "coefficients": Measure(
        "root mean square error of coefficients, relative to the non-private ones",
        ("params",),
        partial(_distance, is_mean=True),
        {"zero": _zero},
    ),
    "coverage": Measure(
        "mean width of 95% noise intervals, which must contain the non-private values",
        ("values",),
        _coverage,
        {},
    ),
}


def samples(
    tables: object, scales: tuple[int, ...], codebook: object, truth: object, error: object
) -> Samples:
    """Return the task; ArgumentError if a table is not valid."""
    if not isinstance(tables, Mapping) or not tables:
        raise ArgumentError(
            f"tables={quoted(tables)}: expected a mapping from names to public or simulated data "
            "frames"
        )
    require_names(tables)
    for name, table in tables.items():
        if not isinstance(table, pd.DataFrame) or table.empty:
            raise ArgumentError(
                f"tables[{name!r}] is of type {type(table).__name__}: error={error!r} needs "
                "rows, in a pandas DataFrame that is not empty"
            )
    if not isinstance(codebook, Mapping):
        raise ArgumentError(f"codebook={quoted(codebook)}: expected the dp.codebook of the rows")
    if not callable(truth):
        raise ArgumentError(
            f"truth={quoted(truth)}: expected a function from a data frame to the exact answer, "
            "such as lambda rows: numpy.cov(rows.T)"
        )
    book = codebook if isinstance(codebook, Codebook) else Codebook(codebook)
    return Samples(dict(tables), scales, book, truth, option("error", error, MEASURES))


_MOST_ROWS: Final = 2**31


@checked_keywords("dp.evaluate")
def evaluate(
    recipes: Mapping[str, object],
    tables: Mapping[str, object] | None = None,
    *,
    scale: float | Iterable[float] = (1e3, 1e5),
    domain: int | tuple[int, ...] | Iterable[int | tuple[int, ...]] | None = None,
    eps: float | Iterable[float] = 0.1,
    error: str = "prefix",
    repeats: int = 20,
    codebook: Mapping[str, object] | None = None,
    truth: Callable[[object], object] | None = None,
    seed: int = 0,
) -> Study:
    """Compare algorithms on public or simulated tables; no budget is spent.

    Every algorithm answers the same tables, drawn again in every repeat, in every cell: a table's
    shape, a scale, a domain and an eps. Simple baselines are always included.

    Parameters
    ----------
    recipes : mapping of str to recipe
        Algorithms by name. A recipe that takes ``data`` and ``codebook`` is
        called as a verb, such as ``functools.partial(dp.dp_hist, "~ v")``: with
        rows of an integer ``v`` from 0 on, the cell of a row (``v1, v2, ...``
        along several axes; categories for marginals), with ``eps``, and with
        ``breaks``, the cells, and ``adjacency="add-remove"``, if it takes these
        and does not set them. Any other is called with the counts by cell, an
        array of integers, and eps, with ``rng=`` if it takes that; for rows,
        with the exact answer instead of counts. The answer is read from its
        ``released``, unbiased counts by cell, else ``counts``, else it is an
        array; a pair, ``(recipe, "counts")``, names the attribute to read.
    tables : mapping of str to array_like, optional
        Public or simulated histograms, whose shape is kept: counts or shares
        by cell, along one axis or several. By default ``dp.shapes.standard()``.
        For the last four errors, data frames of rows.
    scale : number or iterable of numbers
        Numbers of rows to draw, integers from 1.
    domain : int, tuple of int or iterable of these, optional
        Cells along each axis, which must divide those of the tables; by
        default those of the tables.
    eps : float or iterable of float
        Positive budgets; for counts, neighbours differ by one row more or
        fewer. A recipe sets other kinds of noise itself:
        ``functools.partial(dp.dp_hist, "~ v", delta=1e-6)``.
    error : str
        For counts, the queries: ``"prefix"``, all ranges from the first cell
        on; ``"ranges"``, all ranges; ``"random"``, 2,000 of them;
        ``"identity"``, every cell; ``"marginals"`` of one and two variables.
        For rows: ``"frobenius"`` of ``cov``, ``"energy"`` of ``loadings``,
        ``"coefficients"`` of ``params``, ``"coverage"``, the width of
        ``noise_int()`` with its coverage.
    repeats : int
        Tables drawn in each cell, from 2.
    codebook : Codebook
        Codebook of rows, for verbs; not needed for counts.
    truth : callable
        For rows: a function from a data frame to the exact answer, as the
        recipes define it; a different definition is an error at any eps.
    seed : int
        Seed of the simulation, from 0: the same seed gives the same study.

    Returns
    -------
    Study
        ``summary() table tidy() plot() page()``, and ``data``, an xarray Dataset.

    Raises
    ------
    ArgumentError
        If there is no recipe, one of them sets rows, a budget or a ledger, a table, scale, eps,
        domain or error is not valid, or a recipe raises or returns numbers that are not finite;
        the message names it and the cell.

    Notes
    -----
    The error of queries W is ``|Wx - y| / (queries * scale)``. The principles of Hay et al. (2016)
    are followed as far as a program can: there are several scales, shapes and domains; recipes see
    only counts and eps, and must spend budget on anything else, though tuning on these tables
    cannot be detected; variability and bias are reported; baselines are always included.

    This does not check that a recipe satisfies its eps: use ``dp.audit``.

    References
    ----------
    Hay, M., Machanavajjhala, A., Miklau, G., Chen, Y. and Zhang, D. (2016). "Principled evaluation
    of differentially private algorithms using DPBench." SIGMOD.

    Examples
    --------
    >>> import dpmodels as dp
    >>> from functools import partial
    >>> flat = {"flat": partial(dp.dp_hist, "~ v")}
    >>> study = dp.evaluate(flat, dp.shapes.standard(16), scale=100, repeats=2, eps=1.0)
    >>> study.algorithms, dict(study.data["error"].sizes)
    (('flat', 'identity', 'uniform'), {'algorithm': 3, 'cell': 6, 'repeat': 2})
    """
    kind = option("error", error, (*WORKLOADS, *MEASURES))
    numbers = map(_integral, _several("scale", scale))
    scales = tuple(integer("scale", number, 1, _MOST_ROWS) for number in numbers)
    budgets = tuple(map(_budget, _several("eps", eps)))
    times = integer("repeats", repeats, 2, 100_000)
    start = integer("seed", seed, 0, 2**63)
    task: Task
    if kind in WORKLOADS:
        shapes = standard() if tables is None else tables
        task = histograms(shapes, scales, _several("domain", domain), kind)
    else:
        task = samples(tables, scales, codebook, truth, kind)
    requested = read_recipes(recipes)
    names_taken = {recipe.name for recipe in requested}
    baselines = tuple(recipe for recipe in task.baselines if recipe.name not in names_taken)
    entered = (*requested, *baselines)
    cells = [cell._replace(eps=budget) for cell in task.settings() for budget in budgets]
    outcomes = run(task, entered, cells, times, start)
    settings = StudySettings(
        kind, task.about, times, start, tuple(recipe.name for recipe in baselines)
    )
    names = [recipe.name for recipe in entered]
    return Study(
        settings,
        _dataset(entered, cells, outcomes, start),
        checked(task, entered, cells, times, start),
        {place: outcome.truth for place, outcome in enumerate(outcomes)},
        {
            (name, place): answer
            for place, outcome in enumerate(outcomes)
            for name, answer in zip(names, outcome.answers, strict=True)
        },
    )


def _several(name: str, value: object) -> tuple[object, ...]:
    """Return one value or several as a tuple; a tuple of a domain is one value."""
    is_domain = name == "domain" and isinstance(value, tuple)
    if is_domain or isinstance(value, str) or not isinstance(value, Iterable):
        return (value,)
    values = tuple(value)
    if not values:
        raise ArgumentError(f"{name} is empty: expected at least one value")
    return values


def _integral(value: object) -> object:
    number = real(value)
    return int(number) if number == number // 1 else value


def _budget(value: object) -> float:
    number = real(value)
    if not number > 0:
        raise ArgumentError(f"eps={quoted(value)}: expected a positive number, such as 0.1")
    return number


def _dataset(
    entered: Sequence[Recipe], cells: Sequence[Cell], outcomes: Sequence[Outcomes], seed: int
) -> xr.Dataset:
    verdicts = [judged(outcome.error, outcome.coverage, LEVEL) for outcome in outcomes]
    tests = [
        [
            bias(products, np.random.default_rng(seed_of(seed, f"turns {recipe.name}", cell, 0)))
            for recipe, products in zip(entered, outcome.products, strict=True)
        ]
        for cell, outcome in zip(cells, outcomes, strict=True)
    ]
    by = ("algorithm", "cell")
    statistics = {
        name: (by, np.array([getattr(v, name) for v in verdicts]).T) for name in _STATISTICS
    }
    runs = {
        name: ((*by, "repeat"), np.stack([getattr(outcome, name) for outcome in outcomes], axis=1))
        for name in ("error", "coverage")
    }
    shares = np.array(tests).transpose(2, 1, 0)
    biases = {"bias": (by, shares[0]), "bias_p": (by, shares[1])}
    coordinates = {
        "algorithm": [recipe.name for recipe in entered],
        "table": ("cell", [cell.table for cell in cells]),
        "scale": ("cell", [cell.scale for cell in cells]),
        "domain": ("cell", [cell.size for cell in cells]),
        "eps": ("cell", [cell.eps for cell in cells]),
    }
    return xr.Dataset({**runs, **statistics, **biases}, coordinates)


_STATISTICS: Final = ("mean", "se", "p95", "regret", "competitive")


# Comparison of errors of several algorithms on the same tables.
#
# *Regret* is an algorithm's mean error over the smallest of any in the setting. It is *competitive*
# there if a one-sided paired t-test does not find its errors larger than those of the best, at 5 %
# over the number of other algorithms.

ALPHA: Final = 0.05


class Judged(NamedTuple):
    """Statistics of one setting, arrays of shape (algorithms,)."""

    mean: Floats
    se: Floats
    p95: Floats
    regret: Floats
    competitive: NDArray[np.bool_]


def judged(error: Floats, coverage: Floats, level: float) -> Judged:
    """Compare errors of shape (algorithms, repeats).

    If coverage is not nan, algorithms that cover less than `level` by the same test are excluded.
    """
    n_algorithms, repeats = error.shape
    mean = error.mean(axis=1)
    se = (
        error.std(axis=1, ddof=1) / math.sqrt(repeats)
        if repeats > 1
        else np.full(n_algorithms, np.nan)
    )
    n_others = max(n_algorithms - 1, 1)
    valid = np.array([not _above(level - covered, ALPHA / n_algorithms) for covered in coverage])
    candidates = np.where(valid, mean, np.inf) if valid.any() else mean
    best = int(np.argmin(candidates))
    smallest = mean[best]
    regret = np.divide(mean, smallest, out=np.where(mean > 0, np.inf, 1.0), where=smallest > 0)
    beaten = np.array([_above(runs - error[best], ALPHA / n_others) for runs in error])
    return Judged(mean, se, np.quantile(error, 0.95, axis=1), regret, ~beaten & valid)


def _above(differences: Floats, alpha: float) -> bool:
    """Whether a mean is positive by a t-test; for equal numbers, whether they are."""
    repeats = len(differences)
    if np.isnan(differences).any() or repeats < 2:
        return False
    mean, se = differences.mean(), differences.std(ddof=1) / math.sqrt(repeats)
    if se <= 1e-12 * abs(mean):
        return bool(mean > 0)
    return bool(stats.t.sf(mean / se, repeats - 1) < alpha)
