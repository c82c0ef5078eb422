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
from typing import Final

import numpy as np

from dpmodels.design.cells import in_cells
from dpmodels.design.rows import Part
from dpmodels.formula.tally import Tally
from dpmodels.privacy import Adjacency
from dpmodels.typing import Floats, Integers

# Steps of a number's place in its range: sums of 2**31 of them fit.
STEPS: Final = 2**30
# Rows that wait to be added, and halves of parts that float64 adds exactly: choices.
_WAITING: Final = 2**20
_HALF: Final = 32


class PersonSums:
    """Numbers of rows, and sums of their numbers, by person and cell of one table.

    Exact, and the same for any order of the rows. Nothing of it is shown.
    """

    __slots__ = ("_keys", "_neighbours", "_tally", "_values", "_waiting")

    def __init__(self, tally: Tally, neighbours: Adjacency) -> None:
        self._tally = tally
        self._neighbours = neighbours
        self._keys = np.zeros(0, dtype=np.int64)
        self._values = np.zeros((2, 0), dtype=np.int64)
        self._waiting: list[tuple[Integers, Integers]] = []

    def __repr__(self) -> str:
        return "<PersonSums, not shown>"

    def add(self, part: Part) -> None:
        """Add the complete rows of persons that count; of `rows` a person those that have a place.

        Of persons whose rows all count each has the same share.
        """
        assert part.persons is not None
        assert part.places is not None
        placed = in_cells(self._tally, part.columns, part.counted)
        assert placed.positions is not None
        there = (placed.cells >= 0) & (part.persons >= 0)
        if not self._neighbours.counts_persons:
            there &= part.places > 0
        keys = part.persons[there] * self._tally.cells + placed.cells[there]
        steps = np.rint(placed.positions[there] * STEPS).astype(np.int64)
        self._waiting.append((keys, np.stack([np.ones_like(steps), steps])))
        if sum(len(own) for own, _ in self._waiting) > max(_WAITING, len(self._keys)):
            self._settle()

    def _settle(self) -> None:
        """Add up what waits."""
        keys = np.concatenate([self._keys, *(own for own, _ in self._waiting)])
        values = np.concatenate([self._values, *(own for _, own in self._waiting)], axis=1)
        self._waiting.clear()
        order = np.argsort(keys, kind="stable")
        starts = _starts(keys[order])
        self._keys = keys[order][starts]
        self._values = np.add.reduceat(values[:, order], starts, axis=1) if len(starts) else values

    def parts(self, units: int) -> Integers:
        """Return the sums over persons, of whom each has so many units, shape (cells, parts).

        Python integers. `units` is at most ``2**56``.
        """
        self._settle()
        (rows, sums), cells = self._values, self._keys % self._tally.cells
        whole = self._shared_by(rows)
        own = _share(np.full(len(rows), units), rows, whole)
        places = sums / (rows * float(STEPS))
        together = _share(own, rows, whole)
        found = _divided(places, 2, together)
        if self._tally.clustered:
            found = np.vstack([found, _divided(places, 1, own - together)])
        return np.stack([_summed(cells, one, self._tally.cells) for one in found], axis=1)

    def _shared_by(self, rows: Integers) -> Integers:
        """Return by how many rows each person's weight is shared, at least its complete ones."""
        starts = _starts(self._keys // self._tally.cells)
        total = np.add.reduceat(rows, starts) if len(starts) else rows
        if not self._neighbours.counts_persons:
            total = np.maximum(total, self._neighbours.places)
        return np.repeat(total, np.diff(np.append(starts, len(rows))))


def by_person(tally: Tally, neighbours: Adjacency) -> bool:
    """Whether the rows of a person make one of a table: means of numbers, where persons are known.

    Variances are of rows, and counts too.
    """
    return neighbours.person is not None and tally.measured is not None and tally.degree == 2


def _starts(keys: Integers) -> Integers:
    """Return where runs of equal keys begin."""
    return np.flatnonzero(np.diff(keys, prepend=-1))


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


def _summed(cells: Integers, parts: Integers, size: int) -> Integers:
    """Add parts by cell as Python integers."""
    total = np.zeros(size, dtype=object)
    for at in range(0, len(cells), _WAITING):
        here = slice(at, at + _WAITING)
        halves = parts[here] >> _HALF, parts[here] & (2**_HALF - 1)
        high, low = (np.bincount(cells[here], own, size).astype(np.int64) for own in halves)
        total = total + (high.astype(object) << _HALF) + low.astype(object)
    return total
