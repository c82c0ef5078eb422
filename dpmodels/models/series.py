"""``dp_series``: private counts over time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, Unpack

import numpy as np

from dpmodels.codebook import Codebook
from dpmodels.design.cells import unbound_cells
from dpmodels.errors import ArgumentError, FormulaError, FrameError, shorten
from dpmodels.formula.periods import Periods, periods
from dpmodels.formula.sides import Sides, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Category, Columns, Truth, Varying
from dpmodels.mechanisms import ORDERED, SumsMechanism, choose_strategy
from dpmodels.mechanisms.choose import Choice, auto_running
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.models.descriptive_specs import descriptive_call
from dpmodels.models.replay import spec_of
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.released import SumsRelease
from dpmodels.request import Request
from dpmodels.results.series import SeriesResult
from dpmodels.typing import Floats

# All rows, by groups or not.
_ALL_ROWS: Final = re.compile(r"~ ?1 ?(\|.+)?|1 ?~.+")
RUNNING: Final = {name: ORDERED[name] for name in ("tree", "factorisation")}


@verb
def dp_series(
    formula: str,
    data: object = None,
    *,
    time: str,
    by: str | int | None = None,
    mechanism: str | SumsMechanism = "auto",
    **shared: Unpack[Shared],
) -> SeriesResult:
    """Release counts over time: by period, running totals, and sums over any interval.

    Parameters
    ----------
    formula : str
        ``"~ 1"`` counts rows, ``"~ emergency"`` and ``"~ (stay > 30)"`` those of which
        it is true, ``"~ cause"`` those of each level of a category; with groups
        ``"~ 1 | region"`` or ``"cause ~ region"``.
    data
        A row is an event.
    time : str
        The time of the event: a :class:`Date`, a whole number or an ordered category of the
        codebook, whose public bounds are those of the series.
    by : {"day", "week", "month", "quarter", "year"} or int, optional
        Periods of days, the first and last of which may be cut by the declared
        ends, or of so many days or whole numbers from the first on; by default
        each by itself. Weeks begin on Mondays.
    mechanism : {"auto", "tree", "factorisation"} or instance
        Noisy counts of periods and of runs of them, made to agree, or noisy
        sums by the square root of running totals, which needs a delta or rho and
        takes 32,768 periods; by default what has the quieter running totals.
    person
        Without a person one event is protected; with ``person="id", rows=5`` all
        events of a person, of which at most 5 count.

    Returns
    -------
    SeriesResult

    Notes
    -----
    Rows without a time, with days outside the declared ones, or for which the event is not true,
    count as incomplete; whole numbers outside their bounds are clipped to them.

    Both mechanisms are those of continual release: the numbers of every period depend only on it
    and earlier ones, so that the guarantee would be the same. This is one release of a complete
    table; adding periods later is not offered.

    References
    ----------
    .. [1] Dwork, C., Naor, M., Pitassi, T. and Rothblum, G. N. (2010).
       "Differential privacy under continual observation." STOC.
    .. [2] Fichtenberger, H., Henzinger, M. and Upadhyay, J. (2023). "Constant
       matters: fine-grained error bound on differentially private continual
       observation." ICML.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(day=dp.Date("2024-01-01", "2024-01-31"), ward=["a", "b"])
    >>> rows = {"day": ["2024-01-05", "2024-01-20"] * 300, "ward": ["a", "b"] * 300}
    >>> fit = dp_series("~ ward", rows, time="day", codebook=cb, eps=1.0, delta=1e-6)
    >>> fit.totals.sizes, len(fit.window(7)), len(fit.between("2024-01-01", "2024-01-07"))
    (Frozen({'ward': 2, 'day': 31}), 50, 2)
    """
    return run_verb("series", series_spec, formula, data, shared, mechanism, time=time, by=by)


@spec_of("series")
def series_spec(request: Request) -> VerbSpec[SeriesResult]:
    """Build the specification of a dp_series call."""
    time, by = request.options["time"], request.options["by"]
    formula_sides, over = timed(request.formula, request.codebook, time, by)
    tally = tallied(formula_sides, over)
    groups, cells = tally.cells // len(over), len(over)
    facts = CountFacts(1, tally.size, False, request.adjacency, (groups, cells))

    return VerbSpec(
        request,
        descriptive_call(formula_sides, (tally,)),
        partial(SeriesResult, time=time, by=by),
        unbound_cells(formula_sides.text, formula_sides.codebook, (tally,)),
        facts,
        lambda mechanism, _: _chosen(mechanism, partial(auto_running, facts, request.private)),
        check=_require_running,
    )


def _require_running(release: SumsRelease) -> None:
    """Refuse sums of a mechanism that is not for counts over time."""
    if release.sums not in RUNNING:
        raise FrameError("release.sums: not sums of counts over time")


def _chosen(mechanism: object, automatic: Callable[[], tuple[str, str]]) -> Choice[Any]:
    choice = choose_strategy(mechanism, RUNNING, automatic)
    if not isinstance(choice.strategy, tuple(RUNNING.values())):
        raise ArgumentError(
            f"mechanism= is of type {type(choice.strategy).__name__}, which counts no running "
            f"totals; write one of {', '.join(map(repr, RUNNING))}, or dp.mechanisms.Tree(fanout=2)"
        )
    return choice


def timed(formula: str, book: Codebook, time: str, by: str | int | None) -> tuple[Sides, Periods]:
    """Return the sides of a formula, time among its variables, and the periods."""
    formula_sides = parse_sides(formula, book)
    over = periods(time, by, book)
    if any(
        variable.code == over.factor.code
        for variable in (*formula_sides.described, *formula_sides.groups)
    ):
        raise FormulaError(
            f"formula {shorten(formula_sides.text)!r} names {over.factor.code!r}, which is the "
            "time: write the formula without it"
        )
    used = {*formula_sides.codebook, time}
    return replace(formula_sides, codebook=book.select(name for name in book if name in used)), over


def tallied(formula_sides: Sides, over: Periods) -> Tally:
    """Return the table of groups, levels of the event and periods."""
    if len(formula_sides.described) > 1:
        raise FormulaError(
            f"formula {shorten(formula_sides.text)!r}: dp_series counts one kind of event; write "
            "'~ 1', '~ event', or '~ event | group'"
        )
    if not formula_sides.described:
        if not _ALL_ROWS.fullmatch(formula_sides.text):
            raise FormulaError(
                f"formula {shorten(formula_sides.text)!r} names nothing to count; write '~ 1' for "
                "all rows, '~ event', or '~ event | group'"
            )
        return Tally((*formula_sides.groups, over.factor))
    (event,) = formula_sides.described
    if isinstance(event, Category) and event.levels != (False, True):
        return Tally((*formula_sides.groups, event, over.factor))
    return Tally((*formula_sides.groups, _of_events(event, over.factor)))


def _of_events(event: Varying, time: Category) -> Category:
    """Return the periods of the rows of which a condition is true."""
    if not isinstance(event, Truth | Category):
        raise FormulaError(
            f"{shorten(event.code)!r} is a number: dp_series counts rows; write a condition, "
            f"'~ ({shorten(event.code)} > 0)', or '~ 1' for all rows"
        )
    is_true, when = event.evaluate, time.evaluate

    def place(columns: Columns) -> Floats:
        return np.where(is_true(columns) == 1, when(columns), np.nan)

    return replace(time, evaluate=place)
