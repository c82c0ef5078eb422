"""Cells of so few rows that noise swamps them, and the rows that are added to them.

What a level of no rows does to the other coefficients is a division by noise. Rows at the means of
all, public or released numbers, are added to such a cell until its count stands clear of its noise:
what comes of the cell is then that it is like the rest, and the others are as without it. How far
the cell really is from the rest, squared, is a variance that goes along.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.postprocess.bound import NONE, Identities
from dpmodels.typing import Floats

Whole = NDArray[np.int_]
# A choice: a number of rows is told from none where it exceeds so many of its noise sds.
TOLD = 4.0
# However quiet the noise: less than a row is none, but for the rounding of rows on the lattice.
HALF, GRAIN = 0.5, 2.0**-18
# A choice: so many sds of the response is the mean of a cell from that of all rows.
APART = 2.0


class Layout(NamedTuple):
    """Which columns of a row ``a = (1, z)`` are monomials of which cells.

    `levels`, shape (size, categories), and `numbers`, shape (size, numbers), as
    :class:`dpmodels.formula.coding.Cells` says, with `sizes` the categories' numbers of levels;
    `box` is the public range of z, the constant's among them.
    """

    identities: Identities
    levels: Whole
    numbers: Whole
    sizes: tuple[int, ...]
    box: tuple[Floats, Floats]


class Added(NamedTuple):
    """Moments of added rows, and the covariance of what they do: both of shape (size, size)."""

    moments: Floats
    pull: Floats


def added(moments: Floats, row_noise: Floats, square_sd: Floats, layout: Layout) -> Added | None:
    """Add rows to cells whose count is less than :data:`TOLD` of its noise sds.

    `moments` of rows a, of shape (size, size); `row_noise`, of the same shape, the covariance of
    the noise in their first row; `square_sd`, shape (size,), the sds of the noise in the squares of
    columns about the columns' origin. None where no cell is so small.
    """
    means = np.clip(moments[0] / max(moments[0, 0], 1.0), *layout.box)
    found = [
        (_row(cell, means, layout), weight)
        for within in _maximal(layout.levels[:-1])
        for cell, weight in _small(within, moments, row_noise, layout)
    ]
    found += _slopes(moments, square_sd, layout)
    if not found:
        return None
    rows, weights = np.array([row for row, _ in found]), np.array([weight for _, weight in found])
    count = max(moments[0, 0], 1.0)
    squared = moments[-1, -1] / count - means[-1] ** 2 + 2 * square_sd[-1] / count
    largest = float(np.max(np.abs([end[-1] for end in layout.box]))) ** 2
    apart = APART**2 * min(max(squared, 0.0), largest)
    own = rows.T @ (weights[:, None] * rows)
    return Added(own, apart * (rows.T @ (weights[:, None] ** 2 * rows)))


def _maximal(levels: Whole) -> list[tuple[int, ...]]:
    """Return the sets of categories of columns that no other column's set holds."""
    every = {tuple(np.flatnonzero(row != NONE).tolist()) for row in levels}
    own = [one for one in every if one]
    return sorted(one for one in own if not any(set(one) < set(other) for other in own))


def _small(
    within: tuple[int, ...], moments: Floats, row_noise: Floats, layout: Layout
) -> list[tuple[dict[int, int], float]]:
    """Return the small cells of some categories, and how many rows each of them lacks."""
    levels = layout.levels
    pure = np.asarray(~layout.numbers.any(axis=1))
    place = {tuple(row): at for at, row in enumerate(levels.tolist()) if pure[at]}
    seen = {f: sorted({int(row[f]) for row in levels[pure] if row[f] != NONE}) for f in within}
    if any(len(set(range(layout.sizes[f])) - set(seen[f])) > 1 for f in within):
        return []
    cells, rows = [], []
    for chosen in product(*(range(layout.sizes[f]) for f in within)):
        cell = dict(zip(within, chosen, strict=True))
        weights = _count_weights(cell, seen, place, layout)
        if weights is None:
            return []
        cells.append(cell)
        rows.append(weights)
    table = np.array(rows)
    counts = table @ moments[0]
    sds = np.sqrt(np.maximum(np.einsum("ij,ij->i", table @ row_noise, table), 0.0))
    least = np.maximum(TOLD * sds, HALF + GRAIN * moments[0, 0])
    lacking = np.maximum(least - counts, 0.0)
    return [(cells[at], float(lacking[at])) for at in np.flatnonzero(lacking)]


def _count_weights(
    cell: dict[int, int],
    seen: dict[int, list[int]],
    place: dict[tuple[int, ...], int],
    layout: Layout,
) -> Floats | None:
    """Return the weights of the columns' sums in the count of a cell, None for lack of a column.

    `seen` are the levels that columns indicate, by category; `place` the columns, by their levels.
    """
    known = layout.identities
    weights = np.zeros(len(layout.levels))
    for chosen in product(*(_signed_levels(level, seen[f]) for f, level in cell.items())):
        key = [NONE] * len(layout.sizes)
        for f, (level, _) in zip(cell, chosen, strict=True):
            key[f] = level
        at = place.get(tuple(key))
        if at is None:
            return None
        sign = float(np.prod([sign for _, sign in chosen]))
        weights[at] += sign / known.factor[at]
        weights[0] += sign * known.shift[at] / known.factor[at]
    return weights


def _signed_levels(level: int, seen: list[int]) -> list[tuple[int, float]]:
    """Return the levels whose counts add up to that of a level, each with its sign."""
    if level in seen:
        return [(level, 1.0)]
    # A level without a column is all rows less those of the other levels.
    return [(NONE, 1.0), *((other, -1.0) for other in seen)]


def _row(cell: dict[int, int], means: Floats, layout: Layout) -> Floats:
    """Return a row of a cell at the means of all."""
    known, levels, numbers = layout.identities, layout.levels, layout.numbers
    within = list(cell)
    there, own = levels[:, within], np.array([cell[f] for f in within])
    named = (levels != NONE).any(axis=1)
    out = ((there != NONE) & (there != own)).any(axis=1)
    inside = named & ~out & (np.delete(levels, within, axis=1) == NONE).all(axis=1)
    alone = {tuple(numbers[at]): at for at in np.flatnonzero(~named)}
    row = means + known.shift
    row[out] = 0.0
    for at in np.flatnonzero(inside):
        other = alone.get(tuple(numbers[at]))
        value = known.shift[at] / known.factor[at]
        row[at] = known.factor[at] * (value if other is None else row[other] / known.factor[other])
    row -= known.shift
    row[0] = 1.0
    return np.asarray(row)


def _slopes(moments: Floats, square_sd: Floats, layout: Layout) -> list[tuple[Floats, float]]:
    """Return rows that lack a number's slope apart in a cell, and how many of each."""
    known, levels = layout.identities, layout.levels
    place = {
        tuple(row): at for at, row in enumerate(levels.tolist()) if not layout.numbers[at].any()
    }
    found = []
    for at in np.flatnonzero((levels != NONE).any(axis=1) & layout.numbers.any(axis=1)):
        cell = place.get(tuple(levels[at].tolist()), 0)
        total = moments[0, at] + known.shift[at] * moments[0, 0]
        rows = max((moments[0, cell] + known.shift[cell] * moments[0, 0]) / known.factor[cell], 1.0)
        squares = moments[at, at] + known.shift[at] * (total + moments[0, at])
        lacking = TOLD * square_sd[at] - (squares - total**2 / rows)
        if cell and lacking > 0:
            row = np.zeros(len(moments))
            row[at] = 1.0
            found.append((row, float(lacking)))
    return found
