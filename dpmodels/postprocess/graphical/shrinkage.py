"""Released components of a table, shrunk towards those of public rows.

A point towards that of public rows is nearer to the exact components in the mean, whatever both are
(Theorem 88): positive-part estimates of at least three degrees of freedom.

So public rows cannot raise the error in the mean, from whatever population they are. Where t is
near, the distance is mostly noise and most of it goes. Large components are shrunk by themselves,
since some tables of two populations are alike and others are not; small ones with the others of as
many columns, as each alone has too few degrees of freedom to show that.

Source: James, W. and Stein, C. (1961), "Estimation with Quadratic Loss", Proc. Fourth Berkeley
Symposium; Baranchik, A. J. (1964), "Multiple Regression and Estimation of the Mean of a
Multivariate Normal Distribution", Stanford.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpmodels.postprocess.graphical.measurements import Residuals, centred_table
from dpmodels.postprocess.residuals import Term, cells, shape
from dpmodels.typing import Floats, Integers

# Degrees of freedom of a component that is shrunk by itself: a choice.
ENOUGH = 12


def shrunk(released: Residuals, codes: Sequence[Integers]) -> Residuals:
    """Return released components shrunk towards those of public rows, with the noise that remains.

    `codes` are levels of public rows by variable, the last one for what is missing.
    """
    tables, sds = dict(released.tables), dict(released.sds)
    for parts in _groups(released):
        targets = {part: _target(codes, part, released) for part in parts}
        distances = {part: tables[part] - target for part, target in targets.items()}
        squares = sum(float((distances[part] ** 2).sum()) / sds[part] ** 2 for part in parts)
        freedom = sum(_freedom(part, released.sizes) for part in parts)
        left = _left(squares, freedom)
        for part in parts:
            tables[part] = np.asarray(targets[part] + left * distances[part])
            sds[part] *= math.sqrt(max(left, min(1.0, 2 / freedom)))
    return Residuals(released.sizes, tables, sds)


def _left(squares: float, freedom: int) -> float:
    """Return how much of a distance is left; that of the noise variance, or two degrees of it."""
    if freedom <= 2:
        return 1.0
    return max(0.0, 1 - (freedom - 2) / squares) if squares else 0.0


def _freedom(part: Term, sizes: tuple[int, ...]) -> int:
    return math.prod(sizes[i] - 1 for i in part)


def _groups(released: Residuals) -> list[list[Term]]:
    """Return the components that are shrunk together; none without noise."""
    groups: dict[Term | int, list[Term]] = {}
    for part, sd in released.sds.items():
        if part and sd > 0:
            is_large = _freedom(part, released.sizes) >= ENOUGH
            groups.setdefault(part if is_large else len(part), []).append(part)
    return list(groups.values())


def _target(codes: Sequence[Integers], part: Term, released: Residuals) -> Floats:
    """Return the component of as many rows that are distributed as the public ones."""
    of_part = shape(part, released.sizes)
    flat = np.ravel_multi_index([codes[i] for i in part], of_part)
    counts = np.bincount(flat, minlength=cells(part, released.sizes)).reshape(of_part)
    return centred_table(counts / len(flat) * released.n_rows)
