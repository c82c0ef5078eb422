"""Contrasts: an isometry of what adds to 0, and differences from the first level."""

import numpy as np
import pytest

from dpmodels.postprocess.normal_equations import against_first, contrasts


@pytest.mark.parametrize("levels", [2, 3, 20])
def test_they_are_orthonormal_and_say_all_that_adds_to_zero(levels):
    matrix = contrasts(levels)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(levels - 1), atol=1e-14)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(levels) - 1 / levels, atol=1e-14)


def test_differences_from_the_first_level():
    values = np.array([3.0, -1.0, 0.5, 9.0])
    result = against_first(4) @ contrasts(4).T @ values
    np.testing.assert_allclose(result, values[1:] - values[0], atol=1e-14)
