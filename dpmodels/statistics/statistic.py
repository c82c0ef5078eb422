"""A statistic: an exact answer that has not been released."""

from __future__ import annotations

from typing import Any, NoReturn

from numpy.typing import NDArray

from dpmodels.errors import ArgumentError, PrivacyError
from dpmodels.statistics.fingerprint import Fingerprint

UNSTATED = Fingerprint()


class Statistic:
    """Exact integers computed from rows; only a mechanism may read them.

    `exact` are Python integers, so that no sum can overflow; `rows` were read, complete or not.
    """

    __slots__ = ("_exact", "_rows", "fingerprint", "name")

    def __init__(
        self, name: str, exact: NDArray[Any], rows: int, fingerprint: Fingerprint = UNSTATED
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._exact = exact
        self._rows = rows

    def __repr__(self) -> str:
        return f"<Statistic {self.name}, not released>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("a statistic is not released and cannot be pickled or copied")

    def __add__(self, other: Statistic) -> Statistic:
        """Add the same statistic of disjoint rows.

        ArgumentError: the two are not the same statistic; the message names the first
        difference in what is public about them.
        """
        self._require(other)
        exact = self._exact + other._exact
        return Statistic(self.name, exact, self._rows + other._rows, self.fingerprint)

    def cross(self) -> tuple[NDArray[Any], int]:
        """Hand the exact integers and the row count to the mechanism that releases them."""
        return self._exact, self._rows

    def _require(self, other: Statistic) -> None:
        if type(self) is not type(other) or self.name != other.name:
            raise ArgumentError(
                f"{self.name} and {other.name} do not add: measure both with the same mechanism"
            )
        self.fingerprint.require(other.fingerprint)
        if self._exact.shape != other._exact.shape:
            raise ArgumentError(
                f"{self.name} of shapes {self._exact.shape} and {other._exact.shape} do not add: "
                "measure both with the same formula and codebook"
            )
