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
from itertools import pairwise, product
from typing import Final

import numpy as np

from dpmodels.evaluation.algorithms.identity import noisy
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


# A coarse grid, each block of which is cut finer by how many rows it seems to hold.
#
# Theorem
#     ε-differentially private where neighbours have one row more or fewer: ε/20 for the number of
#     rows, half of the rest for the coarse blocks, given that, and half for the fine ones, given
#     the coarse counts. Fine blocks of all coarse ones are disjoint, and cost once.
# Sensitivity
#     A row more or fewer moves the total by 1, one coarse block by 1, and one fine block by 1.
# Noise
#     Discrete Laplace. ``max(10, √(N ε/10)/4)`` coarse blocks along each axis, and in one of N'
#     rows ``√(N' ε/10)`` fine ones, ε being what is left after the total. The fine counts of a
#     coarse block and its own are made to agree by least squares.
# Numerics
#     exact: integers; what follows the release is in floats.
# Source
#     Qardaji, Yang, Li (2013), "Differentially private grids for geospatial data", ICDE. There N is
#     known; here it is bought.


def agrid(counts: Integers, eps: float) -> Floats:
    """Return for every cell a part of its fine block that agrees with the coarse one."""
    total = float(noisy(counts.sum(keepdims=True).ravel(), 1 / (TOTAL * eps))[0])
    half = (1 - TOTAL) * eps / 2
    coarse = max(10.0, math.sqrt(max(total, 0.0) * half / 5) / 4)
    edges = [edges_of(cells, coarse) for cells in counts.shape]
    wholes = noisy(sums_of(counts, edges), 1 / half).ravel()
    places = [
        tuple(slice(*pair) for pair in ends)
        for ends in product(*(pairwise(one.tolist()) for one in edges))
    ]
    finer = np.sqrt(np.maximum(wholes, 0.0) * half / 5)
    within = [
        [edges_of(cells, wanted) for cells in counts[place].shape]
        for place, wanted in zip(places, finer, strict=True)
    ]
    exact = [sums_of(counts[place], own) for place, own in zip(places, within, strict=True)]
    told = noisy(np.concatenate([own.ravel() for own in exact]), 1 / half)
    ends = np.cumsum([own.size for own in exact])[:-1]
    made = np.empty(counts.shape)
    for place, own, whole, part, table in zip(
        places, within, wholes, np.split(told, ends), exact, strict=True
    ):
        # The sum of the parts has so many times the variance of the whole.
        part += (whole - part.sum()) / (part.size + 1)
        made[place] = spread_evenly(part.reshape(table.shape), own)
    return made
