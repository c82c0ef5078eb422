"""Noise of single entries: measured on simulated releases of the same rows."""

import numpy as np
import pytest
from differences import derivative

from dpmodels.inference import entry_sd, mean_sd
from dpmodels.postprocess import correlation, covariance, in_units, second_moment_about
from dpmodels.postprocess.covariance import Covariance
from dpmodels.released import MomentNoise

ROWS, SIZE, RADIUS, TIMES = 2_000, 4, 2.5, 3_000
BOX = (np.full(SIZE, -2.0), np.full(SIZE, 2.0))
POINT, UNIT = np.array([0.5, -0.3, 0.0, 1.0]), np.array([100.0, 1.0, 0.01, 5.0])
NOISE = MomentNoise(15.0, 8.0, 3.0, 2.0)


@pytest.fixture(scope="module")
def unit_rows():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(ROWS, SIZE)) @ rng.normal(size=(SIZE, SIZE)) * 0.2
    return np.clip(values + np.array([0.6, -0.4, 0.0, 0.1]), -1, 1) / RADIUS


def released(rows, noise, rng=None):
    """Moments of rows in the unit ball, with noise where there is a generator."""
    count, total, second = float(len(rows)), rows.sum(axis=0), rows.T @ rows
    if rng is None:
        return count, total, second
    upper = np.triu(rng.normal(size=(SIZE, SIZE)) * noise.off, 1)
    diagonal = np.diag(rng.normal(size=SIZE) * noise.diagonal)
    total = total + rng.normal(size=SIZE) * noise.mean
    return count + rng.normal() * noise.count, total, second + upper + upper.T + diagonal


def centred(count, total, second):
    return covariance(count, total, second, NOISE, max_rows=None, box=BOX, row_norm=RADIUS)


def about(count, total, second):
    return second_moment_about(POINT, count, total, second, NOISE, max_rows=None, row_norm=RADIUS)


def uncentred(count, total, second):
    return covariance(count, None, second, NOISE, max_rows=None, box=BOX, row_norm=RADIUS)


WAYS = {
    "centred": centred,
    "uncentred": uncentred,
    "about a point": about,
    "own units": lambda *moments: in_units(centred(*moments), UNIT),
    "about a point, own units": lambda *moments: in_units(about(*moments), UNIT),
    "correlation": lambda *moments: correlation(centred(*moments)),
    "correlation about a point": lambda *moments: correlation(about(*moments)),
}


@pytest.mark.product
@pytest.mark.parametrize("way", WAYS)
def test_entries_scatter_as_said(unit_rows, same_sd, way):
    # Within 5 % beyond chance, 1e-6 for each entry: the law is of first order.
    rng = np.random.default_rng(5)
    estimates = [WAYS[way](*released(unit_rows, NOISE, rng)) for _ in range(TIMES)]
    stated = entry_sd(WAYS[way](*released(unit_rows, NOISE)))
    measured = np.array([estimate.matrix for estimate in estimates])
    for i, j in zip(*np.triu_indices(SIZE), strict=True):
        if way.startswith("correlation") and i == j:
            assert stated[i, i] == 0
            np.testing.assert_allclose(measured[:, i, i], 1.0)
        else:
            assert same_sd(measured[:, i, j], [stated[i, j]], 1.05), (i, j)


@pytest.mark.product
def test_means_scatter_as_said(unit_rows, same_sd):
    rng = np.random.default_rng(6)
    estimates = np.array([centred(*released(unit_rows, NOISE, rng)).mean for _ in range(TIMES)])
    stated = mean_sd(centred(*released(unit_rows, NOISE)))
    assert all(same_sd(estimates[:, j], [stated[j]], 1.05) for j in range(SIZE))


def test_a_second_moment_about_a_point_is_that(unit_rows):
    moments_about_mean = about(*released(unit_rows, NOISE))
    rows = unit_rows * RADIUS - POINT
    np.testing.assert_allclose(moments_about_mean.matrix, rows.T @ rows / ROWS)
    assert (moments_about_mean.mean == POINT).all()


def test_units_multiply_rows(unit_rows):
    cov = in_units(centred(*released(unit_rows, MomentNoise(0.0, 0.0, 0.0, 0.0))), UNIT)
    added_covariance = np.diag((NOISE.mean * RADIUS / ROWS) ** 2 * UNIT**2) * ROWS / (ROWS - 1)
    np.testing.assert_allclose(
        cov.matrix - added_covariance, np.cov(unit_rows * RADIUS * UNIT, rowvar=False), atol=1e-12
    )


@pytest.mark.product
def test_the_trace_scatters_as_said(unit_rows, same_sd):
    rng = np.random.default_rng(7)
    way = WAYS["about a point, own units"]
    traces = [way(*released(unit_rows, NOISE, rng)).trace[0] for _ in range(TIMES)]
    assert same_sd(traces, [way(*released(unit_rows, NOISE)).trace[1]], 1.05)


def test_without_a_law_nothing_is_said(unit_rows):
    noise = MomentNoise(3.0, 8.0, np.nan, np.nan)
    cov = covariance(*released(unit_rows, noise), noise, max_rows=None, box=BOX, row_norm=RADIUS)
    assert np.isnan(entry_sd(cov)).all()
    assert np.isfinite(mean_sd(cov)).all()


def test_a_mean_of_unknown_noise_leaves_a_finite_matrix(unit_rows):
    noise = MomentNoise(np.nan, np.nan, np.nan, np.nan)
    moments = released(unit_rows, NOISE)
    cov = covariance(*moments, noise, max_rows=None, box=BOX, row_norm=RADIUS)
    np.testing.assert_allclose(cov.matrix, np.cov(unit_rows * RADIUS, rowvar=False))


def test_a_constant_column_without_noise_is_silent(unit_rows, recwarn):
    rows = unit_rows.copy()
    rows[:, 1] = 0.2
    exact = MomentNoise(0.0, 0.0, 0.0, 0.0)
    moments = released(rows, exact)
    cov = covariance(*moments, exact, max_rows=None, box=BOX, row_norm=RADIUS)
    entry_sd(correlation(cov))
    assert not recwarn.list


@pytest.mark.parametrize("units", ["public units", "deviations", "a weak column"])
def test_noise_of_entries_is_that_of_their_derivatives(units):
    """By the number of rows, each mean and each second moment, added up in squares."""
    rng = np.random.default_rng(7)
    upper, mean = np.triu_indices(3), np.array([0.8, -0.5, 0.3])
    root = rng.normal(size=(3, 3))
    second = root @ root.T + np.outer(mean, mean)
    public = np.array([100.0, 0.7, 0.01])
    weak = np.array([False, units == "a weak column", False])

    def matrix(change):
        second_moments = np.zeros((3, 3))
        second_moments[upper] = second_moments.T[upper] = change[4:]
        centre = (mean + change[1:4]) / (1 + change[0])
        centred = (second + second_moments) / (1 + change[0]) - np.outer(centre, centre)
        divisor = np.where(weak, public, np.sqrt(np.diagonal(centred)))
        divisor = public if units == "public units" else divisor
        return centred / np.outer(divisor, divisor), divisor

    noise = MomentNoise(count=0.01, mean=0.02, diagonal=0.05, off=0.015)
    sds = np.array([0.01, *[0.02] * 3, *np.where(upper[0] == upper[1], 0.05, 0.015)])
    released_matrix, divisor = matrix(np.zeros(10))
    cov = Covariance(
        released_matrix, mean, 100.0, noise, divisor, weak, standardised=units != "public units"
    )
    slopes = derivative(lambda change: matrix(change)[0], np.zeros(10))
    expected = np.sqrt(((slopes * sds) ** 2).sum(axis=-1))
    np.testing.assert_allclose(entry_sd(cov), expected, rtol=1e-6, atol=1e-9)
