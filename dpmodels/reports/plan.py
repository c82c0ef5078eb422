"""The printed report of calls with their prices."""

from __future__ import annotations

from dpmodels.privacy import GaussianEvent, PureDP
from dpmodels.privacy.events import Event
from dpmodels.privacy.filters import TOLERANCE
from dpmodels.privacy.spent import capacity
from dpmodels.report import Fact, Report, Row, Section, signif
from dpmodels.results.base import report_of
from dpmodels.results.plan import PlannedCall, PlanResult


@report_of.register
def plan_report(made: PlanResult) -> Report:
    """Lay out planned calls as tables of strings."""
    unit = capacity(made.guarantee).unit
    heads = ("mechanism", "noise", unit, f"total {unit}", "fits")
    rows = tuple(Row(one.call, _cells(one)) for one in made.calls)
    return Report(
        title="Calls planned, nothing spent",
        facts=_facts(made),
        sections=(Section("Call", heads, rows),),
        notes=_notes(made),
    )


def _cells(one: PlannedCall) -> tuple[str, ...]:
    fits = "yes" if one.fits else "NO"
    return (
        one.mechanism,
        noise(one.events),
        signif(one.price.amount, 3),
        signif(one.total.amount, 3),
        fits,
    )


def noise(events: tuple[Event, ...]) -> str:
    """Say of what kind noise is, and of how many releases."""
    kinds = dict.fromkeys(_kind(event) for event in events)
    many = sum(event.count for event in events)
    return " + ".join(kinds) + (f", {many} times" if many > 1 else "") if kinds else "none"


def _kind(event: Event) -> str:
    """Return the law of the noise in a word, the first one of its description."""
    return event.describe().partition(",")[0]


def _facts(made: PlanResult) -> tuple[Fact, ...]:
    last = [one.total for one in made.calls if one.fits]
    total = signif(last[-1].amount, 3) if last else "-"
    return (
        ("Guarantee", made.guarantee.describe()),
        ("Neighbours", made.adjacency.describe()),
        ("Before", made.told.split(";")[0]),
        ("After", f"{total}, one by one"),
        ("Calls", f"{len(made.calls)}, {sum(one.fits for one in made.calls)} fit"),
        ("As one", _together(made)),
    )


def _together(made: PlanResult) -> str:
    """Say what all calls come to if they are charged as one."""
    most = capacity(made.guarantee).amount
    fits = made.announced.amount <= most * (1 + TOLERANCE)
    return signif(made.announced.amount, 3) + ("" if fits else ", does not fit")


def _notes(made: PlanResult) -> tuple[str, ...]:
    unit = capacity(made.guarantee).unit
    notes = [
        f"{unit}: of the call by itself; total {unit}: of all before it and it, whatever their "
        "answers make you choose next. As one: if all were charged together before any answer.",
    ]
    if not made.fits:
        notes.append("NO: the ledger would refuse it; totals after it are without it.")
    if any(_late(made)):
        notes.append(
            "A release without delta costs least before the first one of Gaussian noise: ask for "
            'it first, or write mechanism="gaussian" where there is one.'
        )
    return tuple(notes)


def _late(made: PlanResult) -> tuple[bool, ...]:
    """Tell of each call whether it has no Gaussian noise and comes after one that has."""
    normal = [any(isinstance(event, GaussianEvent) for event in one.events) for one in made.calls]
    if isinstance(made.guarantee, PureDP) or not capacity(made.guarantee).delta:
        return ()
    return tuple(not own and any(normal[:place]) for place, own in enumerate(normal))
