"""Power sums from the Bernstein parts of rows, and the other way round."""

from __future__ import annotations

from math import comb

import numpy as np

from dpmodels.typing import Floats


def power_weights(degree: int, power: int) -> Floats:
    """Return the weights that make the sum of a power of the parts.

    ``C(i, power) / C(d, power)`` for the degree d, shape (d + 1,), since
    ``t**k = Σ_i C(i, k)/C(d, k) B_i(t)`` for the Bernstein polynomials
    ``B_i(t) = C(d, i) t**i (1 - t)**(d - i)``.

    .. [1] Farouki, R. T. (2012). "The Bernstein polynomial basis: a centennial retrospective."
       Computer Aided Geometric Design 29(6), 379-419.
    """
    return np.array([comb(i, power) for i in range(degree + 1)]) / comb(degree, power)


def central_weights(degree: int, power: int, centre: Floats) -> Floats:
    """Return the weights that make the sum of a power of the distance from a centre.

    `centre`, shape (groups,), gives weights of shape (groups, degree + 1).
    """
    terms = [
        comb(power, k) * (-centre[:, None]) ** (power - k) * power_weights(degree, k)
        for k in range(power + 1)
    ]
    return np.asarray(sum(terms[1:], terms[0]))
