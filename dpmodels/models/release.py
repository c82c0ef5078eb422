"""The steps of every release: bind, choose, plan, check, charge, measure, release, record.

At the end of the file: the same result from a saved request and release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any, Final, TypeVar

from dpmodels.design.bound_rows import BoundRows
from dpmodels.digest import release_digest
from dpmodels.errors import FrameError, shorten
from dpmodels.frames.protocol import before_charge
from dpmodels.mechanisms.choose import priced_on, stated_info
from dpmodels.models.predictor import warn_if_futile
from dpmodels.models.verb_spec import (
    MOST_NOISE,
    Counting,
    Planned,
    VerbSpec,
    of_question,
    planned_with_counts,
)
from dpmodels.options import ledger_of
from dpmodels.privacy import Charge, Event, Ledger, charge, group_events
from dpmodels.released import AnyRelease, CountsRelease, Shared
from dpmodels.report import Report
from dpmodels.request import Request
from dpmodels.results.base import Printed, lay_out
from dpmodels.results.call import Spec
from dpmodels.results.store import Saved, read_parts, replay
from dpmodels.sites import Parties, parties, together
from dpmodels.sites.protocol import Joint
from dpmodels.statistics import Statistic
from dpmodels.verbs import VERBS, Verb, exported, verb_names

Result = TypeVar("Result", covariant=True)


# Exact counts of values beyond the declared bounds, one per holder, and their plan.
Counted = tuple[Counting, tuple[Statistic, ...]]


def run_release(
    spec: VerbSpec[Result],
    data: object,
    mechanism: object,
    ledger: Ledger | None,
    charging: Callable[..., Charge] = charge,
) -> Result:
    """Charge the ledger, run the mechanism on all holders' rows, record the release."""
    holders = parties(data)
    holders.witness.requested(spec)
    spec = _sized(spec, holders)
    (strategy, plan, reason), statistics, charged, counted = measured(
        spec, holders, mechanism, ledger, charging
    )
    release = holders.release(strategy, statistics, plan)
    release = replace(release, info=stated_info(strategy, release.info))
    if counted is not None:
        release = _with_clipping(release, holders, counted)
    release = of_question(release, spec.request, holders, spec.slots)
    charged.released(lambda: release_digest(release))
    return spec.of(release, charged.ledger_state, reason)


def _also_counted(shared: Shared, counts: Shared | None) -> Shared:
    """Return how sites took part in a release and in the counts beside it."""
    if counts is None:
        return shared
    missed = ", ".join(map(repr, sorted(set(shared.sites) - set(counts.sites))))
    without = f" (without {missed})" if missed else ""
    return replace(
        shared,
        sees=f"{shared.sees}; likewise for counts of values beyond the bounds{without}",
        numbers=shared.numbers + counts.numbers,
        size=shared.size + counts.size,
    )


def planned_events(
    spec: VerbSpec[object], holders: Parties, mechanism: object, ledger: Ledger | None
) -> tuple[Event, ...]:
    """Return what a call would be charged; no row is read."""
    return _planned(_sized(spec, holders), holders, mechanism, ledger)[-1]


def _planned(
    spec: VerbSpec[object], holders: Parties, mechanism: object, ledger: Ledger | None
) -> tuple[Planned, Counting | None, tuple[BoundRows, ...], tuple[Event, ...]]:
    """Plan a release and the counts beside it; return both, the unread rows and the cost."""
    private, places = holders.bind(spec.private.bind), spec.slots.places
    try:
        with priced_on(None if holders.protocol else ledger, places):
            choice, counting = planned_with_counts(spec, holders, mechanism, private)
    except FrameError as error:  # The number of persons is public: they are counted first
        raise FrameError(before_charge(error)) from None
    counts = () if counting is None else counting.plan.events
    events = group_events((*choice.plan.events, *counts), places)
    return choice, counting, private, events


def _sized(spec: VerbSpec[Result], holders: Parties) -> VerbSpec[Result]:
    """Return the specification for a public number of rows of all holders, if it depends on it."""
    relation = spec.reads or spec.request.adjacency
    if spec.sized is None or not relation.n_public or holders.others or holders.sends:
        return spec
    private = holders.bind(spec.private.bind)
    rows = together((source.nrows for source in private), relation.places)
    return spec if rows is None else spec.sized(rows)


def _with_clipping(release: AnyRelease, holders: Parties, counted: Counted) -> AnyRelease:
    counting, statistics = counted
    counts = holders.release(counting.strategy, statistics, counting.plan)
    assert isinstance(counts, CountsRelease)
    release = replace(
        release,
        events=(*release.events, *counts.events),
        shared=release.shared and _also_counted(release.shared, counts.shared),
    )
    if holders.exchange is not None and counts.noise_sd > MOST_NOISE * (release.rows or 0):
        return release  # Few rows, whose number nobody knew before
    return replace(release, clipping=counting.clipping(counts))


def measured(
    spec: VerbSpec[object],
    holders: Parties,
    mechanism: object,
    ledger: Ledger | None,
    charging: Callable[..., Charge] = charge,
) -> tuple[Planned, tuple[Statistic, ...], Charge, Counted | None]:
    """Check the call and charge for it, by default anew; only then read the rows.

    Return the plan, exact statistics, one per holder, the charge and the counts beside them.
    """
    ledger = ledger_of(ledger)
    request, witness = spec.request, holders.witness
    choice, counting, private, events = _planned(spec, holders, mechanism, ledger)
    if request.drafted is not None:
        request.drafted.require(events)
    witness.planned(spec, choice, private, events)
    warn_if_futile(spec, holders, choice, private)
    charged = charging(
        ledger,
        events,
        adjacency=request.adjacency,
        about=partial(request.about, choice.strategy.info.name, spec.private.codebook),
    )
    exact: tuple[Statistic, ...] = ()
    if counting is not None:  # First, as others may read the rows that are counted
        cells = map(counting.cells, private)
        exact = tuple(counting.strategy.measure(rows, counting.plan) for rows in cells)
    statistics = tuple(choice.strategy.measure(source, choice.plan) for source in private)
    witness.measured(Joint(choice.strategy, choice.plan, holders.names), statistics)
    counted = None
    if counting is not None:
        witness.measured(Joint(counting.strategy, counting.plan, holders.names), exact)
        counted = counting, exact
    return choice, statistics, charged, counted


# From a request to its specification, and from a saved request and release to the result.


def verb_of(name: str) -> Verb | None:
    """Return a verb by its name, None where there is no such verb."""
    if name not in VERBS and name in exported():
        import_module(f"dpmodels.models.{exported()[name]}")
    return VERBS.get(name)


def all_verbs() -> dict[str, Verb]:
    """Return the verbs that charge a ledger, by name; all of their modules are imported."""
    verbs = {name: verb_of(name) for name in verb_names()}
    return {name: verb for name, verb in verbs.items() if verb is not None and verb.charges}


def specified(request: Request, release: AnyRelease) -> Spec[object]:
    """Return the specification of a request from a file; typed errors if it is not valid.

    The release is that of the result: what is derived from another result is laid out from it.
    """
    if request.parent is not None:
        above = specified(request.parent, release)
        parent: Any = above.result(above.call, release)
        return replace(parent.derived(request), sizes=above.sizes)
    verb = verb_of(request.verb)
    if verb is None:
        raise FrameError(f"request.verb: {shorten(repr(request.verb))} is not a verb")
    parameters = signature(verb.function).parameters
    for word in (word for word in request.options if word not in parameters):
        raise FrameError(f"request.options: {shorten(repr(word))} is not a parameter of the verb")
    spec: Spec[object] = verb.spec(replace(request, options={**verb.options, **request.options}))
    return spec if spec.adapted is None else spec.adapted(release)


@replay.register
def replayed(saved: Saved) -> object:
    """Return the result of a saved request and release; FrameError where they do not agree."""
    request, release, ledger, reason = read_parts(saved)
    return result_of(request, specified(request, release), release, ledger, reason)


def result_of(
    request: Request, spec: Spec[object], release: AnyRelease, ledger: str, reason: str
) -> Any:
    """Return the result of a release from a file, once it is known to be one of the request."""
    from dpmodels.results.validate import require_release

    require_release(spec, release)
    result = spec.of(release, ledger, reason)
    object.__setattr__(result, "request", request)
    return result


# Files of reports and the kinds of results that they lay out; each is imported at a first print.
REPORTS: Final = {
    "coefficients": "CountedGLM CountedMultinomial Estimates GLMResult MultinomialResult SVMResult",
    "comparison": "Comparison FitComparison ReadingResult",
    "counts": "LogLinear Margin MarginsResult StatesResult TableResult WeightedMarginsResult",
    "cov": "CCAResult CovResult MomentsResult",
    "etable": "ETable",
    "groups": "MeanResult OverviewResult QuantileResult TTestResult TotalResult VarResult",
    "hist": "HistResult PlaneResult SeriesResult SurvfitResult",
    "lm": "LMResult PathResult",
    "pca": "PCAResult SubspaceResult",
    "plan": "PlanResult PowerResult SplitResult",
    "select": "BoundsResult Discoveries FDRResult LevelsResult SelectResult",
    "survey": "SurveyFitResult SurveyResult",
    "synth": "SynthResult SyntheticEstimates",
}


@lay_out.register
def lay_out_printed(result: Printed) -> Report:
    """Return the report of a result, once those of its kind are registered."""
    from dpmodels import reports

    kinds = {kind.__name__ for kind in type(result).__mro__}
    for module, names in REPORTS.items():
        if not kinds.isdisjoint(names.split()):
            getattr(reports, module)
    return lay_out.dispatch(object)(result)
