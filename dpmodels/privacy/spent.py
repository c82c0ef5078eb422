"""Amounts of privacy loss, and the cost of releases in the unit of a guarantee."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from dpmodels.privacy.budget import ZCDP, ApproxDP, Guarantee, PureDP, resolve_budget
from dpmodels.privacy.compose import Totals, total_eps, total_rho
from dpmodels.privacy.events import Event
from dpmodels.privacy.pufferfish import Pufferfish, plus


@dataclass(frozen=True, slots=True)
class Spent:
    """An amount of privacy loss in the unit of a guarantee.

    Parameters
    ----------
    amount : float
        Nonnegative; infinite for releases without a guarantee in this unit.
    unit : {"eps", "rho"}
        The unit.
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
        """Return what is left of an amount in the same unit, zero at least."""
        return replace(total, amount=max(total.amount - self.amount, 0.0))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of which it is the full budget.

        >>> Spent(1.0, "eps").guarantee
        PureDP(eps=1.0)
        """
        return ZCDP(self.amount) if self.unit == "rho" else resolve_budget(self.amount, self.delta)

    def describe(self) -> str:
        """Return the amount as reports print it."""
        delta = f", delta = {self.delta:g}" if self.delta else ""
        return f"{self.unit} = {self.amount:g}{delta}"


def capacity(guarantee: Guarantee | Pufferfish) -> Spent:
    """Return the full budget of a guarantee.

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
    """Return the cost of releases together, in the unit of a guarantee.

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
