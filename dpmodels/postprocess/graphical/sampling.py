"""Rows drawn from a graphical model, in whole counts, and numbers within their cells.

Cliques are taken in order. Rows with the same levels of the separator are divided between the
levels of the new variables by controlled rounding, within one row of the model (Theorem 74 d).
Rows that are alike in earlier variables are spread over the levels.
Then some rows change a level, until each variable has the counts of its own margin (Theorem 109).
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from dpmodels.noise import Entropy
from dpmodels.postprocess.graphical.histograms import Histogram
from dpmodels.postprocess.graphical.model import GraphicalModel
from dpmodels.postprocess.residuals import Term, shape
from dpmodels.typing import Floats, Integers

# Stands for a probability that underflows.
SMALLEST = 1e-300
# The fractional part of the golden ratio, and variables by which rows are spread: a choice.
GOLDEN, MOST_ALIKE = (5**0.5 - 1) / 2, 6


def sample(model: GraphicalModel, n_rows: int, entropy: Entropy) -> Integers:
    """Draw codes of levels, shape (rows, variables); the last is of missing or unlisted values."""
    tree, sizes = model.tree, model.tree.sizes
    codes = np.zeros((n_rows, len(sizes)), dtype=np.int64)
    drawn: list[int] = []
    for clique, separator, table in zip(tree.cliques, tree.separators, model.tables, strict=True):
        new = tuple(i for i in clique if i not in separator)
        alike = tuple(i for i in reversed(drawn) if i not in separator)[:MOST_ALIKE]
        groups, weights = _flat(codes, separator, sizes), _by_group(table, clique, separator)
        cells_of = divided(groups, weights, entropy, _flat(codes, alike, sizes))
        codes[:, list(new)] = np.column_stack(np.unravel_index(cells_of, shape(new, sizes)))
        for i in new:
            rest = tuple(j for j in clique if j != i)
            weights = _by_group(table, clique, rest)
            _balance(codes[:, i], _flat(codes, rest, sizes), weights, entropy)
        drawn += new
    return codes


def _flat(codes: Integers, term: Term, sizes: tuple[int, ...]) -> Integers:
    flat = np.zeros(len(codes), dtype=np.int64)
    for i in term:
        flat = flat * sizes[i] + codes[:, i]
    return flat


def _by_group(table: Floats, clique: Term, part: Term) -> Floats:
    """Return the table of a clique with a line for each cell of a part of its variables."""
    axes = [clique.index(i) for i in part]
    n_groups = math.prod(table.shape[axis] for axis in axes)
    return np.moveaxis(table, axes, range(len(axes))).reshape(n_groups, -1)


def _balance(levels: Integers, groups: Integers, weights: Floats, entropy: Entropy) -> None:
    """Change levels of some rows until these have the rounded counts of all rows together."""
    sizes, places = np.array([len(levels)]), np.arange(weights.shape[1])
    excess = np.bincount(levels, minlength=len(places))
    excess -= _rounded(sizes, weights.sum(axis=0)[None], entropy)[0]
    lacking = np.repeat(places, np.maximum(-excess, 0))
    lacking = lacking[np.argsort(entropy.words(len(lacking)))]
    pairs = zip(np.repeat(places, np.maximum(excess, 0)), lacking, strict=True)
    for (high, low), n_moved in Counter(pairs).items():
        rows = np.nonzero(levels == high)[0]
        of_high, of_low = (np.maximum(weights[groups[rows], k], SMALLEST) for k in (high, low))
        waiting = -np.log1p(-uniform(len(rows), entropy)) * of_high / of_low
        levels[rows[np.argpartition(waiting, n_moved - 1)[:n_moved]]] = low


def divided(
    groups: Integers, weights: Floats, entropy: Entropy, alike: Integers | None = None
) -> Integers:
    """Divide the rows of each group between levels by controlled rounding.

    Rows of a group with the same or nearby numbers in `alike`, shape (rows,), are spread over the
    levels; without it which rows have a level is random.
    `groups`, shape (rows,), are indices into the first axis of `weights`, shape (groups, levels),
    which need not add up to 1. Returns the level of each row.
    """
    sizes = np.bincount(groups, minlength=len(weights))
    present = np.nonzero(sizes)[0]
    counts = _rounded(sizes[present], weights[present], entropy)
    levels = np.tile(np.arange(weights.shape[1]), len(present))
    order = np.lexsort((entropy.words(len(groups)), *(() if alike is None else (alike,)), groups))
    if alike is not None:
        steps = (uniform(1, entropy) + GOLDEN * np.arange(len(order))) % 1
        order = order[np.lexsort((steps, groups[order]))]
    result = np.zeros(len(groups), dtype=np.int64)
    result[order] = np.repeat(levels, counts.ravel())
    return result


def _rounded(sizes: Integers, weights: Floats, entropy: Entropy) -> Integers:
    """Return whole counts in proportion to weights, a line for each group of `sizes` rows."""
    running = np.cumsum(np.maximum(weights, SMALLEST), axis=1)
    running *= (sizes / running[:, -1])[:, None]
    running[:, -1] = sizes
    edges = np.floor(running + uniform(len(sizes), entropy)[:, None]).astype(np.int64)
    return np.diff(np.minimum(edges, sizes[:, None]), axis=1, prepend=0)


def uniform(count: int, entropy: Entropy) -> Floats:
    """Draw numbers uniform on [0, 1), in steps of 2⁻⁵³."""
    return np.asarray((entropy.words(count) >> np.uint64(11)) * 2.0**-53)


def within(
    codes: Integers, edges: Floats, entropy: Entropy, histogram: Histogram | None = None
) -> Floats:
    """Draw numbers within the cells of rows, by the counts of finer cells or uniform.

    The code after the last cell is of missing values, whose number is nan.
    """
    numbers = np.full(len(codes), np.nan)
    is_number = codes < len(edges) - 1
    cell, fine = codes[is_number], edges
    if histogram is not None:
        fine = histogram.edges
        is_within = histogram.cell[None, :] == np.arange(len(edges) - 1)[:, None]
        cell = divided(cell, np.where(is_within, histogram.positive, 0.0), entropy)
    low, high = fine[cell], fine[cell + 1]
    numbers[is_number] = low + (high - low) * uniform(int(is_number.sum()), entropy)
    return numbers
