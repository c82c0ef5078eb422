from fractions import Fraction

import numpy as np
import pytest

from dpmodels.noise import seeded
from dpmodels.noise.blocks import Envelope, Law, exact_proposal, geometric, tail_magnitude


@pytest.mark.product
@pytest.mark.parametrize("rate", [Fraction(1, 5), Fraction(7, 10), Fraction(1), Fraction(5, 3)])
def test_geometric(assert_follows, rate):
    entropy = seeded(21)
    draws = np.array([geometric(rate, entropy) for _ in range(8000)])
    assert_follows(draws, Law(rate, Fraction(0)), range(int(40 / rate) + 1))


@pytest.mark.product
def test_geometric_of_a_float_with_many_digits(assert_follows):
    entropy, rate = seeded(22), Fraction(0.3)
    draws = np.array([geometric(rate, entropy) for _ in range(8000)])
    assert_follows(draws, Law(rate, Fraction(0)), range(140))


@pytest.mark.product
@pytest.mark.parametrize(("sigma", "cut"), [(3.0, 3), (3.0, 6), (0.7, 1), (10.0, 20)])
def test_gaussian_tail(assert_follows, gaussian_law, sigma, cut):
    law, entropy = gaussian_law(sigma), seeded(23)
    envelope = Envelope(law, 0, cut)
    proposed = [tail_magnitude(envelope, entropy) for _ in range(12_000)]
    draws = np.array([magnitude for magnitude in proposed if magnitude is not None])
    assert draws.size > 4000
    assert_follows(draws, law, range(cut, int(10 * sigma) + cut))


@pytest.mark.product
@pytest.mark.parametrize(("scale", "cut"), [(3.0, 3), (3.0, 6), (0.7, 1)])
def test_laplace_tail_is_never_refused(assert_follows, laplace_law, scale, cut):
    law, entropy = laplace_law(scale), seeded(24)
    envelope = Envelope(law, 0, cut)
    draws = np.array([tail_magnitude(envelope, entropy) for _ in range(6000)])
    assert_follows(draws, law, range(cut, cut + int(40 * scale)))


def test_sign_and_the_refused_negative_zero(gaussian_law):
    envelope = Envelope(gaussian_law(0.3), 0, 3)
    entropy = seeded(25)
    assert exact_proposal(envelope, 5, 0, 0, entropy) == 0
    assert exact_proposal(envelope, -5, 0, 0, entropy) is None
    second = int(2**32 * 0.998)
    assert exact_proposal(envelope, 5, second, 0, entropy) == 1
    assert exact_proposal(envelope, -5, second, 0, entropy) == -1


def test_offset_and_acceptance(gaussian_law):
    envelope = Envelope(gaussian_law(1000.0), 7, 80)
    entropy = seeded(26)
    limit = int(2**32 * np.exp(-(100**2) / (2 * 1000**2)))
    assert exact_proposal(envelope, 100, 0, limit - 2**10, entropy) == 100
    assert exact_proposal(envelope, 100 - 2**63, 0, limit - 2**10, entropy) == -100
    assert exact_proposal(envelope, 100 + 2**40, 0, limit + 2**10, entropy) is None
