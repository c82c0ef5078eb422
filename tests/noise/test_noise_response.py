"""Coins and dice have the law they state, to the last bit."""

from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest

from dpmodels.noise import seeded
from dpmodels.noise.finite import coins, lying, rational, responses, throws, truthful

SIXTHS = (Fraction(1, 6), Fraction(1, 2), Fraction(1, 3))


class Given:
    """Words in the order given, then zeros."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        words, self.left = self.left[:count], self.left[count:]
        return np.array(words + [0] * (count - len(words)), dtype=np.uint64)


def spread(size):
    """Uniform words that lie evenly."""
    return Given(*[(2 * i + 1) * 2**63 // size for i in range(size)])


@pytest.mark.parametrize("levels", [2, 3, 1000])
@pytest.mark.parametrize("eps", [1e-6, 0.5, 1.0, 20.0, 300.0])
def test_the_enclosure_holds_the_probability_and_closes_in(eps, levels):
    with mpmath.workdps(300):
        odds = mpmath.exp(mpmath.mpf(eps))
        exact = (odds - 1) / (odds + levels - 1)
        for bits in (64, 128, 400):
            low, high = truthful(Fraction(eps), levels, bits)
            assert low <= exact * 2**bits <= high
            assert high - low <= 2
            low, high = lying(Fraction(eps), bits)
            assert low <= 2**bits / (odds + 1) <= high
            assert high - low <= 2


def test_a_coin_shows_its_probability_of_all_words():
    assert coins(partial(rational, Fraction(1, 6)), 600, spread(600)).sum() == 100


def test_a_die_shows_the_law_of_its_sides_of_all_words():
    assert np.bincount(throws(SIXTHS, 600, spread(600))).tolist() == [100, 300, 200]


def test_a_word_on_the_threshold_is_decided_by_further_bits():
    third = partial(rational, Fraction(1, 3))
    word = 2**64 // 3
    for high_word, expected in ((0, True), (2**64 - 1, False)):
        assert coins(third, 1, Given(word, high_word)).tolist() == [expected]
    law = (Fraction(1, 3),) * 3
    for high_word, side in ((0, 0), (2**64 - 1, 1)):
        assert throws(law, 1, Given(word, high_word)).tolist() == [side]


def test_a_coin_of_a_huge_eps_always_asks_for_the_truth():
    respond = partial(truthful, Fraction(10**9), 3)
    truths = np.array([0, 1, 2, 1])
    law = (Fraction(1, 3),) * 3
    assert responses(truths, respond, law, seeded(1)).tolist() == truths.tolist()


def test_words_are_spent_alike_whatever_the_truths():
    """Who sees how many random words were drawn learns nothing of a truth."""
    law, respond = (Fraction(1, 2),) * 2, partial(rational, Fraction(1, 3))
    left = []
    for truths in ([0, 0, 0], [1, 1, -1]):
        entropy = seeded(3)
        responses(np.array(truths), respond, law, entropy)
        left.append(entropy.words(2).tolist())
    assert left[0] == left[1]


def test_answers_have_the_devices_law():
    # 18 standard normal numbers, each beyond 6.2 at a rate of 6e-10: in all below 1e-6.
    respond, rows = partial(truthful, Fraction(1), 3), 60_000
    for truth in (0, 1, 2, -1):
        result = responses(np.full(rows, truth), respond, SIXTHS, seeded(7 + truth))
        chance = (np.exp(1) - 1) / (np.exp(1) + 2) if truth >= 0 else 0.0
        law = (1 - chance) * np.array([1 / 6, 1 / 2, 1 / 3])
        law[max(truth, 0)] += chance
        sds = np.sqrt(rows * law * (1 - law))
        assert (np.abs(np.bincount(result, minlength=3) - rows * law) < 6.2 * sds).all()
