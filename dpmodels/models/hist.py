"""``dp_hist``: a private histogram by formula."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, Unpack

import numpy as np

from dpmodels.arguments import several
from dpmodels.errors import ArgumentError, FormulaError, said, shorten
from dpmodels.formula.sides import Sides, measured, one_measured, sides
from dpmodels.formula.tally import Tally, binned
from dpmodels.formula.values import Category, Real, Truth
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.models.crossing import Way
from dpmodels.models.describing import described_way
from dpmodels.models.replay import spec_of
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.question import Question
from dpmodels.results.hist import HistResult
from dpmodels.results.plane import PlaneResult


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
        ``"flat"``: noise in each bin by itself, the quieter of ``"geometric"``,
        discrete Laplace, and ``"gaussian"``, discrete Gaussian. ``"tree"``:
        noisy counts of runs of bins too, made to agree, so that sums over many
        bins have little noise, and ``"wavelet"`` likewise;
        ``"factorisation"``: running totals, with Gaussian noise.
        ``"partition"``: runs of bins that are cut finer where there are rows,
        and pooled where they are even; closest where rows are few or many bins
        empty, and without intervals. By default flat for up to 40 bins; for
        more flat, tree or wavelet, by the predicted noise of the mean range,
        weighed twice, and that of a bin. Of two numbers ``"flat"`` or
        ``"grid"``, the tree of a plane: noisy counts of blocks of cells too,
        so that rectangles have little noise.

    Returns
    -------
    HistResult
        Of two numbers a PlaneResult.

    Notes
    -----
    Bins at the data's own ends or quantiles would tell of rows: there are
    none. However many flat bins, the noise in each is the same, and that of
    sums of them grows with their number. ``fit.between(lo, hi)``, ``fit.cdf()``
    and ``fit.quantile(p)`` are of any histogram of one number; fine bins make
    them finer, and cost little where the mechanism is a tree. Bins are named by
    their ends, rounded to a hundredth of the narrowest; `breaks` has them as
    they are. Bins of whole numbers and of days are named by those they hold,
    ``3`` or ``3 to 5``, and their `breaks` lie half a step beside.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100))
    >>> rows = {"age": [31, 64, 45] * 400}
    >>> fit = dp_hist("~ age", rows, codebook=cb, eps=1.0, breaks=[0, 18, 40, 65, 100])
    >>> fit.counts.sizes
    Frozen({'age': 4})
    """
    return run_verb("hist", hist_way, formula, data, shared, mechanism, breaks=breaks)


@spec_of("hist", gaussian="gaussian", audited=("a ~ g", "geometric"))
def hist_way(question: Question) -> Way[object]:
    """Return the way of the verb's question."""
    both = sides(question.formula, question.codebook)
    if in_plane(both):
        return plane_way(question, both)
    tally, ends, variable = bins(both, question.words["breaks"])
    made = partial(HistResult, breaks=np.array(ends), variable=variable)
    shape = math.prod(tally.shape[:-1]), tally.shape[-1]
    return described_way(question, both, (tally,), made, shape=shape)


def bins(both: Sides, breaks: object) -> tuple[Tally, tuple[float, ...], str]:
    """Return the table of a histogram, the ends of its bins, and what is counted."""
    _check_number(both)
    number, factors = one_measured(both, "dp_hist")
    cut, ends = binned(number, breaks)
    return Tally((*factors, cut)), ends, number.code


def _check_number(both: Sides) -> None:
    """Refuse to draw what has levels of its own."""
    drawn = both.described
    if len(drawn) == 1 and isinstance(drawn[0], Category | Truth):
        code = shorten(drawn[0].code)
        raise FormulaError(
            f"{code!r} is a category: a histogram is of a number; count its levels with "
            f"dp_table, '~ {code}'"
        )


# The way of a histogram of two numbers: which cells of their plane rows are counted in.

# A choice: cells of all groups together, whose counts and sums are held at once.
MOST_CELLS = 5_000_000

Ends = tuple[float, ...]


def in_plane(both: Sides) -> bool:
    """Whether a formula describes two numbers."""
    return len(both.described) == 2 and all(isinstance(own, Real) for own in both.described)


def plane_way(question: Question, both: Sides) -> Way[PlaneResult]:
    """Return the way of a question about two numbers."""
    tally, (along, across), variables = plane_bins(both, question.words["breaks"])
    made = partial(PlaneResult, along=np.array(along), across=np.array(across), variables=variables)
    shape = (math.prod(tally.shape[:-2]), *tally.shape[-2:])
    return described_way(question, both, (tally,), made, shape=shape)


def plane_bins(both: Sides, breaks: object) -> tuple[Tally, tuple[Ends, Ends], tuple[str, str]]:
    """Return the table of a plane, the ends of the bins of both numbers, and what is counted."""
    numbers = tuple(map(measured, both.described))
    pair = _pair(breaks)
    _require_room(pair, math.prod(len(own.levels) for own in both.groups))
    (first, along), (second, across) = (binned(*own) for own in zip(numbers, pair, strict=True))
    tally = Tally((*both.groups, first, second), max_cells=MOST_CELLS)
    return tally, (along, across), (numbers[0].code, numbers[1].code)


def _pair(breaks: object) -> tuple[object, object]:
    """Return the breaks of each number, from one for both or a pair; those that are many listed."""
    if isinstance(breaks, int | np.integer):
        return breaks, breaks
    own = [list(one) if several(one) else one for one in breaks] if several(breaks) else []
    if len(own) != 2:
        given = f"a sequence of {len(own)}" if several(breaks) else said(breaks)
        raise ArgumentError(
            f"breaks={given}: the formula has two numbers; write a number of bins for both, or a "
            "pair with a number of bins or their ends for each, such as breaks=(256, 256)"
        )
    return own[0], own[1]


def _require_room(pair: tuple[Any, Any], groups: int) -> None:
    """Refuse more cells than are counted at once, before any of them has a name."""
    along, across = (len(own) - 1 if isinstance(own, list) else own for own in pair)
    counted = all(isinstance(own, int | np.integer) for own in (along, across))
    if counted and int(along) * int(across) * groups > MOST_CELLS:
        of = f" of {groups:,} groups" if groups > 1 else ""
        raise ArgumentError(
            f"breaks=({along}, {across}): {int(along) * int(across) * groups:,} cells{of}; at most "
            f"{MOST_CELLS:,} are counted. Write fewer bins"
        )
