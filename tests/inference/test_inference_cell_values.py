"""Responses corrected for their cells, and distributions within cells."""

import numpy as np
import pytest

from dpmodels.inference.cell_estimates import Distribution
from dpmodels.inference.cell_values import corrected_response, noise_by_values, refined
from dpmodels.postprocess.graphical.histograms import Histogram


def in_cells(y, n_cells):
    cell = np.digitize(y, np.quantile(y, np.arange(1, n_cells) / n_cells))
    rows = np.bincount(cell).astype(float)
    means = np.bincount(cell, y) / rows
    variances = np.bincount(cell, (y - means[cell]) ** 2) / rows
    return cell, means, variances, rows


@pytest.mark.expensive
def test_a_corrected_response_has_the_slope_of_the_rows_and_cell_means_a_smaller_one():
    rng = np.random.default_rng(1)
    x = rng.normal(size=400_000)
    y = x + rng.normal(size=len(x))
    cell, means, variances, rows = in_cells(y, 5)
    corrected = corrected_response(means, variances, rows)
    slopes = [np.polyfit(x, values[cell], 1)[0] for values in (means, corrected)]
    assert slopes[0] < 0.92
    assert abs(slopes[1] - 1) < 0.02
    assert abs(corrected @ rows - means @ rows) < 1e-6 * len(x)


def test_no_variance_within_cells_leaves_the_means():
    means = np.array([0.0, 1.0, 5.0])
    assert corrected_response(means, np.zeros(3), np.ones(3)) is means


def histogram_of(counts, ends):
    edges = np.arange(len(counts) + 1.0)
    return Histogram(edges, edges[:-1] + 0.5, np.array(counts, dtype=float), 1.0, ends)


def test_a_distribution_within_cells_follows_the_histogram():
    histogram = histogram_of([300, 100, 200, 400], (0, 2, 4))
    half = Distribution(np.array([0.0, 2, 4]), np.array([0, 0.4, 1]), *np.zeros((2, 3)))
    fine = refined(half, histogram)
    np.testing.assert_allclose(fine.values, [0, 0.3, 0.4, 0.6, 1])
    assert fine.noise_sd[[0, 2, 4]].max() < 1e-12
    assert fine.noise_sd[1] > 0
    assert abs(fine.quantile(0.15) - 0.5) < 1e-9


def test_quantiles_of_whole_numbers_are_whole_numbers():
    values = Distribution(np.array([-0.5, 0.5, 1.5]), np.array([0, 0.7, 1]), *np.zeros((2, 3)), 1.0)
    assert values.quantile(0.69) == 0.0
    assert values.interval(0.9, 0.95, full=True) == (1.0, 1.0)


def test_values_of_hidden_cells_have_no_noise():
    assert not noise_by_values(histogram_of([0, 1, 0, 1], (0, 2, 4)), np.ones((2, 1))).any()
    assert noise_by_values(histogram_of([90, 90, 90, 90], (0, 2, 4)), np.ones((2, 1))) > 0
