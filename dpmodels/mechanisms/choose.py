"""From the word ``mechanism=`` of a verb to a strategy.

``"auto"`` is resolved by public facts alone, in ``choose_moments.py`` for moments, in
``choose_counts.py`` for counts and means, and beside the mechanisms of margins and selections. Each
compares predicted noise, on a ledger of eps and delta at equal price (`at_equal_price`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from dpmodels.errors import ArgumentError, did_you_mean, quoted
from dpmodels.mechanisms.protocol import Calibrated
from dpmodels.mechanisms.user_supplied import NOT_CHECKED, refuse_superseded, supplied
from dpmodels.privacy import Adjacency, ApproxDP, Ledger, group_events
from dpmodels.privacy.events import all_gaussian
from dpmodels.released import MechanismInfo

Kind = TypeVar("Kind", covariant=True)


class Choice(NamedTuple, Generic[Kind]):
    """A strategy, and why it was chosen where the choice was automatic."""

    strategy: Kind
    reason: str


def choose_strategy(
    mechanism: object,
    table: Mapping[str, type[Kind]],
    automatic: Callable[[], tuple[str, str]],
    options: Mapping[str, object] = MappingProxyType({}),
) -> Choice[Kind]:
    """Return the strategy that a name or an instance stands for.

    A name is one of the table's, or ``"auto"``, for which `automatic` gives one of them and why;
    each option goes to the named strategy if it has such a field. An instance is taken as it is.
    So is what a registered user-supplied mechanism is run by. ArgumentError for anything else.
    """
    if isinstance(mechanism, str) and mechanism == "auto":
        name, reason = automatic()
    elif (user_strategy := supplied(mechanism, table)) is not None:
        return Choice(cast("Kind", user_strategy), "")
    elif isinstance(mechanism, str):
        name, reason = mechanism, ""
    else:
        return Choice(_checked(mechanism, next(iter(table.values()))), "")
    if name not in table:
        refuse_superseded("mechanism=", name)
        names = ", ".join(repr(name) for name in ("auto", *table))
        meant = did_you_mean(mechanism, table)
        raise ArgumentError(
            f"mechanism={quoted(mechanism)} is not known here{meant}; expected one of {names}"
        )
    strategy: Any = table[name]
    option_names = {field.name for field in fields(strategy)}
    return Choice(
        strategy(**{word: options[word] for word in options if word in option_names}), reason
    )


def _checked(mechanism: object, example: type[Kind]) -> Kind:
    methods = (getattr(mechanism, name, None) for name in ("plan", "measure", "release"))
    if not isinstance(mechanism, type) and all(map(callable, methods)):
        return cast("Kind", mechanism)
    raise ArgumentError(
        f"mechanism= is of type {type(mechanism).__name__}; expected a name or an instance such "
        f"as dp.mechanisms.{example.__name__}()"
    )


def stated_info(strategy: object, info: MechanismInfo) -> MechanismInfo:
    """Return the info as it is printed: a strategy from outside states no numerics of its own."""
    kind = type(getattr(strategy, "base", strategy))
    return info if kind.__module__.startswith("dpmodels.") else replace(info, numerics=NOT_CHECKED)


def printed_rows(n_rows: int, neighbours: Adjacency) -> str:
    """Say how many rows there are, or persons, or as many as may be one person's."""
    if neighbours.person is not None:
        return f"n = {n_rows:,} persons"
    of = f" times {neighbours.places} rows" if neighbours.places > 1 else ""
    return f"n = {n_rows:,}{of}"


def rows_of_one(neighbours: Adjacency) -> int:
    """Return how many rows stand for one in what is printed of a noise for one row."""
    return 1 if neighbours.rows == "mean" else neighbours.places


def two_digits(noise: float) -> str:
    """Write a noise to two digits, without powers of ten."""
    return f"{float(f'{noise:.2g}'):,.10g}"


# What candidates of ``"auto"`` cost on the ledger that they will be charged to.
#
# With eps and delta a ledger adds up the eps of pure releases and the ``mu**2`` of Gaussian ones,
# so that releases of the same (eps, delta) use different fractions of its budget. Within
# `priced_on` candidates are compared at the price of the cheapest: noise sds are inversely
# proportional to eps, or to the root of ``mu**2``. The price is that on an empty ledger with the
# same terms, so that the choice does not depend on the order of calls; but a candidate that the
# ledger would refuse now is not chosen if another is accepted. All of this is public.


_ledger: Final[ContextVar[tuple[Ledger, int] | None]] = ContextVar("dpmodels.ledger", default=None)


_gaussian_alone: Final[ContextVar[bool]] = ContextVar("dpmodels.gaussian_alone", default=False)


@contextmanager
def priced_on(ledger: Ledger | None, places: int) -> Iterator[None]:
    """Choose by the price on a ledger of eps and delta, for a group of rows."""
    has_prices = ledger is not None and isinstance(ledger.guarantee, ApproxDP)
    token = _ledger.set((ledger, places) if ledger is not None and has_prices else None)
    try:
        yield
    finally:
        _ledger.reset(token)


@contextmanager
def gaussian_alone() -> Iterator[None]:
    """Take no candidate with noise of another law than Gaussian, as sites can only add that."""
    token = _gaussian_alone.set(True)
    try:
        yield
    finally:
        _gaussian_alone.reset(token)


def at_equal_price(noises: Sequence[float], plans: Sequence[Calibrated]) -> list[float]:
    """Return noise sds at the price of the cheapest plan; as they are without a ledger.

    Infinite for a plan that the ledger refuses, if it accepts another, and for noise that is not
    Gaussian where nobody could add it.
    """
    if _gaussian_alone.get():
        paired = zip(noises, plans, strict=True)
        return [noise if all_gaussian(plan.events) else math.inf for noise, plan in paired]
    priced = _ledger.get()
    if priced is None:
        return list(noises)
    ledger, places = priced
    charges = [group_events(plan.events, places) for plan in plans]
    accepted = [ledger.accepts(events) for events in charges]
    prices = [
        ledger.fraction_of_budget(events) if fits or not any(accepted) else math.inf
        for events, fits in zip(charges, accepted, strict=True)
    ]
    cheapest = min(prices)
    if not 0 < cheapest < math.inf:
        return list(noises)
    return [
        noise * (cost / cheapest) ** (0.5 if all_gaussian(plan.events) else 1.0)
        for noise, cost, plan in zip(noises, prices, plans, strict=True)
    ]


def price_reason(noises: Sequence[float], best: int) -> str:
    """Say why a candidate with more noise was chosen; empty if it has the least noise."""
    return "" if noises[best] <= min(noises) else "it uses less of the ledger's budget: "
