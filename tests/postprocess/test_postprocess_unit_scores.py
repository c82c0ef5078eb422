"""Equations about a residual: what is known of it, and the noise of its square."""

import numpy as np
import pytest

from dpmodels.postprocess.normal_equations import NormalEquations
from dpmodels.postprocess.unit_scores import _about


def test_the_square_of_a_residual_has_the_noise_of_all_entries():
    """Of independent noise in the entries on and above the diagonal, others being copies."""
    rng = np.random.default_rng(5)
    size, theta = 4, np.array([0.4, -0.7, 0.2])
    rows, entries = rng.normal(size=(50, size)), np.eye(size)
    variance = rng.uniform(0.5, 2.0, size=(size, size))
    variance = (variance + variance.T) / 2
    equations = NormalEquations(
        rows.T @ rows, variance, entries[:, :-1], entries[:, -1], intercept=True
    )
    about = _about(equations, theta)
    residual = np.append(-theta, 1.0)
    counted = np.triu(variance * np.outer(residual, residual) ** 2)
    assert about.variance[-1, -1] == pytest.approx(counted.sum() * 4 - 3 * np.trace(counted))
    assert about.variance[-1, :-1].tolist() == about.variance[:-1, -1].tolist() == [0.0] * 3
    np.testing.assert_array_equal(about.variance[:-1, :-1], variance[:-1, :-1])
    assert about.moments[-1, -1] == pytest.approx(((rows @ residual) ** 2).sum())
