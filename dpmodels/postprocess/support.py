"""How far a box within a ball reaches in a direction, and how long its rows are."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.typing import Floats

HALVINGS = 200


def support(direction: Floats, lower: Floats, upper: Floats, radius: float) -> float:
    """Return the largest product of a direction with a point of a box within a ball.

    Parameters
    ----------
    direction : ndarray, shape (columns,)
        Of any length.
    lower, upper : ndarray, shape (columns,)
        The box; it meets the ball.
    radius : float
        Of the ball about 0.

    Notes
    -----
    For every t > 0 the point ``s = clip(t · direction, lower, upper)`` maximises
    ``⟨direction, s⟩ - |s|²/2t`` over the box, so
    ``⟨direction, s⟩ + (radius² - |s|²)/2t`` is an upper bound, exact where s lies
    on the sphere: the length of s grows with t, and halving finds where.

    Examples
    --------
    >>> import numpy as np
    >>> way, ones = np.array([0.6, 0.8]), np.ones(2)
    >>> support(way, -ones, ones, 2.0), round(support(way, -ones, ones, 1.0), 12)
    (1.4, 1.0)
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

    Parameters
    ----------
    reach : ndarray, shape (columns,)
        Half the length of each side of the box, above 0.
    radius : float
        Of the ball.
    divisor : ndarray, shape (columns,)
        Positive.

    Notes
    -----
    The squares of t are shared out of ``radius²``, at most ``reach²`` each, and
    their sum over ``divisor²`` is largest with the smallest divisors served
    first: a linear programme of one constraint.

    Examples
    --------
    >>> import numpy as np
    >>> sides = np.array([1.0, 2.0])
    >>> round(longest_in_box(sides, 9.0, np.ones(2)) ** 2, 12)
    5.0
    >>> round(longest_in_box(sides, 3**0.5, sides) ** 2, 12)
    1.5
    """
    left, total = radius**2, 0.0
    for place in np.argsort(divisor, kind="stable"):
        taken = min(float(reach[place]) ** 2, left)
        total += taken / float(divisor[place]) ** 2
        left -= taken
    return math.sqrt(total)
