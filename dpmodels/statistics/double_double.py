"""Numbers as unevaluated sums of two float64, of some 100 bits.

Functions take and return arrays ``high + low``; ``u = 2**-53``. :func:`two_sum` and
:func:`two_product` are exact, barring overflow and underflow.

Source: Dekker, T. J. (1971). "A floating-point technique for extending the available precision."
Numerische Mathematik 18, 224-242. Ogita, T., Rump, S. M. and Oishi, S. (2005). "Accurate sum and
dot product." SIAM Journal on Scientific Computing 26(6), 1955-1988.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from dpmodels.typing import Floats, Objects, Scalars

# Splits 53 bits in 26 and 27.
_SPLIT: Final = 2.0**27 + 1
# Steps of log(2) in which exponents are taken apart.
_STEPS: Final = 256
# exp(-600) is below 1e-260.
LARGEST: Final = 600.0
# Sums of 2**13 multiples of it, each at most 1, are exact in float64.
COARSE: Final = 2.0**-39
EXACT_ROWS: Final = 2**13
# Adding and subtracting it rounds numbers of size 1 at most to multiples of 2**-39.
_ROUNDER: Final = 1.5 * 2.0**13


class Pair(NamedTuple):
    """An unevaluated sum."""

    high: Floats
    low: Floats

    @property
    def rounded(self) -> Floats:
        """The sum in one float64."""
        return np.asarray(self.high + self.low)


def two_sum(x: Floats, y: Floats) -> Pair:
    """Return a sum, rounded, and its rounding error."""
    total = x + y
    part = total - x
    return Pair(total, (x - (total - part)) + (y - part))


def two_product(x: Floats, y: Floats) -> Pair:
    """Return a product, rounded, and its rounding error; for sizes from 1e-140 to 1e140, or 0."""
    product = x * y
    high, low = _split(x)
    upper, lower = _split(y)
    return Pair(product, ((high * upper - product) + high * lower + low * upper) + low * lower)


def dot(parameter: Pair, rows: Floats) -> Pair:
    """Return the products of a parameter, shape (columns,), with rows, shape (columns, rows).

    The error is at most ``8 d² u² |θ| |z|`` for d columns, of a row z, where ``|low| <= u |high|``:
    the numbers added to `rest` come to ``(d + 2) u |θ| |z|`` at most, each with its partial sums
    rounded up to ``2d`` times.
    """
    total, rest = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for high, low, column in zip(*parameter, rows, strict=True):
        product, error = two_product(high, column)
        total, lost = two_sum(total, product)
        rest += (error + lost) + low * column
    return two_sum(total, rest)


def exp(exponents: Pair) -> Pair:
    """Return ``exp(x)`` with a relative error below 2**-78, for sizes up to :data:`LARGEST`."""
    per_step, log_step, powers = _constants()
    steps = np.rint(exponents.high * per_step)
    first, lost = two_sum(exponents.high, -steps * log_step[0])
    second, lost_second = two_sum(first, -steps * log_step[1])
    # |high + low| is at most log(2)/512, a little below 2**-9.5.
    high, low = two_sum(second, lost + lost_second + exponents.low - steps * log_step[2])
    square, error = two_product(high, high)
    tail = high * square * _polynomial(high)
    leading, rest = two_sum(high, square / 2)
    rest = rest + error / 2 + low + low * high + tail
    place = steps.astype(np.int64)
    table, fine = powers.high[place % _STEPS], powers.low[place % _STEPS]
    product, error = two_product(table, leading)
    value, lost = two_sum(table, product)
    value, rest = two_sum(value, lost + error + fine + table * rest + fine * leading)
    power = place // _STEPS
    return Pair(np.ldexp(value, power), np.ldexp(rest, power))


def divided(numerator: Pair, denominator: Pair) -> Pair:
    """Return a quotient with a relative error below 2**-98."""
    first = numerator.high / denominator.high
    product, error = two_product(first, denominator.high)
    rest = (numerator.high - product) - error + numerator.low - first * denominator.low
    return two_sum(first, rest / denominator.high)


def row_sums(weights: Pair, rows: Floats) -> tuple[Scalars, Floats, Floats]:
    """Return the sum of weighted rows in three parts, shape (columns,) each.

    `weights` are at most 1, shape (rows,); `rows`, shape (columns, rows), at most 1 long, and at
    most :data:`EXACT_ROWS`. The first part is exact: Python integers that count :data:`COARSE`.
    What is left of a product is at most half of that, and rounding in the sum of what is left is
    below ``2**-79`` for each row and coordinate, in any order.
    """
    assert rows.shape[1] <= EXACT_ROWS
    product, error = two_product(weights.high[None, :], rows)
    coarse = (product + _ROUNDER) - _ROUNDER
    fine = (product - coarse).sum(axis=1)
    error += weights.low * rows
    coarse_sum = (coarse.sum(axis=1) / COARSE).astype(np.int64).astype(object)
    return coarse_sum, fine, error.sum(axis=1)


def _split(number: Floats) -> Pair:
    scaled = _SPLIT * number
    high = scaled - (scaled - number)
    return Pair(high, number - high)


def _polynomial(number: Floats) -> Floats:
    """Return ``(exp(r) - 1 - r - r²/2)/r³`` up to terms of r⁵."""
    value = np.full_like(number, 1 / 40320)
    for coefficient in (1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6):
        value = value * number + coefficient
    return value


def _parts(number: Decimal, bits: int) -> tuple[float, Decimal]:
    """Return the leading bits of a number below 1, and what is left."""
    scale = 2**bits
    high = int(number * scale) / scale
    return high, number - Decimal(high)


@cache
def _constants() -> tuple[float, tuple[float, float, float], Pair]:
    with localcontext() as context:
        context.prec = 60
        step = Decimal(2).ln() / _STEPS
        # Products of the first two with whole numbers up to 2**18 are exact.
        first, left = _parts(step, 40)
        second, left = _parts(left, 72)
        powers = [Decimal(2) ** (Decimal(index) / _STEPS) for index in range(_STEPS)]
        high = [float(power) for power in powers]
        low = [float(power - Decimal(rounded)) for power, rounded in zip(powers, high, strict=True)]
        return float(1 / step), (first, second, float(left)), Pair(np.array(high), np.array(low))


# Sums of floats without rounding: as integers, which count the least positive float.

_UNITS: Final = 1074


def exact_integers(values: Floats) -> Objects:
    """Return finite floats, shape (n,), as Python integers in units of ``2**-1074``."""
    parts, exponents = np.frexp(values)
    integers = np.ldexp(parts, 53).astype(np.int64).tolist()
    shifts = (exponents + (_UNITS - 53)).tolist()
    exact = [n << k if k >= 0 else n >> -k for n, k in zip(integers, shifts, strict=True)]
    return np.array([*exact, None], dtype=object)[:-1]


def rounded(integers: Objects) -> Floats:
    """Return the floats nearest to such integers, shape (n,)."""
    unit = 1 << _UNITS
    return np.array([number / unit for number in integers.tolist()], dtype=np.float64)
