"""Values that come again: what a law with atoms, or with too few bits, gives away.

Every run is put in a cell, and the score of a cell is the log ratio of how often
either side fell into it; a cell never met scores 0. A cell that one side cannot
reach is how releases on different supports show: an output that is impossible
under the neighbour.

* The released values themselves, all of them or one coordinate: constants,
  words, counts, the same noise twice.
* The lowest bit set in a floating-point number, with its binade: differences of
  floating-point noise leave other bits empty for other answers.

References
----------
Mironov, I. (2012). "On significance of the least significant bits for
differential privacy." CCS 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dpmodels.audit.scores.learned import Score
from dpmodels.typing import Floats, Integers

_MOST_COLUMNS: Final = 16  # a choice
_NO_BIT: Final = 1074  # the cell of zero, which has no bit: that of the smallest double

Cells = Integers


def repeats(rows: Floats, neighbour: Floats) -> Score:
    """Score the released values as they are, by how often either side gave them."""
    return _scored(_whole, rows, neighbour)


def repeated_coordinate(rows: Floats, neighbour: Floats) -> Score:
    """Score the values of the coordinate in which they tell most."""
    return _best_column(lambda column: column.view(np.int64), rows, neighbour)


def low_bits(rows: Floats, neighbour: Floats) -> Score:
    """Score where the lowest bit of a coordinate is, given its binade."""
    return _best_column(_bits, rows, neighbour)


def _whole(values: Floats) -> Cells:
    """Give lines that are equal to the last bit equal numbers."""
    weights = np.random.default_rng(7).integers(1, 2**62, size=values.shape[1], dtype=np.int64) | 1
    return np.asarray((np.ascontiguousarray(values).view(np.int64) * weights).sum(axis=1))


def _bits(column: Floats) -> Cells:
    """Return a number for the binade and the lowest bit."""
    _, binade = np.frexp(column)
    pattern = column.view(np.int64) & (2**52 - 1) | 2**52
    lowest = pattern & -pattern
    _, place = np.frexp(lowest.astype(np.float64))
    return np.where(column == 0, _NO_BIT, binade.astype(np.int64) * 64 + place) * 2 + (column < 0)


def _best_column(cells: Callable[[Floats], Cells], rows: Floats, neighbour: Floats) -> Score:
    best, score, found = 0, None, -1.0
    for column in range(min(rows.shape[1], _MOST_COLUMNS)):
        left, right = (np.ascontiguousarray(side[:, column]) for side in (rows, neighbour))
        known, ratios, apart = _table(cells(left), cells(right))
        if apart > found:
            best, score, found = column, _looked_up(known, ratios), apart
    assert score is not None
    looked: Callable[[Cells], Floats] = score
    return lambda values: looked(cells(np.ascontiguousarray(values[:, best])))


def _scored(cells: Callable[[Any], Cells], rows: Floats, neighbour: Floats) -> Score:
    known, ratios, _ = _table(cells(rows), cells(neighbour))
    looked = _looked_up(known, ratios)
    return lambda values: looked(cells(values))


def _table(left: Cells, right: Cells) -> tuple[Cells, Floats, float]:
    """Return cells met more than once, their log ratios, and how far apart they set the sides."""
    known, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    counts = np.stack(
        [
            np.bincount(places[: len(left)], minlength=len(known)),
            np.bincount(places[len(left) :], minlength=len(known)),
        ]
    )
    again = counts.sum(axis=0) > 1
    known, counts = known[again], counts[:, again]
    rates = (counts + 0.5) / np.array([[len(left) + 1], [len(right) + 1]])
    apart = float(np.abs(counts[0] / len(left) - counts[1] / len(right)).sum()) / 2
    return known, np.log(rates[1] / rates[0]), apart


def _looked_up(known: Cells, ratios: Floats) -> Callable[[Cells], Floats]:
    def look(cells: Cells) -> Floats:
        if not len(known):
            return np.zeros(len(cells))
        places = np.searchsorted(known, cells).clip(0, len(known) - 1)
        return np.where(known[places] == cells, ratios[places], 0.0)

    return look
