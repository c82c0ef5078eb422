"""From the word ``mechanism=`` of a verb to a strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from dpmodels.errors import ArgumentError, said
from dpmodels.mechanisms.protocol import CovarianceMechanism, SubspaceMechanism

Mechanism = CovarianceMechanism | SubspaceMechanism
Table = Mapping[str, type[Mechanism]]
Kind = TypeVar("Kind")


class Choice(NamedTuple, Generic[Kind]):
    """A strategy, and why it was chosen where the choice was automatic."""

    strategy: Kind
    reason: str


def choose(
    mechanism: object,
    table: Mapping[str, type[Kind]],
    automatic: Callable[[], tuple[str, str]],
    options: Mapping[str, object] = MappingProxyType({}),
) -> Choice[Kind]:
    """Return the strategy that a name or an instance stands for.

    A name is one of the table's, or ``"auto"``, for which `automatic` gives one of them and why;
    each option goes to the named strategy if it has such a field. An instance is taken as it is.
    ArgumentError for anything else.
    """
    if not isinstance(mechanism, str):
        return Choice(_checked(mechanism, next(iter(table.values()))), "")
    name, reason = automatic() if mechanism == "auto" else (mechanism, "")
    if name not in table:
        names = ", ".join(repr(known) for known in ("auto", *table))
        raise ArgumentError(f"mechanism={said(mechanism)} is not known; expected one of {names}")
    strategy: Any = table[name]
    own = {field.name for field in fields(strategy)}
    return Choice(strategy(**{word: options[word] for word in options if word in own}), reason)


def _checked(mechanism: object, example: type) -> Any:
    methods = (getattr(mechanism, name, None) for name in ("plan", "measure", "release"))
    if not isinstance(mechanism, type) and all(map(callable, methods)):
        return mechanism
    raise ArgumentError(
        f"mechanism= is of type {type(mechanism).__name__}; expected a name or an instance such "
        f"as dp.mechanisms.{example.__name__}()"
    )
