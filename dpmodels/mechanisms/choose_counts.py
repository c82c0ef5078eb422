"""From the word ``mechanism=`` of a verb on counts to a strategy, by public facts."""

from __future__ import annotations

from typing import NamedTuple

from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.counts import COUNTS, CountMechanism, Gaussian, Geometric
from dpmodels.mechanisms.instance import checked_instance
from dpmodels.mechanisms.tallied import CountFacts
from dpmodels.privacy import Guarantee, PureDP


class CountChoice(NamedTuple):
    """A strategy, and why it was chosen where the choice was automatic."""

    strategy: CountMechanism
    reason: str


def choose_counts(mechanism: object, facts: CountFacts, guarantee: Guarantee) -> CountChoice:
    """Return the strategy that a name or an instance stands for.

    ArgumentError if the name is not in the table.
    """
    if not isinstance(mechanism, str):
        return CountChoice(checked_instance(mechanism, "dp.mechanisms.counts.Geometric()"), "")
    if mechanism == "auto":
        return _quieter(facts, guarantee)
    if mechanism not in COUNTS:
        names = ", ".join(repr(known) for known in ("auto", *COUNTS))
        raise ArgumentError(f"mechanism={mechanism!r} is not known; expected one of {names}")
    return CountChoice(COUNTS[mechanism](), "")


def _quieter(facts: CountFacts, guarantee: Guarantee) -> CountChoice:
    if isinstance(guarantee, PureDP):
        return CountChoice(Geometric(), "it needs no delta.")
    strategies: tuple[CountMechanism, ...] = (Geometric(), Gaussian())
    noises = [one.plan(facts, guarantee).noise_sd for one in strategies]
    best = noises.index(min(noises))
    reason = (
        f"its noise has an sd of {noises[best]:.2g} rows; that of "
        f"{strategies[1 - best].card.name} would have {noises[1 - best]:.2g}."
    )
    return CountChoice(strategies[best], reason)
