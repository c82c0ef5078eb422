"""Rows to be counted in tables: the cell of each row, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.design.bound_rows import BoundRows
from dpmodels.design.columns import by_rows, declared_facts
from dpmodels.design.parts import Part
from dpmodels.design.rows import Terms, levels_of, rows_of
from dpmodels.design.sql import counts_by_bounds, counts_by_cell
from dpmodels.formula.tally import Margins, Placed, Tally
from dpmodels.formula.values import BoundSide, Category, Column
from dpmodels.typing import Array, Floats, Integers

# Sums over so many rows of integers up to 2**40 are exact in float64.
BLOCK_ROWS = 8192

Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False, repr=False)
class PrivateCells(BoundRows):
    """Rows to be counted; shows public facts only."""

    formula: str
    tallies: tuple[Tally, ...]

    def require_passes(self) -> None:
        """Refuse rows that can be read only once, before one is read: a FrameError."""
        self.rows.require_passes("; mechanism='geometric' or 'gaussian', where taken, reads once")
        self.rows.keep(None)

    def clipped(self, lower: float, upper: float, beyond: tuple[float, ...] = ()) -> PrivateCells:
        """Return the same rows, clipped to a released range or divided between points beyond it."""
        tallies = tuple(
            replace(
                tally,
                measured=tally.measured and replace(tally.measured, lower=lower, upper=upper),
                beyond=beyond,
            )
            for tally in self.tallies
        )
        return replace(self, tallies=tallies)

    def cut(self, edges_by_table: tuple[Floats, ...]) -> PrivateCells:
        """Return the same rows, counted by which cell each number lies in; edges by table."""
        tallies = tuple(
            tally.cut(edges) for tally, edges in zip(self.tallies, edges_by_table, strict=True)
        )
        return replace(self, tallies=tallies)

    @property
    def facts(self) -> dict[str, str]:
        """Public facts about the rows and their tables, as comparable texts."""
        declared = declared_facts(self.formula, self.codebook)
        facts = dict[str, str]()
        for number, tally in enumerate(self.tallies, start=1):
            factors = [f"{factor.code}: {list(factor.levels)!r}" for factor in tally.factors]
            measured = tally.measured
            powers = []
            if measured is not None:
                powers.append(f"{measured.code} in {measured.lower!r} to {measured.upper!r}")
            powers += [f"powers to {tally.degree}"] if tally.degree else []
            powers += ["of persons in several cells"] if tally.clustered else []
            powers += [f"beyond: {tally.beyond!r}"] if tally.beyond else []
            if tally.sampling is not None:
                facts |= tally.sampling.facts
            facts[f"table {number}"] = "; ".join([*factors, *powers])
        return {**declared, **facts, **self.rows.terms.facts}

    def blocks(
        self, function: Callable[[tuple[Placed, ...]], Answer], *, count_public: bool
    ) -> Iterator[tuple[Answer, int]]:
        """Apply a function to the placements of rows, block by block.

        The function takes one :class:`Placed` per tally, of at most 8192 rows. Its results are
        yielded with the number of rows. `count_public` says whether progress may show the number
        of rows.
        """
        for part in self.parts(count_public=count_public):
            yield from by_placement(part, self.tallies, function)

    @property
    def is_streamed(self) -> bool | None:
        """Whether a database gives each row in every pass; None if the rows are in none."""
        return super().is_streamed and self.coded() is self

    def coded(self) -> PrivateCells:
        """Return the same tables, of rows whose levels the database finds where it does so."""
        tallies, engine = self.tallies, self.rows.database
        factors = tuple(factor for tally in tallies for factor in tally.factors)
        is_counted = factors and not any(tally.measured for tally in tallies)
        if engine is None or not is_counted or self.rows.grouped is not None:
            return self
        query = counts_by_cell(engine, self.codebook, factors)
        if query is None:
            return self
        columns = iter(map(str, range(len(factors))))
        coded = tuple(
            replace(
                tally,
                factors=tuple(
                    replace(factor, evaluate=Column(next(columns))) for factor in tally.factors
                ),
            )
            for tally in tallies
        )
        return replace(self, tallies=coded, rows=self.rows.in_levels(query, len(factors)))

    def by_bounds(self, bounds: Sequence[BoundSide]) -> Integers | None:
        """Count by bounds in the database, shape (bounds, 4); None where the rows are read."""
        engine = self.rows.database
        if engine is None or not bounds:
            return None
        return counts_by_bounds(engine, self.codebook, bounds)

    def parts(self, *, count_public: bool) -> Iterator[Part]:
        """Read the rows once, a chunk at a time."""
        parts, kept = self.rows.parts(count_public=count_public), self.rows.kept
        return parts if kept is None or kept.key is not None else kept.through(parts)


def by_placement(
    part: Part,
    tallies: tuple[Tally, ...],
    function: Callable[[tuple[Placed, ...]], Answer],
    max_rows: int = BLOCK_ROWS,
) -> Iterator[tuple[Answer, int]]:
    """Apply a function to the placements of rows, at most `max_rows` at once."""
    return by_rows(
        part,
        max_rows,
        lambda rows: function(
            tuple(in_cells(tally, rows.columns, rows.counted) for tally in tallies)
        ),
    )


def in_cells(
    tally: Tally, columns: Mapping[str, Floats], counted: NDArray[np.bool_] | None
) -> Placed:
    """Place rows; rows that do not count are treated as incomplete."""
    placement = tally.place(columns)
    if counted is None:
        return placement
    return replace(placement, cells=np.where(counted, placement.cells, -1))


def unbound_cells(formula: str, codebook: Codebook, tallies: tuple[Tally, ...]) -> PrivateCells:
    """Return the tables without rows, to which data can be bound."""
    return PrivateCells(rows_of(Terms(codebook)), formula, tallies)


# Columns whose levels are undeclared.

# Rows of levels and of margins that are counted at a time: a choice.
MANY_ROWS = 2**17


@dataclass(frozen=True, eq=False, repr=False)
class PrivateLevels(BoundRows):
    """Columns of text or whole numbers; shows their names only."""

    formula: str

    @property
    def names(self) -> tuple[str, ...]:
        """The columns whose levels are counted."""
        return self.rows.terms.undeclared

    @property
    def facts(self) -> dict[str, str]:
        """Public facts about the columns, as comparable texts."""
        terms = self.rows.terms
        levels = {"levels of": repr(list(terms.undeclared))}
        return {**declared_facts(self.formula, terms.codebook), **levels, **terms.facts}

    def blocks(
        self, function: Callable[[tuple[Array, ...]], Answer], *, count_public: bool
    ) -> Iterator[tuple[Answer, int]]:
        """Apply a function to the levels of rows, in the order of `names`, block by block.

        It takes an array of names per column, with None for missing, of rows that count. Its
        results are yielded with the number of rows; `count_public` says whether progress may show
        the number of rows.
        """

        def of_rows(rows: Part) -> Answer:
            columns = [rows.columns[levels_of(name)] for name in self.names]
            counted = slice(None) if rows.counted is None else rows.counted
            return function(tuple(column[counted] for column in columns))

        for part in self.rows.parts(count_public=count_public):
            yield from by_rows(part, MANY_ROWS, of_rows)


def unbound_levels(formula: str, variables: tuple[str, ...]) -> PrivateLevels:
    """Return the columns without rows, to which data can be bound."""
    return PrivateLevels(rows_of(Terms(Codebook(), undeclared=variables)), formula)


# Rows to be counted in margins: the level of each variable, block by block.

Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class PrivateMargins(BoundRows):
    """Rows to be counted in margins; shows public facts only."""

    margins: Margins

    @property
    def facts(self) -> dict[str, str]:
        """Public facts about the rows and their margins, as comparable texts."""
        margins = self.margins
        declared = declared_facts(margins.text, self.codebook)
        levels = {
            f"levels of {factor.code}": repr(list(factor.levels)) for factor in margins.factors
        }
        return {**declared, **levels, "margins": repr(margins.terms), **self.rows.terms.facts}

    def blocks(
        self, function: Callable[[list[Codes]], Answer], *, count_public: bool
    ) -> Iterator[tuple[Answer, int]]:
        """Apply a function to the levels of rows, block by block.

        It takes the code of each row's level, one array per variable; the code after the last level
        means missing or unlisted, and is that of all variables of a row that does not count. Its
        results are yielded with the number of rows; `count_public` says whether progress may show
        the number of rows.
        """

        def of_rows(rows: Part) -> Answer:
            return function([_codes(factor, rows) for factor in self.margins.factors])

        for part in self.rows.parts(count_public=count_public):
            yield from by_rows(part, MANY_ROWS, of_rows)


def unbound_margins(margins: Margins) -> PrivateMargins:
    """Return the margins without rows, to which data can be bound."""
    return PrivateMargins(rows_of(Terms(margins.codebook)), margins)


def _codes(factor: Category, rows: Part) -> Codes:
    codes = np.asarray(factor.evaluate(rows.columns))
    is_counted = ~np.isnan(codes) & (True if rows.counted is None else rows.counted)
    return np.where(is_counted, codes, len(factor.levels)).astype(np.intp)
