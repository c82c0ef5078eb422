"""A number's power sums as parts of rows: Bernstein polynomials, which add up to one."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.typing import Floats


def shares(positions: Floats, degree: int, whole: int) -> Floats:
    """Divide every row between the parts of its cell, by where its number lies.

    `positions`, shape (rows,), are places in the public range, from 0 to 1; whole numbers of
    units come back, shape (degree + 1, rows), of which each row has `whole`, at most ``2**40``.

    Part i is ``C(d, i) t**i (1 - t)**(d - i)``, rounded down to a unit; the
    last part is what remains. So whatever the number, a row's parts have the
    L1 norm `whole` exactly, and the L2 norm is at most that. The sums of
    powers are linear in the parts, see
    :func:`dpmodels.postprocess.power_sums.power_weights`.
    """
    parts = np.empty((degree + 1, len(positions)))
    left = np.full(len(positions), float(whole))
    for i in range(degree):
        # Products alone: the same bits for a row in whatever block it stands.
        part = np.full(len(positions), float(math.comb(degree, i) * whole))
        for _ in range(i):
            part *= positions
        for _ in range(degree - i):
            part *= 1.0 - positions
        parts[i] = np.minimum(np.floor(part), left)
        left = left - parts[i]
    parts[degree] = left
    return parts
