"""Exact sums of sampled rows or units: capped weights times positions, by cell, in two passes.

Of a unit (a row, or all rows of a sampling unit) let W be the sum of its weights, c a cap, and C_g
the part of ``min(W, c)/c`` that its rows in the cell g have. Its parts by cell, the products beside
them and those by stratum are those of Theorems 71, 79 and 82 (docs/theory.md): not negative, and of
the sum 1 in a table with what is left for the rest, whatever the weights, their number and the cap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb
from typing import Final, NamedTuple

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.design.cells import BLOCK_ROWS, PrivateCells, in_cells
from dpmodels.design.columns import FOLDS, placed
from dpmodels.design.parts import Part, Unshown
from dpmodels.errors import FrameError
from dpmodels.formula.tally import CAPPED_PARTS, MIXED_PARTS, STEPS, Sampling, Tally
from dpmodels.statistics.counts import place_counts
from dpmodels.statistics.shares import summed_by_cell
from dpmodels.statistics.statistic import Statistic, fingerprint
from dpmodels.typing import Exact, Flags, Floats, Indices, Integers, Numbers

# Covers the rounding of a product of fractions, so that parts of a unit never exceed it.
_ROUND_DOWN: Final = 1 - 2.0**-44
_POSITION_BITS: Final = 30


class Units(NamedTuple):
    """Some units in one table, one line for each of their cells, shapes (lines,)."""

    cells: Indices
    strata: Indices
    weights: Integers  # in the cell, in steps of the largest weight of a row
    totals: Integers  # of the unit
    positions: Floats  # weighted means
    squares: Floats  # weighted mean squares of positions
    first: Flags  # one line of each unit


class Block(NamedTuple):
    """Some units in all tables."""

    totals: Integers  # weights of the units, shape (units,)
    tables: tuple[Units, ...]
    times: int  # how often each unit counts


@dataclass(frozen=True)
class Amounts:
    """Units of the lattice that a sampled unit has in each table."""

    table: int
    capped: int
    by_stratum: int


class _InOnePlace(Statistic):
    def __add__(self, other: Statistic) -> Statistic:
        """Refuse rows in several places: a cap is of all of them together."""
        raise FrameError("a survey design needs all rows in one place: write data=, not sites=")


class SampledPasses(_InOnePlace):
    """Passes over sampled rows; each gives exact integers."""

    __slots__ = ("_kept", "_private", "_read")

    def __init__(self, private: PrivateCells) -> None:
        basis = fingerprint(private)
        super().__init__("passes over sampled rows", np.zeros(0, dtype=object), 0, basis)
        self._private = private
        self._kept: Block | None = None
        self._read = 0

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """The tables."""
        return self._private.tallies

    @property
    def sampling(self) -> Sampling:
        """Weights and strata of the rows."""
        sampling = self.tallies[0].sampling
        assert sampling is not None
        return sampling

    @property
    def most_rows(self) -> int:
        """The largest number of rows of a unit."""
        return self._private.rows.terms.neighbours.places

    def by_weight(self, edges: Integers) -> tuple[Exact, int]:
        """Count units by the cell of their total weight; edges in steps, the last is a limit.

        Cell k is of totals up to ``edges[k]``; larger ones are in the last. A unit adds 1 to one
        cell, or nothing if none of its rows counts in any table.
        """
        total = np.zeros(len(edges), dtype=np.int64)
        for block in self._blocks():
            cells = np.minimum(np.searchsorted(edges, block.totals), len(edges) - 1)
            total += block.times * np.bincount(cells, minlength=len(edges))
        return total.astype(object), self._n_units

    def by_place(self, edges: Floats) -> Exact:
        """Count complete rows by the cell of their number, by its edges in its unit."""
        exact, _ = place_counts(self._private, edges).cross()
        return np.asarray(exact)

    def clipped(self, lower: float, upper: float) -> SampledPasses:
        """Return passes over the same rows, with the number clipped to a released range."""
        private = self._private.clipped(lower, upper)
        return SampledPasses(private)

    def parts(self, cap: int, amounts: Amounts) -> tuple[list[Exact], int]:
        """Return the parts by cell and the rest, those of capped units, and those by stratum.

        Each is of one table after another. `cap` is in steps of the largest weight of a row.
        """
        strata = self.sampling.strata
        levels = 0 if strata is None else len(strata.levels)
        sums = [_TableSums(tally, levels) for tally in self.tallies]
        for block in self._blocks():
            for table, units in zip(sums, block.tables, strict=True):
                table.add(_Lines(units, cap, table.tally), amounts, block.times)
        whole = amounts.table * self._n_units
        kinds = [
            [np.append(table.table, whole - sum(table.table.ravel().tolist())) for table in sums],
            [table.capped.ravel() for table in sums],
        ]
        if strata is not None:
            kinds.append([table.by_stratum for table in sums])
        return [np.concatenate(kind) for kind in kinds], self._n_units

    @property
    def _n_units(self) -> int:
        """All units where their number is public; else those of which a row counts, or all rows."""
        if self._kept is not None and not self._private.rows.terms.neighbours.n_public:
            return int((self._kept.totals > 0).sum())
        return self._read // self._private.rows.terms.neighbours.places

    def _blocks(self) -> Iterator[Block]:
        """Read all units once; those of several rows stay in memory."""
        if self._kept is not None:
            yield self._kept
            return
        self._read, neighbours = 0, self._private.rows.terms.neighbours
        sums = None if neighbours.person is None else _UnitSums(self.tallies, self.sampling)
        for part in self._private.parts():
            self._read += part.taken
            if sums is None:
                yield from self._of_rows(part)
            elif part.persons is not None:
                sums.add(part)
        if sums is not None:
            self._kept = sums.block()
            yield self._kept

    def _of_rows(self, part: Part) -> Iterator[Block]:
        for span, _, times in placed(part.places, part.rows, BLOCK_ROWS, FOLDS):
            lines = rows_that_count(self.tallies, self.sampling, part.at(span))
            yield Block(_totals(lines), tuple(map(_single_rows, lines)), times)


class _TableSums:
    def __init__(self, tally: Tally, levels: int) -> None:
        self.tally, self._levels = tally, levels
        self.table: Exact = np.zeros((tally.cells, tally.parts), dtype=object)
        self.capped: Exact = np.zeros((tally.cells, CAPPED_PARTS), dtype=object)
        self.by_stratum: Exact = np.zeros(tally.stratum_size * levels, dtype=object)

    def add(self, lines: _Lines, amounts: Amounts, times: int) -> None:
        """Add the parts of some units, each as often as it counts."""
        self.table = self.table + times * lines.table(amounts.table)
        self.capped = self.capped + times * lines.capped(amounts.capped)
        if self._levels:
            parts = lines.by_stratum(amounts.by_stratum, self._levels)
            self.by_stratum = self.by_stratum + times * parts


class CountedRows(NamedTuple):
    """The rows of a part that count in a table, shapes (lines,)."""

    rows: Indices
    cells: Indices
    strata: Indices
    weights: Integers
    positions: Floats


def rows_that_count(
    tallies: tuple[Tally, ...], sampling: Sampling, part: Part
) -> list[CountedRows]:
    """Return by table the complete rows with a weight within its bounds and a stratum."""
    weights = sampling.weights(part.columns, part.rows)
    strata = sampling.stratum(part.columns, part.rows)
    counted = []
    for tally in tallies:
        placement = in_cells(tally, part.columns, part.counted)
        rows = np.flatnonzero((placement.cells >= 0) & (weights > 0))
        positions = np.ones(len(rows))
        if placement.positions is not None:
            positions = placement.positions[rows]
        lines = CountedRows(rows, placement.cells[rows], strata[rows], weights[rows], positions)
        counted.append(lines)
    return counted


def _totals(lines: list[CountedRows]) -> Integers:
    rows = np.concatenate([table.rows for table in lines])
    weights = np.concatenate([table.weights for table in lines])
    return np.asarray(weights[np.unique(rows, return_index=True)[1]])


def _single_rows(lines: CountedRows) -> Units:
    ones, squares = np.ones(len(lines.rows), dtype=bool), lines.positions**2
    weights = lines.weights
    return Units(lines.cells, lines.strata, weights, weights, lines.positions, squares, ones)


class _UnitSums(Unshown):
    """Sums of weights by sampling unit, and in each table of weighted positions.

    Exact integers: the product of a weight and a position is two of them, of 30 bits and more.
    """

    def __init__(self, tallies: tuple[Tally, ...], sampling: Sampling) -> None:
        self._tallies, self._sampling = tallies, sampling
        self._tables = [_CellSums(tally.cells) for tally in tallies]
        self._totals = np.zeros(0, dtype=np.int64)
        self._strata = np.zeros(0, dtype=np.int64)

    def add(self, part: Part) -> None:
        """Add the rows of a part that count."""
        assert part.persons is not None
        persons = part.persons.astype(np.int64)
        weights = np.zeros(part.rows, dtype=np.int64)
        strata = np.full(part.rows, np.iinfo(np.int64).max)
        counted = rows_that_count(self._tallies, self._sampling, part)
        for table, lines in zip(self._tables, counted, strict=True):
            table.add(lines, persons)
            weights[lines.rows], strata[lines.rows] = lines.weights, lines.strata
        rows = np.flatnonzero((weights > 0) & (persons >= 0))
        persons = persons[rows]
        n_new = max(int(persons.max(initial=-1)) + 1 - len(self._strata), 0)
        largest = np.iinfo(np.int64).max
        self._strata = np.pad(self._strata, (0, n_new), constant_values=largest)
        self._totals = np.pad(self._totals, (0, n_new))
        np.minimum.at(self._strata, persons, strata[rows])
        np.add.at(self._totals, persons, weights[rows])

    def block(self) -> Block:
        """Return all units, in an order that depends on the order of the rows."""
        tables = (table.units(self._strata, self._totals) for table in self._tables)
        return Block(self._totals[self._totals > 0], tuple(tables), 1)


class _CellSums(Unshown):
    """Sums of weights, positions and their squares in one table, by sampling unit and cell."""

    def __init__(self, cells: int) -> None:
        # By unit and cell, rising; of the weights, and of both halves of each product.
        self._cells, self._keys = cells, np.zeros(0, dtype=np.int64)
        self._sums = np.zeros((5, 0), dtype=np.int64)

    def add(self, lines: CountedRows, persons: Integers) -> None:
        """Add rows that count, of units by row of their part."""
        persons = persons[lines.rows]
        has_unit = persons >= 0
        persons, weights = persons[has_unit], lines.weights[has_unit]
        positions = lines.positions[has_unit]
        steps = (np.rint(power * STEPS).astype(np.int64) for power in (positions, positions**2))
        products = [weights * power for power in steps]
        halves = [half for p in products for half in (p >> _POSITION_BITS, p & (STEPS - 1))]
        keys = np.concatenate([self._keys, persons * self._cells + lines.cells[has_unit]])
        self._keys, at = np.unique(keys, return_inverse=True)
        sums = np.zeros((5, len(self._keys)), dtype=np.int64)
        added = np.stack([weights, *halves])
        for total, values in zip(sums, np.hstack([self._sums, added]), strict=True):
            np.add.at(total, at, values)
        self._sums = sums

    def units(self, strata: Integers, totals: Integers) -> Units:
        """Return the lines of all units, by the stratum and the weight of each unit."""
        persons, cells = np.divmod(self._keys, self._cells)
        weights, *halves = self._sums
        positions, squares = (
            np.clip((high.astype(np.float64) + low / STEPS) / np.maximum(weights, 1), 0.0, 1.0)
            for high, low in (halves[:2], halves[2:])
        )
        return Units(
            cells.astype(np.intp),
            strata[persons].astype(np.intp),
            weights,
            totals[persons],
            positions,
            squares,
            np.diff(persons, prepend=-1) > 0,
        )


class _Lines:
    def __init__(self, units: Units, cap: int, tally: Tally) -> None:
        self._units, self._tally = units, tally
        self._divisor = np.maximum(units.totals, cap).astype(np.float64)
        self._share = units.weights / self._divisor  # C_g
        self._complete = tally.complete[units.cells]
        at = np.cumsum(units.first) - 1
        in_complete = np.zeros(int(units.first.sum()), dtype=np.int64)
        np.add.at(in_complete, at, units.weights * self._complete)
        self._whole = in_complete[at] / self._divisor  # C
        self._is_capped = units.totals > cap
        self._is_mixed = tally.parts == MIXED_PARTS

    @cached_property
    def _products(self) -> list[Floats]:
        share, whole = self._share * self._complete, self._whole
        if not self._tally.running:
            return [share * share, share * (whole - share), share * (1 - whole)]
        before, group = self._running
        after = before + self._units.weights
        doubled = 2.0 * self._divisor
        return [
            share * ((before + after) / doubled),
            share * ((2 * group - before - after) / doubled),
            share * (1 - group / self._divisor),
        ]

    @property
    def _running(self) -> tuple[Integers, Integers]:
        """Return weights of a unit up to each of its cells, and in the cell's group, exactly."""
        units, size = self._units, self._tally.shape[-1]
        starts = units.first | (np.diff(units.cells // size, prepend=-1) != 0)
        segments = np.cumsum(starts) - 1
        before = np.cumsum(units.weights) - units.weights
        group = np.zeros(int(starts.sum()), dtype=np.int64)
        np.add.at(group, segments, units.weights)
        return before - before[starts][segments], group[segments]

    @cached_property
    def _bernstein(self) -> Floats:
        """Weighted means of the Bernstein polynomials of degree 2 of the rows, of the sum 1."""
        units = self._units
        first = 1 - 2 * units.positions + units.squares
        means = np.stack([first, 2 * (units.positions - units.squares), units.squares])
        means = np.maximum(means, 0.0)
        return np.asarray(means / means.sum(axis=0))

    @cached_property
    def _parts(self) -> list[Floats]:
        share, positions = self._share, self._units.positions
        if self._is_mixed:
            means = self._bernstein
            pairs = combinations_with_replacement(means, 2)
            products = (left * right * (1 if left is right else 2) for left, right in pairs)
            squared = (share * share * product for product in products)
            return [*squared, *(share * (1 - share) * means)]
        squares = bernstein(positions, 2 * self._tally.degree)
        return [*(share * share * squares), *(share * (1 - share) * bernstein(positions, 2))]

    def table(self, amount: int) -> Exact:
        """Return the parts of the table, shape (cells, parts)."""
        parts = self._parts if self._tally.degree else [self._share]
        return self._by_cell(self._units.cells, parts, self._tally.cells, amount)

    def capped(self, amount: int) -> Exact:
        """Return the parts of units above the cap: their shares, divided by position.

        Of counts their shares, and of all units the products of shares within cells.
        """
        share, positions = self._share * self._is_capped, self._units.positions
        means = self._bernstein if self._is_mixed else bernstein(positions, 2)
        parts = [*(share * means)]
        if not self._tally.degree:
            parts = [share, *self._products[:2]]
        return self._by_cell(self._units.cells, parts, self._tally.cells, amount)

    def by_stratum(self, amount: int, levels: int) -> Exact:
        """Return for each stratum the parts of its cells, then the rest of its units."""
        units, n_cells = self._units, self._tally.cells
        places = units.strata * n_cells + units.cells
        parts = self._parts if self._tally.degree else self._products
        within = self._by_cell(places, parts, levels * n_cells, amount)
        rest = (1 - self._whole) * units.first
        outside = self._by_cell(units.strata, [rest], levels, amount)
        return np.hstack([within.reshape(levels, -1), outside]).ravel()

    def _by_cell(self, cells: Indices, parts: list[Floats], n_cells: int, amount: int) -> Exact:
        """Return the sums of parts by cell, rounded down to integers, shape (cells, parts)."""
        scaled = (np.floor(part * (amount * _ROUND_DOWN)).astype(np.int64) for part in parts)
        columns = [summed_by_cell(cells, part, n_cells) for part in scaled]
        return np.stack(columns, axis=1)


def bernstein(positions: Floats, degree: int) -> Floats:
    """Return the Bernstein polynomials at positions in [0, 1], shape (degree + 1, positions)."""
    powers = np.arange(degree + 1)[:, None]
    binomials = np.array([comb(degree, i) for i in range(degree + 1)])[:, None]
    return np.asarray(binomials * positions**powers * (1 - positions) ** (degree - powers))


class UnitWeights(_InOnePlace):
    """Units of one design; their rows take places once there is a cap."""

    __slots__ = ("_design", "_upper")

    def __init__(self, design: PrivateDesign, upper: float) -> None:
        basis = fingerprint(design)
        super().__init__("units by weight", np.zeros(0, dtype=object), 0, basis)
        self._design = design
        self._upper = upper

    def by_weight(self, ends: Floats) -> Numbers:
        """Count units in cells of total weight that end at `ends`; larger ones are in the last.

        A unit adds 1 to one cell, or nothing if none of its rows has a weight.
        """
        edges, counts = ends / self._upper * STEPS, np.zeros(len(ends), dtype=np.int64)
        for totals in self._design.rows.unit_weights():
            cells = np.searchsorted(edges, totals[totals > 0])
            counts += np.bincount(np.minimum(cells, len(ends) - 1), minlength=len(ends))
        return counts.astype(object)

    def by_stratum(self, levels: int) -> Numbers:
        """Count units by stratum; a unit adds 1 to one of them, or nothing without a stratum."""
        strata = self._design.rows.unit_strata()
        return np.bincount(strata[strata >= 0], minlength=levels).astype(object)

    def capped(self, cap: float, factors: tuple[float, ...] = ()) -> PrivateDesign:
        """Return the rows with the places that follow from a released cap, and factors."""
        design = self._design.of(self._design.rows.capped(cap, factors))
        design.require_passes()
        return design
