"""What a ledger shows: its charges as a table, and refusals with the largest release that fits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Final, NamedTuple

from dpmodels.errors import LedgerError
from dpmodels.labels import plain
from dpmodels.privacy.budget import Adjacency, ApproxDP, Guarantee
from dpmodels.privacy.calibrate import gaussian_multiplier
from dpmodels.privacy.compose import Totals, pure_eps
from dpmodels.privacy.events import (
    Event,
    GaussianEvent,
    PufferfishEvent,
    PureEvent,
    all_gaussian,
    failing,
)
from dpmodels.privacy.filters import TOLERANCE, Filter
from dpmodels.privacy.lines import (
    CHARGED,
    RELEASED,
    VOID,
    About,
    Entry,
    Line,
    events_from_plain,
    significant,
    totals_of,
)
from dpmodels.privacy.pufferfish import Pufferfish, hidden_by, refused
from dpmodels.privacy.spent import Spent, capacity, price

COLUMNS = (
    *("charge", "time", "label", "verb", "formula", "mechanism", "events", "adjacency", "person"),
    *("codebook", "version", "user", "host", "total", "state", "digest", "reason", "hash"),
)

# Mechanisms that may sample by Markov chains, and the unproved assumption of their guarantee.
CHAINS: Final = frozenset({"ppca"})
UNPROVED: Final = "its Markov chain has converged, which is not proved"


def convergence_notes(mechanisms: Iterable[object]) -> tuple[str, ...]:
    """Return the caveat of charges whose guarantee may hold only in the limit of a Markov chain.

    A ledger records the names of mechanisms, but not how many columns were drawn.
    """
    if not CHAINS.intersection(map(str, mechanisms)):
        return ()
    return (
        "A joint draw of mechanism ppca with 1 < ncomp < columns - 1 has its guarantee only if "
        f"{UNPROVED}; so does a total that includes such a draw.",
    )


def register_rows(
    lines: Iterable[Line], budget_filter: Filter, relation: Adjacency
) -> dict[str, list[object]]:
    """Return the columns of the register, with one value per charge."""
    rows: dict[int, dict[str, object]] = {}
    for number, line in enumerate(lines):
        body = line.body
        if body["kind"] in (RELEASED, VOID) and body["charge"] not in rows:
            raise LedgerError(f"line {number} of the ledger refers to a missing charge")
        if body["kind"] == CHARGED:
            rows[body["charge"]] = {
                **{name: body[name] for name in ("charge", "time", "label", "version")},
                **{name: body[name] for name in ("user", "host")},
                **asdict(About(**body["about"])),
                "events": "; ".join(
                    event.describe() for event in events_from_plain(body["events"])
                ),
                "adjacency": relation.name,
                "total": budget_filter.spent(totals_of(line)).amount,
                "state": CHARGED,
                "digest": "",
                "reason": "",
                "hash": line.hash,
            }
        elif body["kind"] == RELEASED:
            rows[body["charge"]] |= {"state": RELEASED, "digest": body["digest"]}
        elif body["kind"] == VOID:
            rows[body["charge"]] |= {"state": VOID, "reason": body["reason"]}
    return {name: [_encodable(row[name]) for row in rows.values()] for name in COLUMNS}


def _encodable(value: object) -> object:
    """Return a string without lone surrogates, which cannot be encoded; other values unchanged."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def printed(
    summary: str, entries: Iterable[Entry], guarantee: Guarantee | Pufferfish, relation: Adjacency
) -> str:
    """Return the charges as text, one per line."""
    charges, budget = list(entries), capacity(guarantee)
    delta = f" at delta = {budget.delta:g}" if budget.delta else ""
    lines = [f"Ledger: {summary}{delta} ({hidden_by(guarantee, relation)})"]
    labels = [plain(entry.label) for entry in charges]
    width = max([5, *map(len, labels)])
    if charges:
        lines.append(f"  #  {'label':<{width}}  total {budget.unit}  events")
    for entry, label in zip(charges, labels, strict=True):
        events = "; ".join(event.describe() for event in entry.events)
        total = significant(entry.spent_after)
        lines.append(f"{entry.number:>3}  {label:<{width}}  {total:>9}  {events}".rstrip())
    return "\n".join(lines)


# Forecast of the totals after several charges.

# A fraction that exceeds the remaining budget.
_REFUSED: Final = 1 + 1e-6


class Forecast(NamedTuple):
    """A charge that has not been made.

    Its total includes earlier charges and accepted forecasts; refused forecasts do not count.

    >>> from dpmodels.privacy.budget import PureDP
    >>> from dpmodels.privacy.events import PureEvent
    >>> halves = [[PureEvent(0.5)]] * 2
    >>> charges = forecast(Filter(PureDP(1.0)), Totals(), halves)
    >>> [(charge.total.amount, charge.taken) for charge in charges]
    [(0.5, 0.5), (1.0, 1.0)]
    """

    price: Spent  # The charge by itself
    total: Spent  # The total after it
    fits: bool
    taken: float  # Fraction of the remaining budget; above 1 if it does not fit


def both(of_purse: Forecast, of_table: Forecast) -> Forecast:
    """Return the forecast of a charge to a purse, which the whole table has to accept too."""
    fits = of_purse.fits and of_table.fits
    return of_purse._replace(fits=fits, taken=max(of_purse.taken, of_table.taken))


def forecast(
    budget_filter: Filter, totals: Totals, charges: Iterable[Iterable[Event]]
) -> tuple[Forecast, ...]:
    """Return a forecast of each charge; the total of a refused one is the least that suffices."""
    forecasts = []
    for events in charges:
        charged = tuple(events)
        after = budget_filter.plus(totals, charged)
        fits, fraction = budget_filter.holds(after), budget_filter.taken(totals, after)
        fraction = fraction if fits else max(fraction, _REFUSED)
        forecasts.append(
            Forecast(
                price(charged, budget_filter.guarantee),
                budget_filter.spent(after) if fits else sufficient(budget_filter, after),
                fits,
                fraction,
            )
        )
        totals = after if fits else totals
    return tuple(forecasts)


# A choice: enough bisection steps for the four digits that messages show.
_HALVINGS: Final = 16
_UP: Final = Context(prec=4, rounding=ROUND_CEILING)
_DOWN: Final = Context(prec=4, rounding=ROUND_FLOOR)


def refusal(budget_filter: Filter, label: str, added: tuple[Event, ...], before: Totals) -> str:
    """Return the message that refuses a charge."""
    budget, spent = capacity(budget_filter.guarantee), budget_filter.spent(before)
    after = budget_filter.plus(before, added)
    total = sufficient(budget_filter, after)
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


def sufficient(budget_filter: Filter, after: Totals) -> Spent:
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
    is_gaussian = all_gaussian(added)
    fitting, too_much, eps = 0.0, budget.amount, budget.amount
    for _ in range(_HALVINGS):
        event: Event = PureEvent(eps)
        if is_gaussian:
            event = GaussianEvent(gaussian_multiplier(ApproxDP(eps, budget.delta)))
        if budget_filter.holds(budget_filter.plus(before, (event,))):
            fitting = eps
        else:
            too_much = eps
        eps = (fitting + too_much) / 2
    return replace(budget, amount=fitting)


def _as_argument(amount: Spent, rounding: Context) -> str:
    number = f"{float(rounding.create_decimal(amount.amount)):g}"
    if amount.unit == "rho":
        return f"budget=dp.ZCDP({number})"
    return f"eps={number}" + (f", delta={amount.delta:g}" if amount.delta else "")
