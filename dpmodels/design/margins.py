"""Rows on their way into margins: the level of each variable, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.design.bound import BoundRows
from dpmodels.design.columns import declared_facts
from dpmodels.design.places import FOLDS, multiplied, placed
from dpmodels.design.rows import Part, Rows, Terms, rows_of
from dpmodels.errors import PrivacyError
from dpmodels.formula.margins import Margins
from dpmodels.formula.values import Category
from dpmodels.frames import RowSource

# Rows that are counted at a time: a choice.
BLOCK_ROWS = 2**17

Answer = TypeVar("Answer")
Codes = NDArray[np.intp]


class PrivateMargins(BoundRows):
    """Rows to be counted in margins; shows public facts only."""

    __slots__ = ("asked",)

    def __init__(self, asked: Margins, rows: Rows) -> None:
        self.asked = asked
        super().__init__(rows)

    def __repr__(self) -> str:
        return f"<PrivateMargins {self.asked.text!r}, rows not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("rows to be counted cannot be pickled or copied")

    def of(self, rows: Rows) -> Self:
        """Return other rows on the same way."""
        return type(self)(self.asked, rows)

    @property
    def recipe(self) -> Callable[[RowSource], PrivateMargins]:
        """How to bind other rows alike; made of public facts, so it may be sent anywhere."""
        return partial(_bound, self.asked, self._rows.recipe)

    @property
    def facts(self) -> dict[str, str]:
        """What is public of the rows and their margins, as texts that can be compared."""
        own = self.asked
        declared = declared_facts(own.text, self.codebook)
        levels = {f"levels of {one.code}": repr(list(one.levels)) for one in own.factors}
        return {**declared, **levels, "margins": repr(own.terms), **self._rows.terms.facts}

    def blocks(
        self, function: Callable[[list[Codes]], Answer], *, count_public: bool
    ) -> Iterator[tuple[Answer, int]]:
        """Apply a function to the levels of rows, block by block.

        It takes the place of each row's level, an array a variable; the place behind the last one
        stands for what is missing or unlisted, and for all of a row that does not count. What it
        returned and how many rows it saw come back; `count_public` says whether progress may show
        how many there are.
        """
        for part in self._rows.parts(count_public=count_public):
            for own, size, times in placed(part.places, part.rows, BLOCK_ROWS, FOLDS):
                codes = [_codes(factor, part, own) for factor in self.asked.factors]
                yield multiplied(function(codes), times), times * size


def unbound_margins(asked: Margins) -> PrivateMargins:
    """Return the margins of no rows, to which those of any holder are bound."""
    return PrivateMargins(asked, rows_of(Terms(asked.codebook)))


def _codes(factor: Category, part: Part, own: slice) -> Codes:
    columns = {name: column[own] for name, column in part.columns.items()}
    found = np.asarray(factor.evaluate(columns))
    known = ~np.isnan(found)
    if part.counted is not None:
        known = known & part.counted[own]
    return np.where(known, found, len(factor.levels)).astype(np.intp)


def _bound(asked: Margins, rows: Callable[[RowSource], Rows], source: RowSource) -> PrivateMargins:
    return PrivateMargins(asked, rows(source))
