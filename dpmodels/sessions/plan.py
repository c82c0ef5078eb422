"""Calls priced before any is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from dpmodels.errors import BudgetError
from dpmodels.privacy import ApproxDP, Event, Guarantee, Ledger
from dpmodels.results.plan import PlannedCall, PlanResult
from dpmodels.sessions.call import Call, Terms
from dpmodels.sessions.shares import budget_words, whole_of


def budget_of(
    call: Call,
    terms: Terms,
    ledger: Ledger,
    own: Fraction | None,
    earlier: Sequence[tuple[Event, ...]] = (),
) -> dict[str, object]:
    """Return the words of a call's budget, of what is left once the earlier ones were charged."""

    def taken(guarantee: Guarantee) -> float:
        events = terms.price(call, {"budget": guarantee}).events
        return ledger.forecast([*earlier, events])[-1].taken

    whole = whole_of(ledger)
    unsaid = call.words.get("delta") is None and call.words.get("budget") is None
    if call.spends_delta and unsaid and isinstance(whole, ApproxDP):
        raise BudgetError(
            f"{call.name} spends its delta, and all {whole.delta:.3g} of the session would leave "
            f"none for Gaussian noise: write delta={whole.delta / 100:.3g}, or another part of it"
        )
    return budget_words(call.words, whole, own, taken)


def planned(
    calls: Iterable[Call], terms: Terms, ledger: Ledger, parts: int, share: Fraction | None
) -> PlanResult:
    """Price calls one after another; `parts` of those that say no budget share what is left."""
    entered, charges = [], list[tuple[Event, ...]]()
    for call in calls:
        own = share
        if call.silent and parts:
            own, parts = Fraction(1, parts), parts - 1
        priced = terms.price(call, budget_of(call, terms, ledger, own, charges))
        charges.append(priced.events)
        entered.append((call, priced))
    lines = [
        PlannedCall(
            repr(call),
            call.name,
            call.formula,
            priced.mechanism,
            priced.events,
            step.price,
            step.total,
            step.fits,
        )
        for (call, priced), step in zip(entered, ledger.forecast(charges), strict=True)
    ]
    return PlanResult(
        guarantee=whole_of(ledger),
        adjacency=ledger.adjacency,
        ledger_state=ledger.describe(),
        calls=tuple(lines),
        announced=ledger.preview(event for own in charges for event in own),
    )
