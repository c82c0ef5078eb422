"""From the word ``mechanism=`` of a verb on means to a strategy, by public facts."""

from __future__ import annotations

import math

from dpmodels.mechanisms.choose_counts import CountChoice, choose_counts
from dpmodels.mechanisms.scalar.paired import Paired, fits
from dpmodels.mechanisms.tallied import CountFacts
from dpmodels.privacy import Guarantee


def choose_means(mechanism: object, facts: CountFacts, guarantee: Guarantee) -> CountChoice:
    """Return the strategy that a name or an instance stands for.

    ArgumentError if the name is not known.
    """
    if isinstance(mechanism, str) and mechanism == "paired":
        return CountChoice(Paired(), "")
    other = choose_counts(mechanism, facts, guarantee)
    if not (isinstance(mechanism, str) and mechanism == "auto" and fits(facts)):
        return other
    # Of the sum of t - 1/2: half of one noise variable, or of the difference of two.
    paired = Paired().plan(facts, guarantee).noise_sd / 2
    apart = other.strategy.plan(facts, guarantee).noise_sd / math.sqrt(2)
    if apart <= paired:
        return other
    reason = (
        f"its noise in the sum has an sd of {paired:.2g} ranges; that of "
        f"{other.strategy.card.name} would have {apart:.2g}."
    )
    return CountChoice(Paired(), reason)
