"""Rows bound to a public request, whatever they become there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Self, TypeVar

from dpmodels.codebook import Codebook
from dpmodels.design.parts import Unshown
from dpmodels.design.rows import Rows, Terms, rows_of
from dpmodels.frames import RowSource
from dpmodels.frames.dask_rows import DaskRows
from dpmodels.noise import Entropy

Bound = TypeVar("Bound")


@dataclass(frozen=True, eq=False, repr=False)
class BoundRows(Unshown, ABC):
    """Rows and a request for them; subclasses say what the rows become, by public fields."""

    rows: Rows

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.facts['formula']!r}, rows not shown>"

    @property
    @abstractmethod
    def facts(self) -> dict[str, str]:
        """Public facts about the rows, as comparable texts; the formula among them."""

    def of(self, rows: Rows) -> Self:
        """Return the same request for other rows."""
        return replace(self, rows=rows)

    @property
    def recipe(self) -> Callable[[RowSource], Self]:
        """A function, made of public facts, that binds other rows in the same way."""
        names = [field.name for field in fields(self) if field.name != "rows"]
        request = {name: getattr(self, name) for name in names}
        return partial(_bound, type(self), request, self.rows.recipe)

    def among(self, terms: Callable[[Terms], Terms]) -> Self:
        """Return the same request without rows, with changed terms."""
        return self.of(rows_of(terms(self.rows.terms)))

    def bind(self, data: object) -> Self:
        """Bind a user's data to the same request without reading a row.

        Raises
        ------
        FrameError
            From the data, their column names and types.
        """
        return self.of(self.rows.bound(data))

    @property
    def is_streamed(self) -> bool | None:
        """Whether a database gives each row in every pass; None if the rows are in none."""
        return self.rows.is_streamed

    def sides(self, heads: int, entropy: Entropy) -> tuple[Self, Self]:
        """Split the rows at random: each goes to the first part with chance ``heads/256``.

        Rows of the other part do not count.
        """
        first, second = self.rows.sides(heads, entropy)
        return self.of(first), self.of(second)

    @property
    def codebook(self) -> Codebook:
        """The declarations that are used."""
        return self.rows.terms.codebook

    @property
    def n_columns(self) -> int:
        """How many columns are read or computed from what is read, whichever are more."""
        return len(self.codebook)

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.rows.terms.variables

    @property
    def scattered(self) -> DaskRows | None:
        """The rows of a Dask DataFrame, which stay with the workers; None for local rows."""
        return self.rows.scattered

    @property
    def nrows(self) -> int | None:
        """Number of rows, None if the rows have to be read for it; it may be private."""
        return self.rows.nrows

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read several times."""
        return self.rows.rereadable


def _bound(
    kind: Callable[..., Bound],
    request: Mapping[str, object],
    rows: Callable[[RowSource], Rows],
    source: RowSource,
) -> Bound:
    return kind(**request, rows=rows(source))
