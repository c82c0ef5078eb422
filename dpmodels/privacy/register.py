"""The charges of a ledger and their outcomes as a table."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Final, NamedTuple

from dpmodels.errors import LedgerError
from dpmodels.labels import plain
from dpmodels.privacy.budget import Adjacency, Guarantee
from dpmodels.privacy.events import Event
from dpmodels.privacy.filters import Filter
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
from dpmodels.privacy.pufferfish import Pufferfish, hidden_by
from dpmodels.privacy.spent import Spent, capacity, price
from dpmodels.privacy.totals import Totals

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
    """Return a forecast of each of several charges."""
    forecasts = []
    for events in charges:
        charged = tuple(events)
        after = budget_filter.plus(totals, charged)
        fits, fraction = budget_filter.holds(after), budget_filter.taken(totals, after)
        fraction = fraction if fits else max(fraction, _REFUSED)
        forecasts.append(
            Forecast(
                price(charged, budget_filter.guarantee), budget_filter.spent(after), fits, fraction
            )
        )
        totals = after if fits else totals
    return tuple(forecasts)
