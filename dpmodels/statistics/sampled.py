"""Exact sums of sampled rows or units: capped weights times positions, by cell, in two passes.

Of a unit (a row, or all rows of a sampling unit) let W be the sum of its weights, c a cap, C_g the
part of ``min(W, c)/c`` that its rows in the cell g have, and t the weighted mean of their positions
in [0, 1]. Its parts in the cell are

    ``C_g`` times ``C_g B_i(t)`` for the Bernstein polynomials of degree 2d,
    and ``(1 - C_g) B_i(t)`` for those of degree 2.

*Theorem 71.* They are not negative and have the sum C_g in each cell, so at most 1 over all cells,
whatever the weights, their number and the cap. With what is left for the rest a unit has parts of
the sum 1: it is to a table what a row is. Units of weight above the cap are counted once more, and
all units by stratum, in two tables to which they add a fraction: parts of that sum at most.

*Theorem 79.* A table of counts has one part in each cell, C_g, of the sum C over all cells. Beside
those of capped units it has the products ``C_g²`` and ``C_g (C - C_g)``, of the sum C² at most 1;
by stratum they and ``C_g (1 - C)``, of the sum C.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.design.cells import BLOCK_ROWS, PrivateCells, in_cells
from dpmodels.design.columns import FOLDS, placed
from dpmodels.design.parts import Part
from dpmodels.errors import FrameError
from dpmodels.formula.sampling import STEPS, Sampling
from dpmodels.formula.tally import CAPPED_PARTS, Tally
from dpmodels.statistics.cell_passes import place_counts
from dpmodels.statistics.counts import summed_by_cell
from dpmodels.statistics.statistic import Statistic, fingerprint
from dpmodels.typing import Exact, Floats, Integers

# Covers the rounding of a product of fractions, so that parts of a unit never exceed it.
_ROUND_DOWN: Final = 1 - 2.0**-44
_POSITION_BITS: Final = 30


class Units(NamedTuple):
    """Weights and positions of some units, one line for each of their cells, shapes (lines,)."""

    cells: NDArray[np.intp]
    strata: NDArray[np.intp]
    weights: Integers  # in the cell, in steps of the largest weight of a row
    totals: Integers  # of the unit
    positions: Floats  # weighted means
    first: NDArray[np.bool_]  # one line of each unit
    times: int  # how often each counts


@dataclass(frozen=True)
class Amounts:
    """Units of the lattice that a sampled unit has in each table."""

    table: int
    capped: int
    by_stratum: int


class SampledPasses(Statistic):
    """Passes over sampled rows; each gives exact integers."""

    __slots__ = ("_count_public", "_kept", "_private", "_read")

    def __init__(self, private: PrivateCells, *, count_public: bool) -> None:
        basis = fingerprint(private.facts, count_public=count_public)
        super().__init__("passes over sampled rows", np.zeros(0, dtype=object), 0, basis)
        self._private, self._count_public = private, count_public
        self._kept: Units | None = None
        self._read = 0

    def __add__(self, other: Statistic) -> Statistic:
        """Refuse rows in several places: a cap is of all of them together."""
        raise FrameError("a survey design needs all rows in one place: write data=, not sites=")

    @property
    def tally(self) -> Tally:
        """The one table."""
        return self._private.tallies[0]

    @property
    def sampling(self) -> Sampling:
        """Weights and strata of the rows."""
        sampling = self.tally.sampling
        assert sampling is not None
        return sampling

    @property
    def most_rows(self) -> int:
        """The largest number of rows of a unit."""
        return self._private.neighbours.places

    def by_weight(self, edges: Integers) -> tuple[Exact, int]:
        """Count units by the cell of their total weight; edges in steps, the last is a limit.

        Cell k is of totals up to ``edges[k]``; larger ones are in the last. A unit adds 1 to one
        cell, or nothing if none of its rows counts.
        """
        total = np.zeros(len(edges), dtype=np.int64)
        for units in self._units():
            totals = units.totals[units.first]
            cells = np.minimum(np.searchsorted(edges, totals), len(edges) - 1)
            total += units.times * np.bincount(cells, minlength=len(edges))
        return total.astype(object), self._n_units

    def by_place(self, edges: Floats) -> Exact:
        """Count complete rows by the cell of their number, by its edges in its unit."""
        exact, _ = place_counts(self._private, edges, count_public=self._count_public).cross()
        return np.asarray(exact)

    def clipped(self, lower: float, upper: float) -> SampledPasses:
        """Return passes over the same rows, with the number clipped to a released range."""
        private = self._private.clipped(lower, upper)
        return SampledPasses(private, count_public=self._count_public)

    def parts(self, cap: int, amounts: Amounts) -> tuple[list[Exact], int]:
        """Return the parts by cell and the rest, those of capped units, and those by stratum.

        `cap` is in steps of the largest weight of a row.
        """
        tally, strata = self.tally, self.sampling.strata
        levels = 1 if strata is None else len(strata.levels)
        table: Exact = np.zeros((tally.cells, tally.parts), dtype=object)
        capped: Exact = np.zeros((tally.cells, CAPPED_PARTS), dtype=object)
        by_stratum: Exact = np.zeros(tally.stratum_size * levels, dtype=object)
        for units in self._units():
            lines = _Lines(units, cap, tally)
            table = table + units.times * lines.table(amounts.table)
            capped = capped + units.times * lines.capped(amounts.capped)
            if strata is not None:
                by_stratum = by_stratum + units.times * lines.by_stratum(amounts.by_stratum, levels)
        rest = amounts.table * self._n_units - sum(table.ravel().tolist())
        sums = [np.append(table.ravel(), rest), capped.ravel()]
        return [*sums, by_stratum] if strata is not None else sums, self._n_units

    @property
    def _n_units(self) -> int:
        """All units where their number is public; else those of which a row counts, or all rows."""
        if self._kept is not None and not self._count_public:
            return int(self._kept.first.sum())
        return self._read // self._private.neighbours.places

    def _units(self) -> Iterator[Units]:
        """Read all units once; those of several rows stay in memory."""
        if self._kept is not None:
            yield self._kept
            return
        self._read, neighbours = 0, self._private.neighbours
        sums = None if neighbours.person is None else _UnitSums(self.tally, self.sampling)
        for part in self._private.parts(count_public=self._count_public):
            self._read += part.taken
            if sums is None:
                yield from self._of_rows(part)
            elif part.persons is not None:
                sums.add(part)
        if sums is not None:
            self._kept = sums.units()
            yield self._kept

    def _of_rows(self, part: Part) -> Iterator[Units]:
        """Return the rows of a part that count, each a unit."""
        for span, _, times in placed(part.places, part.rows, BLOCK_ROWS, FOLDS):
            block = part.at(span)
            lines = rows_that_count(self.tally, self.sampling, block)
            ones = np.ones(len(lines.rows), dtype=bool)
            weights = lines.weights
            yield Units(lines.cells, lines.strata, weights, weights, lines.positions, ones, times)


class CountedRows(NamedTuple):
    """The rows of a part that count, shapes (lines,)."""

    rows: NDArray[np.intp]
    cells: NDArray[np.intp]
    strata: NDArray[np.intp]
    weights: Integers
    positions: Floats


def rows_that_count(tally: Tally, sampling: Sampling, part: Part) -> CountedRows:
    """Return the complete rows with a weight within its bounds and a stratum."""
    placement = in_cells(tally, part.columns, part.counted)
    weights = sampling.weights(part.columns, part.rows)
    rows = np.flatnonzero((placement.cells >= 0) & (weights > 0))
    strata = sampling.stratum(part.columns, part.rows)[rows]
    positions = np.ones(len(rows))
    if placement.positions is not None:
        positions = placement.positions[rows]
    return CountedRows(rows, placement.cells[rows], strata, weights[rows], positions)


class _UnitSums:
    """Sums of weights and of weighted positions, by sampling unit and cell.

    Exact integers: the product of a weight and a position is two of them, of 30 bits and more.
    """

    __slots__ = ("_keys", "_sampling", "_strata", "_sums", "_tally")

    def __init__(self, tally: Tally, sampling: Sampling) -> None:
        self._tally, self._sampling = tally, sampling
        # By unit and cell, rising; of the weights, and of both halves of the products.
        self._keys = np.zeros(0, dtype=np.int64)
        self._sums = np.zeros((3, 0), dtype=np.int64)
        self._strata = np.zeros(0, dtype=np.int64)

    def __repr__(self) -> str:
        return "<UnitSums, not shown>"

    def add(self, part: Part) -> None:
        """Add the rows of a part that count."""
        lines = rows_that_count(self._tally, self._sampling, part)
        assert part.persons is not None
        persons = part.persons[lines.rows].astype(np.int64)
        has_unit = persons >= 0
        persons, weights = persons[has_unit], lines.weights[has_unit]
        steps = np.rint(lines.positions[has_unit] * STEPS).astype(np.int64)
        product = weights * steps
        added = np.stack([weights, product >> _POSITION_BITS, product & (STEPS - 1)])
        given = np.concatenate([self._keys, persons * self._tally.cells + lines.cells[has_unit]])
        self._keys, at = np.unique(given, return_inverse=True)
        sums = np.zeros((3, len(self._keys)), dtype=np.int64)
        for total, values in zip(sums, np.hstack([self._sums, added]), strict=True):
            np.add.at(total, at, values)
        self._sums = sums
        n_new = max(int(persons.max(initial=-1)) + 1 - len(self._strata), 0)
        largest = np.iinfo(np.int64).max
        self._strata = np.pad(self._strata, (0, n_new), constant_values=largest)
        np.minimum.at(self._strata, persons, lines.strata[has_unit].astype(np.int64))

    def units(self) -> Units:
        """Return all units, in an order that depends on the order of the rows."""
        persons, cells = np.divmod(self._keys, self._tally.cells)
        weights, high, low = self._sums
        totals = np.zeros(len(self._strata), dtype=np.int64)
        np.add.at(totals, persons, weights)
        first = np.diff(persons, prepend=-1) > 0
        positions = (high.astype(np.float64) + low / STEPS) / np.maximum(weights, 1)
        return Units(
            cells.astype(np.intp),
            self._strata[persons].astype(np.intp),
            weights,
            totals[persons],
            np.clip(positions, 0.0, 1.0),
            first,
            1,
        )


class _Lines:
    """The parts of some units, under a cap."""

    def __init__(self, units: Units, cap: int, tally: Tally) -> None:
        self._units, self._tally = units, tally
        divisor = np.maximum(units.totals, cap).astype(np.float64)
        self._share = units.weights / divisor  # C_g
        self._whole = units.totals / divisor  # C
        self._is_capped = units.totals > cap

    @cached_property
    def _products(self) -> list[Floats]:
        share, whole = self._share, self._whole
        return [share * share, share * (whole - share), share * (1 - whole)]

    @cached_property
    def _parts(self) -> list[Floats]:
        share, positions = self._share, self._units.positions
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
        parts = [*(share * bernstein(positions, 2))]
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

    def _by_cell(
        self, cells: NDArray[np.intp], parts: list[Floats], n_cells: int, amount: int
    ) -> Exact:
        """Return the sums of parts by cell, rounded down to integers, shape (cells, parts)."""
        scaled = (np.floor(part * (amount * _ROUND_DOWN)).astype(np.int64) for part in parts)
        columns = [summed_by_cell(cells, part, n_cells) for part in scaled]
        return np.stack(columns, axis=1)


def bernstein(positions: Floats, degree: int) -> Floats:
    """Return the Bernstein polynomials at positions in [0, 1], shape (degree + 1, positions)."""
    powers = np.arange(degree + 1)[:, None]
    binomials = np.array([comb(degree, i) for i in range(degree + 1)])[:, None]
    return np.asarray(binomials * positions**powers * (1 - positions) ** (degree - powers))
