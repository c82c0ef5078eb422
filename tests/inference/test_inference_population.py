"""conf_int against the population: noise and sampling drawn anew each time."""

import numpy as np
import pytest

from dpmodels.inference import Spectrum

TIMES = 800


def draw(rng, variances, rows, entry):
    """A noisy sample covariance of Gaussian rows."""
    size = len(variances)
    sample = np.cov(rng.normal(size=(rows, size)) * np.sqrt(variances), rowvar=False)
    noise = rng.normal(size=(size, size)) * entry
    values, _ = np.linalg.eigh(sample + (noise + noise.T) / np.sqrt(2))
    return Spectrum(values[::-1], entry**2 * (1 + np.eye(size)), np.zeros(size), entry)


def gaussian(variances, rows):
    """The sampling variance of the entries of a covariance of Gaussian rows."""
    return np.outer(variances, variances) * (1 + np.eye(len(variances))) / rows


CASES = {
    "noise as large as sampling": ([4.0, 2.0, 0.5], 500, 0.1),
    "sampling only": ([4.0, 2.0, 0.5], 300, 1e-6),
    "noise only": ([4.0, 2.0, 0.5], 20_000, 0.1),
    "over a bulk": ([4.0] + [1.0] * 9, 1_000, 0.1),
}


@pytest.mark.expensive
@pytest.mark.parametrize("name", CASES)
def test_confidence_intervals_cover_the_population(rng, most, fewest, name):
    # Asked 0.95; false alarms <= 1e-6 for coverage from 0.925 to 0.985.
    variances, rows, entry = CASES[name]
    times = TIMES if rows < 10_000 else 300
    sampling = gaussian(variances, rows)
    bounds = np.array(
        [
            draw(rng, np.array(variances), rows, entry).confidence_interval(sampling)
            for _ in range(times)
        ]
    )
    for i in range(1 if name == "over a bulk" else 2):
        missed = int(((bounds[:, 0, i] > variances[i]) | (bounds[:, 1, i] < variances[i])).sum())
        assert fewest(times, 0.015) <= missed <= most(times, 0.075), i


def test_noise_intervals_do_not_cover_the_population(rng, most):
    variances, rows, entry = CASES["sampling only"]
    bounds = np.array(
        [draw(rng, np.array(variances), rows, entry).noise_interval() for _ in range(100)]
    )
    covered = int(((bounds[:, 0, 0] <= variances[0]) & (variances[0] <= bounds[:, 1, 0])).sum())
    assert covered <= most(100, 0.1)


def test_equal_population_variances_are_covered(rng, most):
    # At least 0.92 for the outermost of ten; false alarms <= 1e-6.
    variances = np.full(10, 2.0)
    bounds = np.array(
        [
            draw(rng, variances, 1_000, 0.05).confidence_interval(gaussian(variances, 1_000))
            for _ in range(400)
        ]
    )
    missed = ((bounds[:, 0] > 2) | (bounds[:, 1] < 2)).sum(axis=0)
    assert missed.max() <= most(400, 0.08)


def test_more_rows_narrow_to_the_noise_interval():
    spectrum = Spectrum(np.array([9.0, 4.0]), 0.01 * (1 + np.eye(2)), np.zeros(2), 0.1)
    low, high = spectrum.noise_interval()
    few, second = (
        spectrum.confidence_interval(gaussian(spectrum.values, rows)) for rows in (50, 1e12)
    )
    assert (few[1] - few[0] > 2 * (high - low)).all()
    np.testing.assert_allclose(second, (low, high), rtol=1e-6)
