"""``evaluate``: algorithms side by side on public tables, before any budget is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from dpmodels.arguments import real, whole, word
from dpmodels.errors import ArgumentError, said
from dpmodels.evaluation.checks import bias, checked
from dpmodels.evaluation.histograms import histograms
from dpmodels.evaluation.recipe import Cell, Outcomes, Recipe, Task, run, seed_of
from dpmodels.evaluation.recipe import recipes as read_recipes
from dpmodels.evaluation.samples import LEVEL, MEASURES, samples
from dpmodels.evaluation.shapes import standard
from dpmodels.evaluation.study import Asked, Study
from dpmodels.evaluation.workload import WORKLOADS
from dpmodels.typing import Floats

_MOST_ROWS: Final = 2**31


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
    """Compare algorithms on public or simulated tables; nothing is private, nothing is spent.

    Every algorithm answers the same tables, drawn anew in every repeat, in every cell: a table's
    shape, a scale, a domain and an eps. Baselines that learn next to nothing are always among them.

    Parameters
    ----------
    recipes : mapping of str to recipe
        What is compared. A recipe that takes ``data`` and ``codebook`` is
        asked as a verb, such as ``functools.partial(dp.dp_hist, "~ v")``: with
        rows of a whole number ``v`` from 0 on, the cell of a row (``v1, v2,
        ...`` along several axes; categories where marginals are asked for),
        with ``eps``, and with ``breaks``, the cells, and
        ``adjacency="add-remove"``, where it takes these and does not say them.
        Any other is called with the counts by cell, an array of whole numbers,
        and eps, with ``rng=`` if it takes that; of rows, with the exact answer
        instead of counts. Of an answer ``released`` is read, unbiased counts
        by cell, else ``counts``, else the array that it is; a pair,
        ``(recipe, "counts")``, names what is read.
    tables : mapping of str to array_like, optional
        Public or simulated histograms, of which the shape is kept: counts or
        shares by cell, along one axis or several. By default
        ``dp.shapes.standard()``. Of the last four errors, data frames of rows.
    scale : number or iterable of numbers
        Rows that are drawn, whole numbers from 1.
    domain : int, tuple of int or iterable of these, optional
        Cells along each axis, which have to divide those of the tables; by
        default theirs.
    eps : float or iterable of float
        Budgets, above 0, for neighbours that differ by one row more or fewer
        where counts are asked for. Noise of another kind is a recipe's own matter:
        ``functools.partial(dp.dp_hist, "~ v", delta=1e-6)``.
    error : str
        Of counts, the queries: ``"prefix"``, all ranges from the first cell
        on; ``"ranges"``, all ranges; ``"random"``, 2,000 of them;
        ``"identity"``, every cell; ``"marginals"`` of one and two variables.
        Of rows: ``"frobenius"`` of ``cov``, ``"energy"`` of ``loadings``,
        ``"coefficients"``, of ``params``, ``"coverage"``, the width of
        ``noise_int()`` with the share that holds.
    repeats : int
        Tables drawn in each cell, from 2.
    codebook : Codebook
        Of rows, for verbs; counts need none.
    truth : callable
        Of rows: a function of a data frame that gives the exact answer, as
        the recipes define it; another definition is an error at any eps.
    seed : int
        Of the simulation, from 0: the same seed gives the same study.

    Returns
    -------
    Study
        ``summary() table tidy() plot() page()``, and ``data``, an xarray Dataset.

    Raises
    ------
    ArgumentError
        If there is no recipe, one of them has rows, a budget or a ledger of its own, a table is no
        public histogram, a scale or an eps is none, a domain does not divide, or the error is not
        known; and if a recipe raises or gives numbers that are not finite, with its name and the
        cell.

    Notes
    -----
    The error of queries W is ``|Wx - y| / (queries * scale)``. The principles of Hay et al. (2016)
    are kept where a program can: scales, shapes and domains are several; recipes see counts and eps
    and nothing else, so that what they need besides they have to buy, though a recipe that was
    tuned on these very tables cannot be told; variability and bias are reported; baselines that
    show whether anything was gained are always there.

    Nothing here checks that a recipe keeps its eps: ``dp.audit`` tries that.

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
    kind = word("error", error, (*WORKLOADS, *MEASURES))
    numbers = map(_integral, _several("scale", scale))
    scales = tuple(whole("scale", number, 1, _MOST_ROWS) for number in numbers)
    budgets = tuple(map(_budget, _several("eps", eps)))
    times = whole("repeats", repeats, 2, 100_000)
    start = whole("seed", seed, 0, 2**63)
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
    settings = Asked(kind, task.about, times, start, tuple(recipe.name for recipe in baselines))
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


def _several(name: str, value: Any) -> tuple[object, ...]:
    """Return one thing or many as a tuple; a tuple of a domain is one thing."""
    single = value is None or not isinstance(value, Iterable) or isinstance(value, str)
    if single or (name == "domain" and isinstance(value, tuple)):
        return (value,)
    values = tuple(value)
    if not values:
        raise ArgumentError(f"{name} is empty: expected one value or more")
    return values


def _integral(value: object) -> object:
    """Return a whole number that is written as a float, as 1e5 is."""
    number = real(value)
    return int(number) if number == number // 1 else value


def _budget(value: object) -> float:
    number = real(value)
    if not number > 0:
        raise ArgumentError(f"eps={said(value)}: expected a number above 0, such as 0.1")
    return number


def _dataset(
    entered: Sequence[Recipe], cells: Sequence[Cell], outcomes: Sequence[Outcomes], seed: int
) -> xr.Dataset:
    """Lay out errors, and what is told of them, by algorithm and cell."""
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


# What errors of several algorithms on the same tables say of which to take.
#
# *Regret* is an algorithm's mean error over the least of any in the setting. It is *competitive*
# there if a one-sided t-test of its errors less those of the best, run by run on the same tables,
# does not put it above at 5 % over the number of the others.

ALPHA: Final = 0.05


class Judged(NamedTuple):
    """Of one setting, arrays of shape (algorithms,)."""

    mean: Floats
    se: Floats
    p95: Floats
    regret: Floats
    competitive: NDArray[np.bool_]


def judged(error: Floats, coverage: Floats, level: float) -> Judged:
    """Judge errors of shape (algorithms, repeats), none but of those whose intervals hold.

    Where coverage is not nan, an algorithm that covers less than `level` is out of the comparison,
    by the same test.
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
    """Tell whether a mean is above 0, by a t-test; of equal numbers, whether they are."""
    repeats = len(differences)
    if np.isnan(differences).any() or repeats < 2:
        return False
    mean, se = differences.mean(), differences.std(ddof=1) / math.sqrt(repeats)
    if se <= 1e-12 * abs(mean):
        return bool(mean > 0)
    return bool(stats.t.sf(mean / se, repeats - 1) < alpha)
