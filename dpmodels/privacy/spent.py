"""Amounts of privacy, and what releases amount to in the currency of a guarantee."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from dpmodels.privacy.budget import ApproxDP, Guarantee, PureDP
from dpmodels.privacy.compose import total_eps, total_rho
from dpmodels.privacy.events import Event
from dpmodels.privacy.pufferfish import Pufferfish, plus
from dpmodels.privacy.totals import Totals


@dataclass(frozen=True, slots=True)
class Spent:
    """An amount of privacy in the currency of a guarantee.

    Parameters
    ----------
    amount : float
        Zero or above; infinite for releases that have no guarantee in this currency.
    unit : {"eps", "rho"}
        The currency.
    delta : float, default 0.0
        The delta at which `eps` is stated; zero for pure eps and for rho.

    Examples
    --------
    >>> Spent(1.48, "eps", delta=1e-6).describe()
    'eps = 1.48, delta = 1e-06'
    """

    amount: float
    unit: Literal["eps", "rho"]
    delta: float = 0.0

    def left_of(self, total: "Spent") -> "Spent":
        """Return what is left of an amount in the same currency, zero at least."""
        return replace(total, amount=max(total.amount - self.amount, 0.0))

    def describe(self) -> str:
        """Return the amount in a few words, as reports print it."""
        delta = f", delta = {self.delta:g}" if self.delta else ""
        return f"{self.unit} = {self.amount:g}{delta}"


def capacity(guarantee: Guarantee | Pufferfish) -> Spent:
    """Return the amount that spends a guarantee to the last.

    >>> capacity(PureDP(2.0))
    Spent(amount=2.0, unit='eps', delta=0.0)
    """
    match guarantee:
        case PureDP(eps) | Pufferfish(eps):
            return Spent(eps, "eps")
        case ApproxDP(eps, delta):
            return Spent(eps, "eps", delta)
        case concentrated:
            return Spent(concentrated.rho, "rho")


def price(events: Iterable[Event], guarantee: Guarantee | Pufferfish) -> Spent:
    """Return what releases cost together, in the currency of a guarantee.

    Infinite for Gaussian events under `PureDP`.

    >>> from dpmodels.privacy.events import PureEvent
    >>> price([PureEvent(0.5, count=2)], PureDP(2.0)).amount
    1.0
    """
    budget = capacity(guarantee)
    if isinstance(guarantee, Pufferfish):
        return replace(budget, amount=plus(guarantee, Totals(), tuple(events)).pure)
    amount = total_eps(events, budget.delta) if budget.unit == "eps" else total_rho(events)
    return replace(budget, amount=amount)
