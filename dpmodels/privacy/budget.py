"""What is guaranteed, and to whom: budgets as values, and the relation of neighbours.

A bare float never stands for a budget.

.. [1] Dwork, C., Kenthapadi, K., McSherry, F., Mironov, I. and Naor, M. (2006). "Our Data,
   Ourselves: Privacy Via Distributed Noise Generation." EUROCRYPT 2006.
.. [2] Bun, M. and Steinke, T. (2016). "Concentrated Differential Privacy: Simplifications,
   Extensions, and Lower Bounds." TCC 2016-B.
.. [3] Dwork, C. and Roth, A. (2014). "The Algorithmic Foundations of Differential Privacy."
   Foundations and Trends in Theoretical Computer Science 9(3-4), 211-407. Section 2.3.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

from dpmodels.arguments import real
from dpmodels.errors import ArgumentError, BudgetError, said

_WRITE_BUDGET: Final = "write eps=1.0, or eps=1.0, delta=1e-6, or budget=dp.ZCDP(0.1)"


def finite_number(name: str, value: object, write: str) -> float:
    """Return a finite float, or refuse it by its argument's name and say what to `write`."""
    number = real(value)
    if math.isnan(number):
        raise BudgetError(f"{name}={said(value)} is not a finite number: {write}.")
    return number


def positive_number(name: str, value: object, write: str) -> float:
    """Return `value` as a float between 1e-100 and 1e100, whose squares are finite too."""
    number = finite_number(name, value, write)
    if number <= 0:
        raise BudgetError(f"{name}={number!r} is not above zero: {write}.")
    if not 1e-100 <= number <= 1e100:
        raise BudgetError(f"{name}={number!r} is not between 1e-100 and 1e100: {write}.")
    return number


def unit_number(name: str, value: object, write: str) -> float:
    """Return `value` as a float in [0, 1)."""
    number = finite_number(name, value, write)
    if not 0 <= number < 1:
        raise BudgetError(f"{name}={number!r} is not in [0, 1): {write}.")
    return number


@dataclass(frozen=True, slots=True)
class PureDP:
    """The guarantee of eps-differential privacy.

    Parameters
    ----------
    eps : float
        Bound on the privacy loss, above zero.

    Raises
    ------
    BudgetError
        If `eps` is not a number between 1e-100 and 1e100.

    Examples
    --------
    >>> PureDP(1).describe()
    'eps = 1'
    """

    eps: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", positive_number("eps", self.eps, "write eps=1.0"))

    def describe(self) -> str:
        """Return the guarantee as reports print it."""
        return f"eps = {self.eps:g}"


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """The guarantee of (eps, delta)-differential privacy.

    Parameters
    ----------
    eps : float
        Bound on the privacy loss, above zero.
    delta : float
        Above zero and below one; well below 1/n for n rows.

    Raises
    ------
    BudgetError
        If either lies outside its range.

    Examples
    --------
    >>> ApproxDP(eps=1, delta=1e-6).describe()
    'eps = 1, delta = 1e-06'
    """

    eps: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", positive_number("eps", self.eps, "write eps=1.0"))
        delta = unit_number("delta", self.delta, "write delta=1e-6")
        if delta == 0:
            raise BudgetError(
                "delta=0 asks for a pure guarantee: write PureDP(eps), or delta=1e-6."
            )
        object.__setattr__(self, "delta", delta)

    def describe(self) -> str:
        """Return the guarantee as reports print it."""
        return f"eps = {self.eps:g}, delta = {self.delta:g}"


@dataclass(frozen=True, slots=True)
class ZCDP:
    """The guarantee of rho-zero-concentrated differential privacy.

    Parameters
    ----------
    rho : float
        Above zero. A Gaussian release of multiplier m costs 1/(2 m**2).

    Raises
    ------
    BudgetError
        If `rho` is not a number between 1e-100 and 1e100.

    Examples
    --------
    >>> ZCDP(0.1).describe()
    'rho = 0.1 (zCDP)'
    """

    rho: float

    def __post_init__(self) -> None:
        write = "write budget=dp.ZCDP(0.1)"
        object.__setattr__(self, "rho", positive_number("rho", self.rho, write))

    def describe(self) -> str:
        """Return the guarantee as reports print it."""
        return f"rho = {self.rho:g} (zCDP)"


Guarantee = PureDP | ApproxDP | ZCDP


def resolve_budget(
    eps: float | None = None, delta: float = 0.0, budget: Guarantee | None = None
) -> Guarantee:
    """Return the guarantee the words `eps`, `delta` and `budget` of a verb ask for.

    One of `eps` (with `delta` in [0, 1); zero asks for a pure guarantee) and `budget` is given.

    >>> resolve_budget(eps=1.0, delta=1e-6)
    ApproxDP(eps=1.0, delta=1e-06)
    >>> resolve_budget(budget=ZCDP(0.1))
    ZCDP(rho=0.1)
    """
    delta = unit_number("delta", delta, "write delta=1e-6, or leave delta out")
    if budget is None:
        if eps is None:
            raise BudgetError(f"Neither eps nor budget is given: {_WRITE_BUDGET}.")
        return PureDP(eps) if delta == 0 else ApproxDP(eps, delta)
    if not isinstance(budget, Guarantee):
        raise BudgetError(f"budget is a {type(budget).__name__}, not a guarantee: {_WRITE_BUDGET}.")
    if eps is not None:
        raise BudgetError(f"eps and budget are both given: keep one; {_WRITE_BUDGET}.")
    if delta != 0:
        raise BudgetError(
            f"delta={delta!r} is given with budget, which states the whole guarantee: leave "
            "delta out, or write eps=1.0, delta=1e-6 and no budget."
        )
    return budget


AdjacencyName = Literal["replace", "add-remove"]

_DESCRIPTIONS: Final = {
    "replace": "replace one row, n public",
    "add-remove": "add or remove one row",
}


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A relation between neighbouring tables.

    Parameters
    ----------
    name : {"replace", "add-remove"}
        ``"replace"``: one row is changed to any other, the number of rows is public.
        ``"add-remove"``: one row more or fewer, the number of rows is private and has to be bought.

    Raises
    ------
    ArgumentError
        If the name is neither of the two.

    Examples
    --------
    >>> Adjacency("replace").describe()
    'replace one row, n public'
    >>> Adjacency("add-remove").n_public
    False
    """

    name: AdjacencyName

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in _DESCRIPTIONS:
            raise ArgumentError(
                f"adjacency={said(self.name)} is not known: write adjacency='replace' (one row is "
                "changed, n is public) or adjacency='add-remove' (one row more or fewer, n is "
                "private)."
            )

    @property
    def n_public(self) -> bool:
        """Whether the number of rows is a public fact."""
        return self.name == "replace"

    def describe(self) -> str:
        """Return the relation in a few words, as reports print it."""
        return _DESCRIPTIONS[self.name]


def adjacency(name: AdjacencyName | Adjacency) -> Adjacency:
    """Return the neighbouring relation a verb's word `adjacency` stands for.

    >>> adjacency("replace")
    Adjacency(name='replace')
    """
    return name if isinstance(name, Adjacency) else Adjacency(name)
