"""The most that products of bounded columns vary: a bound for all rows, attained by 0 and 1."""

import numpy as np
import pytest

from dpmodels.inference.correlations import (
    cut_eigenvalues,
    cut_entries,
    fourth_moment,
    product_spread,
)


def moments_of(values, weights):
    """Mean-free moments of a law on a few rows, shape (rows, columns), and its own ends."""
    centred = values - weights @ values
    second = (centred * weights[:, None]).T @ centred
    squares = centred**2
    fourth = (squares * weights[:, None]).T @ squares
    return second, fourth - second**2


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_no_law_within_the_bounds_exceeds_it(columns):
    rng = np.random.default_rng(columns)
    for _ in range(500):
        rows = rng.integers(2, 9)
        values = rng.beta(0.4, 0.4, (rows, columns)) * rng.uniform(0.2, 1, columns)
        weights = rng.dirichlet(np.full(rows, 0.5))
        mean = weights @ values
        second, spread = moments_of(values, weights)
        limit, _ = product_spread(second, mean, 1 - mean)
        assert (limit >= spread - 1e-12).all()


def test_columns_of_zero_and_one_attain_it():
    rng = np.random.default_rng(3)
    for _ in range(200):
        values = (rng.uniform(size=(6, 4)) < rng.uniform(size=4)).astype(float)
        weights = rng.dirichlet(np.ones(6))
        mean = weights @ values
        second, spread = moments_of(values, weights)
        limit, slope = product_spread(second, mean, 1 - mean)
        np.testing.assert_allclose(limit, spread, atol=1e-12)
        diagonal = np.diagonal(second)
        np.testing.assert_allclose(np.diagonal(limit), diagonal * (1 - 4 * diagonal), atol=1e-12)
        np.testing.assert_allclose(np.diagonal(slope) * diagonal, np.diagonal(limit), atol=1e-12)


@pytest.mark.parametrize("variance", [0.001, 0.02, 0.1, 0.2])
def test_the_fourth_moment_is_the_largest_there_is(variance):
    """Linear programming over laws on a fine grid, of mean 0 and the given variance."""
    from scipy.optimize import linprog

    below, above = 0.25, 0.85
    grid = np.append(np.linspace(-below, above, 4001), [0.0, -variance / above])
    clipped = np.vstack([np.ones_like(grid), grid, grid**2])
    best = linprog(-(grid**4), A_eq=clipped, b_eq=[1, 0, variance])
    stated = fourth_moment(np.array([variance]), np.array([below]), np.array([above]))[0]
    assert -best.fun == pytest.approx(stated, rel=1e-3)
    assert -best.fun <= stated * (1 + 1e-9)


@pytest.mark.parametrize("covariance", [-0.02, 0.0, 0.03])
def test_no_law_of_two_columns_has_a_larger_product(covariance):
    """Linear programming over laws on a grid with ends, of mean 0 and the given moments."""
    from scipy.optimize import linprog

    below, above, variances = (0.3, 0.2), (0.5, 0.9), (0.04, 0.06)
    grids = [np.linspace(-low, high, 33) for low, high in zip(below, above, strict=True)]
    x, y = (part.ravel() for part in np.meshgrid(*grids))
    moments = np.vstack([np.ones_like(x), x, y, x**2, y**2, x * y])
    best = linprog(-((x * y) ** 2), A_eq=moments, b_eq=[1, 0, 0, *variances, covariance])
    second = np.diag(variances) + covariance * (1 - np.eye(2))
    limit, _ = product_spread(second, np.array(below), np.array(above))
    assert -best.fun - covariance**2 <= limit[0, 1] * (1 + 1e-9)


def test_the_least_of_three_bounds_holds_and_slopes_are_derivatives():
    below, above = np.array([0.3, 0.2, 0.4]), np.array([0.5, 0.9, 0.4])
    binding = set()
    for variances in ([0.01, 0.1, 0.05], [0.1, 0.01, 0.05], [0.14, 0.17, 0.15]):
        second = np.diag(variances) + 0.004 * (1 - np.eye(3))
        limit, slope = product_spread(second, below, above)
        for i, j in ((0, 1), (1, 0), (0, 2), (2, 1)):
            tilt = (above[i] - below[i]) * (above[j] - below[j])
            bounds = (
                max(below[i], above[i]) ** 2 * variances[j],
                max(below[j], above[j]) ** 2 * variances[i],
                below[i] * above[i] * below[j] * above[j] + tilt * second[i, j],
            )
            binding.add(int(np.argmin(bounds)))
            assert limit[i, j] == pytest.approx(min(bounds) - second[i, j] ** 2, rel=1e-12)
            # Of the expectation of the squared product, without the square of its mean.
            squared = (
                product_spread(second + 1e-6, below, above)[0][i, j] + (second[i, j] + 1e-6) ** 2
            )
            change = (squared - limit[i, j] - second[i, j] ** 2) / 1e-6
            if np.argmin(bounds) == 2:
                assert slope[i, j] == pytest.approx(change, rel=1e-6)
            else:
                assert slope[i, j] == 0
    assert binding == {0, 1, 2}


def test_noise_leaves_it_finite():
    second = np.array([[-0.1, 5.0], [5.0, 9.0]])
    for value in product_spread(second, np.array([0.0, 0.4]), np.array([1.0, 0.6])):
        assert np.isfinite(value).all()
    assert (product_spread(second, np.zeros(2), np.ones(2))[0] >= 0).all()


def test_whole_rows_stay_within_what_shortening_can_have_done():
    rng = np.random.default_rng(5)
    for _ in range(200):
        distant = rng.uniform(0.2, 2, 3)
        rows = distant * rng.uniform(-1, 1, (40, 3)) ** 3
        radius = np.quantile(np.linalg.norm(rows, axis=1), 0.9)
        clipped = rows * np.minimum(1, radius / np.linalg.norm(rows, axis=1))[:, None]
        covariance, covariance_clipped = (np.cov(part.T, ddof=0) for part in (rows, clipped))
        share = float((clipped != rows).any(axis=1).mean())
        below, above = cut_entries(share, distant, np.abs(clipped.mean(axis=0)))
        assert (covariance_clipped - below <= covariance).all()
        assert (covariance <= covariance_clipped + above).all()
        low, high = cut_eigenvalues(share, distant, np.abs(clipped.mean(axis=0)))
        values, values_clipped = (
            np.linalg.eigvalsh(covariance),
            np.linalg.eigvalsh(covariance_clipped),
        )
        assert ((values_clipped - low <= values) & (values <= values_clipped + high)).all()
    assert all(np.all(part == 0) for part in cut_entries(0.0, distant, distant))
