"""Parts of persons: each one's rows together make what one row makes of a table.

Of a person let C be the share of its weight that its rows in a cell have, and t the mean of their
numbers; the shares of all cells have a sum of at most 1. The parts of the cell are C times

    ``C (1 - t)²,  2 C t (1 - t),  C t²,  (1 - C)(1 - t),  (1 - C) t``:

the Bernstein parts of t of degree 2 for the share C, of degree 1 for the rest.

*Theorem.* They are not negative and have the sum C. So over all cells a person's parts have an L1
norm of at most 1, and an L2 norm of at most that, whatever and however many its rows are, and they
follow from no other person's: a person is to a table what a row is. Where all of a person is in one
cell, as without groups, the last two are 0 and the others those of a row of its mean.

With S = C t the sums over persons give those of C, of S and of ``(S - r C)²`` for every r, which is
``r² p0 - r (1 - r) p1 + (1 - r)² p2``: the clustered variance of a ratio of sums of S and C.
"""

from __future__ import annotations

from math import comb
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.design.cells import in_cells
from dpmodels.design.rows import Part
from dpmodels.formula.tally import Tally
from dpmodels.frames.numbering import Numbering
from dpmodels.privacy import Adjacency
from dpmodels.typing import Floats, Integers

# Steps of a number's place in its range: sums of 2**31 of them fit.
STEPS: Final = 2**30
# Halves of parts, of which float64 adds so many exactly.
_HALF: Final = 32
_BLOCK: Final = 2**20


class PersonSums:
    """Numbers of rows, and sums of their numbers, by person and cell of one table.

    Exact, and the same for any order of the rows. Nothing of it is shown.
    """

    __slots__ = ("_keys", "_neighbours", "_rows", "_steps", "_tally")

    def __init__(self, tally: Tally, neighbours: Adjacency) -> None:
        self._tally = tally
        self._neighbours = neighbours
        # By person and cell, in the order in which they come.
        self._keys = Numbering(0)
        self._rows, self._steps = (np.zeros(0, dtype=np.int64) for _ in range(2))

    def __repr__(self) -> str:
        return "<PersonSums, not shown>"

    def add(self, part: Part) -> None:
        """Add the complete rows that take places.

        Where all rows of a person count, each has the same share of its weight; of a person with
        more rows than places those that take one.
        """
        assert part.persons is not None
        assert part.places is not None
        placed = in_cells(self._tally, part.columns, part.counted)
        assert placed.positions is not None
        there = np.flatnonzero((placed.cells >= 0) & (part.persons >= 0) & (part.places > 0))
        at = self._numbers(part.persons[there].astype(np.int64), placed.cells[there])
        np.add.at(self._rows, at, 1)
        np.add.at(self._steps, at, np.rint(placed.positions[there] * STEPS).astype(np.int64))

    def _numbers(self, persons: Integers, cells: NDArray[np.intp]) -> Integers:
        """Return where persons' sums in cells are, and make room for them."""
        at, room = persons, int(persons.max(initial=-1)) + 1
        if self._tally.cells > 1:
            keys = (persons * self._tally.cells + cells).view(np.uint64)
            at, room = self._keys.numbers(keys, np.zeros_like(keys)), self._keys.room
        lacking = room - len(self._rows)
        if lacking > 0:
            more = (0, max(lacking, len(self._rows)))
            self._rows, self._steps = np.pad(self._rows, more), np.pad(self._steps, more)
        return at

    def parts(self, units: int) -> NDArray[Any]:
        """Return the sums over persons, of whom each has so many units, shape (cells, parts).

        Python integers; `units` is at most ``2**56``.
        """
        there = np.flatnonzero(self._rows)
        keys = there
        if self._tally.cells > 1:
            keys = self._keys.high[: len(there)].view(np.int64)
        persons, cells = np.divmod(keys, self._tally.cells)
        rows, steps = self._rows[there], self._steps[there]
        whole = self._shared_by(persons, rows)
        total: NDArray[Any] = np.zeros((self._tally.cells, self._tally.parts), dtype=object)
        for at in range(0, len(there), _BLOCK):
            here = slice(at, at + _BLOCK)
            total = total + self._block(rows[here], steps[here], whole[here], cells[here], units)
        return total

    def _block(
        self, rows: Integers, steps: Integers, whole: Integers, cells: Integers, units: int
    ) -> NDArray[Any]:
        """Return the sums over some persons and cells."""
        own = _share(np.full(len(rows), units), rows, whole)
        places = steps / (rows * float(STEPS))
        together = _share(own, rows, whole)
        found = _divided(places, 2, together)
        if self._tally.clustered:
            found = np.vstack([found, _divided(places, 1, own - together)])
        return np.stack([_summed(cells, one, self._tally.cells) for one in found], axis=1)

    def _shared_by(self, persons: Integers, rows: Integers) -> Integers:
        """Return by how many rows each person's weight is shared, at least its complete ones."""
        total = np.bincount(persons, rows).astype(np.int64)
        if not self._neighbours.counts_persons:
            total = np.maximum(total, self._neighbours.places)
        return np.asarray(total[persons])


def by_person(tally: Tally, neighbours: Adjacency) -> bool:
    """Whether the rows of a person make one of a table: means of numbers, where persons are known.

    Variances are of rows, and counts too.
    """
    return neighbours.person is not None and tally.measured is not None and tally.degree == 2


def _share(units: Integers, rows: Integers, whole: Integers) -> Integers:
    """Return ``units * rows / whole``, rounded down, where the product may be too large."""
    each, more = np.divmod(units, whole)
    return np.asarray(each * rows + more * rows // whole)


def _divided(positions: Floats, degree: int, units: Integers) -> Integers:
    """Divide units by Bernstein parts, shape (degree + 1, rows): none is lost or made."""
    left, parts = units.copy(), []
    for i in range(degree):
        share = comb(degree, i) * positions**i * (1.0 - positions) ** (degree - i)
        parts.append(np.minimum((share * units).astype(np.int64), left))
        left = left - parts[i]
    return np.stack([*parts, left])


def _summed(cells: Integers, parts: Integers, size: int) -> NDArray[Any]:
    """Add parts by cell, of a block, as Python integers."""
    halves = parts >> _HALF, parts & (2**_HALF - 1)
    high, low = (np.bincount(cells, own, size).astype(np.int64) for own in halves)
    return np.asarray((high.astype(object) << _HALF) + low.astype(object))
