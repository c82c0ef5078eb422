"""Weighted means and variances with capped units, against formulas over the units."""

from dataclasses import replace

import numpy as np
import pytest
from differences import derivative
from scipy.stats import binom

from dpmodels.inference.proportions import Noise
from dpmodels.inference.sampled import Cut, SampledMoments, StratumSums

UNITS, EXCESS, SD = 400, 0.7, 0.3


def units():
    """Weights in caps, those of capped units 1.7, and numbers between 0 and 1."""
    rng = np.random.default_rng(1)
    weights = np.where(rng.random(UNITS) < 0.2, 1 + EXCESS, rng.uniform(0.1, 1, UNITS))
    return weights, rng.beta(2, 3, UNITS) ** (1 / weights)


def bernstein(degree, weights, values):
    """Weighted sums of the polynomials of a degree: parts that add up to the sum of weights."""
    k = np.arange(degree + 1)
    return weights @ binom.pmf(k, degree, values[:, None])


def moments(weights, values, degree_of_mean, sd=0.0):
    capped, degree = np.minimum(weights, 1.0), 2 * degree_of_mean
    parts = [bernstein(degree, capped**2, values), bernstein(2, capped - capped**2, values)]
    above = bernstein(2, (weights > 1).astype(float), values)
    return SampledMoments(
        np.concatenate(parts)[None],
        Noise("gaussian", sd, 0),
        degree_of_mean=degree_of_mean,
        n_units=UNITS,
        n_strata=1,
        cut=Cut(above[None], 0.0, EXCESS, 0.0, EXCESS**2),
    )


def test_means_and_their_sampling_errors_are_those_of_the_uncapped_units():
    weights, values = units()
    result = moments(weights, values, 1)
    mean = weights @ values / weights.sum()
    assert result.means == pytest.approx([mean])
    error = np.sqrt(UNITS * (weights * (values - mean)).var(ddof=1)) / weights.sum()
    assert result.mean_sampling_sd == pytest.approx([error])
    capped = np.minimum(weights, 1.0)
    assert result.shift == pytest.approx([capped @ values / capped.sum() - mean])
    assert result.cut_share == pytest.approx([1 - capped.sum() / weights.sum()])


@pytest.mark.parametrize("is_capped", [False, True])
def test_variances_and_their_sampling_errors_are_those_of_the_uncapped_units(is_capped):
    """Of capped units the fourth powers are not measured: the error is then an upper bound."""
    weights, values = units()
    weights = weights if is_capped else np.minimum(weights, 1.0)
    result = moments(weights, values, 2)
    mean = weights @ values / weights.sum()
    deviations = (values - mean) ** 2
    variance = weights @ deviations / weights.sum()
    correction = UNITS / (UNITS - 1)
    assert result.variances == pytest.approx([variance * correction])
    scores = weights * (deviations - variance)
    error = np.sqrt(UNITS * scores.var(ddof=1)) / weights.sum() * correction
    ratio = float(result.variance_sampling_sd[0] / error)
    assert 1 < ratio < 5 if is_capped else ratio == pytest.approx(1)


@pytest.mark.parametrize(("n_strata", "expected"), [(1, None), (300, UNITS - 299)])
def test_effective_units_are_kishs_and_one_more_than_degrees_of_freedom_at_most(n_strata, expected):
    weights, values = units()
    weights = np.minimum(weights, 1.0)
    result = replace(moments(weights, values, 1), n_strata=n_strata)
    kish = weights.sum() ** 2 / (weights**2).sum()
    assert result.independent == pytest.approx([expected or kish])


@pytest.mark.parametrize("name", ["means", "variances"])
def test_noise_errors_are_derivatives_by_the_parts_times_their_noise(name):
    """Of the delta method; without capped units, whose correction has an error of its own."""
    weights, values = units()
    result = moments(np.minimum(weights, 1.0), values, 2, sd=SD)

    def estimate(parts):
        return getattr(replace(result, parts=parts[None]), name)

    slopes = derivative(estimate, result.parts[0], 1e-4)
    errors = result.mean_noise_sd if name == "means" else result.variance_noise_sd
    assert errors == pytest.approx([SD * np.linalg.norm(slopes)], rel=1 / UNITS)


def test_what_was_cut_off_has_the_error_of_its_size_and_of_its_positions():
    """By a tenth more excess, the correction of the mean is larger by a tenth, to first order."""
    weights, values = units()
    result = moments(weights, values, 1)
    unsure = replace(result, cut=replace(result.cut, mean_sd=0.1 * EXCESS))
    more = np.hypot(unsure.shift_sd**2 - result.shift_sd**2, 0.0)
    assert np.sqrt(more) == pytest.approx(np.abs(0.1 * result.shift))


@pytest.mark.parametrize("population", [np.inf, 90.0])
def test_clear_strata_leave_the_variance_within_them(population):
    """Two groups in three strata of 20, 30 and 40 units, of which each stratum has its mean."""
    rng = np.random.default_rng(3)
    sizes, means = (20, 30, 40), (1.0, 5.0, -2.0)
    scores = [rng.normal(mean, 1.0, (size, 2)) for size, mean in zip(sizes, means, strict=True)]
    n_units, populations = np.array(sizes, dtype=float), np.full(3, population)
    strata = StratumSums(np.zeros((3, 1, 1)), n_units, 0.0, populations)
    sums = np.array([score.sum(axis=0) for score in scores])
    squares = np.array([(score**2).sum(axis=0) for score in scores])
    squared, simple = squares.sum(axis=0), np.array([7.0, 8.0])
    expected = sum(
        (1 - size / population) * size * score.var(axis=0, ddof=1)
        for size, score in zip(sizes, scores, strict=True)
    )
    within = strata.within(sums, np.zeros((3, 2)), squares, squared, simple)
    np.testing.assert_allclose(within, expected, rtol=1e-12)
    # Noise in the sums that may be all of the variance leaves that of no strata.
    noisy = strata.within(sums, np.array([[0.0, 1e6]] * 3), squares, squared, simple)
    assert noisy == pytest.approx([expected[0], simple[1]])
    # So do numbers of units that are not clear of their noise.
    hidden = replace(strata, noise_sd=100.0)
    assert hidden.within(sums, np.zeros((3, 2)), squares, squared, simple) == pytest.approx(simple)
