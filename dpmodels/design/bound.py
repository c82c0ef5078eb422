"""What all holders of rows share: rows bound to a public question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

from dpmodels.codebook import Codebook
from dpmodels.design.rows import Rows, Terms, rows_of
from dpmodels.frames.dask_rows import DaskRows
from dpmodels.noise import Entropy


class BoundRows(ABC):
    """Rows and what is asked of them; a kind of it says what they become."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @abstractmethod
    def of(self, rows: Rows) -> Self:
        """Return other rows on the same way."""

    def among(self, terms: Callable[[Terms], Terms]) -> Self:
        """Return the same of no rows, with other terms for those that are bound to it."""
        return self.of(rows_of(terms(self._rows.terms)))

    def bind(self, data: object) -> Self:
        """Return a user's rows bound alike, of which none is read.

        Raises
        ------
        FrameError
            From the data, their column names and types.
        """
        return self.of(self._rows.bound(data))

    def sides(self, heads: int, entropy: Entropy) -> tuple[Self, Self]:
        """Part the rows by fresh coins: a share of ``heads/256`` goes to the first side.

        Rows of the other side are there, and do not count.
        """
        first, other = self._rows.sides(heads, entropy)
        return self.of(first), self.of(other)

    def standing(self, times: int) -> Self:
        """Return the same rows, each as often as `times`: a table of as many is not made."""
        return self.of(self._rows.standing(times))

    @property
    def codebook(self) -> Codebook:
        """The declarations that are used."""
        return self._rows.terms.codebook

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self._rows.terms.variables

    @property
    def scattered(self) -> DaskRows | None:
        """The rows where they lie with the workers of a cluster, None where they can be read."""
        return self._rows.scattered

    @property
    def nrows(self) -> int | None:
        """Number of rows, None where only reading them would tell; it may be private."""
        return self._rows.nrows

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read here several times."""
        return self._rows.rereadable
