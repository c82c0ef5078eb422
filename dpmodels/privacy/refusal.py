"""Messages of a ledger that refuses a release, with the largest release that would fit."""

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Final

from dpmodels.errors import LedgerError
from dpmodels.privacy.budget import Adjacency, ApproxDP
from dpmodels.privacy.calibrate import gaussian_multiplier
from dpmodels.privacy.compose import pure_eps
from dpmodels.privacy.events import (
    Event,
    GaussianEvent,
    PufferfishEvent,
    PureEvent,
    all_gaussian,
    failing,
)
from dpmodels.privacy.filters import TOLERANCE, Filter
from dpmodels.privacy.pufferfish import Pufferfish, refused
from dpmodels.privacy.spent import Spent, capacity, price
from dpmodels.privacy.totals import Totals

# A choice: enough bisection steps for the four digits that messages show.
_HALVINGS: Final = 16
_UP: Final = Context(prec=4, rounding=ROUND_CEILING)
_DOWN: Final = Context(prec=4, rounding=ROUND_FLOOR)


def refusal(budget_filter: Filter, label: str, added: tuple[Event, ...], before: Totals) -> str:
    """Return the message that refuses a charge."""
    budget, spent = capacity(budget_filter.guarantee), budget_filter.spent(before)
    after = budget_filter.plus(before, added)
    total = _sufficient(budget_filter, after)
    name = f"The release {label!r}" if label else "The release"
    reason = _kind(budget_filter, added, before)
    if reason:
        return f"{name} is refused: {reason}."
    if failing(added) and math.isinf(total.amount):
        reason = _own_delta(budget, budget_filter.own_delta_left(before))
        return f"{name} has its own delta, {failing(added):g}: {reason}."
    if math.isinf(total.amount) and budget.unit == "eps" and not budget.delta:
        return (
            f"{name} adds Gaussian noise, which has no pure guarantee, but this ledger has "
            f"eps = {budget.amount:g}, delta = 0: choose a mechanism with Laplace noise, or "
            f"open dp.Ledger(eps={budget.amount:g}, delta=1e-6)."
        )
    fitting = _fitting(budget_filter, added, before)
    if isinstance(budget_filter.guarantee, Pufferfish):
        remedy = _of_chains(total, fitting)
    else:
        remedy = (
            f"{_remedy(budget, total, fitting, before)}{_reserved_share(budget, added, before)}"
        )
    left = "left for such noise" if budget.delta else "left"
    unspent = fitting.amount if fitting.amount > TOLERANCE * budget.amount else 0.0
    return (
        f"{name} costs {price(added, budget_filter.guarantee).describe()}. Spent so far: "
        f"{spent.unit} = {spent.amount:g} of {budget.amount:g}; {left}: "
        f"{_DOWN.create_decimal(unspent):f}; {remedy}."
    )


def _sufficient(budget_filter: Filter, after: Totals) -> Spent:
    """Return the least eps with which such a ledger accepts the totals; without delta, their sum.

    Above the budget the total of charges in steps is a bound, and may be several times as large.
    """
    budget, total = capacity(budget_filter.guarantee), budget_filter.spent(after)
    if not isinstance(budget_filter.guarantee, ApproxDP) or math.isinf(total.amount):
        return total
    too_little, enough = budget.amount, total.amount
    for _ in range(_HALVINGS):
        eps = (too_little + enough) / 2
        if replace(budget_filter, guarantee=ApproxDP(eps, budget.delta)).holds(after):
            enough = eps
        else:
            too_little = eps
    return replace(total, amount=enough)


def _of_chains(total: Spent, fitting: Spent) -> str:
    """State the total under a Pufferfish guarantee, and what to write instead."""
    chains = "budget=dp.Pufferfish({}, model=...)"
    fits = f"write {chains.format(_as_argument(fitting, _DOWN))} or less, or "
    opened = chains.format(_as_argument(total, _UP))
    return (
        f"the total would be {total.amount:g}: {fits if fitting.amount else ''}open the ledger "
        f"with {opened}"
    )


def _kind(budget_filter: Filter, added: tuple[Event, ...], before: Totals) -> str:
    """Say why a release does not match the ledger's kind of guarantee; empty if it does."""
    if isinstance(budget_filter.guarantee, Pufferfish):
        return refused(budget_filter.guarantee, before, added)
    if any(isinstance(event, PufferfishEvent) for event in added):
        return (
            "it has a Pufferfish guarantee but this ledger a differentially private one, and the "
            "two do not compose; charge dp.Ledger(budget=dp.Pufferfish(eps=..., model=...))"
        )
    return ""


def _own_delta(budget: Spent, left: float | None) -> str:
    """Say why a release with its own delta is refused, and what to write instead."""
    if not budget.delta:
        return (
            f"this ledger has {budget.describe()} and no delta; open dp.Ledger(eps=1.0, "
            "delta=1e-6) for it"
        )
    if left is None:
        return (
            "such releases must be charged before any with Gaussian noise, which fix the remaining "
            "delta; charge it first, or use a separate ledger"
        )
    return f"the remaining delta is {left:g} of {budget.delta:g}; write a smaller delta"


def refuse_other_neighbours(stated: Adjacency, assumed: Adjacency) -> None:
    """Refuse a release whose neighbours differ from the ledger's."""
    if assumed.protects(stated):
        return
    if assumed.name != stated.name:
        raise LedgerError(
            f"The release assumes adjacency={assumed.name!r} ({assumed.describe()}), but this "
            f"ledger adjacency={stated.name!r} ({stated.describe()}): write "
            f"adjacency={stated.name!r} in the call, or charge a ledger opened with "
            f"adjacency={assumed.name!r}."
        )
    raise LedgerError(
        f"The release protects {assumed.unit}, but this ledger {stated.unit}: write "
        f"{_arguments(stated)} in the call, or charge a ledger opened with {_arguments(assumed)}."
    )


def _arguments(relation: Adjacency) -> str:
    """Return the arguments that state a relation."""
    values = {"person": relation.person, "rows": relation.rows}
    options = ", ".join(f"{name}={value!r}" for name, value in values.items() if value is not None)
    return options or "person=False and no rows="


def require_same(place: str, terms: Mapping[str, tuple[object, object]]) -> None:
    """Refuse arguments that differ from those the file was created with.

    `terms` maps each argument to the stored and the requested value, None if not requested.
    """
    for term, (stored, requested) in terms.items():
        if requested is not None and requested != stored:
            stored_text, requested_text = (
                value.describe() if hasattr(value, "describe") else value
                for value in (stored, requested)
            )
            raise LedgerError(
                f"{place} was opened with {term} {stored_text}, but this call states "
                f"{requested_text}: leave it out, or open another file. Nothing was charged"
            )


def _remedy(budget: Spent, total: Spent, fitting: Spent, before: Totals) -> str:
    """State the total, and what to write instead."""
    if math.isinf(total.amount):
        terms = f"eps={budget.amount:g}, delta={budget.delta:g}"
        reason = "after a plan charged as one a ledger accepts only releases without delta"
        if math.isfinite(before.mu2):
            reason = "releases with their own delta have spent all of delta"
        remedy = f"use a separate ledger, dp.Ledger({terms}, rule='zcdp')"
    else:
        reason = f"the total would be {total.amount:g}"
        remedy = f"open the ledger with {_as_argument(total, _UP)}"
    if fitting.amount > TOLERANCE * budget.amount:
        remedy = f"write {_as_argument(fitting, _DOWN)} or less, or {remedy}"
    return f"{reason}: {remedy}"


def _reserved_share(budget: Spent, added: tuple[Event, ...], before: Totals) -> str:
    """Say how a ledger of eps and delta accepts more releases without delta."""
    pure = [event for event in added if not isinstance(event, GaussianEvent)]
    if not budget.delta or len(pure) < len(added):
        return ""
    pure_total = before.pure + math.fsum(pure_eps(event) * event.count for event in pure)
    if not pure_total < budget.amount:
        return ""
    return (
        f"; opened with pure={_UP.create_decimal(pure_total):f} a ledger reserves this eps for "
        "releases without delta, and their eps add up"
    )


def _fitting(budget_filter: Filter, added: tuple[Event, ...], before: Totals) -> Spent:
    """Return the largest release of the refused kind that would be accepted."""
    budget = capacity(budget_filter.guarantee)
    if not budget.delta:
        return budget_filter.spent(before).left_of(budget)
    noise = _gaussian_at if all_gaussian(added) else _pure_at
    fitting, too_much, eps = 0.0, budget.amount, budget.amount
    for _ in range(_HALVINGS):
        if budget_filter.holds(budget_filter.plus(before, (noise(eps, budget.delta),))):
            fitting = eps
        else:
            too_much = eps
        eps = (fitting + too_much) / 2
    return replace(budget, amount=fitting)


def _gaussian_at(eps: float, delta: float) -> Event:
    return GaussianEvent(gaussian_multiplier(ApproxDP(eps, delta)))


def _pure_at(eps: float, delta: float) -> Event:
    return PureEvent(eps)


def _as_argument(amount: Spent, rounding: Context) -> str:
    number = f"{float(rounding.create_decimal(amount.amount)):g}"
    if amount.unit == "rho":
        return f"budget=dp.ZCDP({number})"
    return f"eps={number}" + (f", delta={amount.delta:g}" if amount.delta else "")
