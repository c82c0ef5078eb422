"""Exact probabilities of the laws, computed apart from the package, and tests against them."""

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmodels.noise.blocks import Law

# The chi-square tail is asymptotic; 1e-8 nominal with at least 50 expected in
# every cell keeps the false-alarm rate of each test below 1e-6.
NOMINAL_ALARM = 1e-8
LEAST_EXPECTED = 50


def weight(law: Law, magnitude: int) -> mpmath.mpf:
    exponent = law.linear * magnitude + law.quadratic * magnitude**2
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


def probabilities(law: Law, values: range) -> NDArray[np.float64]:
    with mpmath.workprec(256):
        weights = [weight(law, abs(value)) for value in values]
        total = mpmath.fsum(weights)
        return np.array([float(w / total) for w in weights])


@pytest.fixture
def gaussian_law() -> Callable[[float], Law]:
    return lambda sigma: Law(Fraction(0), 1 / (2 * Fraction(sigma) ** 2))


@pytest.fixture
def laplace_law() -> Callable[[float], Law]:
    return lambda scale: Law(1 / Fraction(scale), Fraction(0))


@pytest.fixture
def assert_follows() -> Callable[[NDArray[np.int64], Law, range], None]:
    """Chi-square of draws against a law restricted to a range that holds all but 1e-12 of it."""

    def check(draws: NDArray[np.int64], law: Law, values: range) -> None:
        assert draws.min() >= values.start
        assert draws.max() < values.stop
        expected = probabilities(law, values) * draws.size
        observed = np.bincount(draws - values.start, minlength=len(values))
        frequent = expected >= LEAST_EXPECTED
        rest = expected[~frequent].sum()
        cells, counts = expected[frequent], observed[frequent]
        if rest >= LEAST_EXPECTED:
            cells, counts = np.append(cells, rest), np.append(counts, observed[~frequent].sum())
        else:
            rarest = cells.argmin()
            cells[rarest] += rest
            counts[rarest] += observed[~frequent].sum()
        assert cells.size > 1
        statistic = ((counts - cells) ** 2 / cells).sum()
        assert statistic < stats.chi2.isf(NOMINAL_ALARM, cells.size - 1)

    return check
