"""How far a box within a ball reaches in a direction, and how long its rows are."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.typing import Floats

# A choice: halving ends by itself once no number lies between its ends.
HALVINGS = 200


def support(direction: Floats, lower: Floats, upper: Floats, radius: float) -> float:
    """Return the largest product of a direction with a point of a box within a ball.

    The box meets the ball of that radius about 0.

    For every t > 0 the point ``s = clip(t · direction, lower, upper)`` maximises
    ``⟨direction, s⟩ - |s|²/2t`` over the box, so ``⟨direction, s⟩ + (radius² - |s|²)/2t`` is an
    upper bound, exact where s lies on the sphere: the length of s grows with t, and halving finds
    where.
    """
    corner = np.where(direction > 0, upper, lower)
    corner = np.where(direction == 0, np.clip(0.0, lower, upper), corner)
    if np.linalg.norm(corner) <= radius:
        return float(direction @ corner)
    moving = direction != 0
    # From here on every coordinate is at its end: the point is the corner.
    high = float(np.max(np.abs(corner[moving]) / np.abs(direction[moving])))
    low = 0.0
    for _ in range(HALVINGS):
        t = (low + high) / 2
        if t in (low, high):
            break
        inside = np.linalg.norm(np.clip(t * direction, lower, upper)) <= radius
        low, high = (t, high) if inside else (low, t)
    point = np.clip(high * direction, lower, upper)
    return float(direction @ point + (radius**2 - point @ point) / (2 * high))


def longest_in_box(reach: Floats, radius: float, divisor: Floats) -> float:
    """Return the longest row ``t / divisor`` with t in a ball and in a box, both about 0.

    `reach` is half the length of each side of the box, above 0, and `divisor` positive, both of
    shape (columns,).

    The squares of t are shared out of ``radius²``, at most ``reach²`` each, and their sum over
    ``divisor²`` is largest with the smallest divisors served first: a linear programme of one
    constraint.
    """
    left, total = radius**2, 0.0
    for place in np.argsort(divisor, kind="stable"):
        taken = min(float(reach[place]) ** 2, left)
        total += taken / float(divisor[place]) ** 2
        left -= taken
    return math.sqrt(total)
