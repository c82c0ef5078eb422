"""``dp_hist``: a private histogram by formula."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, Unpack

import numpy as np

from dpmodels.arguments import lists_values
from dpmodels.errors import ArgumentError, FormulaError, quoted, shorten
from dpmodels.formula.sides import Sides, measured, one_measured, parse_sides
from dpmodels.formula.tally import Tally, binned
from dpmodels.formula.values import Category, Real, Truth
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.models.descriptive_specs import descriptive_spec
from dpmodels.models.replay import spec_of
from dpmodels.models.sampled_specs import sampled_spec
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.request import Request
from dpmodels.results.hist import HistResult
from dpmodels.results.plane import PlaneResult
from dpmodels.results.weighted import WeightedHistResult


@verb
def dp_hist(
    formula: str,
    data: object = None,
    *,
    breaks: int | Iterable[Any] = 10,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> HistResult | Any:
    """Release a histogram of one number, or of two together, by groups or not.

    Parameters
    ----------
    formula : str
        ``"~ age"``, or ``"age ~ sex"`` for a histogram of each group; ``"~ lon + lat"`` for one of
        the plane of two numbers.
    breaks : int or sequence of float
        A number of equal bins over the declared range, 2 or more, or the ends
        of the bins: rising, three or more, within the declared range; of
        dates, days. Rows outside them count as incomplete; values outside the
        declared range are clipped to it first, into the end bins where breaks
        reach it. Whole numbers and days have at most so many bins of equally
        many values, the last of which may have fewer. Of two numbers one for
        both, or a pair, ``(256, 256)``; at most 5,000,000 cells.
    mechanism : str or instance
        ``"flat"``: noise in each bin by itself, the quieter of ``"geometric"``, discrete Laplace,
        and ``"gaussian"``, discrete Gaussian. ``"tree"``: also noisy counts of runs of bins, made
        consistent, so that sums over many bins have little noise, and ``"wavelet"`` likewise;
        ``"factorisation"``: running totals, with Gaussian noise. ``"partition"``: runs of bins, or
        blocks of a plane, split where there are rows and pooled where they are even; closest where
        rows are few or many bins empty, with longer intervals. By default flat for up to 40 bins;
        for more than 100 partition where the public number of rows is small for them; else flat,
        tree or wavelet, by the predicted noise of the mean range, weighed twice, and that of a bin.
        Of two numbers partition likewise, ``"flat"`` or ``"grid"``, the tree of a plane: noisy
        counts of blocks of cells too, so that rectangles have little noise.

    Returns
    -------
    HistResult
        Of two numbers a PlaneResult.

    Notes
    -----
    Bins at the data's ends or quantiles would reveal rows and are not offered. The noise in each
    flat bin does not depend on their number; that of sums of bins grows with it. Any histogram of
    one number has ``fit.between(lo, hi)``, ``fit.cdf()`` and ``fit.quantile(p)``; fine bins make
    them finer, and cost little where the mechanism is a tree. Bins are named by their ends, rounded
    to a hundredth of the narrowest; `breaks` has them as they are. Bins of whole numbers and of
    days are named by those they hold, ``3`` or ``3 to 5``, and their `breaks` lie half a step
    beside. Under a survey design bins of one number have totals of the population.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100))
    >>> rows = {"age": [31, 64, 45] * 400}
    >>> fit = dp_hist("~ age", rows, codebook=cb, eps=1.0, breaks=[0, 18, 40, 65, 100])
    >>> fit.counts.sizes
    Frozen({'age': 4})
    """
    return run_verb("hist", hist_spec, formula, data, shared, mechanism, breaks=breaks)


@spec_of("hist", gaussian="gaussian", audited=("a ~ g", "geometric"), designs=True)
def hist_spec(request: Request) -> VerbSpec[object]:
    """Build the specification of a dp_hist call."""
    formula_sides = parse_sides(request.formula, request.codebook)
    if in_plane(formula_sides):
        if request.codebook.design is not None:
            raise ArgumentError(
                "dp_hist of two numbers takes no survey design: write one number, or design=False "
                "to analyse the rows as they are"
            )
        return plane_spec(request, formula_sides)
    tally, edges, variable = bins(formula_sides, request.options["breaks"])
    if request.codebook.design is not None:
        weighted = partial(WeightedHistResult, breaks=np.array(edges), variable=variable)
        return sampled_spec(request, formula_sides, (tally,), weighted)
    result = partial(HistResult, breaks=np.array(edges), variable=variable)
    shape = math.prod(tally.shape[:-1]), tally.shape[-1]
    return descriptive_spec(request, formula_sides, (tally,), result, shape=shape)


def bins(formula_sides: Sides, breaks: object) -> tuple[Tally, tuple[float, ...], str]:
    """Return the table of a histogram, the edges of its bins, and the variable."""
    _check_number(formula_sides)
    number, factors = one_measured(formula_sides, "dp_hist")
    cut, edges = binned(number, breaks)
    return Tally((*factors, cut)), edges, number.code


def _check_number(formula_sides: Sides) -> None:
    """Refuse a variable that has levels."""
    described = formula_sides.described
    if len(described) == 1 and isinstance(described[0], Category | Truth):
        code = shorten(described[0].code)
        raise FormulaError(
            f"{code!r} is a category: a histogram is of a number; count its levels with "
            f"dp_table, '~ {code}'"
        )


# Histograms of two numbers: the cells of their plane in which rows are counted.

# A choice: cells of all groups together, whose counts and sums are in memory at once.
MOST_CELLS = 5_000_000

Ends = tuple[float, ...]


def in_plane(formula_sides: Sides) -> bool:
    """Whether a formula describes two numbers."""
    return len(formula_sides.described) == 2 and all(
        isinstance(value, Real) for value in formula_sides.described
    )


def plane_spec(request: Request, formula_sides: Sides) -> VerbSpec[PlaneResult]:
    """Build the specification for two numbers."""
    tally, (along, across), variables = plane_bins(formula_sides, request.options["breaks"])
    result = partial(
        PlaneResult, along=np.array(along), across=np.array(across), variables=variables
    )
    shape = (math.prod(tally.shape[:-2]), *tally.shape[-2:])
    return descriptive_spec(request, formula_sides, (tally,), result, shape=shape)


def plane_bins(
    formula_sides: Sides, breaks: object
) -> tuple[Tally, tuple[Ends, Ends], tuple[str, str]]:
    """Return the table of a plane, the edges of the bins of both numbers, and their names."""
    numbers = tuple(map(measured, formula_sides.described))
    pair = _pair(breaks)
    _require_room(pair, math.prod(len(group.levels) for group in formula_sides.groups))
    (first, along), (second, across) = (
        binned(*number_and_breaks) for number_and_breaks in zip(numbers, pair, strict=True)
    )
    tally = Tally((*formula_sides.groups, first, second), max_cells=MOST_CELLS)
    return tally, (along, across), (numbers[0].code, numbers[1].code)


def _pair(breaks: object) -> tuple[object, object]:
    """Return the breaks of each number, from one for both or a pair; sequences as lists."""
    if isinstance(breaks, int | np.integer):
        return breaks, breaks
    breaks_by_number = (
        [list(part) if lists_values(part) else part for part in breaks]
        if lists_values(breaks)
        else []
    )
    if len(breaks_by_number) != 2:
        description = (
            f"a sequence of {len(breaks_by_number)}" if lists_values(breaks) else quoted(breaks)
        )
        raise ArgumentError(
            f"breaks={description}: the formula has two numbers; write a number of bins for both, "
            "or a pair with a number of bins or their ends for each, such as breaks=(256, 256)"
        )
    return breaks_by_number[0], breaks_by_number[1]


def _require_room(pair: tuple[Any, Any], groups: int) -> None:
    """Refuse too many cells, before they are named."""
    along, across = (len(part) - 1 if isinstance(part, list) else part for part in pair)
    counted = all(isinstance(count, int | np.integer) for count in (along, across))
    if counted and int(along) * int(across) * groups > MOST_CELLS:
        of = f" of {groups:,} groups" if groups > 1 else ""
        raise ArgumentError(
            f"breaks=({along}, {across}): {int(along) * int(across) * groups:,} cells{of}; at most "
            f"{MOST_CELLS:,} are counted. Write fewer bins"
        )
