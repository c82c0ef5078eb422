"""Logarithms of p-values of z-tests in steps of a grid, and how far one row moves them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Integers

# Steps of the grid in a natural logarithm: a choice.
STEPS = 2**32
# Bits of logarithms before they are rounded: they err by less than 2**-90 steps.
_BITS = 160


def log_levels(sums: NDArray[Any], scale: float, least: float, sides: int) -> Integers:
    """Return ``log max(p, ν)`` in whole steps, where ``p = sides Φ̄(sum/scale)``.

    `sums`, shape (tests,), are whole numbers, not below 0 for two `sides`; `least` is ν.
    """
    import mpmath

    found = []
    with mpmath.workprec(_BITS):
        root, floor = mpmath.sqrt(2) * scale, mpmath.mpf(least)
        for own in sums.tolist():
            p = mpmath.erfc(own / root) * sides / 2
            found.append(int(mpmath.nint(STEPS * mpmath.log(max(p, floor)))))
    return np.array(found, dtype=np.int64)


def log_change(change: int, scale: float, least: float, sides: int) -> int:
    """Return how many steps a level moves at most where its sum moves by `change`.

    ``h(t) = -log Φ̄(t)`` is convex, as Φ̄ is log-concave, and rises. So of all t and t + d that of
    the largest ``min(h(t + d), h(z)) - min(h(t), h(z))`` has ``t + d = z``, with z where p is ν:
    before, both ends are less steep, and beyond, only the lower one still moves. For two sides
    both are from 0 on, so there t is 0 where z is less than d. Rounded, levels differ by at most
    one step more, so by no more than the whole number above but where floats err: one more step
    covers that.
    """
    import mpmath

    with mpmath.workprec(_BITS):
        root, floor = mpmath.sqrt(2), mpmath.mpf(least)
        start = root * mpmath.erfinv(1 - 2 * floor / sides) - mpmath.mpf(change) / scale
        if sides == 2:
            start = max(start, mpmath.mpf(0))
        moved = mpmath.log(mpmath.erfc(start / root) * sides / 2 / floor)
        return int(mpmath.ceil(STEPS * moved)) + 1
