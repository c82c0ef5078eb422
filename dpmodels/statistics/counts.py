"""Exact counts of rows, or of parts of rows, by cell, margin, level or state.

Repeated counts of rows, with values clipped to released ranges or binned at released edges.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise
from math import comb
from typing import Final

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
from dpmodels.frames.persons import Numbering, mixed
from dpmodels.postprocess.residuals import Term, cells, largest
from dpmodels.privacy import Adjacency
from dpmodels.statistics.statistic import (
    Fingerprint,
    OverDesigns,
    Statistic,
    additive,
    digest_of,
    fingerprint,
    total_of,
)
from dpmodels.typing import Flags, Floats, Indices, Integers, Numbers, Objects, Scalars

# Rows per block where no row is divided, or more of a large table: a choice, so that a processor's
# cache holds a column.
WHOLE_ROWS = 2**15


@additive
def counts(private: PrivateCells, units_per_row: int, *, count_public: bool) -> Statistic:
    """Count the rows of every table, in units of a row.

    The integers are one table after another: for each cell its ``degree + 1`` parts, then the
    incomplete rows. Every row adds `units_per_row` units, at most ``2**40``, to each table. The
    result is the same for any chunking or order. For means of persons the rows of each person are
    added up first, and the person adds the units of all its places (:class:`PersonSums`).
    """
    words = {"units of a row": str(units_per_row)}
    basis = partial(fingerprint, private, words, count_public=count_public)
    bounds = _only_bounds(private.tallies)
    if (sides := private.by_bounds(bounds)) is not None:
        exact = sides.ravel().astype(object) * units_per_row
        return Statistic("counts", exact, int(sides[0].sum()), basis)
    neighbours = private.rows.terms.neighbours
    flags = [by_person(tally, neighbours) for tally in private.tallies]
    coded = private.coded()
    if bounds and coded is private and not any(flags):
        return CountsBeside(private, bounds, units_per_row, basis, count_public=count_public)
    pairs = list(zip(coded.tallies, flags, strict=True))
    person_sums = [PersonSums(tally, neighbours) for tally, is_by_person in pairs if is_by_person]
    row_counts = RowCounts(
        tuple(tally for tally, is_by_person in pairs if not is_by_person), units_per_row
    )
    n_rows = 0
    for part in coded.parts(count_public=count_public):
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

    __slots__ = ("_count_public", "_counter", "_private", "_units_per_row")

    def __init__(
        self,
        private: PrivateCells,
        sides: list[BoundSide],
        units_per_row: int,
        basis: Callable[[], Fingerprint],
        *,
        count_public: bool,
    ) -> None:
        super().__init__("counts", np.zeros(4 * len(sides), dtype=object), 0, basis)
        self._private, self._units_per_row = private, units_per_row
        self._counter, self._count_public = BoundCounts(sides), count_public
        if private.rows.can_be_thinned:
            private.rows.counter = self._counter

    @property
    def _kind(self) -> type[Statistic]:
        return Statistic

    def cross(self) -> tuple[Numbers, int]:
        """Return the exact integers and the row count, after a reading where none was complete."""
        counter = self._counter
        if counter.total is None:
            counter.start()
            for part in self._private.parts(count_public=self._count_public):
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
        points = _points(tally)
        is_below, is_out = points < 0, (positions < 0) | (positions > 1)
        lines = shares_at(positions[is_out], points, units_per_row, _power(tally))
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


def shares(positions: Floats, degree: int, units_per_row: int) -> Floats:
    """Divide every row between the Bernstein parts of its cell by its position in the range.

    `positions`, shape (rows,), are positions in the public range, from 0 to 1. Returns integers,
    shape (degree + 1, rows), that sum to `units_per_row`, at most ``2**40``, for each row.

    Part i is ``C(d, i) t**i (1 - t)**(d - i)``, rounded down to a unit; the last part is what
    remains. So a row's parts have an L1 norm of exactly `units_per_row`, and an L2
    norm of at most that. The sums of powers are linear in the parts, see
    :func:`dpmodels.inference.means.power_weights`.
    """
    parts = np.empty((degree + 1, len(positions)))
    left = np.full(len(positions), float(units_per_row))
    for i in range(degree):
        # Products alone: the same bits for a row in whatever block it stands.
        part = np.full(len(positions), float(math.comb(degree, i) * units_per_row))
        for _ in range(i):
            part *= positions
        for _ in range(degree - i):
            part *= 1.0 - positions
        parts[i] = np.minimum(np.floor(part), left)
        left = left - parts[i]
    parts[degree] = left
    return parts


def _points(tally: Tally) -> Floats:
    """Return the points beyond the range of a table's number, in lengths of it."""
    number = tally.measured
    assert number is not None
    return (np.array(tally.beyond) - number.lower) / (number.upper - number.lower)


def _power(tally: Tally) -> int:
    return max(tally.degree // 2, 1)


def shares_at(positions: Floats, points: Floats, units: int | Integers, power: int = 1) -> Integers:
    """Divide rows far outside the range between the points on both sides of them.

    By their distance, or for a `power` of 2 by its square, so that sums of that keep their value.
    `points` are below 0 or above 1. Rows nearer than half of the nearest are at the end. Returns
    integers, shape (points, rows), not negative; what they lack of the `units` is there, too.
    """
    lines = [np.zeros((0, len(positions)), dtype=np.int64)]
    left, right = -points[points < 0][::-1], points[points > 0]
    for places, end, outer, order in ((-positions, 0.0, left, -1), (positions, 1.0, right, 1)):
        reached = list[Integers]()
        for start, stop in pairwise([*(outer[:1] + end) / 2, *outer]):
            share, length = np.clip((places - start) / (stop - start), 0.0, 1.0), stop - start
            if power == 2:
                # Of squared distances from the middle of the range.
                twice = 2 * (start - end) + 1
                share *= (twice + share * length) / (twice + length)
            reached.append(np.minimum(np.floor(units * share).astype(np.int64), units))
        none = np.zeros(len(positions), dtype=np.int64)
        lines.append(-np.diff([*reached, none], axis=0)[::order])
    return np.vstack(lines)


# Exact numbers of rows by undeclared level.


@additive
def counted_levels(private: PrivateLevels, *, count_public: bool) -> Statistic:
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

    for block, count in private.blocks(counted, count_public=count_public):
        for counter, block_counter in zip(total, block, strict=True):
            counter.update(block_counter)
        n_rows += count
    basis = partial(fingerprint, private, count_public=count_public)
    return Statistic("levels", total, n_rows, basis)


def _columns(counters: list[Counter[str]]) -> Numbers:
    stacked = np.empty(len(counters), dtype=object)
    stacked[:] = counters
    return stacked


# Exact numbers of rows in the cells of margins.


@additive
def margin_counts(private: PrivateMargins, *, count_public: bool) -> Statistic:
    """Count the rows of all largest margins, in one pass.

    The integers are one margin after another. Every variable has one more level, for missing or
    unlisted values, so every row adds 1 to one cell of each margin.
    """
    sizes = private.margins.sizes
    terms = largest(private.margins.terms)

    def counted(codes: list[Codes]) -> Integers:
        return np.concatenate([_margins_counted(term, codes, sizes) for term in terms])

    total: Integers = np.zeros(sum(cells(term, sizes) for term in terms), dtype=np.int64)
    parts = private.blocks(counted, count_public=count_public)
    basis = partial(fingerprint, private, count_public=count_public)
    return total_of("margins", parts, total, basis)


def _margins_counted(term: Term, codes: list[Codes], sizes: tuple[int, ...]) -> Integers:
    flat = reduce(lambda code, i: code * sizes[i] + codes[i], term[1:], codes[term[0]])
    return np.bincount(flat, minlength=cells(term, sizes))


# Exact counts of states in series of persons; each has one state at a time.


@additive
def state_counts(private: PrivateCells, *, count_public: bool = True) -> Statistic:
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
    for part in private.parts(count_public=count_public):
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
    basis = partial(fingerprint, private, count_public=count_public)
    return Statistic("state counts", exact, times, basis)


def _grown(recorded: Flags, n_persons: int) -> Flags:
    n_extra = max(2 * n_persons - len(recorded), 0) if n_persons > len(recorded) else 0
    return (
        np.concatenate([recorded, np.zeros((n_extra, recorded.shape[1]), dtype=bool)])
        if n_extra
        else recorded
    )


# Parts of persons: the rows of a person together add to a table what one row adds.
#
# Of a person let C be the share of its weight that its rows in a cell have, and t the mean of their
# numbers; the shares of all cells have a sum of at most 1. The parts of the cell are C times
#
#     ``C (1 - t)²,  2 C t (1 - t),  C t²,  (1 - C)(1 - t),  (1 - C) t``:
#
# the Bernstein parts of t of degree 2 for the share C, of degree 1 for the rest.
#
# *Theorem.* They are not negative and have the sum C. So over all cells a person's parts have an L1
# norm of at most 1, and an L2 norm of at most that, whatever and however many its rows are, and
# they follow from no other person's: a person is to a table what a row is. Where all of a person is
# in one cell, as without groups, the last two are 0 and the others those of a row of its mean.
#
# With S = C t the sums over persons give those of C, of S and of ``(S - r C)²`` for every r, which
# is ``r² p0 - r (1 - r) p1 + (1 - r)² p2``: the clustered variance of a ratio of sums of S and C.
#
# For variances between persons the parts are those of t of a higher degree for the share C, which
# are not negative and have the sum C too.

# Steps of a number's place in its range: sums of 2**31 of them fit.
STEPS: Final = 2**30
# Bits of half a part: float64 adds halves exactly.
_HALF: Final = 32
_BLOCK: Final = 2**20


class PersonSums(Unshown):
    """Numbers of rows and sums of their values, by person and cell of one table.

    Exact, and the same for any order of the rows.
    """

    def __init__(self, tally: Tally, neighbours: Adjacency) -> None:
        self._tally = tally
        self._neighbours = neighbours
        # By person and cell, in the order in which they come; mixed, as high bits choose slots.
        self._keys = Numbering(0)
        self._rows, self._steps, self._far = (np.zeros(0, dtype=np.int64) for _ in range(3))
        self._points = _points(tally) if tally.beyond else np.zeros(0)
        self._reach = float(np.abs(self._points).max(initial=1.0))

    def add(self, part: Part) -> None:
        """Add the complete rows that take places.

        If all rows of a person count, each has the same share of its weight; else only the rows
        that take a place count.
        """
        assert part.persons is not None
        assert part.places is not None
        placed = in_cells(self._tally, part.columns, part.counted)
        assert placed.positions is not None
        complete = np.flatnonzero((placed.cells >= 0) & (part.persons >= 0) & (part.places > 0))
        at = self._numbers(part.persons[complete].astype(np.int64), placed.cells[complete])
        np.add.at(self._rows, at, 1)
        positions = placed.positions[complete]
        within = np.clip(positions, 0.0, 1.0)
        np.add.at(self._steps, at, np.rint(within * STEPS).astype(np.int64))
        if len(self._points):
            ends = self._points.min(initial=0.0), self._points.max(initial=1.0)
            beyond = (np.clip(positions, *ends) - within) / self._reach
            np.add.at(self._far, at, np.rint(beyond * STEPS).astype(np.int64))

    def _numbers(self, persons: Integers, cells: Indices) -> Integers:
        """Return the indices of persons' sums in cells, and extend the arrays."""
        at, room = persons, int(persons.max(initial=-1)) + 1
        if self._tally.cells > 1:
            keys = (persons * self._tally.cells + cells).view(np.uint64)
            at, room = self._keys.numbers(keys, mixed(keys)), self._keys.room
        lacking = room - len(self._rows)
        if lacking > 0:
            padding = (0, max(lacking, len(self._rows)))
            self._rows, self._steps = np.pad(self._rows, padding), np.pad(self._steps, padding)
            self._far = np.pad(self._far, padding)
        return at

    def parts(self, units: int) -> Numbers:
        """Return the sums over persons, shape (cells, parts); each person has `units` units.

        Python integers; `units` is at most ``2**56``.
        """
        occupied = np.flatnonzero(self._rows)
        keys = occupied
        if self._tally.cells > 1:
            keys = self._keys.high[: len(occupied)].view(np.int64)
        persons, cells = np.divmod(keys, self._tally.cells)
        rows, steps, beyond = self._rows[occupied], self._steps[occupied], self._far[occupied]
        n_sharing = self._shared_by(persons, rows)
        total: Objects = np.zeros((self._tally.cells, self._tally.parts), dtype=object)
        for at in range(0, len(occupied), _BLOCK):
            block = slice(at, at + _BLOCK)
            places = (steps[block] + self._reach * beyond[block]) / (rows[block] * float(STEPS))
            total = total + self._block(rows[block], places, n_sharing[block], cells[block], units)
        return total

    def _block(
        self, rows: Integers, places: Floats, n_sharing: Integers, cells: Integers, units: int
    ) -> Scalars:
        cell_units = _share(np.full(len(rows), units), rows, n_sharing)
        if self._tally.clustered:
            together = _share(cell_units, rows, n_sharing)
            divided = [self._divided(places, 2, together)]
            divided.append(self._divided(places, 1, cell_units - together))
        else:
            divided = [self._divided(places, self._tally.degree, cell_units)]
        parts = np.vstack([part for of_kind in zip(*divided, strict=True) for part in of_kind])
        return np.stack([summed_by_cell(cells, part, self._tally.cells) for part in parts], axis=1)

    def _divided(self, places: Floats, degree: int, units: Integers) -> tuple[Integers, Integers]:
        """Divide units between the parts of the range and the points beyond it."""
        at_points = shares_at(places, self._points, units, _power(self._tally))
        left = units - at_points.sum(axis=0)
        return _divided(np.clip(places, 0.0, 1.0), degree, left), at_points

    def _shared_by(self, persons: Integers, rows: Integers) -> Integers:
        """Return the number of rows that share each person's weight."""
        total = np.bincount(persons, rows).astype(np.int64)
        if not self._neighbours.counts_persons:
            total = np.maximum(total, self._neighbours.places)
        return np.asarray(total[persons])


def by_person(tally: Tally, neighbours: Adjacency) -> bool:
    """Whether the rows of a person are combined into one.

    If persons are known: for means, and for variances of persons who count once each.
    """
    if neighbours.person is None or tally.measured is None:
        return False
    return tally.degree == 2 or (tally.degree > 2 and neighbours.counts_persons)


def _share(units: Integers, rows: Integers, n_sharing: Integers) -> Integers:
    """Return ``units * rows / n_sharing``, rounded down, without overflow."""
    quotient, remainder = np.divmod(units, n_sharing)
    return np.asarray(quotient * rows + remainder * rows // n_sharing)


def _divided(positions: Floats, degree: int, units: Integers) -> Integers:
    """Divide units by Bernstein parts, shape (degree + 1, rows), and keep their sum."""
    left, parts = units.copy(), []
    for i in range(degree):
        share = comb(degree, i) * positions**i * (1.0 - positions) ** (degree - i)
        parts.append(np.minimum((share * units).astype(np.int64), left))
        left = left - parts[i]
    return np.stack([*parts, left])


def summed_by_cell(cells: Integers, parts: Integers, size: int) -> Scalars:
    """Add parts by cell, of a block, as Python integers."""
    halves = parts >> _HALF, parts & (2**_HALF - 1)
    high, low = (np.bincount(cells, half, size).astype(np.int64) for half in halves)
    return np.asarray((high.astype(object) << _HALF) + low.astype(object))


class CellPasses(OverDesigns[PrivateCells]):
    """Exact counts of tables with one number each; every count is a pass over the rows.

    The rows are disjoint and can be read more than once.
    """

    __slots__ = ("_units_per_row",)

    def __init__(
        self, private: tuple[PrivateCells, ...], units_per_row: int, *, count_public: bool
    ) -> None:
        words = {"units of a row": str(units_per_row)}
        super().__init__("passes over counted rows", private, words, count_public=count_public)
        self._units_per_row = units_per_row

    @property
    def recipe(self) -> Callable[[tuple[PrivateCells, ...]], CellPasses]:
        """A function that binds other rows, in the same units."""
        units, public = self._units_per_row, self.count_public
        return partial(CellPasses, units_per_row=units, count_public=public)

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
        return CellPasses(self.designs, units_per_row, count_public=self.count_public)

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
def place_counts(private: PrivateCells, edges: Floats, *, count_public: bool) -> Statistic:
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

    parts = private.blocks(counted, count_public=count_public)
    words = {"ends of cells": digest_of(edges)}
    basis = partial(fingerprint, private, words, count_public=count_public)
    return total_of("rows by place", parts, np.zeros(cells, dtype=np.int64), basis)
