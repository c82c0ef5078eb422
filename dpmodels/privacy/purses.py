"""Purses: parts of a ledger's budget by analyst or project.

A charge is accepted only if the purse's filter and the table's both accept it, in one transaction.
So all releases together satisfy the table's guarantee. Under `PureDP` or `ZCDP` those of a
**reserved** purse, with answers and refusals, satisfy the purse's own, against a holder who learns
nothing of other purses' releases: the table never refuses what such a purse accepts (Theorem 76). A
void charge lowers the table's total only; the purse's part stays spent.

A purse that is not reserved can be refused because of charges to others, which may depend on their
answers; for it only the table's guarantee is claimed. With a delta the cost of a charge depends on
the others' kinds of noise, so nothing is reserved there. Sums are rounded up at every step, so the
last charge of a reserved purse may be refused for an ulp.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dpmodels.arguments import real
from dpmodels.errors import ArgumentError, BudgetError, LedgerError, did_you_mean, quoted
from dpmodels.privacy.budget import ZCDP, ApproxDP, Guarantee, PureDP
from dpmodels.privacy.compose import Totals
from dpmodels.privacy.events import Event
from dpmodels.privacy.filters import Filter
from dpmodels.privacy.lines import (
    CHARGED,
    PURSE,
    Chain,
    Claim,
    Line,
    events_from_plain,
    totals_from_plain,
    totals_to_plain,
)
from dpmodels.privacy.pufferfish import Pufferfish
from dpmodels.privacy.spent import Spent, capacity
from dpmodels.privacy.steps import ULP
from dpmodels.typing import Plain

_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Purse:
    """A part of a ledger's budget, and what was charged to it.

    Parameters
    ----------
    name : str
        Analyst or project.
    filter : Filter
        Accepts its charges.
    reserved : bool
        Whether other purses leave its budget unspent.
    totals : Totals
        Totals of its charges.
    """

    name: str
    filter: Filter
    reserved: bool
    totals: Totals

    @property
    def spent(self) -> Spent:
        """The composed total of its charges."""
        return self.filter.spent(self.totals)

    @property
    def unspent(self) -> float:
        """Its budget minus its total, in the unit of the guarantee."""
        return self.spent.left_of(capacity(self.filter.guarantee)).amount

    def plain(self) -> dict[str, object]:
        """Return the purse as lines of a ledger have it."""
        return {
            "name": self.name,
            "amount": capacity(self.filter.guarantee).amount,
            "reserved": self.reserved,
            "totals": totals_to_plain(self.totals),
        }

    def describe(self) -> str:
        """Return the amounts and whether the purse is reserved."""
        total, kind = capacity(self.filter.guarantee), "reserved" if self.reserved else "first come"
        return f"{self.spent.amount:.3g} of {total.amount:g} {total.unit} spent, {kind}"


def purse_from_plain(plain: Mapping[str, Plain], table: Filter) -> Purse:
    """Return the purse that a line of a ledger records."""
    part = _part(table, plain["name"], plain["amount"])
    return Purse(plain["name"], part, plain["reserved"], totals_from_plain(plain["totals"]))


def new_purse(name: object, amount: object, reserved: bool, table: Filter) -> Purse:
    """Return a purse without charges; refuse one that is larger than the table's budget."""
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
        raise ArgumentError(
            f"a purse named {quoted(name)}: expected a text of 1 to {_LONGEST_NAME} characters"
        )
    budget, number = capacity(table.guarantee), real(amount)
    if not 0 < number <= budget.amount:
        raise BudgetError(
            f"the purse {quoted(name)} of {budget.unit} = {quoted(amount)}: expected a number "
            f"above 0, and at most the table's total, {budget.describe()}"
        )
    if reserved and not isinstance(table.guarantee, PureDP | ZCDP):
        raise BudgetError(
            f"the purse {quoted(name)} cannot be reserved under {table.guarantee.describe()}, "
            "where the cost of a charge depends on the other charges: leave out reserved=, or "
            "state the budget in rho (dp.ZCDP(0.1), rho = 0.1 in gate.toml) or in eps without delta"
        )
    return Purse(name, _part(table, name, number), reserved, Totals())


def _part(table: Filter, name: str, amount: float) -> Filter:
    guarantee: Guarantee
    match table.guarantee:
        case PureDP():
            guarantee = PureDP(amount)
        case ZCDP():
            guarantee = ZCDP(amount)
        case ApproxDP(_, delta):
            guarantee = ApproxDP(amount, delta)
        case Pufferfish():
            raise BudgetError(f"a ledger with a Pufferfish guarantee has no purses, not {name!r}")
    return replace(table, guarantee=guarantee, pure=0.0)


@dataclass(frozen=True, slots=True)
class Part:
    """What a purse's ledger charges: the purse, the whole table, and claims of each charge."""

    name: str
    table: Filter
    claims: tuple[Claim, ...]


def refuse_purse_claims(claims: Iterable[Claim]) -> None:
    """Refuse claims of the kind that records purses."""
    if any(kind == PURSE for kind, _ in claims):
        raise ArgumentError(f"claims of the kind {PURSE!r} belong to purses: use another kind")


def purse_lines(chain: Chain) -> dict[str, Line]:
    """Return the line with the current state of each purse, by name."""
    return {name: chain.of(charge)[0] for _, name, charge in chain.claims(PURSE)}


def purses_of(chain: Chain, table: Filter) -> tuple[Purse, ...]:
    """Return all purses of a ledger."""
    lines = sorted(purse_lines(chain).items())
    return tuple(purse_from_plain(line.body["purse"], table) for _, line in lines)


def purse_named(chain: Chain, table: Filter, name: str) -> Purse:
    """Return a purse by its name; a LedgerError if it was not declared."""
    charges = {value: charge for _, value, charge in chain.claims(PURSE)}
    if name not in charges:
        raise LedgerError(
            f"the ledger has no purse {quoted(name)}{did_you_mean(name, charges)}: declare it, "
            f"ledger.add_purse({quoted(name)}, 0.5)"
        )
    return purse_from_plain(chain.of(charges[name])[0].body["purse"], table)


def require_reserves(
    chain: Chain, table: Filter, after: Totals, changed: Purse | None, label: str
) -> None:
    """Refuse totals that leave reserved purses less than their budgets; `changed` is after it."""
    if not isinstance(table.guarantee, PureDP | ZCDP):
        return
    unchanged = [p for p in purses_of(chain, table) if changed is None or p.name != changed.name]
    purses = [*unchanged, *([] if changed is None else [changed])]
    reserves = math.fsum(purse.unspent for purse in purses if purse.reserved)
    budget, spent = capacity(table.guarantee), table.spent(after).amount
    if reserves and spent + reserves > budget.amount * (1 + (after.charges + len(purses)) * ULP):
        left = max(budget.amount - reserves, 0.0)
        raise LedgerError(
            f"{label} is refused: the total would be {budget.unit} = {spent:.4g}, and "
            f"{reserves:.4g} of {budget.amount:g} is reserved by purses. Write a smaller budget, "
            f"at most {left:.4g} of all charges together"
        )


def purse_after(chain: Chain, table: Filter, name: str, added: tuple[Event, ...]) -> Purse:
    """Return a purse after a charge; a LedgerError if it does not fit."""
    purse = purse_named(chain, table, name)
    after = replace(purse, totals=purse.filter.plus(purse.totals, added))
    if not purse.filter.holds(after.totals):
        total = capacity(purse.filter.guarantee)
        raise LedgerError(
            f"the purse {quoted(name)} has {total.unit} = {purse.unspent:.4g} of {total.amount:g} "
            f"left, and the charge would raise its total to {after.spent.amount:.4g}. Write a "
            "smaller budget"
        )
    return after


def lines_of(lines: Iterable[Line], name: str) -> list[Line]:
    """Return the lines about the charges of one purse, with its totals in place of the table's."""
    chosen = dict[int, Plain]()
    projected = list[Line]()
    for line in lines:
        body = line.body
        if body["kind"] == CHARGED and body.get("purse", {}).get("name") == name:
            chosen[body["charge"]] = body["purse"]["totals"]
        if body["charge"] in chosen:
            body["totals"] = chosen[body["charge"]]
            projected.append(Line(json.dumps(body), line.hash))
    return projected


def require_purses(chain: Chain, lines: Iterable[Line], table: Filter, place: str) -> None:
    """Refuse purses whose lines state other totals than their charges have."""
    purses, current = dict[str, Purse](), dict[str, str]()
    for line in lines:
        body = line.body
        if "purse" not in body:
            continue
        stated = purse_from_plain(body["purse"], table)
        expected = replace(stated, totals=Totals())
        if body["kind"] == CHARGED:
            expected = purses.get(stated.name, expected)
            totals = expected.filter.plus(expected.totals, events_from_plain(body["events"]))
            expected = replace(expected, totals=totals)
        if stated != expected or (body["kind"] == CHARGED) != (stated.name in purses):
            raise LedgerError(f"{place}: a line states another purse {quoted(stated.name)}")
        purses[stated.name], current[stated.name] = stated, line.hash
    if {name: line.hash for name, line in purse_lines(chain).items()} != current:
        raise LedgerError(f"{place}: its purses differ from those of its charges")
