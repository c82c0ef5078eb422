import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmodels.postprocess.denoise import isotonic, mixture, plateau, pool, stein

SEED = 5
sequences = arrays(float, st.integers(1, 12), elements=st.floats(-5, 5, width=16))


def noise(size, rng):
    half = rng.normal(size=(size, size)) / math.sqrt(2)
    return half + half.T


def noisy(truth, rng):
    """Falling eigenvalues of ``diag(truth)`` plus unit noise, and the best values for them."""
    values, vectors = np.linalg.eigh(np.diag(truth) + noise(len(truth), rng))
    return values[::-1], (vectors**2).T[::-1] @ truth


def means(values):
    return np.concatenate([np.full(b - a, values[a:b].mean()) for a, b in pool(values)])


@given(sequences)
def test_pooling_is_the_least_squares_falling_fit(values):
    # The min-max formula: over starts up to i the least of the largest means that reach i.
    size = len(values)
    expected = [
        min(max(values[a:b].mean() for b in range(i + 1, size + 1)) for a in range(i + 1))
        for i in range(size)
    ]
    np.testing.assert_allclose(means(values), expected, atol=1e-9)


@pytest.mark.parametrize("truth", [[0.0] * 6, [9.0, 5.0, 1.0, 1.0, 0.5, 0.0]])
def test_stein_values_add_up_to_the_trace(truth):
    values, _ = noisy(np.array(truth), np.random.default_rng(SEED))
    assert stein(values).values.sum() == pytest.approx(values.sum())


def test_stein_values_are_the_discrete_transform():
    values = np.array([4.0, 1.0, -2.0])
    expected = [4 - 2 * (1 / 3 + 1 / 6), 1 - 2 * (-1 / 3 + 1 / 3), -2 - 2 * (-1 / 6 - 1 / 3)]
    np.testing.assert_allclose(stein(values).values, expected)


def test_divergence_of_isotonic_values_is_their_slope():
    rng, step = np.random.default_rng(SEED), 1e-6
    for _ in range(20):
        values, _ = noisy(np.linspace(12, 0, 6), rng)
        slopes = 0.0
        for place in range(len(values)):
            change = np.eye(len(values))[place] * step
            above, below = (isotonic(stein(values + way * change)).values for way in (1, -1))
            slopes += (above - below)[place] / (2 * step)
        assert isotonic(stein(values)).divergence == pytest.approx(slopes, rel=1e-4, abs=1e-4)


@pytest.mark.product
@pytest.mark.parametrize("truth", [[0.0] * 4, [6.0, 3.0, 0.0, 0.0], [20.0, 10.0, 5.0, 1.0]])
def test_risk_estimate_is_unbiased(truth):
    # Σ φ t - 2 Σ ∂φ/∂y estimates Σ φ a. Means of 4,000 runs within 5 standard errors: false
    # alarms 6e-7 each under the normal law; the seed is fixed.
    rng, truth = np.random.default_rng(SEED), np.array(truth)
    gaps = []
    for _ in range(4_000):
        values, best = noisy(truth, rng)
        spectrum = stein(values)
        result = isotonic(spectrum)
        gaps.append(result.values @ (spectrum.values - best) - 2 * result.divergence)
    assert abs(np.mean(gaps)) < 5 * np.std(gaps) / math.sqrt(len(gaps))


def test_plateau_finds_outliers_and_the_level():
    truth = np.concatenate([[200.0, 150.0], np.full(98, 3.0)])
    values, best = noisy(truth, np.random.default_rng(SEED))
    result = plateau(stein(values)).values
    np.testing.assert_allclose(result[:2], best[:2], rtol=0.02)
    np.testing.assert_allclose(result[2:], (values.sum() - result[:2].sum()) / 98, rtol=0.05)


def test_mixture_is_isotonic_where_the_spectrum_is_spread():
    values, _ = noisy(np.linspace(400, 0, 80), np.random.default_rng(SEED))
    spectrum = stein(values)
    expected = isotonic(spectrum).values
    assert np.linalg.norm(mixture(spectrum) - expected) < 0.01 * np.linalg.norm(expected)


def test_mixture_is_the_level_where_noise_is_all_there_is():
    values, _ = noisy(np.full(80, 4.0), np.random.default_rng(SEED))
    np.testing.assert_allclose(mixture(stein(values)), values.mean(), rtol=0.05)
