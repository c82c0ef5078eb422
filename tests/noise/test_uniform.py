from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpmodels.noise import seeded
from dpmodels.noise.uniform import Uniform, exp_enclosure, uniform_integer


class Script:
    """Words chosen beforehand; a request beyond them fails."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        selected, self.left = self.left[:count], self.left[count:]
        assert len(selected) == count
        return np.array(selected, dtype=np.uint64)


def _bits_of_inverse_e(words):
    with mpmath.workprec(64 * words + 64):
        bits = int(mpmath.floor(mpmath.ldexp(mpmath.exp(-1), 64 * words)))
    return [bits >> 64 * (words - 1 - index) & (2**64 - 1) for index in range(words)]


INVERSE_E = partial(exp_enclosure, Fraction(1))


@pytest.mark.parametrize("ties", [0, 1, 2, 3])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_tie_is_broken_by_the_next_word(ties, step):
    exact = _bits_of_inverse_e(ties + 1)
    entropy = Script(*exact[:ties], exact[ties] + step)
    assert Uniform(0, 0, entropy).below(INVERSE_E) == (step < 0)
    assert entropy.left == []


def test_known_bits_that_decide_use_no_further_ones():
    first = _bits_of_inverse_e(1)[0] >> 32
    assert Uniform(first - 1, 32, Script()).below(INVERSE_E)
    assert not Uniform(first + 1, 32, Script()).below(INVERSE_E)


def test_certainty_uses_no_bits():
    assert Uniform(0, 0, Script()).below(partial(exp_enclosure, Fraction(0)))
    assert Uniform(2**32 - 1, 32, Script()).below(partial(exp_enclosure, Fraction(0)))


def test_one_number_compares_consistently_with_several_thresholds():
    high = _bits_of_inverse_e(2)
    uniform = Uniform(0, 0, Script(*high))
    # The second comparison sees the bits the first one learnt: e^-1 is not below itself twice.
    assert not uniform.below(partial(exp_enclosure, Fraction(11, 10)))
    assert uniform.below(partial(exp_enclosure, Fraction(9, 10)))
    assert uniform.length == 64


@pytest.mark.product
def test_probability_of_below():
    entropy, count = seeded(2), 20_000
    hits = sum(Uniform(0, 0, entropy).below(INVERSE_E) for _ in range(count))
    # Binomial, false-alarm rate 1e-7.
    assert stats.binomtest(hits, count, float(mpmath.exp(-1))).pvalue > 1e-7


def test_uniform_integer_is_uniform():
    entropy, count = seeded(3), 20_000
    recorded = np.bincount([uniform_integer(7, entropy) for _ in range(count)], minlength=7)
    # Chi-square on 6 degrees of freedom, false-alarm rate 1e-7.
    assert ((recorded - count / 7) ** 2 / (count / 7)).sum() < stats.chi2.isf(1e-7, 6)


def test_uniform_integer_refuses_and_redraws():
    assert uniform_integer(1, Script()) == 0
    assert uniform_integer(5, Script(7, 6, 4)) == 4
    assert uniform_integer(2**64 + 1, Script(3, 1, 0, 1)) == 2**64
    assert uniform_integer(2**130, Script(1, 2, 3 + 4)) == 1 + 2 * 2**64 + 3 * 2**128
