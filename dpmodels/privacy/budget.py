"""Privacy guarantees as values, and the neighbouring relation that they protect.

A bare float is never a budget.

.. [1] Dwork, C., Kenthapadi, K., McSherry, F., Mironov, I. and Naor, M. (2006). "Our Data,
   Ourselves: Privacy Via Distributed Noise Generation." EUROCRYPT 2006.
.. [2] Bun, M. and Steinke, T. (2016). "Concentrated Differential Privacy: Simplifications,
   Extensions, and Lower Bounds." TCC 2016-B.
.. [3] Dwork, C. and Roth, A. (2014). "The Algorithmic Foundations of Differential Privacy."
   Foundations and Trends in Theoretical Computer Science 9(3-4), 211-407. Section 2.3.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, cast

from dpmodels.arguments import checked_fields, integer, real
from dpmodels.errors import ArgumentError, BudgetError, did_you_mean, quoted

# Users choose delta: a default could only be derived from the number of rows.
WRITE_DELTA: Final = "write delta=1e-6, a public number well below 1 over the number of rows"
_WRITE_BUDGET: Final = (
    "write eps=1.0 (the privacy loss: 0.1 is strict, 10 is loose), or eps=1.0, delta=1e-6 (delta "
    "well below 1 over the number of rows), or budget=dp.ZCDP(0.1)"
)


def finite_number(name: str, value: object, write: str) -> float:
    """Return a finite float, or refuse it; the error names the argument and what to `write`."""
    number = real(value)
    if math.isnan(number):
        raise BudgetError(f"{name}={quoted(value)} is not a finite number: {write}.")
    return number


def positive_number(name: str, value: object, write: str) -> float:
    """Return `value` as a float between 1e-100 and 1e100, whose squares are finite too."""
    number = finite_number(name, value, write)
    if number <= 0:
        raise BudgetError(f"{name}={number!r} is not positive: {write}.")
    if not 1e-100 <= number <= 1e100:
        raise BudgetError(f"{name}={number!r} is not between 1e-100 and 1e100: {write}.")
    return number


def unit_number(name: str, value: object, write: str) -> float:
    """Return `value` as a float in [0, 1)."""
    number = finite_number(name, value, write)
    if not 0 <= number < 1:
        raise BudgetError(f"{name}={number!r} is not in [0, 1): {write}.")
    return number


@checked_fields("dp.PureDP")
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


@checked_fields("dp.ApproxDP")
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


@checked_fields("dp.ZCDP")
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
    eps: float | None = None, delta: float = 0.0, budget: object = None
) -> Guarantee:
    """Return the guarantee that the arguments `eps`, `delta` and `budget` of a verb state.

    Give either `eps`, with `delta` in [0, 1) (zero for a pure guarantee), or `budget`.

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
        kind = type(budget).__name__
        raise BudgetError(f"budget is of type {kind}, not a guarantee: {_WRITE_BUDGET}.")
    if eps is not None:
        raise BudgetError(f"eps and budget are both given: keep one; {_WRITE_BUDGET}.")
    if delta != 0:
        raise BudgetError(
            f"delta={delta!r} is given with budget, which states the full guarantee: leave "
            "delta out, or write eps=1.0, delta=1e-6 and no budget."
        )
    return budget


AdjacencyName = Literal["replace", "add-remove"]

# Weight units of a person whose rows are averaged: divisible by 2, 3, 4, 5, 6, 10 and 12.
EVEN_PLACES: Final = 60
# A choice: sums over this many rows of a person, and their squares, are finite and exact.
MOST_ROWS: Final = 2**16


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A relation between neighbouring tables.

    Parameters
    ----------
    name : {"replace", "add-remove"}
        ``"replace"``: one row or person is changed to any other; their number is public.
        ``"add-remove"``: one row or person more or fewer; their number is private and costs budget.
    rows : int or "mean", optional
        How many rows differ at most, one by default. With `person`: how many rows of a person
        count, or ``"mean"`` for all of them, each person with the weight of one row.
    person : str, optional
        The column that identifies the person of a row; without it any `rows` rows are protected
        together.

    Raises
    ------
    ArgumentError
        If the name is unknown, `rows` is neither a positive integer nor ``"mean"``, or ``"mean"``
        is given without `person`.

    Examples
    --------
    >>> Adjacency("replace").describe()
    'replace one row, n public'
    >>> Adjacency("replace", 4, "id").describe()
    'replace one person (at most 4 rows), number of persons public'
    >>> Adjacency("add-remove").n_public
    False
    """

    name: AdjacencyName
    rows: int | Literal["mean"] | None = None
    person: str | None = None

    # Fields added after the first version: digests omit them where they are None.
    later: ClassVar[frozenset[str]] = frozenset({"rows", "person"})

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in _NAMES:
            raise ArgumentError(
                f"adjacency={quoted(self.name)} is not known{did_you_mean(self.name, _NAMES)}: "
                "write adjacency='replace' (one row is "
                "changed, n is public) or adjacency='add-remove' (one row more or fewer, n is "
                "private)."
            )
        if self.person is not None and not (isinstance(self.person, str) and self.person):
            raise ArgumentError(
                f"person={quoted(self.person)}: expected the name of the column that identifies "
                'persons, such as person="id"'
            )
        if isinstance(self.rows, str) and self.rows == "mean":
            if self.person is None:
                raise ArgumentError(
                    'rows="mean" averages over the rows of a person: write person="id" with the '
                    "name of the column that identifies persons, or rows=4 for any four rows"
                )
        elif self.rows is not None:
            write = '; write rows=4 for at most four rows of a person, or rows="mean" for all'
            n_rows = integer("rows", self.rows, 1, MOST_ROWS, write)
            object.__setattr__(self, "rows", None if (n_rows, self.person) == (1, None) else n_rows)
        elif self.person is not None:
            object.__setattr__(self, "rows", "mean")

    @property
    def n_public(self) -> bool:
        """Whether the number of rows or persons is public."""
        return self.name == "replace"

    @property
    def places(self) -> int:
        """Largest number of rows in which two neighbours differ."""
        if isinstance(self.rows, str):
            return EVEN_PLACES
        return self.rows or 1

    @property
    def design_effect(self) -> int:
        """Largest ratio of a sum's variance to its variance under independent rows.

        It holds for any dependence among the rows of one person: the square of a sum of m numbers
        is at most m times the sum of their squares. With ``"mean"`` the unit is the person, and
        the square of a person's mean is at most the mean of the squares.
        """
        return 1 if isinstance(self.rows, str) else self.places

    @property
    def counts_persons(self) -> bool:
        """Whether a release counts persons, each with the weight of one row."""
        return isinstance(self.rows, str)

    @property
    def unit(self) -> str:
        """The unit of protection, as reports print it."""
        if isinstance(self.rows, str):
            return "one person (all rows)"
        if self.person is not None:
            return f"one person (at most {self.rows} row{'s' * (self.places > 1)})"
        return "one row" if self.rows is None else f"any {self.rows} rows (one person's)"

    def describe(self) -> str:
        """Return the relation as reports print it."""
        if not self.n_public:
            return f"add or remove {self.unit}"
        public = "n" if self.person is None else "number of persons"
        return f"replace {self.unit}, {public} public"

    @property
    def text(self) -> str:
        """The relation as one string, which :func:`adjacency` reads."""
        if self.rows is None:
            return self.name
        return json.dumps([self.name, self.rows, self.person])

    def protects(self, relation: Adjacency) -> bool:
        """Whether a guarantee under this relation also holds under the other one."""
        differs = self.person is None and self.rows != relation.rows
        return (self.name, self.person) == (relation.name, relation.person) and not differs


_NAMES: Final = ("replace", "add-remove")


def adjacency(name: str | Adjacency) -> Adjacency:
    """Return the neighbouring relation of a verb's argument `adjacency`.

    >>> adjacency("replace").describe()
    'replace one row, n public'
    """
    if isinstance(name, Adjacency):
        return name
    if isinstance(name, str) and name.startswith("["):
        try:
            match json.loads(name):
                case [str(relation), int() | "mean" as rows, str() | None as person]:
                    return Adjacency(cast("AdjacencyName", relation), rows, person)
        except (ValueError, RecursionError):
            pass
    return Adjacency(cast("AdjacencyName", name))


def protecting(name: str | Adjacency, rows: object, person: object) -> Adjacency:
    """Return the relation of the arguments `adjacency`, `rows` and `person`.

    With `person`, `rows` is ``"mean"`` by default.

    >>> protecting("replace", 4, "id").unit
    'one person (at most 4 rows)'
    """
    relation = adjacency(name)
    if rows is None and person is None:
        return relation
    if relation.rows is not None:
        raise ArgumentError(
            f"adjacency= already states what is protected, {relation.unit}: leave out person= and "
            "rows="
        )
    return Adjacency(relation.name, cast("int", rows), cast("str", person))
