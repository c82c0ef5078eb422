"""Coarse cells from noisy fine histograms, and the means of cells."""

import numpy as np
import pytest
from scipy.special import ndtri

from dpmodels.postprocess.graphical.histograms import Histogram, coarse_ends, occupied
from dpmodels.postprocess.graphical.values import values_of_histogram

EDGES = np.concatenate([[0.0], 2.0 ** np.arange(-20, 10.1, 0.25)])
SD = 30.0


def noisy(values, seed, sd=SD):
    counts = np.histogram(values, EDGES)[0]
    return counts + np.random.default_rng(seed).normal(0, sd, len(counts))


def lognormal(seed, size=20_000):
    return np.random.default_rng(seed).lognormal(0, 0.8, size)


def test_cells_are_about_as_many_as_wanted_and_have_rows_clear_of_the_noise():
    values = lognormal(1)
    ends = coarse_ends(noisy(values, 2), SD, EDGES, 10)
    assert (ends[0], ends[-1]) == (0, len(EDGES) - 1)
    assert 6 <= len(ends) - 1 <= 10
    rows = np.histogram(values, EDGES[list(ends)])[0]
    assert rows.min() > 4 * SD
    assert rows.max() < 0.4 * len(values)


# A mean of 20,000 rows with noise of 30 in 100 counts.
@pytest.mark.parametrize("seed", range(3))
def test_means_of_cells_are_those_of_the_rows_where_bounds_are_too_wide(seed):
    values = lognormal(seed)
    counts = noisy(values, seed + 10)
    ends = coarse_ends(counts, SD, EDGES, 10)
    values_of = values_of_histogram(Histogram(EDGES, counts, SD, ends))
    means = values_of.means(values_of.points)
    cell = np.digitize(values, EDGES[list(ends[1:-1])])
    assert abs(means[cell].mean() / values.mean() - 1) < 0.06
    assert abs(2.5 - values.mean()) > 0.06 * values.mean()


# Quantiles of each shape, 20,000 of them, and the part of the squares that cells may hide; sizes by
# rows and their spread alone leave .081, .065 and .041.
@pytest.mark.parametrize(
    ("values", "limit"),
    [
        (lambda p: np.exp(ndtri(p)), 0.06),
        (lambda p: np.log(1 - p) ** 2, 0.05),
        (lambda p: 10 + 3 * ndtri(p), 0.04),
    ],
    ids=["lognormal", "weibull", "normal"],
)
def test_cells_hide_little_of_the_squares_of_skewed_numbers(values, limit):
    values = values((np.arange(20_000) + 0.5) / 20_000)
    ends = coarse_ends(np.histogram(values, EDGES)[0].astype(float), 5.0, EDGES, 10)
    cell = np.digitize(values, EDGES[list(ends[1:-1])])
    means = np.bincount(cell, values) / np.bincount(cell)
    assert ((values - means[cell]) ** 2).mean() < limit * values.var()


def test_noise_alone_has_two_cells_and_public_middles():
    counts = np.random.default_rng(3).normal(0, SD, len(EDGES) - 1)
    ends = coarse_ends(counts, SD, EDGES, 10)
    assert len(ends) == 3
    histogram = Histogram(EDGES, counts, SD, ends)
    assert histogram.is_hidden.all()
    assert not histogram.noise_slopes.any()
    assert (histogram.positive >= 0).all()


def test_a_spike_has_a_cell_of_its_own():
    counts = np.full(50, 40.0)
    counts[0] = 18_000
    assert coarse_ends(counts, 2.0, np.arange(51.0), 10)[:2] == (0, 1)


def test_rows_far_from_others_are_occupied():
    counts = np.zeros(40)
    counts[10:20], counts[30] = 500.0, 300.0
    assert occupied(counts, SD) == (10, 31)


def test_rows_beyond_the_range_are_those_released_less_those_within():
    counts, edges = np.array([900.0, 600, 300, 0, 0, 0]), np.array([0.0, 1, 2, 4, 8, 16, 32])
    rows = np.array([1_500.0, 400.0])
    histogram = Histogram(edges, counts, 5.0, (0, 2, 6), rows)
    assert histogram.range == (0, 3)
    np.testing.assert_array_equal(histogram.outside, [[0] * 6, [0, 0, 100, 0, 0, 0]])
    assert histogram.weights.sum() == rows.sum()
