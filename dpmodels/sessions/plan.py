"""Prices of planned calls, before any of them runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from dpmodels.design import PrivateDesign
from dpmodels.design.bound_rows import BoundRows
from dpmodels.errors import BudgetError, DPModelsError
from dpmodels.models.predictor import identified_share, predict
from dpmodels.privacy import ApproxDP, Event, Guarantee, Ledger
from dpmodels.results.plan import PlannedCall, PlanResult
from dpmodels.sessions.call import Call, Priced, Terms
from dpmodels.sessions.shares import budget_options, whole_of
from dpmodels.statistics.moments import is_moments

if TYPE_CHECKING:
    import pandas as pd


def budget_of(
    call: Call,
    terms: Terms,
    ledger: Ledger,
    share: Fraction | None,
) -> dict[str, object]:
    """Return the budget options of a call, given what the ledger has left."""

    def fraction_used(guarantee: Guarantee) -> float:
        events = terms.price(call, {"budget": guarantee}, ledger).events
        return ledger.forecast([events])[0].taken

    if call.is_free:
        return {}
    total = whole_of(ledger)
    default_delta = call.options.get("delta") is None and call.options.get("budget") is None
    if call.spends_delta and default_delta and isinstance(total, ApproxDP):
        raise BudgetError(
            f"{call.name} spends its delta, and all {total.delta:.3g} of the session would leave "
            f"none for Gaussian noise: write delta={total.delta / 100:.3g}, or another part of it"
        )
    return budget_options(call.options, total, share, fraction_used)


def predicted(priced: Priced, n_rows: int) -> pd.DataFrame | None:
    """Predict the estimates of a call, one a row; None where rows cannot be assumed."""
    request = priced.spec.request
    if request.adjacency.person is not None or request.codebook.design is not None:
        return None
    try:
        return predict(priced.spec, priced.choice, n_rows)
    except DPModelsError:
        return None


def _identified(priced: Priced, n_rows: int) -> float:
    """Return the expected share of identified estimates; nan where rows cannot be assumed."""
    table = predicted(priced, n_rows)
    return math.nan if table is None else identified_share(table)


def _reading(priced: Priced) -> str:
    """Say where the sums of a call are computed; empty if its rows are not in a database."""
    rows = priced.private[0]
    if not isinstance(rows, BoundRows) or rows.is_streamed is None:
        return ""
    in_database = not rows.is_streamed
    if rows.is_streamed and isinstance(rows, PrivateDesign):
        strategy, plan, _ = priced.choice
        one_pass = getattr(strategy, "passes", "many" if priced.spec.passes else "one") == "one"
        in_database = (
            one_pass and rows.is_summed and is_moments(strategy.measure(rows.unread, plan))
        )
    return "sums computed in the database" if in_database else "rows streamed"


def planned(
    calls: Iterable[Call],
    terms: Terms,
    ledger: Ledger,
    parts: int,
    share: Fraction | None,
    n_rows: int | None = None,
) -> PlanResult:
    """Price calls in order; `parts` of those without a budget share what is left.

    With a number of rows, the share of estimates that will be identified is predicted.
    """
    entered, charges, left = [], list[tuple[Event, ...]](), ledger.for_prices()
    for call in calls:
        call_share = share
        if call.silent and parts:
            call_share, parts = Fraction(1, parts), parts - 1
        priced = terms.price(call, budget_of(call, terms, left, call_share), left)
        charges.append(priced.events)
        left = left.for_prices(priced.events)
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
            math.nan if n_rows is None else _identified(priced, n_rows),
            _reading(priced),
        )
        for (call, priced), step in zip(entered, ledger.forecast(charges), strict=True)
    ]
    return PlanResult(
        guarantee=whole_of(ledger),
        adjacency=ledger.adjacency,
        ledger_state=ledger.describe(),
        calls=tuple(lines),
        announced=ledger.preview(event for events in charges for event in events),
    )
