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

from dpmodels.evaluation.algorithms.laplace import noisy
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
