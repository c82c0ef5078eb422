"""Exact counts of rows, or of parts of rows, by cell, margin, level or state.

Repeated counts of rows, with values clipped to released ranges or binned at released edges.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial, reduce

import numpy as np

from dpmodels.design.cells import (
    BLOCK_ROWS,
    Codes,
    PrivateCells,
    PrivateLevels,
    PrivateMargins,
    by_placement,
    in_cells,
)
from dpmodels.design.columns import FOLDS, placed
from dpmodels.design.parts import BoundCounts, Part, Unshown
from dpmodels.formula.tally import Placed, Tally
from dpmodels.formula.values import BoundSide, Real
from dpmodels.postprocess.residuals import Term, cells, largest
from dpmodels.privacy import Adjacency
from dpmodels.statistics.shares import PersonSums, by_person, points_of, power_of, shares, shares_at
from dpmodels.statistics.statistic import (
    Fingerprint,
    OverDesigns,
    Statistic,
    additive,
    digest_of,
    fingerprint,
    total_of,
)
from dpmodels.typing import Flags, Floats, Integers, Numbers, Objects

# Rows per block where no row is divided, or more of a large table: a choice, so that a processor's
# cache holds a column.
WHOLE_ROWS = 2**15


@additive
def counts(private: PrivateCells, units_per_row: int) -> Statistic:
    """Count the rows of every table, in units of a row.

    The integers are one table after another: for each cell its ``degree + 1`` parts, then the
    incomplete rows. Every row adds `units_per_row` units, at most ``2**40``, to each table. The
    result is the same for any chunking or order. For means of persons the rows of each person are
    added up first, and the person adds the units of all its places (:class:`PersonSums`).
    """
    words = {"units of a row": str(units_per_row)}
    basis = partial(fingerprint, private, words)
    bounds = _only_bounds(private.tallies)
    if (sides := private.by_bounds(bounds)) is not None:
        exact = sides.ravel().astype(object) * units_per_row
        return Statistic("counts", exact, int(sides[0].sum()), basis)
    neighbours = private.rows.terms.neighbours
    flags = [by_person(tally, neighbours) for tally in private.tallies]
    coded = private.coded()
    if bounds and coded is private and not any(flags):
        return CountsBeside(private, bounds, units_per_row, basis)
    pairs = list(zip(coded.tallies, flags, strict=True))
    person_sums = [PersonSums(tally, neighbours) for tally, is_by_person in pairs if is_by_person]
    row_counts = RowCounts(
        tuple(tally for tally, is_by_person in pairs if not is_by_person), units_per_row
    )
    n_rows = 0
    for part in coded.parts():
        n_rows += part.taken
        for sums in person_sums:
            sums.add(part)
        row_counts.add(part)
    by_rows = iter(row_counts.parts())
    by_persons = (
        _of_persons(sums, units_per_row * neighbours.places, units_per_row * n_rows)
        for sums in person_sums
    )
    parts = [next(by_persons if is_by_person else by_rows) for is_by_person in flags]
    return Statistic("counts", np.concatenate(parts), n_rows, basis)


class CountsBeside(Statistic):
    """Counts by bounds, made while another statistic reads the rows, or in a reading of their own.

    Whether another one has read all rows by then changes the time it takes and nothing else.
    """

    __slots__ = ("_counter", "_private", "_units_per_row")

    def __init__(
        self,
        private: PrivateCells,
        sides: list[BoundSide],
        units_per_row: int,
        basis: Callable[[], Fingerprint],
    ) -> None:
        super().__init__("counts", np.zeros(4 * len(sides), dtype=object), 0, basis)
        self._private, self._units_per_row = private, units_per_row
        self._counter = BoundCounts(sides)
        if private.rows.is_plain:
            private.rows.counter = self._counter

    @property
    def _kind(self) -> type[Statistic]:
        return Statistic

    def cross(self) -> tuple[Numbers, int]:
        """Return the exact integers and the row count, after a reading where none was complete."""
        counter = self._counter
        if counter.total is None:
            counter.start()
            for part in self._private.parts():
                for span, _, times in placed(part.places, part.rows, WHOLE_ROWS, FOLDS):
                    counter.add(part.at(span).of_counted, times=times)
            counter.complete()
        assert counter.total is not None
        exact = counter.total.ravel().astype(object) * self._units_per_row
        return exact, int(counter.total[0].sum())


class RowCounts(Unshown):
    """Numbers of rows, or sums of their parts in units, by cell of some tables.

    Exact integers: where no table divides its rows, whole rows are counted.
    """

    def __init__(self, tallies: tuple[Tally, ...], units_per_row: int) -> None:
        divided = any(tally.degree for tally in tallies)
        self._tallies, self._units_per_row = tallies, units_per_row
        size = sum(tally.size for tally in tallies)
        self._units, self._block_rows = (
            (units_per_row, BLOCK_ROWS) if divided else (1, max(WHOLE_ROWS, 4 * size))
        )
        self._total: Numbers = np.zeros(size, dtype=object if divided else np.int64)

    def add(self, part: Part) -> None:
        """Add the rows of a part, block by block."""
        if self._tallies:
            for block, _ in by_placement(part, self._tallies, self._counted, self._block_rows):
                self._total = self._total + block

    def _counted(self, placed: tuple[Placed, ...]) -> Integers:
        pairs = zip(self._tallies, placed, strict=True)
        return np.concatenate(
            [_counted(tally, placement, self._units) for tally, placement in pairs]
        )

    def parts(self) -> list[Numbers]:
        """Return the units of each table, one after another."""
        total = self._total.astype(object) * (self._units_per_row // self._units)
        return np.split(total, np.cumsum([tally.size for tally in self._tallies]))


def _only_bounds(tallies: tuple[Tally, ...]) -> list[BoundSide]:
    """Return the bounds by which all tables count one number each; none if one of them does not."""
    sides = [factor.evaluate for tally in tallies for factor in tally.factors]
    bounds = [side for side in sides if isinstance(side, BoundSide)]
    is_alone = all(len(tally.factors) == 1 and not tally.degree for tally in tallies)
    return bounds if is_alone and len(bounds) == len(sides) else []


def _of_persons(sums: PersonSums, units: int, everything: int) -> Numbers:
    """Return the parts of persons, then the remaining units, which are of incomplete rows."""
    parts = sums.parts(units).ravel()
    return np.append(parts, everything - sum(parts.tolist()))


def _counted(tally: Tally, placed: Placed, units_per_row: int) -> Integers:
    """Count one block; every partial sum is an integer of at most 2**53."""
    complete = placed.cells >= 0
    cells = placed.cells[complete]
    if not tally.degree and units_per_row == 1:
        return np.append(np.bincount(cells, minlength=tally.cells), len(complete) - len(cells))
    parts = np.full((1, len(cells)), float(units_per_row))
    if placed.positions is not None:
        positions = placed.positions[complete]
        within = np.clip(positions, 0.0, 1.0) if tally.beyond else positions
        parts = shares(within, tally.degree, units_per_row)
    sums = np.stack([np.bincount(cells, part, tally.cells) for part in parts], axis=1)
    if tally.beyond:
        points = points_of(tally)
        is_below, is_out = points < 0, (positions < 0) | (positions > 1)
        lines = shares_at(positions[is_out], points, units_per_row, power_of(tally))
        counts = np.stack([np.bincount(cells[is_out], at, tally.cells) for at in lines], axis=1)
        sums[:, 0] -= counts[:, is_below].sum(axis=1)
        sums[:, -1] -= counts[:, ~is_below].sum(axis=1)
        sums = np.hstack([sums, counts])
    incomplete = float(units_per_row * (len(complete) - len(cells)))
    return np.append(sums.ravel(), incomplete).astype(np.int64)


def count_sensitivity(adjacency: Adjacency, tables: int, norm: int) -> float:
    """Return the L1 or L2 sensitivity of counts, in rows.

    The norm, 1 or 2, is of the vector of all parts of all tables.

    To each table a row adds parts that are not negative and have the sum 1, so an L1 norm of 1 and
    an L2 norm of at most 1. That is all under ``add-remove``. Under ``replace`` a row may leave
    one declared group and enter another: the difference of two such vectors has L1 norm at most 2
    and, as no product of parts is negative, L2 norm at most √2; both are reached. Groups do
    not reduce it.
    """
    changed = tables * (2 if adjacency.n_public else 1)
    return float(changed) if norm == 1 else math.sqrt(changed)


# Exact numbers of rows by undeclared level.


@additive
def counted_levels(private: PrivateLevels) -> Statistic:
    """Count the rows of each variable by level.

    One counter per variable, shape (variables,), with the levels that occur. A row adds 1 to at
    most one level of each variable. So adding or removing a row changes one count per variable by
    1, and replacing a row changes at most two. A level takes about 250 bytes of memory.
    """
    total: Objects = _columns([Counter() for _ in private.names])
    n_rows = 0

    def counted(columns: tuple[Numbers, ...]) -> tuple[Counter[str], ...]:
        return tuple(
            Counter(name for name in column.tolist() if name is not None) for column in columns
        )

    for block, count in private.blocks(counted):
        for counter, block_counter in zip(total, block, strict=True):
            counter.update(block_counter)
        n_rows += count
    basis = partial(fingerprint, private)
    return Statistic("levels", total, n_rows, basis)


def _columns(counters: list[Counter[str]]) -> Numbers:
    stacked = np.empty(len(counters), dtype=object)
    stacked[:] = counters
    return stacked


# Exact numbers of rows in the cells of margins.


@additive
def margin_counts(private: PrivateMargins) -> Statistic:
    """Count the rows of all largest margins, in one pass.

    The integers are one margin after another. Every variable has one more level, for missing or
    unlisted values, so every row adds 1 to one cell of each margin.
    """
    sizes = private.margins.sizes
    terms = largest(private.margins.terms)

    def counted(codes: list[Codes]) -> Integers:
        return np.concatenate([_margins_counted(term, codes, sizes) for term in terms])

    total: Integers = np.zeros(sum(cells(term, sizes) for term in terms), dtype=np.int64)
    parts = private.blocks(counted)
    basis = partial(fingerprint, private)
    return total_of("margins", parts, total, basis)


def _margins_counted(term: Term, codes: list[Codes], sizes: tuple[int, ...]) -> Integers:
    flat = reduce(lambda code, i: code * sizes[i] + codes[i], term[1:], codes[term[0]])
    return np.bincount(flat, minlength=cells(term, sizes))


# Exact counts of states in series of persons; each has one state at a time.


@additive
def state_counts(private: PrivateCells) -> Statistic:
    """Count states over all persons and times; the last count is of times without a state.

    The table has a factor of times and one of states. A person's state at a time is that of the
    first complete row for both; other rows are ignored. So changing one state moves the counts by
    2 in L1 norm, and all counts sum to the number of persons times the number of times.
    """
    (tally,) = private.tallies
    steps, states = tally.shape
    by_state: Integers = np.zeros(states, dtype=np.int64)
    recorded = np.zeros((0, steps), dtype=bool)
    n_places = 0
    for part in private.parts():
        n_places += part.taken
        if part.persons is None:
            continue
        cells = in_cells(tally, part.columns, part.counted).cells
        complete = np.flatnonzero((cells >= 0) & (part.persons >= 0))
        person, cell = np.asarray(part.persons)[complete].astype(np.int64), cells[complete]
        recorded = _grown(recorded, int(person.max(initial=-1)) + 1)
        slots, first = np.unique(person * steps + cell // states, return_index=True)
        new = ~recorded.ravel()[slots]
        recorded.ravel()[slots[new]] = True
        by_state += np.bincount(cell[first[new]] % states, minlength=states)
    times = n_places // private.rows.terms.neighbours.places * steps
    exact = np.append(by_state, times - by_state.sum()).astype(object)
    basis = partial(fingerprint, private)
    return Statistic("state counts", exact, times, basis)


def _grown(recorded: Flags, n_persons: int) -> Flags:
    n_extra = max(2 * n_persons - len(recorded), 0) if n_persons > len(recorded) else 0
    return (
        np.concatenate([recorded, np.zeros((n_extra, recorded.shape[1]), dtype=bool)])
        if n_extra
        else recorded
    )


class CellPasses(OverDesigns[PrivateCells]):
    """Exact counts of tables with one number each; every count is a pass over the rows.

    The rows are disjoint and can be read more than once.
    """

    __slots__ = ("_units_per_row",)

    def __init__(self, private: tuple[PrivateCells, ...], units_per_row: int) -> None:
        words = {"units of a row": str(units_per_row)}
        super().__init__("passes over counted rows", private, words)
        self._units_per_row = units_per_row

    @property
    def recipe(self) -> Callable[[tuple[PrivateCells, ...]], CellPasses]:
        """A function that binds other rows, in the same units."""
        return partial(CellPasses, units_per_row=self._units_per_row)

    @property
    def numbers(self) -> tuple[Real, ...]:
        """The number of each table, with the range it is clipped to."""
        numbers = (tally.measured for tally in self.designs[0].tallies)
        return tuple(number for number in numbers if number is not None)

    @property
    def measured(self) -> Real:
        """The number of the one table."""
        (number,) = self.numbers
        return number

    @property
    def degree(self) -> int:
        """The highest power of the number that its parts give."""
        return self.designs[0].tallies[0].degree

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.designs[0].tallies[0].cells

    def in_units(self, units_per_row: int) -> CellPasses:
        """Return passes over the same rows, which count so many units of each."""
        return CellPasses(self.designs, units_per_row)

    def clipped(self, lower: float, upper: float, beyond: tuple[float, ...] = ()) -> CellPasses:
        """Return passes over the same rows, with the number clipped to a released range."""
        return self.recipe(tuple(private.clipped(lower, upper, beyond) for private in self.designs))

    def cut(self, edges: tuple[Floats, ...]) -> CellPasses:
        """Return passes over the same rows, in cells with released or public edges, by table."""
        return self.recipe(tuple(private.cut(edges) for private in self.designs))

    def cross(self) -> tuple[Objects, int]:
        """Return the parts of the rows by cell."""
        return self.over_rows(counts, self._units_per_row).cross()


# Exact numbers of rows by the place of their number in its public range.


@additive
def place_counts(private: PrivateCells, edges: Floats) -> Statistic:
    """Count complete rows of one table by the cell of their number, over all groups.

    `edges`, shape (cells + 1,), are in the number's unit and rise from its lower bound to its upper
    one. Cell k is of numbers above ``edges[k]`` and up to ``edges[k + 1]``; the first includes its
    lower edge. A complete row adds 1 to one cell, an incomplete one nothing: the L1 sensitivity is
    2 when a row is replaced, 1 when it is added or removed; the L2 sensitivity √2 and 1.
    """
    cells = len(edges) - 1
    inner = (edges[1:-1] - edges[0]) / (edges[-1] - edges[0])

    def counted(placed: tuple[Placed, ...]) -> Integers:
        (placement,) = placed
        assert placement.positions is not None
        at = np.searchsorted(inner, placement.positions[placement.cells >= 0])
        return np.bincount(at, minlength=cells)

    parts = private.blocks(counted)
    words = {"ends of cells": digest_of(edges)}
    basis = partial(fingerprint, private, words)
    return total_of("rows by place", parts, np.zeros(cells, dtype=np.int64), basis)
