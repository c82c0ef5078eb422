"""Uniform and normal random numbers known only as far as a decision needs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmodels.typing import Floats

# What a source of randomness is.


class Entropy(Protocol):
    """A source of independent, uniform 64-bit words."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Give the next words of the source.

        The array, shape (count,), is new and the caller's own.
        """


# More than the precision asked for: a choice; with fewer more enclosures leave a bit open.
_GUARD_BITS = 32


@dataclass(slots=True)
class Uniform:
    """A real number uniform on [0, 1), of which the leading bits are known.

    The number lies in ``[head, head + 1) * 2^-length``; further words of the entropy are its
    further bits. Comparing it with a real threshold p has probability exactly p, although neither
    is ever known in full.
    """

    head: int = field(repr=False)  # The known bits, ``0 <= head < 2^length``
    length: int  # How many they are
    entropy: Entropy  # Where further bits come from

    def below(self, threshold: Callable[[int], tuple[int, int]]) -> bool:
        """Decide whether the number is below a threshold, learning bits as needed.

        `threshold` gives, for a number of bits b, integers ``low <= 2^b p <= high`` that close in
        on p as b grows; True has probability p.
        """
        while True:
            low, high = threshold(self.length + _GUARD_BITS)
            if self.head >= ceil_shift(high, _GUARD_BITS):
                return False
            if self.head < low >> _GUARD_BITS:
                return True
            self.head = self.head << 64 | int(self.entropy.words(1)[0])
            self.length += 64


def uniform_integer(bound: int, entropy: Entropy) -> int:
    """Draw an integer uniform on [0, bound), exactly, by rejection."""
    bits = (bound - 1).bit_length()
    count = -(-bits // 64)
    while True:
        words = int.from_bytes(entropy.words(count).tobytes(), "little")
        candidate = words & ((1 << bits) - 1)
        if candidate < bound:
            return candidate


def exp_enclosure(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Enclose 2^bits * exp(-exponent) between two integers.

    Halve the exponent until it is below 1/2, sum the series of exp(+x) in fixed point, square it
    back, and invert. The lower bound rounds every operation down and drops the (positive) rest of
    the series; the upper bound rounds every operation up and adds one unit for the rest, which is
    below the last term kept because x <= 1/2 and that term is at most a unit.

    The exponent is not below 0, the bits not below 1; ``high - low <= 2``.
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent >= bits:
        return 0, 1
    halvings = int(exponent).bit_length() + 1
    precision = bits + halvings + _GUARD_BITS
    numerator, denominator = exponent.numerator << precision, exponent.denominator << halvings
    low = _series_below(numerator // denominator, precision)
    high = _series_above(ceil_divide(numerator, denominator), precision)
    for _ in range(halvings):
        low = low * low >> precision
        high = ceil_shift(high * high, precision)
    unit = 1 << precision + bits
    return unit // high, ceil_divide(unit, low)


def ceil_divide(numerator: int, denominator: int) -> int:
    """Divide integers, rounding up."""
    return -(-numerator // denominator)


def ceil_shift(value: int, bits: int) -> int:
    """Divide an integer by 2^bits, rounding up."""
    return -(-value >> bits)


def _series_below(x: int, precision: int) -> int:
    total = term = 1 << precision
    order = 0
    while term:
        order += 1
        term = (term * x >> precision) // order
        total += term
    return total


def _series_above(x: int, precision: int) -> int:
    total = term = 1 << precision
    order = 0
    while term > 1:
        order += 1
        term = ceil_divide(ceil_shift(term * x, precision), order)
        total += term
    return total + 1


# Uniform and normal floats: idealised, not exact.
#
# The integer samplers of this folder have their laws exactly. The laws on a sphere have no lattice
# to live on; they are drawn in floating point from the numbers made here, and what is proved of
# them holds of the real numbers that these floats stand for. A uniform is the midpoint of one of
# 2^52 equal cells, a normal its quantile: no draw is infinite, none lies beyond 8.3, and the tail
# left out has probability 2^-52.


def uniforms(count: int, entropy: Entropy) -> Floats:
    """Draw floats uniform on the open interval (0, 1), one word each.

    They are odd multiples of 2^-53: never 0, never 1.
    """
    # With 53 bits the largest midpoint would round to 1.
    cells: Floats = (entropy.words(count) >> np.uint64(12)).astype(np.float64)
    return (cells + 0.5) * 2.0**-52


def normals(count: int, entropy: Entropy) -> Floats:
    """Draw standard normal floats, one word each. They are finite and at most 8.3 in size."""
    quantiles: Floats = ndtri(uniforms(count, entropy))
    return quantiles
