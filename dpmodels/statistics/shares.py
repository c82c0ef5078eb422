"""How rows and persons are divided between the parts of a cell, in whole units."""

from __future__ import annotations

from itertools import pairwise
from math import comb
from typing import Final

import numpy as np

from dpmodels.design.cells import in_cells
from dpmodels.design.parts import Part, Unshown
from dpmodels.formula.tally import Tally
from dpmodels.frames.persons import Numbering, mixed
from dpmodels.privacy import Adjacency
from dpmodels.typing import Floats, Indices, Integers, Numbers, Objects, Scalars


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
        part = np.full(len(positions), float(comb(degree, i) * units_per_row))
        for _ in range(i):
            part *= positions
        for _ in range(degree - i):
            part *= 1.0 - positions
        parts[i] = np.minimum(np.floor(part), left)
        left = left - parts[i]
    parts[degree] = left
    return parts


def points_of(tally: Tally) -> Floats:
    """Return the points beyond the range of a table's number, in lengths of it."""
    number = tally.measured
    assert number is not None
    return (np.array(tally.beyond) - number.lower) / (number.upper - number.lower)


def power_of(tally: Tally) -> int:
    """Return the power of distances whose sum is kept between points: 2 for variances."""
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
        self._points = points_of(tally) if tally.beyond else np.zeros(0)
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
        at_points = shares_at(places, self._points, units, power_of(self._tally))
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
