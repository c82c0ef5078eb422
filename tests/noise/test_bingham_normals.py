import numpy as np
import pytest
from scipy import stats

from dpmodels.noise import secure, seeded
from dpmodels.noise.uniform import normals, uniforms

EXTREMES = np.array([0, 2**12 - 1, 2**63, 2**64 - 1], dtype=np.uint64)


class Words:
    """An entropy that gives the words it was made of."""

    def __init__(self, words):
        self._words = words

    def words(self, count):
        return self._words[:count].copy()


def test_no_word_gives_the_ends_of_the_interval():
    draws = uniforms(4, Words(EXTREMES))
    assert draws[0] == draws[1] == 2.0**-53
    assert draws[2] == 0.5 + 2.0**-53
    assert draws[3] == 1 - 2.0**-53


def test_no_word_gives_an_infinite_normal_and_the_ends_are_opposite():
    draws = normals(4, Words(EXTREMES))
    assert draws[3] == pytest.approx(-draws[0], rel=1e-12)
    assert 8.2 < draws[3] < 8.3


@pytest.mark.parametrize(("draw", "law"), [(uniforms, "uniform"), (normals, "norm")])
def test_the_law(draw, law):
    # Kolmogorov-Smirnov, false-alarm rate 1e-7.
    assert stats.kstest(draw(300_000, seeded(61)), law).pvalue > 1e-7


def test_seeded_draws_repeat_and_secure_draws_do_not():
    assert (normals(9, seeded(1)) == normals(9, seeded(1))).all()
    # Equal with probability below 2^-400.
    assert (normals(9, secure()) != normals(9, secure())).any()


def test_none_is_a_count():
    assert uniforms(0, seeded(1)).shape == normals(0, seeded(1)).shape == (0,)
