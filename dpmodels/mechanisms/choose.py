"""From the verb's word ``mechanism=`` to a strategy, by public facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.auto import automatic
from dpmodels.mechanisms.instance import checked_instance
from dpmodels.mechanisms.protocol import CovarianceMechanism, Facts, SubspaceMechanism
from dpmodels.privacy import Guarantee

Mechanism = CovarianceMechanism | SubspaceMechanism
Table = Mapping[str, type[CovarianceMechanism] | type[SubspaceMechanism]]


class Choice(NamedTuple):
    """A strategy, and why it was chosen where the choice was automatic."""

    strategy: Mechanism
    reason: str


def choose(
    mechanism: object,
    table: Table,
    known: frozenset[str],
    facts: Facts,
    guarantee: Guarantee,
    rows: int | None,
    options: Mapping[str, object],
) -> Choice:
    """Return the strategy that a name or an instance stands for.

    ArgumentError if the name is not in the table.
    """
    if not isinstance(mechanism, str):
        return Choice(checked_instance(mechanism, "dp.mechanisms.Gauss()"), "")
    name, reason = mechanism, ""
    if mechanism == "auto":
        name, reason = automatic(facts, guarantee, rows, known)
    if name not in table:
        names = ", ".join(repr(known) for known in ("auto", *table))
        raise ArgumentError(f"mechanism={mechanism!r} is not known; expected one of {names}")
    strategy: Any = table[name]
    own = {field.name for field in fields(strategy)}
    return Choice(strategy(**{word: options[word] for word in options if word in own}), reason)
