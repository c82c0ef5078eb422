"""Rows bound to a public request, whatever they become there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.design.parts import Checksum, Readings, SampledPlaces
from dpmodels.design.rows import Rows, Terms, rows_of
from dpmodels.frames import RowSource
from dpmodels.frames.dask_rows import DaskRows
from dpmodels.noise import Entropy
from dpmodels.typing import Integers

Bound = TypeVar("Bound")


class BoundRows(ABC):
    """Rows bound to a request; subclasses say what the rows become."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @property
    @abstractmethod
    def _request(self) -> tuple[object, ...]:
        """Public facts: what the class takes before the rows."""

    def of(self, rows: Rows) -> Self:
        """Return the same request for other rows."""
        kind: Callable[..., Self] = type(self)
        return kind(*self._request, rows)

    @property
    def recipe(self) -> Callable[[RowSource], Self]:
        """A function, made of public facts, that binds other rows in the same way."""
        return partial(_bound, type(self), self._request, self._rows.recipe)

    def among(self, terms: Callable[[Terms], Terms]) -> Self:
        """Return the same request without rows, with changed terms."""
        return self.of(rows_of(terms(self._rows.terms)))

    def bind(self, data: object) -> Self:
        """Bind a user's data to the same request without reading a row.

        Raises
        ------
        FrameError
            From the data, their column names and types.
        """
        return self.of(self._rows.bound(data))

    @property
    def unread(self) -> Self:
        """The same request without rows."""
        return self.among(lambda terms: terms)

    @property
    def is_streamed(self) -> bool | None:
        """Whether a database gives each row in every pass; None if the rows are in none."""
        return self._rows.is_streamed

    def capped(self, cap: float, factors: tuple[float, ...] = ()) -> Self:
        """Return rows of a survey design with the places that follow from a released cap.

        `factors` are those of squared scores by stratum, released too.
        """
        return self.of(self._rows.capped(cap, factors))

    @property
    def sampled(self) -> SampledPlaces | None:
        """The survey design of the rows; None without one."""
        return self._rows.terms.sampled

    def unit_strata(self) -> NDArray[np.intp]:
        """Return the stratum of each unit of a survey design by number, -1 without one."""
        return self._rows.unit_strata()

    def unit_weights(self) -> Iterator[Integers]:
        """Yield the total weights of units of a survey design, each once."""
        return self._rows.unit_weights()

    def asked(self, request: Callable[[Rows], Bound]) -> Bound:
        """Return another request for the same rows."""
        return request(self._rows)

    def sides(self, heads: int, entropy: Entropy) -> tuple[Self, Self]:
        """Split the rows at random: each goes to the first part with chance ``heads/256``.

        Rows of the other part do not count.
        """
        first, second = self._rows.sides(heads, entropy)
        return self.of(first), self.of(second)

    @property
    def can_be_thinned(self) -> bool:
        """Whether rows can be read at random, each by itself; it follows from public facts."""
        return self._rows.can_be_thinned

    def thinned(self, heads: int, entropy: Entropy) -> Self:
        """Return rows of which each is read with chance ``heads/256``, by coins of their own."""
        return self.of(self._rows.thinned(heads, entropy))

    @property
    def reads_some(self) -> bool:
        """Whether coins choose the rows that are read."""
        return self._rows.thinning is not None

    def standing(self, times: int) -> Self:
        """Return the same rows, each counted `times` times, without copying them."""
        return self.of(self._rows.standing(times))

    def drawn_by(self, secret: bytes) -> Self:
        """Return the same rows, of which a secret of 24 bytes draws those of a person that count.

        The same secret draws the same rows in each reading.
        """
        return self.of(self._rows.drawn_by(secret))

    def beside(self, places: int) -> Self:
        """Return the same rows of persons beside so many places that no row takes."""
        return self.of(self._rows.beside(places))

    @property
    def codebook(self) -> Codebook:
        """The declarations that are used."""
        return self._rows.terms.codebook

    @property
    def n_columns(self) -> int:
        """How many columns are read or computed from what is read, whichever are more."""
        return len(self.codebook)

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self._rows.terms.variables

    @property
    def scattered(self) -> DaskRows | None:
        """The rows of a Dask DataFrame, which stay with the workers; None for local rows."""
        return self._rows.scattered

    @property
    def nrows(self) -> int | None:
        """Number of rows, None if the rows have to be read for it; it may be private."""
        return self._rows.nrows

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read several times."""
        return self._rows.rereadable

    @property
    def readings(self) -> Readings:
        """What the passes over rows on workers have in common."""
        return self._rows.readings

    def in_partition(self, number: int, checksum: Checksum | None) -> None:
        """Say which partition the rows are, and what to add them to when they are read."""
        self._rows.in_partition(number, checksum)


def _bound(
    kind: Callable[..., Bound],
    request: tuple[object, ...],
    rows: Callable[[RowSource], Rows],
    source: RowSource,
) -> Bound:
    return kind(*request, rows(source))
