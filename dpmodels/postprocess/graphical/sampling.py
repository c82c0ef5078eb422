"""Rows drawn from a graphical model, in whole counts, and numbers within their cells.

Cliques are taken in order. Rows with the same levels of the separator are divided between the
levels of the new variables by controlled rounding: with N rows and probabilities p, each level
gets ``⌊N F + U⌋ − ⌊N F₋ + U⌋`` rows, F the running sum of p and U uniform: within one row of ``N
p``, and ``N p`` in the mean. Which rows they are is random.
"""

from __future__ import annotations

import numpy as np

from dpmodels.noise import Entropy
from dpmodels.postprocess.graphical.histograms import Histogram
from dpmodels.postprocess.graphical.model import GraphicalModel
from dpmodels.postprocess.residuals import cells, shape
from dpmodels.typing import Floats, Integers

# Stands for a probability that underflows.
SMALLEST = 1e-300


def sample(model: GraphicalModel, n_rows: int, entropy: Entropy) -> Integers:
    """Draw codes of levels, shape (rows, variables); the last is of missing or unlisted values."""
    tree, sizes = model.tree, model.tree.sizes
    codes = np.zeros((n_rows, len(sizes)), dtype=np.int64)
    for clique, separator, table in zip(tree.cliques, tree.separators, model.tables, strict=True):
        new = tuple(i for i in clique if i not in separator)
        axes = [clique.index(i) for i in (*separator, *new)]
        probabilities = table.transpose(axes).reshape(cells(separator, sizes), -1)
        groups = _flat(codes, separator, sizes)
        cells_of = divided(groups, probabilities, entropy)
        codes[:, list(new)] = np.column_stack(np.unravel_index(cells_of, shape(new, sizes)))
    return codes


def _flat(codes: Integers, term: tuple[int, ...], sizes: tuple[int, ...]) -> Integers:
    if not term:
        return np.zeros(len(codes), dtype=np.int64)
    columns = tuple(codes[:, i] for i in term)
    return np.asarray(np.ravel_multi_index(columns, shape(term, sizes)))


def divided(groups: Integers, weights: Floats, entropy: Entropy) -> Integers:
    """Divide the rows of each group between levels by controlled rounding.

    `groups`, shape (rows,), are indices into the first axis of `weights`, shape (groups, levels),
    which need not add up to 1. Returns the level of each row.
    """
    sizes = np.bincount(groups, minlength=len(weights))
    present = np.nonzero(sizes)[0]
    running = np.cumsum(np.maximum(weights[present], SMALLEST), axis=1)
    running *= (sizes[present] / running[:, -1])[:, None]
    running[:, -1] = sizes[present]
    edges = np.floor(running + uniform(len(present), entropy)[:, None]).astype(np.int64)
    counts = np.diff(np.minimum(edges, sizes[present][:, None]), axis=1, prepend=0)
    levels = np.tile(np.arange(weights.shape[1]), len(present))
    order = np.lexsort((entropy.words(len(groups)), groups))
    result = np.zeros(len(groups), dtype=np.int64)
    result[order] = np.repeat(levels, counts.ravel())
    return result


def uniform(count: int, entropy: Entropy) -> Floats:
    """Draw numbers uniform on [0, 1), in steps of 2⁻⁵³."""
    return np.asarray((entropy.words(count) >> np.uint64(11)) * 2.0**-53)


def within(
    codes: Integers, edges: Floats, entropy: Entropy, histogram: Histogram | None = None
) -> Floats:
    """Draw numbers within the cells of rows, by the counts of finer cells or uniform.

    The code after the last cell is of missing values, whose number is nan.

    >>> from dpmodels.noise import seeded
    >>> numbers = within(np.array([0, 1, 2]), np.array([0.0, 1.0, 5.0]), seeded(1))
    >>> [bool(0 <= numbers[0] <= 1), bool(1 <= numbers[1] <= 5), bool(np.isnan(numbers[2]))]
    [True, True, True]
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
