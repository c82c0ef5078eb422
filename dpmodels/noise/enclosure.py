"""Integer bounds on exp(-x) for a rational x: correct by proof, to any precision."""

from fractions import Fraction

_GUARD_BITS = 32


def exp_enclosure(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Enclose 2^bits * exp(-exponent) between two integers.

    Halve the exponent until it is below 1/2, sum the series of exp(+x) in
    fixed point, square it back, and invert. The lower bound rounds every
    operation down and drops the (positive) rest of the series; the upper
    bound rounds every operation up and adds one unit for the rest, which is
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
    one = 1 << precision + bits
    return one // high, ceil_divide(one, low)


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
