"""The exponential function against the true one, and against itself at other places."""

import mpmath
import numpy as np
import pytest

from dpmodels.statistics.losses import LARGEST, Logistic, Poisson, exp

NUMBERS = np.random.default_rng(0).uniform(-40, 40, 300)


def test_it_is_the_exponential_function():
    numbers = np.concatenate([NUMBERS, 1e-3 * NUMBERS, [0.0, -0.0, 1e-300, LARGEST, -LARGEST]])
    for number, value in zip(numbers.tolist(), exp(numbers).tolist(), strict=True):
        true = mpmath.exp(number)
        assert abs(value - true) < true * 2.0**-52
    assert exp(np.zeros(1)) == 1


def test_beyond_its_range_it_is_held():
    assert exp(np.array([1e300, np.inf])).tolist() == exp(np.full(2, LARGEST)).tolist()
    assert exp(np.array([-1e300, -np.inf])).tolist() == exp(np.full(2, -LARGEST)).tolist()


FUNCTIONS = {
    "exp": exp,
    "slope": Logistic().slope,
    "bend": Logistic().bend,
    "pull": lambda x: Poisson(9.0, 3.0).pull(x, np.full(len(x), 2.0)),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_number_gives_the_same_bits_at_any_place(function):
    alone = np.array([function(NUMBERS[i : i + 1])[0] for i in range(300)])
    for rows in range(1, 34):
        for start in range(0, 34):
            part = slice(start, start + rows)
            assert (function(NUMBERS[part]) == alone[part]).all()
    # Across gaps and backwards libraries have other code again.
    assert (function(np.repeat(NUMBERS, 3)[::3]) == alone).all()
    assert (function(NUMBERS[::-1].copy()[::-1]) == alone).all()
