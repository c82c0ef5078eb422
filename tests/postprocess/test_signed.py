"""Denoising a remainder that may have either sign."""

import numpy as np
import pytest

from dpmodels.postprocess.denoise import denoise_signed, isotonic, outliers, stein

RULES = ("auto", "invariant", "spiked")


def symmetric(size, off, rng):
    half = rng.normal(scale=off / np.sqrt(2), size=(size, size))
    return half + half.T


@pytest.mark.parametrize("rule", [*RULES, "psd", None])
@pytest.mark.parametrize("size", [1, 2, 9, 40])
def test_it_is_odd_and_symmetric(rule, size):
    matrix = symmetric(size, 1.0, np.random.default_rng(size))
    result = denoise_signed(matrix, 0.3, rule)
    assert (result == result.T).all()
    scale = np.abs(result).max()
    np.testing.assert_allclose(denoise_signed(-matrix, 0.3, rule), -result, atol=1e-9 * scale)


@pytest.mark.parametrize("rule", ["psd", None])
def test_other_rules_and_no_noise_leave_it(rule):
    matrix = symmetric(5, 1.0, np.random.default_rng(0))
    assert denoise_signed(matrix, 1.0, rule) is matrix
    assert denoise_signed(matrix, 0.0, "auto") is matrix


@pytest.mark.parametrize("rule", RULES)
def test_strong_values_are_kept_but_for_the_noise(rule):
    truth = np.diag([9.0, 4.0, -6.0, -20.0])
    noise = symmetric(4, 1e-6, np.random.default_rng(1))
    assert np.abs(denoise_signed(truth + noise, 1e-6, rule) - truth).max() < 1e-5


@pytest.mark.parametrize("rule", ["auto", "spiked"])
def test_noise_alone_is_taken_off(rule):
    # The seed is fixed; the largest of the noise is at the edge, where little is left of it.
    rng = np.random.default_rng(2)
    noise = symmetric(80, 1.0, rng)
    assert (denoise_signed(noise, 1.0, rule) ** 2).sum() < (noise**2).sum() / 50


def test_spikes_of_either_sign_are_found():
    rng = np.random.default_rng(3)
    truth = np.zeros((60, 60))
    truth[0, 0], truth[1, 1] = 40.0, -40.0
    released = truth + symmetric(60, 1.0, rng)
    before = np.linalg.norm(released - truth)
    for rule in ("auto", "spiked"):
        after = np.linalg.norm(denoise_signed(released, 1.0, rule) - truth)
        assert after < before / 2


def test_divergences_are_those_of_differences():
    values = np.sort(np.random.default_rng(4).normal(scale=6, size=7))[::-1]
    step, result = 1e-6, 0.0
    for i in range(7):
        up, down = values.copy(), values.copy()
        up[i] += step
        down[i] -= step
        above, below = (isotonic(stein(x), -np.inf).values[i] for x in (up, down))
        result += (above - below) / (2 * step)
    assert isotonic(stein(values), -np.inf).divergence == pytest.approx(result, rel=1e-5)


def test_the_price_of_outliers_makes_none_of_nothing():
    values = np.linspace(1.9, -1.9, 12) * np.sqrt(12)
    result = outliers(values, stein(values))
    assert np.abs(result.values).max() < 4 * np.sqrt(12)
    assert result.divergence >= 0
