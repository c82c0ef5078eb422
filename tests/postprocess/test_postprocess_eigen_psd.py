import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmodels.postprocess.denoise import nearest_psd, psd_values

spectra = arrays(float, st.integers(1, 12), elements=st.floats(-10, 10, width=32))
caps = st.none() | st.floats(0.01, 20)


def feasible(rng, size, cap):
    """A point with no negative value and, under a cap, a sum of at most the cap."""
    point = rng.exponential(size=size)
    return point if cap is None else point / point.sum() * cap * rng.uniform()


@pytest.mark.expensive
@given(spectra, caps)
def test_values_are_feasible(values, cap):
    result = psd_values(values, cap)
    assert result.min() >= 0
    assert cap is None or result.sum() <= cap * (1 + 1e-9)


@given(spectra, caps, st.integers(0, 2**32 - 1))
def test_values_are_the_projection(values, cap, seed):
    # A projection p of v onto a convex set: (v - p)·(z - p) <= 0 for every z in the set.
    result = psd_values(values, cap)
    feasible_values = feasible(np.random.default_rng(seed), len(values), cap)
    assert (values - result) @ (feasible_values - result) <= 1e-9 * (
        1 + values @ values + feasible_values @ feasible_values
    )


@given(spectra, caps)
def test_feasible_values_stay(values, cap):
    result = psd_values(values, cap)
    np.testing.assert_allclose(psd_values(result, cap), result, rtol=1e-9, atol=1e-12)


def test_sum_reaches_the_cap_where_it_binds():
    assert psd_values(np.array([0.5, 3.0, 1.0, -1.0]), 2.0).sum() == pytest.approx(2.0)
    np.testing.assert_allclose(psd_values(np.array([0.5, 3.0, 1.0, -1.0]), 2.0), [0, 2, 0, 0])


@pytest.mark.parametrize(
    ("value", "cap", "expected"), [(-1.0, None, 0.0), (3.0, 1.0, 1.0), (0.5, 1.0, 0.5)]
)
def test_one_column(value, cap, expected):
    assert nearest_psd(np.array([[value]]), cap) == pytest.approx(expected)


@pytest.mark.parametrize("cap", [None, 1.0])
def test_error_of_a_released_matrix_can_only_fall(cap):
    rng = np.random.default_rng(1)
    for _ in range(20):
        rows = rng.normal(size=(8, 4))
        truth = rows @ rows.T
        truth /= np.trace(truth)
        noise = rng.normal(scale=0.2, size=truth.shape)
        released = truth + noise + noise.T
        result = nearest_psd(released, cap)
        assert np.linalg.norm(result - truth) <= np.linalg.norm(released - truth)
        assert np.array_equal(result, result.T)
        assert cap is None or np.trace(result) <= cap * (1 + 1e-9)


def test_eigenvectors_are_kept():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(6, 6))
    matrix = noise + noise.T
    result = nearest_psd(matrix, 1.0)
    np.testing.assert_allclose(result @ matrix, matrix @ result, atol=1e-12)
