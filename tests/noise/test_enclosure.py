import random
from fractions import Fraction

import mpmath
import pytest

from dpmodels.noise.uniform import ceil_divide, ceil_shift, exp_enclosure


def _exponents():
    chance = random.Random(1)
    yield from (Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(32), Fraction(1, 2**300))
    yield from (Fraction(2**30 + 1, 2**30), Fraction(63), Fraction(64), Fraction(10**9))
    for _ in range(300):
        top = Fraction(chance.getrandbits(100), chance.getrandbits(100) + 1)
        yield top * Fraction(2) ** chance.randint(-60, 8)


@pytest.mark.parametrize("bits", [1, 32, 64, 200, 1000])
def test_the_enclosure_holds_the_exact_value_tightly(bits):
    for exponent in _exponents():
        low, high = exp_enclosure(exponent, bits)
        assert 0 <= high - low <= 2
        with mpmath.workprec(2 * bits + 400):
            exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
            assert mpmath.mpf(low) <= mpmath.ldexp(exact, bits) <= mpmath.mpf(high)


def test_exponent_zero_is_certain():
    assert exp_enclosure(Fraction(0), 40) == (2**40, 2**40)


@pytest.mark.parametrize("value", [-9, -8, -1, 0, 1, 7, 8, 9, 3 * 2**70 + 1])
def test_rounding_up(value):
    exact = Fraction(value, 8)
    up = exact.numerator // exact.denominator + (exact.denominator > 1)
    assert ceil_divide(value, 8) == ceil_shift(value, 3) == up
