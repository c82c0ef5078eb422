"""``dp_series`` and ``dp_survfit``: private counts over time, and survival curves."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Unpack

import numpy as np

from dpmodels.codebook import Codebook
from dpmodels.design.cells import PrivateCells, unbound_cells
from dpmodels.errors import ArgumentError, FormulaError, FrameError, shorten
from dpmodels.formula.sides import Sides, parse_sides
from dpmodels.formula.survival import Periods, Survival, even_breaks, parse_survival, periods
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Category, Columns, Truth, Varying
from dpmodels.mechanisms import COUNTS, ORDERED, SumsMechanism, choose_strategy
from dpmodels.mechanisms.choose import Choice
from dpmodels.mechanisms.choose_counts import auto_counts, auto_ordered, auto_running
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.mechanisms.protocol import AnyStrategy, CountFacts
from dpmodels.models.descriptive_specs import descriptive_call
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import Guarantee
from dpmodels.released import SumsRelease
from dpmodels.request import Request
from dpmodels.results.series import SeriesResult
from dpmodels.results.survfit import SurvfitResult
from dpmodels.typing import Floats
from dpmodels.verbs import spec_of

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
    return run_verb("series", series_spec, **locals())


@spec_of("series")
def series_spec(request: Request) -> VerbSpec[SeriesResult]:
    """Build the specification of a dp_series call."""
    time, by = request.options["time"], request.options["by"]
    formula_sides, over = timed(request.formula, request.codebook, time, by)
    tally = tallied(formula_sides, over)
    shape = (tally.cells // len(over), len(over))
    facts = CountFacts(1, tally.size, False, request.adjacency, shape)
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
    if release.sums not in RUNNING:
        raise FrameError("release.sums: not sums of counts over time")


def _chosen(mechanism: object, automatic: Callable[[], tuple[str, str]]) -> Choice[AnyStrategy]:
    choice = choose_strategy(mechanism, RUNNING, automatic)
    if not isinstance(choice.strategy, tuple(RUNNING.values())):
        raise ArgumentError(
            f"mechanism= is of type {type(choice.strategy).__name__}, which counts no running "
            f"totals; write one of {', '.join(map(repr, RUNNING))}, or dp.mechanisms.Tree(fanout=2)"
        )
    return choice


def timed(formula: str, book: Codebook, time: str, by: str | int | None) -> tuple[Sides, Periods]:
    """Return the sides of a formula, time among its variables, and the periods."""
    formula_sides, over = parse_sides(formula, book), periods(time, by, book)
    variables = (*formula_sides.described, *formula_sides.groups)
    if any(variable.code == over.factor.code for variable in variables):
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


# Choices: intervals where the number of rows is not public, the fewest and the most where it is,
# and in roots of rows in noise sds: fewer widen the bounds for orders, more add noise.
INTERVALS, FEWEST, MOST, FINENESS = 20, 4, 400, 2.0
# Those with a known noise distribution in all sums of cells.
CURVES: Final = {name: kind for name, kind in ORDERED.items() if name != "partition"}


@verb
def dp_survfit(
    formula: str,
    data: object = None,
    *,
    breaks: int | Iterable[float] | None = None,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> SurvfitResult:
    """Release survival curves, by groups or not: Kaplan and Meier's on a public grid of time.

    Parameters
    ----------
    formula : str
        ``"Surv(time, event) ~ group"``, or ``"~ 1"`` on the right for one curve. The time is a
        declared number, not a function of one, from 0 on: until the event, or until censoring. The
        event is a variable of two levels, of which the second is the event, a number from 0 to 1,
        or a comparison, ``status == "dead"``. Several groups give a curve for each combination of
        their levels.
    breaks : int or sequence of float, optional
        A number of equal intervals over the declared range of the time, 2 to 1,000, or
        the ends of the intervals, rising, to which the declared ends are added
        where they are missing: every row is followed to the end of the range. By default their
        number grows with the root of the number of rows a group and of the budget, where the
        number of rows is public: 38 at 1,000 rows and ``eps=1``, 119 at 10,000, at most 400; else
        20. They end at whole numbers of the time where the declared ends are whole.
    mechanism : str or instance
        ``"flat"``: noise in each count by itself, the quieter of ``"geometric"``,
        discrete Laplace, and ``"gaussian"``, discrete Gaussian. ``"tree"``,
        ``"wavelet"`` and ``"factorisation"``: noisy sums over runs of intervals, so that
        rows at risk have little noise. By default flat for up to 40 intervals; for
        more the quietest, as in :func:`dp_hist`.

    Returns
    -------
    SurvfitResult

    Notes
    -----
    A row is counted once: in its group, in the interval of its time, and by whether it had the
    event. Everything else is computed from these counts, free of charge, also Cox's regression on
    the groups: ``fit.coxph()``. A grid of the true event times would reveal rows and is not
    offered.

    Rows censored in an interval of several values are taken to be at risk in half of it (the
    actuarial convention). Intervals hold for any order of times within it: their lower ends are for
    all censored at its start, the upper ends for all at its end. For whole-number times with one
    interval each the curve is exactly Kaplan and Meier's. Times above the declared range are
    censored at its end, and counted separately with those censored there; times below it are
    clipped to its beginning. Whole numbers above the range are clipped to its end: events there may
    have come later and do not count, so that the curve stops before it. A curve ends where fewer
    rows are at risk than five standard deviations of the noise in their number: fewer, wider
    intervals extend it.

    References
    ----------
    .. [1] Kaplan, E. L. and Meier, P. (1958). "Nonparametric estimation from
       incomplete observations." JASA.
    .. [2] Gondara, L. and Wang, K. (2020). "Differentially private survival function
       estimation." MLHC.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(days=dp.Integer(0, 99), died=["no", "yes"], arm=["a", "b"])
    >>> rows = {"days": list(range(100)) * 40, "died": ["no", "yes"] * 2_000, "arm": ["a"] * 4_000}
    >>> fit = dp_survfit("Surv(days, died) ~ 1", rows, codebook=cb, eps=1.0, breaks=10)
    >>> fit.times[:4].tolist()
    [9.0, 19.0, 29.0, 39.0]
    """
    return run_verb("survfit", survfit_spec, **locals())


@spec_of("survfit", gaussian="gaussian")
def survfit_spec(request: Request) -> VerbSpec[SurvfitResult]:
    """Build the specification of a dp_survfit call."""
    curve, breaks = parse_survival(request.formula, request.codebook), request.options["breaks"]
    tally, edges = curve.tally(even_breaks(curve.time, INTERVALS) if breaks is None else breaks)
    shape = (tally.cells // tally.shape[-1], tally.shape[-1])
    facts = CountFacts(1, tally.size, False, request.adjacency, shape)
    inner = tuple(min(end, curve.grid.upper) for end in edges[1:])
    return VerbSpec(
        request,
        descriptive_call(curve.sides, (tally,)),
        partial(SurvfitResult, ends=inner),
        unbound_cells(curve.text, curve.codebook, (tally,)),
        facts,
        partial(_chosen_curve, facts, request.private),
        sized=partial(_sized, request, curve) if breaks is None else None,
    )


def _sized(request: Request, curve: Survival, n_rows: int) -> VerbSpec[SurvfitResult]:
    """Return the specification with as many intervals as suit a public number of rows."""
    flat = CountFacts(1, 1, False, request.adjacency)
    groups = math.prod(len(group.levels) for group in curve.groups)
    noise_sd = COUNTS[auto_counts(flat, request.private)[0]]().plan(flat, request.private).noise_sd
    number = FINENESS * math.sqrt(n_rows / groups / noise_sd)
    breaks = even_breaks(curve.time, round(min(max(number, FEWEST), MOST)))
    return survfit_spec(replace(request, options={**request.options, "breaks": breaks}))


def _chosen_curve(
    facts: CountFacts, guarantee: Guarantee, mechanism: object, private: Sequence[PrivateCells]
) -> Choice[AnyStrategy]:
    """Choose among mechanisms for ordered cells with a known noise distribution."""
    flat, _ = auto_counts(facts, guarantee)
    table = {"flat": COUNTS[flat], **COUNTS, **CURVES}
    choice = choose_strategy(mechanism, table, partial(auto_ordered, facts, guarantee))
    if not isinstance(choice.strategy, tuple(table.values())):
        raise ArgumentError(
            f"mechanism= is of type {type(choice.strategy).__name__}, whose noise in sums of "
            f"counts has no known distribution; write one of {', '.join(map(repr, table))}"
        )
    return choice
