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
from collections.abc import Sequence
from typing import Final

import numpy as np

from dpmodels.evaluation.algorithms.laplace import noisy
from dpmodels.typing import Floats, Integers

TOTAL: Final = 1 / 20


def ugrid(counts: Integers, eps: float) -> Floats:
    """Return for every cell an equal part of the noisy count of its block."""
    total = float(noisy(counts.sum(keepdims=True).ravel(), 1 / (TOTAL * eps))[0])
    left = (1 - TOTAL) * eps
    wanted = math.sqrt(max(total, 0.0) * left / 10)
    edges = [edges_of(cells, wanted) for cells in counts.shape]
    return spread_evenly(noisy(sums_of(counts, edges), 1 / left), edges)


def edges_of(cells: int, wanted: float) -> Integers:
    """Return the ends of nearly equal blocks of cells, one block at least."""
    many = min(max(math.ceil(wanted), 1), cells)
    return np.arange(many + 1) * cells // many


def sums_of(counts: Integers, edges: Sequence[Integers]) -> Integers:
    """Return the counts of the blocks between the ends on each axis."""
    for axis, ends in enumerate(edges):
        counts = np.add.reduceat(counts, ends[:-1], axis=axis)
    return counts


def spread_evenly(told: Floats, edges: Sequence[Integers]) -> Floats:
    """Return for every cell an equal part of what its block has."""
    for axis, ends in enumerate(edges):
        sizes = np.diff(ends)
        wide = np.expand_dims(sizes, tuple(other for other in range(told.ndim) if other != axis))
        told = (told / wide).repeat(sizes, axis=axis)
    return told
