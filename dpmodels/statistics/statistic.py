"""A statistic: an exact answer that has not been released."""

from __future__ import annotations

from typing import Any, NoReturn

from numpy.typing import NDArray

from dpmodels.errors import PrivacyError


class Statistic:
    """Exact integers computed from rows; only a mechanism may read them.

    Parameters
    ----------
    name : str
        What the statistic is.
    exact : ndarray of int (dtype object)
        Python integers, so that no sum can overflow.
    rows : int
        How many rows were read, complete or not.
    """

    __slots__ = ("_exact", "_rows", "name")

    def __init__(self, name: str, exact: NDArray[Any], rows: int) -> None:
        self.name = name
        self._exact = exact
        self._rows = rows

    def __repr__(self) -> str:
        return f"<Statistic {self.name}, not released>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("a statistic is not released and cannot be pickled or copied")

    def __add__(self, other: Statistic) -> Statistic:
        """Add the same statistic of disjoint rows."""
        return Statistic(self.name, self._exact + other._exact, self._rows + other._rows)

    def cross(self) -> tuple[NDArray[Any], int]:
        """Hand the exact integers and the row count to the mechanism that releases them."""
        return self._exact, self._rows
