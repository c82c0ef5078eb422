"""Rows on their way into tables: which cell each falls in, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.design.bound import BoundRows
from dpmodels.design.columns import declared_facts
from dpmodels.design.places import FOLDS, multiplied, placed
from dpmodels.design.rows import Part, Rows, Terms, rows_of
from dpmodels.errors import FrameError, PrivacyError
from dpmodels.formula.tally import Placed, Tally
from dpmodels.frames import RowSource
from dpmodels.privacy import Adjacency
from dpmodels.typing import Floats

# Sums over so many rows of integers up to 2**40 are exact in float64.
BLOCK_ROWS = 8192

Answer = TypeVar("Answer")


class PrivateCells(BoundRows):
    """Rows to be counted; shows public facts only."""

    __slots__ = ("formula", "tallies")

    def __init__(self, formula: str, tallies: tuple[Tally, ...], rows: Rows) -> None:
        self.formula = formula
        self.tallies = tallies
        super().__init__(rows)

    def __repr__(self) -> str:
        return f"<PrivateCells {self.formula!r}, rows not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("rows to be counted cannot be pickled or copied")

    def of(self, rows: Rows) -> Self:
        """Return other rows on the same way."""
        return type(self)(self.formula, self.tallies, rows)

    @property
    def recipe(self) -> Callable[[RowSource], PrivateCells]:
        """How to bind other rows alike; made of public facts, so it may be sent anywhere."""
        return partial(_bound, self.formula, self.tallies, self._rows.recipe)

    def require_passes(self) -> None:
        """Refuse rows that can be read only once, before one is read: a FrameError."""
        if not self.rereadable:
            raise FrameError(
                "the mechanism reads the rows several times, and a Dask DataFrame or an iterable "
                "of tables is read once: write mechanism='geometric' or 'gaussian' where the verb "
                "takes them, or write the rows to one Parquet file and give its path"
            )

    def held(self, lower: float, upper: float) -> PrivateCells:
        """Return the same rows, every measured number held in a released range instead."""
        tallies = tuple(
            replace(own, measured=own.measured and replace(own.measured, lower=lower, upper=upper))
            for own in self.tallies
        )
        return PrivateCells(self.formula, tallies, self._rows)

    def cut(self, ends: tuple[Floats, ...]) -> PrivateCells:
        """Return the same rows, counted by which cell each number lies in; ends by table."""
        tallies = tuple(own.cut(each) for own, each in zip(self.tallies, ends, strict=True))
        return PrivateCells(self.formula, tallies, self._rows)

    @property
    def facts(self) -> dict[str, str]:
        """What is public of the rows and their tables, as texts that can be compared."""
        declared = declared_facts(self.formula, self.codebook)
        return {**declared, **_table_facts(self.tallies), **self._rows.terms.facts}

    def blocks(
        self, function: Callable[[tuple[Placed, ...]], Answer], *, count_public: bool
    ) -> Iterator[tuple[Answer, int]]:
        """Apply a function to where the rows fall, block by block.

        The function takes one :class:`Placed` a tally, of at most 8192 rows; what it returned and
        how many rows it saw come back. `count_public` says whether progress may show how many
        there are.
        """
        for part in self.parts(count_public=count_public):
            yield from in_blocks(part, self.tallies, function)

    @property
    def neighbours(self) -> Adjacency:
        """Between which rows nobody can tell."""
        return self._rows.terms.neighbours

    def parts(self, *, count_public: bool) -> Iterator[Part]:
        """Read the rows once, a chunk at a time."""
        return self._rows.parts(count_public=count_public)


def in_blocks(
    part: Part,
    tallies: tuple[Tally, ...],
    function: Callable[[tuple[Placed, ...]], Answer],
    most: int = BLOCK_ROWS,
) -> Iterator[tuple[Answer, int]]:
    """Apply a function to where some rows fall, at most so many of them at once."""
    for own, size, times in placed(part.places, part.rows, most, FOLDS):
        columns = {name: column[own] for name, column in part.columns.items()}
        counted = None if part.counted is None else part.counted[own]
        found = tuple(in_cells(tally, columns, counted) for tally in tallies)
        yield multiplied(function(found), times), times * size


def in_cells(
    tally: Tally, columns: Mapping[str, Floats], counted: NDArray[np.bool_] | None
) -> Placed:
    """Place rows, those that do not count as incomplete ones."""
    own = tally.place(columns)
    return own if counted is None else replace(own, cells=np.where(counted, own.cells, -1))


def private_cells(
    formula: str, data: object, codebook: Codebook, tallies: tuple[Tally, ...]
) -> PrivateCells:
    """Bind tables to data without reading a row.

    FrameError from the data and their column names.
    """
    return unbound_cells(formula, codebook, tallies).bind(data)


def unbound_cells(formula: str, codebook: Codebook, tallies: tuple[Tally, ...]) -> PrivateCells:
    """Return the tables of no rows, to which those of any holder are bound."""
    return PrivateCells(formula, tallies, rows_of(Terms(codebook)))


def _bound(
    formula: str, tallies: tuple[Tally, ...], rows: Callable[[RowSource], Rows], source: RowSource
) -> PrivateCells:
    return PrivateCells(formula, tallies, rows(source))


def _table_facts(tallies: tuple[Tally, ...]) -> dict[str, str]:
    """State what rows are counted by."""
    facts = {}
    for number, tally in enumerate(tallies, start=1):
        factors = [f"{factor.code}: {list(factor.levels)!r}" for factor in tally.factors]
        own = tally.measured
        powers = [] if own is None else [f"{own.code} in {own.lower!r} to {own.upper!r}"]
        powers += [f"powers to {tally.degree}"] if tally.degree else []
        powers += ["of persons in several cells"] if tally.clustered else []
        facts[f"table {number}"] = "; ".join([*factors, *powers])
    return facts
