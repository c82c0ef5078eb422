"""Columns whose levels nobody declared, on their way to counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn, Self, TypeVar

from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.design.bound import BoundRows
from dpmodels.design.columns import declared_facts
from dpmodels.design.places import FOLDS, multiplied, placed
from dpmodels.design.rows import Rows, Terms, levels_of, rows_of
from dpmodels.errors import PrivacyError
from dpmodels.frames import RowSource

# Rows that are counted at a time: a choice.
BLOCK_ROWS = 2**17

Answer = TypeVar("Answer")


class PrivateLevels(BoundRows):
    """Columns of text or whole numbers; shows their names only."""

    __slots__ = ("formula",)

    def __init__(self, formula: str, rows: Rows) -> None:
        self.formula = formula
        super().__init__(rows)

    def __repr__(self) -> str:
        return f"<PrivateLevels {self.formula!r}, rows not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("rows to be counted cannot be pickled or copied")

    def of(self, rows: Rows) -> Self:
        """Return other rows on the same way."""
        return type(self)(self.formula, rows)

    @property
    def recipe(self) -> Callable[[RowSource], PrivateLevels]:
        """How to bind other rows alike; made of public facts, so it may be sent anywhere."""
        return partial(_bound, self.formula, self._rows.recipe)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns whose levels are counted."""
        return self._rows.terms.named

    @property
    def facts(self) -> dict[str, str]:
        """What is public of the columns, as texts that can be compared."""
        terms = self._rows.terms
        named = {"levels of": repr(list(terms.named))}
        return {**declared_facts(self.formula, terms.codebook), **named, **terms.facts}

    def blocks(
        self, function: Callable[[tuple[NDArray[Any], ...]], Answer], *, count_public: bool
    ) -> Iterator[tuple[Answer, int]]:
        """Apply a function to the levels that rows name, in the order of `names`, block by block.

        It takes an array of names a column, None where a row names none, of rows that count.
        What it returned and how many rows it saw come back; `count_public` says whether progress
        may show how many there are.
        """
        for part in self._rows.parts(count_public=count_public):
            for own, size, times in placed(part.places, part.rows, BLOCK_ROWS, FOLDS):
                columns = [part.columns[levels_of(name)][own] for name in self.names]
                if part.counted is not None:
                    columns = [column[part.counted[own]] for column in columns]
                yield multiplied(function(tuple(columns)), times), times * size


def unbound_levels(formula: str, variables: tuple[str, ...]) -> PrivateLevels:
    """Return the columns of no rows, to which those of any holder are bound."""
    return PrivateLevels(formula, rows_of(Terms(Codebook(), named=variables)))


def _bound(formula: str, rows: Callable[[RowSource], Rows], source: RowSource) -> PrivateLevels:
    return PrivateLevels(formula, rows(source))
