"""Ridge and lasso of a Gram matrix are scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.linear_model import lasso_path as reference

from dpmodels.postprocess.paths import lasso_path, ridge_path


def made(rho, rows=120, terms=9):
    rng = np.random.default_rng(3)
    shared = np.sqrt(rho) * rng.normal(size=(rows, 1))
    x = shared + np.sqrt(1 - rho) * rng.normal(size=(rows, terms))
    y = x[:, 0] * 3 - x[:, 1] * 2 + 0.3 * x[:, 2] + rng.normal(size=rows)
    x, y = x - x.mean(axis=0), y - y.mean()
    return x, y, x.T @ x / rows, x.T @ y / rows


@pytest.mark.parametrize("rho", [0.0, 0.7, 0.99])
def test_the_lasso_is_the_references(rho):
    x, y, gram, cross = made(rho)
    penalties = np.abs(cross).max() * np.geomspace(1, 1e-3, 20)
    slopes, df = lasso_path(gram, cross, penalties)
    precomputed = {"precompute": gram * len(y), "Xy": cross * len(y)}
    expected = reference(x, y, alphas=penalties, tol=1e-12, max_iter=100_000, **precomputed)[1]
    np.testing.assert_allclose(slopes, expected.T, atol=1e-6)
    assert not slopes[0].any()
    assert df.tolist() == (np.abs(expected) > 1e-9).sum(axis=0).tolist()


def test_the_ridge_is_the_references():
    x, y, gram, cross = made(0.7)
    penalties = np.array([10.0, 0.5, 0.0])
    slopes, df = ridge_path(gram, cross, penalties)
    for penalty, slope in zip(penalties, slopes, strict=True):
        expected = Ridge(alpha=penalty * len(y), fit_intercept=False).fit(x, y).coef_
        np.testing.assert_allclose(slope, expected, atol=1e-6)
    shrunk = np.linalg.solve(gram + 0.5 * np.eye(9), gram)
    assert df == pytest.approx([df[0], np.trace(shrunk), 9.0])


@pytest.mark.parametrize("rho", [0.9, 0.9999, 1 - 1e-9])
def test_columns_that_hardly_differ_end_in_the_conditions_of_optimality(rho):
    _, _, gram, cross = made(rho, rows=60, terms=30)
    penalties = np.abs(cross).max() * np.geomspace(1, 1e-3, 10)
    slopes = lasso_path(gram, cross, penalties)[0]
    left = cross - slopes @ gram
    slack = 1e-9 * np.abs(cross).max() + 1e-12 * np.abs(slopes).sum(axis=1)[:, None]
    assert (np.abs(left) <= penalties[:, None] + slack).all()
    bound = np.where(slopes != 0, np.abs(left - penalties[:, None] * np.sign(slopes)), 0.0)
    assert (bound <= slack).all()


def test_without_penalty_it_is_least_squares():
    _, _, gram, cross = made(0.99)
    expected = np.linalg.solve(gram, cross)
    for solve in (lasso_path, ridge_path):
        np.testing.assert_allclose(solve(gram, cross, np.array([0.0]))[0][0], expected, rtol=1e-8)
