"""Pseudo-rows for cells with too few rows for the noise.

An empty level would make other coefficients a division by noise. Rows at the overall means, which
are public or released, are added to such a cell until its count clearly exceeds its noise: its
estimate then equals that of the other cells, and the other coefficients are as without it. The
squared distance of the cell from the others enters as a variance.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.postprocess.identities import NONE, Identities
from dpmodels.typing import Floats

Whole = NDArray[np.int_]
# Noise sds above which a count is taken as distinguishable from 0: a choice.
DETECTION_SDS = 4.0
# Smallest count of a cell however small the noise: half a row, and the rounding on the lattice.
HALF, GRAIN = 0.5, 2.0**-18
# Assumed distance of a cell's mean from the overall mean, in sds of the response: a choice.
CELL_SHIFT_SDS = 2.0


class Layout(NamedTuple):
    """The cells that the columns of a row ``a = (1, z)`` indicate.

    `levels`, shape (size, categories), and `numbers`, shape (size, numbers), as in
    :class:`dpmodels.formula.coding.Cells`; `sizes` are the numbers of levels of the categories;
    `box` is the public range of each entry, including the constant.
    """

    identities: Identities
    levels: Whole
    numbers: Whole
    sizes: tuple[int, ...]
    box: tuple[Floats, Floats]


class Added(NamedTuple):
    """Moments of added rows, and the covariance of their effect: both of shape (size, size)."""

    moments: Floats
    pull: Floats


def added(moments: Floats, row_noise: Floats, square_sd: Floats, layout: Layout) -> Added | None:
    """Add rows to cells whose count is less than :data:`DETECTION_SDS` of its noise sds.

    `moments` of rows a have the shape (size, size); `row_noise`, of the same shape, is the
    covariance of the noise in their first row; `square_sd`, shape (size,), are noise sds of the
    sums of squares of columns about their origin. None if no cell is so small.
    """
    means = np.clip(moments[0] / max(moments[0, 0], 1.0), *layout.box)
    additions = [
        (_row(cell, means, layout), weight)
        for within in _maximal(layout.levels[:-1])
        for cell, weight in _small(within, moments, row_noise, layout)
    ]
    additions += _slopes(moments, square_sd, layout)
    if not additions:
        return None
    rows, weights = map(np.array, zip(*additions, strict=True))
    count = max(moments[0, 0], 1.0)
    squared = moments[-1, -1] / count - means[-1] ** 2 + 2 * square_sd[-1] / count
    largest = float(np.max(np.abs([end[-1] for end in layout.box]))) ** 2
    variance = CELL_SHIFT_SDS**2 * min(max(squared, 0.0), largest)
    added_moments = rows.T @ (weights[:, None] * rows)
    return Added(added_moments, variance * (rows.T @ (weights[:, None] ** 2 * rows)))


def _maximal(levels: Whole) -> list[tuple[int, ...]]:
    """Return the maximal sets of categories among those of the columns."""
    sets = {tuple(np.flatnonzero(row != NONE).tolist()) for row in levels}
    return sorted(
        subset
        for subset in sets
        if subset and not any(set(subset) < set(superset) for superset in sets)
    )


def _small(
    within: tuple[int, ...], moments: Floats, row_noise: Floats, layout: Layout
) -> list[tuple[dict[int, int], float]]:
    """Return the small cells of the categories `within`, and the number of rows each lacks."""
    levels = layout.levels
    pure = np.asarray(~layout.numbers.any(axis=1))
    column_of = {tuple(row): at for at, row in enumerate(levels.tolist()) if pure[at]}
    of_pure = levels[pure].tolist()
    coded_levels = {f: sorted({row[f] for row in of_pure if row[f] != NONE}) for f in within}
    if any(len(set(range(layout.sizes[f])) - set(coded_levels[f])) > 1 for f in within):
        return []
    cells, count_weights = [], []
    for combination in product(*(range(layout.sizes[f]) for f in within)):
        cell = dict(zip(within, combination, strict=True))
        weights = _count_weights(cell, coded_levels, column_of, layout)
        if weights is None:
            return []
        cells.append(cell)
        count_weights.append(weights)
    table = np.array(count_weights)
    counts = table @ moments[0]
    sds = np.sqrt(np.maximum(np.einsum("ij,ij->i", table @ row_noise, table), 0.0))
    min_count = np.maximum(DETECTION_SDS * sds, HALF + GRAIN * moments[0, 0])
    lacking = np.maximum(min_count - counts, 0.0)
    return [(cells[at], float(lacking[at])) for at in np.flatnonzero(lacking)]


def _count_weights(
    cell: dict[int, int],
    coded_levels: dict[int, list[int]],
    column_of: dict[tuple[int, ...], int],
    layout: Layout,
) -> Floats | None:
    """Return the weights of the columns' sums in the count of a cell; None if a column is missing.

    `coded_levels` are the levels with a column, by category; `column_of` the columns, by level.
    """
    identities = layout.identities
    weights = np.zeros(len(layout.levels))
    # Of a reference level all rows less those of the coded levels.
    signed = (
        [(level, 1.0)]
        if level in coded_levels[f]
        else [(NONE, 1.0), *((coded, -1.0) for coded in coded_levels[f])]
        for f, level in cell.items()
    )
    for combination in product(*signed):
        key = [NONE] * len(layout.sizes)
        for f, (level, _) in zip(cell, combination, strict=True):
            key[f] = level
        column = column_of.get(tuple(key))
        if column is None:
            return None
        sign = float(np.prod([sign for _, sign in combination]))
        weights[column] += sign / identities.factor[column]
        weights[0] += sign * identities.shift[column] / identities.factor[column]
    return weights


def _row(cell: dict[int, int], means: Floats, layout: Layout) -> Floats:
    """Return a row in a cell, at the overall means."""
    identities, levels, numbers = layout.identities, layout.levels, layout.numbers
    within = list(cell)
    column_levels, cell_levels = levels[:, within], np.array([cell[f] for f in within])
    has_category = (levels != NONE).any(axis=1)
    out = ((column_levels != NONE) & (column_levels != cell_levels)).any(axis=1)
    inside = has_category & ~out & (np.delete(levels, within, axis=1) == NONE).all(axis=1)
    number_columns = {tuple(numbers[at]): at for at in np.flatnonzero(~has_category)}
    row = means + identities.shift
    row[out] = 0.0
    for at in np.flatnonzero(inside):
        number_column = number_columns.get(tuple(numbers[at]))
        value = identities.shift[at] / identities.factor[at]
        if number_column is not None:
            value = row[number_column] / identities.factor[number_column]
        row[at] = identities.factor[at] * value
    row -= identities.shift
    row[0] = 1.0
    return np.asarray(row)


def _slopes(moments: Floats, square_sd: Floats, layout: Layout) -> list[tuple[Floats, float]]:
    """Return rows to add to the interactions of a number with small cells, and how many of each."""
    identities, levels = layout.identities, layout.levels
    column_of = {
        tuple(row): at for at, row in enumerate(levels.tolist()) if not layout.numbers[at].any()
    }
    slopes = []
    for at in np.flatnonzero((levels != NONE).any(axis=1) & layout.numbers.any(axis=1)):
        cell = column_of.get(tuple(levels[at].tolist()), 0)
        total = moments[0, at] + identities.shift[at] * moments[0, 0]
        count = moments[0, cell] + identities.shift[cell] * moments[0, 0]
        n_rows = max(count / identities.factor[cell], 1.0)
        squares = moments[at, at] + identities.shift[at] * (total + moments[0, at])
        lacking = DETECTION_SDS * square_sd[at] - (squares - total**2 / n_rows)
        if cell and lacking > 0:
            row = np.zeros(len(moments))
            row[at] = 1.0
            slopes.append((row, float(lacking)))
    return slopes
