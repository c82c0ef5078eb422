"""The exponential function by operations that IEEE 754 rounds correctly."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.typing import Floats

# Beyond it powers of two leave the normal range of float64.
LARGEST = 700.0
# log 2 in two parts; products of the first with whole numbers up to 2**11 are exact.
_HIGH, _LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
# Up to half of log 2 the next is below 2**-57.
_COEFFICIENTS = [1 / math.factorial(power) for power in range(13, -1, -1)]
_BIAS, _MANTISSA = 1023, 52


def exp(exponents: Floats) -> Floats:
    """Return ``exp(x)``, the same bits for a number wherever it stands.

    Beyond 700 either way numbers, of any shape, count as that; the error is below 2⁻⁵² of the
    value.

    Libraries evaluate a whole register of numbers by other code than the few
    that are left over, and arrays with gaps by a third: the last bit then
    depends on a number's place. Here every step is one correctly rounded sum
    or product of each number by itself, ``x = k log 2 + r``, a polynomial in
    r, and k added to the exponent's bits; nothing is left to choose.
    """
    held = np.clip(exponents, -LARGEST, LARGEST)
    whole = np.rint(held / math.log(2))
    rest = held - whole * _HIGH
    rest -= whole * _LOW
    value = np.full_like(rest, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        value *= rest
        value += coefficient
    bits = (whole.astype(np.int64) + _BIAS) << _MANTISSA
    return np.asarray(value * bits.view(np.float64))
