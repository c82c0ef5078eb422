import numpy as np
import pytest

from dpmodels.postprocess import eigen


def symmetric(seed, size):
    values = np.random.default_rng(seed).normal(size=(size, size))
    return values + values.T


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_the_parts_make_up_the_matrix(size):
    matrix = symmetric(size, size)
    spectrum = eigen(matrix)
    rebuilt = spectrum.vectors @ np.diag(spectrum.values) @ spectrum.vectors.T
    np.testing.assert_allclose(rebuilt, matrix, atol=1e-12 * size)
    np.testing.assert_allclose(
        spectrum.vectors.T @ spectrum.vectors, np.eye(size), atol=1e-13 * size
    )


def test_largest_first_and_negative_ones_stay():
    spectrum = eigen(np.diag([-2.0, 5.0, 1.0]))
    assert spectrum.values.tolist() == [5.0, 1.0, -2.0]


@pytest.mark.parametrize("seed", range(20))
def test_the_loading_of_largest_size_is_positive(seed):
    vectors = eigen(symmetric(seed, 6)).vectors
    largest = np.abs(vectors).argmax(axis=0)
    assert (vectors[largest, range(6)] > 0).all()


def test_signs_do_not_depend_on_the_sign_that_lapack_gives():
    matrix = symmetric(3, 5)
    turned = np.diag([1.0, -1.0, 1.0, -1.0, 1.0])
    np.testing.assert_allclose(
        np.abs(eigen(turned @ matrix @ turned).vectors), np.abs(eigen(matrix).vectors), atol=1e-12
    )


def test_zero_matrix():
    spectrum = eigen(np.zeros((3, 3)))
    assert spectrum.values.tolist() == [0.0, 0.0, 0.0]
    assert (np.abs(spectrum.vectors).max(axis=0) > 0).all()
