"""A grid of blocks, so many as the number of rows can fill, and rows spread evenly in each.

Theorem
    ε-differentially private where neighbours have one row more or fewer: ε/20 for the number of
    rows, which decides the grid, and the rest for its counts, given the grid.
Sensitivity
    A row more or fewer moves the total by 1, and the count of one block by 1.
Noise
    Discrete Laplace on the total N and on each block; ``√(N ε/10)`` blocks along each axis.
Numerics
    exact: integers.
Source
    Qardaji, Yang, Li (2013), "Differentially private grids for geospatial data", ICDE. There N is
    known; here it is bought.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpmodels.evaluation.algorithms.laplace import noisy
from dpmodels.typing import Floats, Integers

TOTAL: Final = 1 / 20


def ugrid(counts: Integers, eps: float) -> Floats:
    """Return for every cell an equal part of the noisy count of its block."""
    total = float(noisy(counts.sum(keepdims=True).ravel(), 1 / (TOTAL * eps))[0])
    left = (1 - TOTAL) * eps
    return blocks(counts, math.sqrt(max(total, 0.0) * left / 10), left)


def blocks(counts: Integers, wanted: float, eps: float) -> Floats:
    """Return a table told by blocks, about `wanted` of them along each axis, at a cost of eps."""
    edges = [edges_of(cells, wanted) for cells in counts.shape]
    table, told = counts, np.ones(1)
    for axis, ends in enumerate(edges):
        table = np.add.reduceat(table, ends[:-1], axis=axis)
    told = noisy(table, 1 / eps)
    for axis, ends in enumerate(edges):
        sizes = np.diff(ends)
        wide = [1] * counts.ndim
        wide[axis] = sizes.size
        told = (told / sizes.reshape(wide)).repeat(sizes, axis=axis)
    return told


def edges_of(cells: int, wanted: float) -> Integers:
    """Return the ends of nearly equal blocks of cells, one block at least."""
    many = min(max(math.ceil(wanted), 1), cells)
    return np.linspace(0, cells, many + 1).astype(np.int64)
