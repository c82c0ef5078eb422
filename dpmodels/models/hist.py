"""``dp_hist``: a private histogram by formula."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from dpmodels.arguments import finite
from dpmodels.dates import day_of, text_of_day
from dpmodels.declared import Declared, declared
from dpmodels.errors import ArgumentError, FormulaError, said, shorten
from dpmodels.formula.bins import (
    beside,
    by_whole_numbers,
    equal_parts,
    in_bins,
    interval_names,
    whole_names,
)
from dpmodels.formula.sides import Sides, one_measured, sides
from dpmodels.formula.tally import MAX_CELLS, Tally
from dpmodels.formula.values import Category, Real, Truth
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.models.crossing import Way, cross
from dpmodels.models.describing import described_way
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger
from dpmodels.question import Question, asked
from dpmodels.results.hist import HistResult
from dpmodels.sites import PROTOCOLS, SiteProtocol, gathered


def dp_hist(
    formula: str,
    data: object = None,
    *,
    sites: Mapping[str, object] | None = None,
    protocol: str | SiteProtocol | None = None,
    codebook: Declared = None,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    breaks: int | Iterable[float] = 10,
    mechanism: str | CountMechanism = "auto",
    adjacency: AdjacencyName | Adjacency | None = None,
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
    ledger: Ledger | None = None,
) -> HistResult:
    """Release a histogram, by groups or not.

    Parameters
    ----------
    formula : str
        ``"~ age"``, or ``"age ~ sex"`` for a histogram of each group.
    data, sites, protocol
        The rows, or those of each site and who sees what, as for :func:`dp_pca`.
    codebook, eps, delta, budget
        As for :func:`dp_pca`.
    breaks : int or sequence of float
        A number of equal bins over the declared range, 2 or more, or the ends
        of the bins: rising, three or more, within the declared range; of
        dates, days. Rows outside them count as incomplete; values outside the
        declared range are clipped to it first, into the end bins where breaks
        reach it. Whole numbers and days have at most so many bins of equally
        many values, the last of which may have fewer.
    mechanism : {"auto", "flat", "geometric", "gaussian", "tree", "wavelet"} or instance
        ``"flat"``: noise in each bin by itself, the quieter of ``"geometric"``, discrete Laplace,
        and ``"gaussian"``, discrete Gaussian. ``"tree"``: noisy counts of runs of bins too, made to
        agree, so that sums over many bins have little noise, and ``"wavelet"`` likewise. By default
        flat for up to 40 bins; for more one of the others, where it takes more from the predicted
        noise of the mean range than it adds to that of a bin, the former weighed twice.
    adjacency, person, rows, subset, ledger
        As for :func:`dp_pca`.

    Returns
    -------
    HistResult

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
        Before a row is read and before anything is charged.
    LedgerError
        If the ledger refuses; nothing is charged.

    Notes
    -----
    Bins at the data's own ends or quantiles would tell of rows: there are
    none. However many flat bins, the noise in each is the same, and that of
    sums of them grows with their number. ``fit.between(lo, hi)``, ``fit.cdf()``
    and ``fit.quantile(p)`` are of any histogram; fine bins make them finer, and
    cost little where the mechanism is a tree. Bins are named by
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
    held = gathered(data, sites, protocol, PROTOCOLS)
    book = declared(codebook, data, sites, formula)
    words: dict[str, Any] = {"person": person, "rows": rows, "subset": subset, "breaks": breaks}
    question = asked("hist", formula, book, eps, delta, budget, adjacency, **words)
    return cross(hist_way(question), held, mechanism, ledger)


def hist_way(question: Question) -> Way[HistResult]:
    """Return the way of the verb's question."""
    both = sides(question.formula, question.codebook)
    tally, ends, variable = bins(both, question.words["breaks"])
    made = partial(HistResult, breaks=np.array(ends), variable=variable)
    shape = math.prod(tally.shape[:-1]), tally.shape[-1]
    return described_way(question, both, (tally,), made, shape=shape)


def bins(both: Sides, breaks: object) -> tuple[Tally, tuple[float, ...], str]:
    """Return the table of a histogram, the ends of its bins, and what is counted."""
    _check_number(both)
    number, factors = one_measured(both, "dp_hist")
    ends = _ends(breaks, number)
    names = interval_names(ends)
    if by_whole_numbers(number):
        ends = _whole_ends(breaks, ends, number)
        names = whole_names(ends, date=number.date)
    cut = Category(number.code, names, in_bins(number, np.array(ends)))
    return Tally((*factors, cut)), ends, number.code


def _whole_ends(breaks: object, ends: tuple[float, ...], number: Real) -> tuple[float, ...]:
    """Move ends between whole numbers, each of which is in one bin."""
    if isinstance(breaks, int | np.integer):
        return equal_parts(number, int(breaks))
    moved = beside(ends)
    if any(not low < high for low, high in pairwise(moved)):
        raise ArgumentError(
            f"breaks={shorten(repr(list(ends)))}: {shorten(number.code)!r} goes by whole numbers, "
            "and one of the bins holds none; write ends that are farther apart"
        )
    return moved


def _check_number(both: Sides) -> None:
    """Refuse to draw what has levels of its own."""
    drawn = both.described
    if len(drawn) == 1 and isinstance(drawn[0], Category | Truth):
        code = shorten(drawn[0].code)
        raise FormulaError(
            f"{code!r} is a category: a histogram is of a number; count its levels with "
            f"dp_table, '~ {code}'"
        )


def _ends(breaks: object, number: Real) -> tuple[float, ...]:
    """Return the ends of the bins, or say what they are."""
    if isinstance(breaks, int | np.integer) and not isinstance(breaks, bool):
        if not 2 <= breaks <= MAX_CELLS:
            raise ArgumentError(
                f"breaks={breaks}: expected a number of bins from 2 to {MAX_CELLS:,}, or their ends"
            )
        if not number.lower < number.upper:
            raise ArgumentError(
                f"breaks={breaks}: the declared range of {shorten(number.code)!r} is the point "
                f"{number.lower:g}; write the ends of the bins"
            )
        return tuple(np.linspace(number.lower, number.upper, int(breaks) + 1).tolist())
    if isinstance(breaks, str | bytes) or not isinstance(breaks, Iterable):
        raise ArgumentError(f"breaks={said(breaks)}: expected a number of bins or their ends")
    ends = tuple(_end(one, number) for one in breaks)
    listed = shorten(repr(list(ends)))
    if len(ends) < 3 or any(not low < high for low, high in pairwise(ends)):
        raise ArgumentError(f"breaks={listed}: expected three ends or more, increasing")
    if ends[0] < number.lower or ends[-1] > number.upper:
        raise ArgumentError(
            f"breaks={listed}: they reach outside the declared range of {shorten(number.code)!r}, "
            f"{_shown(number.lower, number)} to {_shown(number.upper, number)}; rows are clipped "
            "to that"
        )
    return ends


def _end(given: object, number: Real) -> float:
    """Return one end, of days as a day since 1970-01-01."""
    if not number.date:
        return finite("breaks", given)
    day = day_of(given)
    if math.isnan(day):
        raise ArgumentError(
            f"breaks= holds {said(given)}: {shorten(number.code)!r} is a date; write days, such as "
            f'"{_shown(number.lower, number)}", or a number of bins'
        )
    return day


def _shown(end: float, number: Real) -> str:
    return text_of_day(end) if number.date else f"{end:.10g}"
