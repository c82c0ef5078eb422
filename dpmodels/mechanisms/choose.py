"""From the word ``mechanism=`` of a verb to a strategy.

``"auto"`` is resolved by public facts alone, in ``choose_moments.py`` for moments, in
``choose_counts.py`` for counts and means, and beside the mechanisms of margins and selections. Each
compares predicted noise, on a ledger of eps and delta at equal price (`ledger_price`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar, cast

from dpmodels.errors import ArgumentError, did_you_mean, quoted
from dpmodels.mechanisms.user_supplied import refuse_superseded, supplied
from dpmodels.privacy import Adjacency

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
    user_strategy = supplied(mechanism, table)
    if user_strategy is not None:
        return Choice(cast("Kind", user_strategy), "")
    if not isinstance(mechanism, str):
        return Choice(_checked(mechanism, next(iter(table.values()))), "")
    name, reason = automatic() if mechanism == "auto" else (mechanism, "")
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
