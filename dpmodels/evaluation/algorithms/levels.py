"""Noisy counts of a table at several levels of detail, and the least squares table of them all.

Each level puts b cells of the next one together. Of levels with independent noise of variances
``s_l``, equal within each, least squares takes two passes: up, a cell's estimate is the mean of its
own count and of the sum of its parts' estimates, by their precisions; down, what the parts lack of
their whole is shared out evenly among them, as they have one variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from dpmodels.evaluation.algorithms.identity import noisy
from dpmodels.typing import Floats, Integers

Table = TypeVar("Table", Floats, Integers)


def put_together(table: Table, by: int) -> Table:
    """Sum blocks of `by` cells along each axis."""
    parts = [part for cells in table.shape for part in (cells // by, by)]
    made: Table = table.reshape(parts).sum(axis=tuple(range(1, 2 * table.ndim, 2)))
    return made


def spread(table: Floats, by: int) -> Floats:
    """Repeat each cell `by` times along each axis."""
    for axis in range(table.ndim):
        table = table.repeat(by, axis=axis)
    return table


def padded(table: Integers, by: int) -> tuple[Integers, int]:
    """Return a table of ``by**height`` cells along each axis, empty ones behind, and the height."""
    height = 0
    while by**height < max(table.shape):
        height += 1
    return np.pad(table, [(0, by**height - cells) for cells in table.shape]), height


def noisy_tree(counts: Integers, eps: float, shares: Callable[[int], Floats]) -> Floats:
    """Return the least squares table of a noisy tree whose nodes have two parts along each axis.

    `shares`, of a height, are those of the levels, the root first, in `eps`; they add up to 1.
    """
    finest, height = padded(counts, 2)
    levels = [finest]
    for _ in range(height):
        levels.append(put_together(levels[-1], 2))
    scales = 1 / (eps * shares(height))
    noise = [noisy(own, scale) for own, scale in zip(levels[::-1], scales, strict=True)]
    made = least_squares(noise, (2 * scales**2).tolist(), 2)
    return made[tuple(slice(cells) for cells in counts.shape)]


def least_squares(levels: Sequence[Floats], variances: Sequence[float], by: int) -> Floats:
    """Return the estimate of the finest level, the last, from all of them."""
    parts = by ** levels[0].ndim
    estimate, variance = levels[-1], variances[-1]
    up = [estimate]
    for own, noise in zip(levels[-2::-1], variances[-2::-1], strict=True):
        weight = parts * variance / (noise + parts * variance)
        estimate = weight * own + (1 - weight) * put_together(estimate, by)
        variance = weight * noise
        up.append(estimate)
    whole = up[-1]
    for finer in up[-2::-1]:
        whole = finer + spread(whole - put_together(finer, by), by) / parts
    return np.asarray(whole)


# A tree of squares in squares, of which finer levels are told more exactly.
#
# Theorem
#     ε-differentially private where neighbours have one row more or fewer: the shares of the levels
#     add up to ε and depend on no row.
# Sensitivity
#     A row is in one square of each level: 1 in L1 a level.
# Noise
#     Discrete Laplace of scale ``1/ε_i`` on level i from the root on, ``ε_i`` proportional to
#     ``2^(i/3)``, down to single cells.
# Numerics
#     exact: integers on squares; least squares in floats follows the release.
# Source
#     Cormode, Procopiuc, Srivastava, Shen, Yu (2012), "Differentially private spatial
#     decompositions", ICDE.


def quadtree(counts: Integers, eps: float) -> Floats:
    """Return counts by cell of the least squares table of a tree of squares."""
    return noisy_tree(counts, eps, shares)


def shares(height: int) -> Floats:
    """Return the shares of the levels, the root first."""
    weights = np.cbrt(2.0) ** np.arange(height + 1)
    return np.asarray(weights / weights.sum())


# A binary tree of noisy counts, of which levels that ranges need more are told more exactly.
#
# Theorem
#     ε-differentially private where neighbours have one row more or fewer: the shares of the levels
#     add up to ε and depend on no row.
# Sensitivity
#     A row is in one node of each level: 1 in L1 a level.
# Noise
#     Discrete Laplace of scale ``1/ε_l`` on level l. If prefix ranges use ``c_l`` nodes of it,
#     ``sum c_l/ε_l²`` is least for ``ε_l`` proportional to ``c_l^(1/3)``.
# Numerics
#     exact: integers on nodes; least squares in floats follows the release.
# Source
#     Li, Hay, Miklau (2014), "A data- and workload-aware algorithm for range queries under
#     differential privacy", PVLDB, whose second stage it is; Cormode et al. (2012), "Differentially
#     private spatial decompositions", ICDE, for the cube roots.


def greedyh(counts: Integers, eps: float) -> Floats:
    """Return counts by cell of the least squares table of a weighted binary tree."""
    return noisy_tree(counts.ravel(), eps, greedyh_shares).reshape(counts.shape)


def greedyh_shares(height: int) -> Floats:
    """Return the shares of the levels, the root first, by the nodes that prefixes use of each.

    Half of all prefixes end in the second half of a node of any level, and use its first; the root
    serves the one that is the whole.
    """
    used = np.full(height + 1, 2.0**height / 2)
    used[0] = 1.0
    weights = np.cbrt(used)
    return np.asarray(weights / weights.sum())
