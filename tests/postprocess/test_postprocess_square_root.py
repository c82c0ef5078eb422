"""The square root of running totals as an integer matrix, against dense algebra."""

import math

import numpy as np
import pytest

from dpmodels.postprocess.square_root import UNIT, SquareRoot, coefficients, inverse, product


def root(cells):
    steps = coefficients(cells)
    return np.array([[steps[i - j] if i >= j else 0 for j in range(cells)] for i in range(cells)])


def test_coefficients_are_the_binomial_ones_rounded():
    exact = [math.comb(2 * k, k) * UNIT / 4**k for k in range(300)]
    assert coefficients(300).tolist() == [round(step) for step in exact]


def test_the_square_of_the_root_is_the_matrix_of_running_totals():
    cells = 40
    root_steps = root(cells) / UNIT
    np.testing.assert_allclose(root_steps @ root_steps, np.tri(cells), atol=cells / UNIT)


def test_sums_are_the_integers_of_the_matrix():
    counts = np.random.default_rng(0).integers(0, 10**7, (3, 50)).astype(object)
    sums = SquareRoot(50).sums(counts)
    assert sums.dtype == np.int64
    assert sums.tolist() == (counts @ root(50).T.astype(object)).tolist()


@pytest.mark.parametrize("cells", [1, 2, 7, 64, 65])
def test_the_inverse_is_that_of_the_matrix(cells):
    dense = np.linalg.inv(root(cells) / UNIT)
    np.testing.assert_allclose(SquareRoot(cells).back, dense[:, 0], atol=1e-12)
    series = 1 + np.random.default_rng(1).random(cells)
    np.testing.assert_allclose(product(series, inverse(series)), np.eye(cells)[0], atol=1e-6)


@pytest.mark.product
def test_counts_are_solved_far_below_their_noise():
    """Of a hundred million rows over ninety years, with noise of a row at least."""
    cells = 2**15
    counts = np.random.default_rng(2).poisson(3_000, (1, cells))
    square_root = SquareRoot(cells)
    counts_found, incomplete = square_root.consistent_counts(
        square_root.sums(counts) / UNIT, 7.0, float(counts.sum() + 7)
    )
    assert np.abs(np.cumsum(counts_found - counts)).max() < 1e-5
    assert incomplete == pytest.approx(7, abs=1e-5)


def test_mean_variances_are_those_of_all_ranges_and_cells():
    cells = 23
    square_root = SquareRoot(cells)
    dense = np.linalg.inv(root(cells) / UNIT)
    ends = np.vstack([np.zeros(cells), np.cumsum(dense, axis=0)])
    ranges = [((ends[j] - ends[i]) ** 2).sum() for j in range(cells + 1) for i in range(j)]
    expected = np.mean(ranges), np.mean((dense**2).sum(axis=1))
    assert square_root.mean_variances == pytest.approx(expected)
