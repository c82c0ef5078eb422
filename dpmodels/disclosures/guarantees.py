"""Guarantees and neighbours in words that somebody can sign, and what they are not."""

from __future__ import annotations

import math
from typing import Final

from dpmodels.privacy import ZCDP, Adjacency, ApproxDP, Guarantee, Pufferfish, zcdp_to_approx
from dpmodels.report import signif

# A convention: where the eps of a concentrated guarantee is stated.
_DELTA: Final = 1e-6

TRUTHS: Final = (
    "Tables are neighbours where one respondent's truth is replaced by any other: each answer was "
    "randomised before it was given, so that the guarantee holds against whoever has the answers."
)
NOT: Final = (
    "It is no promise about releases of the same table outside what is listed here, by this "
    "package or any other: each adds to what can be learnt.",
    "It does not keep secret what is true of the population. That smoking goes with a disease may "
    "be concluded of anybody, in the table or not.",
    "It does not hide what was declared: variables, their bounds and levels, formulas, conditions "
    "on rows, budgets, and that the table was analysed.",
    "It does not protect more than its unit at the same strength: of several persons, or of more "
    "rows than it names, more can be told.",
    "It is not anonymity, and no statement about who can read the rows, the memory or the disks of "
    "the machine, or how long a computation takes.",
    "It does not make bounds private that somebody read off the rows before declaring them.",
)


def guaranteed(guarantee: Guarantee | Pufferfish) -> tuple[str, ...]:
    """Say what a guarantee promises."""
    match guarantee:
        case Pufferfish():
            return (
                "This is a Pufferfish guarantee. It is not differential privacy.",
                f"Under every law of the public class ({guarantee.model.describe()}), what is "
                "released changes the odds of any state against any other, at any one time of a "
                f"series, by at most a factor exp({guarantee.eps:g}) = {_factor(guarantee.eps)}.",
                "Nothing is promised where the truth is outside that class, nor about whether a "
                "series is in the table, nor about a stretch of time as a whole.",
            )
        case ZCDP(rho):
            implied = signif(zcdp_to_approx(rho, _DELTA), 3)
            return (
                f"This is {rho:g}-zero-concentrated differential privacy: of any two neighbouring "
                "tables, the Renyi divergence of every order a above 1 between what may be "
                f"released from them is at most {rho:g} times a.",
                f"It implies (eps, delta)-differential privacy with eps = {implied} and delta = "
                f"{_DELTA:g}, and with other pairs.",
            )
        case ApproxDP(eps, delta):
            return (
                f"This is (eps, delta)-differential privacy with eps = {eps:g} and delta = "
                f"{delta:g}: of any two neighbouring tables, the probability that one of a set of "
                f"outputs is released from the one is at most exp({eps:g}) = {_factor(eps)} times "
                f"that from the other, plus {delta:g}, whatever the set.",
                "delta is a probability for which nothing is promised; it has to be well below 1 "
                "over the number of those protected.",
            )
        case pure:
            eps = pure.eps
            return (
                f"This is eps-differential privacy with eps = {eps:g}: of any two neighbouring "
                "tables, the probability that one of a set of outputs is released from the one is "
                f"at most exp({eps:g}) = {_factor(eps)} times that from the other, whatever the "
                "set.",
            )


def neighbours(relation: Adjacency) -> str:
    """Say which tables are neighbours, and what is public of their size."""
    what = "persons" if relation.person is not None else "rows"
    if relation.n_public:
        change = f"{relation.unit} is replaced by any other"
        size = f"The number of {what} is public, and not protected"
    else:
        change = f"{relation.unit} is added or removed"
        size = f"The number of {what} is protected too"
    whose = ""
    if relation.person is not None:
        whose = f" The column {relation.person!r} says whose a row is; it is taken at its word."
    return f"Tables are neighbours where {change}. {size}.{whose}"


def _factor(eps: float) -> str:
    return signif(math.exp(eps), 3) if eps < 700 else "more than 1e+300"
