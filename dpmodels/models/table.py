"""``dp_table`` and ``dp_hist``: private counts by formula."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final, Unpack

import numpy as np

from dpmodels.arguments import lists_values
from dpmodels.codebook import Codebook
from dpmodels.design.cells import unbound_cells
from dpmodels.errors import ArgumentError, BudgetError, FormulaError, FrameError, quoted, shorten
from dpmodels.formula.sides import Sides, grouping, measured, one_measured, parse_sides
from dpmodels.formula.survival import Periods, periods
from dpmodels.formula.tally import MAX_CELLS, Tally, binned
from dpmodels.formula.values import Category, Real, Truth
from dpmodels.mechanisms import CHAINS, choose_strategy
from dpmodels.mechanisms.chains import SeriesFacts
from dpmodels.mechanisms.counts import RESPONSES, CountMechanism, ResponseMechanism
from dpmodels.models.descriptive_specs import descriptive_call, descriptive_spec, sampled_spec
from dpmodels.models.release import run_release
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import Adjacency, Pufferfish
from dpmodels.privacy.budget import MOST_ROWS
from dpmodels.released import AnswersRelease, CountsRelease
from dpmodels.request import Request
from dpmodels.resolve_codebook import codebook_of_call
from dpmodels.results.call import DescribedCall
from dpmodels.results.hist import HistResult
from dpmodels.results.plane import PlaneResult
from dpmodels.results.survey import SurveyResult
from dpmodels.results.table import StatesResult, TableResult
from dpmodels.results.weighted import WeightedHistResult, WeightedTableResult
from dpmodels.sites import gathered
from dpmodels.variables import Integer
from dpmodels.verbs import spec_of


@verb
def dp_table(
    formula: str,
    data: object = None,
    *,
    mechanism: str | CountMechanism | ResponseMechanism = "auto",
    time: str | None = None,
    **shared: Unpack[Shared],
) -> TableResult | Any:
    """Release a table of counts, with margins and a test of independence.

    Parameters
    ----------
    formula : str
        ``"~ sex + region"``: a count for each combination of declared levels.
        Numbers are cut at public breaks, ``"~ sex + cut(age, [0, 30, 60, 100])"``.
        ``"region ~ sex"`` and ``"~ region | sex"`` are the table ``"~ sex + region"``,
        and so are ``"~ sex:region"`` and ``"~ sex*region"``. For margins, ``"~ a:b + b:c"``,
        write :func:`dp_margins`.
    mechanism : {"auto", "geometric", "gaussian", "randomized_response"} or instance
        Discrete Laplace or discrete Gaussian noise; the quieter by default. Randomized response
        randomises every row by itself, as without a trusted curator; under ``"replace"`` only.
    time : str, optional
        With ``budget=dp.Pufferfish(eps=, model=)`` and ``person=``: the time of each person's
        state, whose public bounds are those of the series. See the notes.

    Returns
    -------
    TableResult, or SurveyResult of randomized response, or StatesResult of a Pufferfish guarantee

    Notes
    -----
    The number of incomplete rows is also released, at no further cost: under ``"replace"`` all
    counts are then made to add up to the public number of rows, which reduces their noise.

    Under a survey design cells have totals and shares of the population, with linearised errors
    (``fit.design``, ``tidy()``); noise is that of one total, however many cells there are.

    *States that depend on each other.* Where a person has one row per minute, the guarantee may
    hide the whole series (``person="id"``) or each minute's state, which takes far less noise and
    an assumption on the dependence of states:
    ``budget=dp.Pufferfish(eps=1.0, model=dp.markov_chain(...))`` with ``time=`` and ``person=``. It
    is not differential privacy. Levels of the formula's one variable are the states; of several
    rows of a person at one time the first complete one counts. A time without a row or outside the
    declared bounds counts as incomplete, which is assumed to be independent of the states. The
    number of persons is public.

    References
    ----------
    .. [1] Ghosh, A., Roughgarden, T. and Sundararajan, M. (2009). "Universally
       utility-maximizing privacy mechanisms." STOC.
    .. [2] Kifer, D. and Rogers, R. (2017). "A new class of private chi-square
       hypothesis tests." AISTATS.
    .. [3] Song, S., Wang, Y. and Chaudhuri, K. (2017). "Pufferfish privacy
       mechanisms for correlated data." SIGMOD.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(sex=["F", "M"], region=["n", "s", "w"])
    >>> rows = {"sex": ["F", "M"] * 300, "region": ["n", "s", "w"] * 200}
    >>> fit = dp_table("~ sex + region", rows, codebook=cb, eps=1.0)
    >>> fit.counts.sizes, fit.margins("sex").sizes
    (Frozen({'sex': 2, 'region': 3}), Frozen({'sex': 2}))

    >>> cb = dp.codebook(activity=["rest", "walk"], minute=dp.Integer(1, 500))
    >>> own = {"activity": ["rest"] * 400 + ["walk"] * 100, "minute": range(1, 501)}
    >>> rows = {**own, "id": [1] * 500}
    >>> chain = dp.markov_chain(["rest", "walk"], stay=(0.8, 0.9))
    >>> budget = dp.Pufferfish(eps=1.0, model=chain)
    >>> fit = dp_table("~ activity", rows, codebook=cb, time="minute", person="id", budget=budget)
    >>> fit.scales["scale"].round(1).tolist()
    [2.0, 67.3, 1000.0]
    """
    budget = shared.get("budget")
    if isinstance(budget, Pufferfish):
        return _table_of_states(formula, data, budget, time, mechanism, shared)
    refuse_alone(time)
    return run_verb("table", table_spec, formula, data, shared, mechanism)


def _table_of_states(
    formula: str, data: object, budget: Pufferfish, time: object, mechanism: object, shared: Shared
) -> StatesResult:
    sites = shared.get("sites")
    sources = gathered(data, sites, shared.get("protocol"), shared.get("csv"))
    book = codebook_of_call(shared.get("codebook"), data, sites, formula)
    options = {name: shared.get(name) for name in ("person", "rows", "subset", "eps", "adjacency")}
    options |= {"delta": shared.get("delta") or None, "sites": sites}
    request = requested_states(formula, book, budget, time, **options)
    return run_release(states_spec(request), sources, mechanism, shared.get("ledger"))


@spec_of("table", gaussian="gaussian", audited=("~ g", "geometric"), designs=True)
def table_spec(request: Request) -> VerbSpec[object]:
    """Build the specification of a dp_table call."""
    if isinstance(request.guarantee, Pufferfish):
        return states_spec(request)
    refuse_alone(request.options.get("time"))
    formula_sides = parse_sides(request.formula, request.codebook)
    _require_full_cross(formula_sides)
    table = counted(formula_sides)
    if request.codebook.design is not None:
        return sampled_spec(request, formula_sides, (table,), WeightedTableResult)
    return descriptive_spec(request, formula_sides, (table,), _result, RESPONSES)


def _result(call: DescribedCall, release: Any) -> TableResult | SurveyResult:
    return (SurveyResult if isinstance(release, AnswersRelease) else TableResult)(call, release)


def _require_full_cross(formula_sides: Sides) -> None:
    for terms in formula_sides.terms:
        every = list(dict.fromkeys(code for term in terms for code in term))
        longest = max(map(len, terms), default=0)
        if 1 < longest < len(every):
            text, cross = shorten(formula_sides.text), shorten("*".join(every))
            raise FormulaError(
                f"formula {text!r} asks for margins, and dp_table counts one table of all its "
                f"variables; write dp_margins({text!r}, ...) for margins that agree, or "
                f"'~ {cross}' for the full cross"
            )


def counted(formula_sides: Sides) -> Tally:
    """Return the table of a formula, groups first."""
    if not formula_sides.described:
        raise FormulaError(
            f"formula {shorten(formula_sides.text)!r} names no variable to count; write '~ a + b'"
        )
    return Tally((*formula_sides.groups, *map(grouping, formula_sides.described)))


# Counts of states in series of persons, under a Pufferfish guarantee.

# A choice: cells of states by times.
_MOST_CELLS: Final = 32 * MOST_ROWS
_APART: Final = (
    'uses it too: write three variables, such as "~ activity" with time="minute" and person="id"'
)
# Tolerance of a noise scale, computed by functions that machines round differently.
_NEAR: Final = 1e-9
_ONE_STATE: Final = Adjacency("replace")
_WRITE: Final = (
    'dp_table("~ activity", df, time="minute", person="id", '
    "budget=dp.Pufferfish(eps=1.0, model=chain))"
)


def requested_states(
    formula: str, book: Codebook, budget: Pufferfish, time: object, **options: object
) -> Request:
    """Return the request; ArgumentError for options that do not apply to such a guarantee."""
    person = options.pop("person", None)
    person = book.person if person is None else person
    _require_columns(time, person)
    for word, value in options.items():
        if value is not None:
            raise ArgumentError(
                f"{word}={quoted(value)} does not apply to budget=dp.Pufferfish(...), which hides "
                f"each state of each person's series: leave it out, {_WRITE}"
            )
    return Request("table", formula, book, budget, _ONE_STATE, {"time": time, "person": person})


def _require_columns(time: object, person: object) -> None:
    for word, value in (("person", person), ("time", time)):
        if not isinstance(value, str):
            raise ArgumentError(
                f"{word}={quoted(value)}: a Pufferfish guarantee protects each person's state at "
                f"each time, and needs the names of both columns; write {_WRITE}"
            )


def states_spec(request: Request) -> VerbSpec[StatesResult]:
    """Build the specification of counts of states."""
    budget, time = request.guarantee, request.options["time"]
    _require_columns(time, request.options.get("person"))
    assert isinstance(budget, Pufferfish)
    formula_sides, over = series_of(request.formula, request.codebook, time)
    if request.options["person"] in formula_sides.codebook:
        raise FormulaError(
            f"person={quoted(request.options['person'])} identifies the persons, and "
            f"time={quoted(time)} or {shorten(formula_sides.text)!r} {_APART}"
        )
    if len(formula_sides.described) != 1 or formula_sides.groups:
        raise FormulaError(
            f"formula {shorten(formula_sides.text)!r}: a Pufferfish guarantee protects one "
            "variable, whose levels are the states of the chain; write '~ activity'"
        )
    state = grouping(formula_sides.described[0])
    tally = Tally((state,), max_cells=MAX_CELLS)
    budget = replace(budget, model=budget.model.ordered(state.levels))
    request = replace(request, guarantee=budget)
    person, steps = request.options["person"], len(over)
    if steps > MOST_ROWS:
        raise ArgumentError(
            f"{shorten(time)!r} has {steps:,} times; at most {MOST_ROWS:,} of a person are "
            "counted: declare narrower bounds"
        )
    # All rows of a person are read, and those at one time are then separated.
    reads, counts = (Adjacency("replace", rows, person) for rows in (MOST_ROWS, steps))
    series = (
        f"{state.code} by {time} {over.factor.levels[0]} to {over.factor.levels[-1]} of {person}"
    )
    facts = SeriesFacts(len(state.levels), steps, series, counts)

    def check(release: CountsRelease) -> None:
        """Refuse a noise scale that does not follow from the guarantee and the number of times."""
        needed, quilt = budget.active(steps).scale, release.quilt
        if quilt is None or not math.isclose(quilt.scale, needed, rel_tol=_NEAR):
            raise FrameError("release.quilt: not that of the guarantee and so many times")

    times = formula_sides.codebook[time]
    if isinstance(times, Integer):  # So that times outside the declared ones are missing
        times = replace(times, lower=times.lower - 1, upper=times.upper + 1)
    book = formula_sides.codebook | {time: times}
    placed = Tally((over.factor, state), max_cells=_MOST_CELLS)
    return VerbSpec(
        request,
        descriptive_call(formula_sides, (tally,)),
        partial(StatesResult, time=time),
        unbound_cells(formula_sides.text, book, (placed,)),
        facts,
        lambda mechanism, _: choose_strategy(
            mechanism, CHAINS, lambda: ("quilt", "it is the mechanism of Pufferfish guarantees.")
        ),
        lawful=True,
        reads=reads,
        check=check,
    )


def series_of(formula: str, book: Codebook, time: str) -> tuple[Sides, Periods]:
    """Return the sides of a formula, time among its variables, and the times."""
    formula_sides, over = parse_sides(formula, book), periods(time, None, book)
    if time in formula_sides.codebook:
        raise FormulaError(
            f"time={quoted(time)} is the time of the states, and {shorten(formula_sides.text)!r} "
            f"{_APART}"
        )
    used = {*formula_sides.codebook, time}
    return replace(formula_sides, codebook=book.select(name for name in book if name in used)), over


def refuse_alone(time: object) -> None:
    """Refuse a time with a guarantee that has none."""
    if time is not None:
        raise BudgetError(
            f"time={quoted(time)} needs a Pufferfish guarantee: write {_WRITE}, or dp_series for "
            "counts over time with differential privacy"
        )


@verb
def dp_hist(
    formula: str,
    data: object = None,
    *,
    breaks: int | Iterable[object] = 10,
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
    return run_verb("hist", hist_spec, **locals())


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
        tally, (along, across), names = plane_bins(formula_sides, request.options["breaks"])
        ends = np.array(along), np.array(across)
        of_plane = partial(PlaneResult, along=ends[0], across=ends[1], variables=names)
        shape = (math.prod(tally.shape[:-2]), *tally.shape[-2:])
        return descriptive_spec(request, formula_sides, (tally,), of_plane, shape=shape)
    tally, edges, variable = bins(formula_sides, request.options["breaks"])
    if request.codebook.design is not None:
        weighted = partial(WeightedHistResult, breaks=np.array(edges), variable=variable)
        return sampled_spec(request, formula_sides, (tally,), weighted)
    result = partial(HistResult, breaks=np.array(edges), variable=variable)
    shape = math.prod(tally.shape[:-1]), tally.shape[-1]
    return descriptive_spec(request, formula_sides, (tally,), result, shape=shape)


def bins(formula_sides: Sides, breaks: object) -> tuple[Tally, tuple[float, ...], str]:
    """Return the table of a histogram, the edges of its bins, and the variable."""
    described = formula_sides.described
    if len(described) == 1 and isinstance(described[0], Category | Truth):
        code = shorten(described[0].code)
        raise FormulaError(
            f"{code!r} is a category: a histogram is of a number; count its levels with "
            f"dp_table, '~ {code}'"
        )
    number, factors = one_measured(formula_sides, "dp_hist")
    cut, edges = binned(number, breaks)
    return Tally((*factors, cut)), edges, number.code


# Histograms of two numbers: the cells of their plane in which rows are counted.

# A choice: cells of all groups together, whose counts and sums are in memory at once.
MOST_CELLS = 5_000_000

Ends = tuple[float, ...]


def in_plane(formula_sides: Sides) -> bool:
    """Whether a formula describes two numbers."""
    return len(formula_sides.described) == 2 and all(
        isinstance(value, Real) for value in formula_sides.described
    )


def plane_bins(
    formula_sides: Sides, breaks: object
) -> tuple[Tally, tuple[Ends, Ends], tuple[str, str]]:
    """Return the table of a plane, the edges of the bins of both numbers, and their names."""
    numbers = tuple(map(measured, formula_sides.described))
    pair = _pair(breaks)
    _require_room(pair, math.prod(len(group.levels) for group in formula_sides.groups))
    (first, along), (second, across) = map(binned, numbers, pair)
    tally = Tally((*formula_sides.groups, first, second), max_cells=MOST_CELLS)
    return tally, (along, across), (numbers[0].code, numbers[1].code)


def _pair(breaks: object) -> tuple[object, object]:
    """Return the breaks of each number, from one for both or a pair; sequences as lists."""
    if isinstance(breaks, int | np.integer):
        return breaks, breaks
    parts = list(breaks) if lists_values(breaks) else []
    if len(parts) != 2:
        description = f"a sequence of {len(parts)}" if lists_values(breaks) else quoted(breaks)
        raise ArgumentError(
            f"breaks={description}: the formula has two numbers; write a number of bins for both, "
            "or a pair with a number of bins or their ends for each, such as breaks=(256, 256)"
        )
    along, across = (list(part) if lists_values(part) else part for part in parts)
    return along, across


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
