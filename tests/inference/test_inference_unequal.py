"""The noise law in the eigenvector basis where the diagonal has other noise than a GOE matrix."""

import numpy as np
import pytest

from dpmodels.inference import Spectrum, Unread, read_spectrum
from dpmodels.postprocess import covariance, eigen
from dpmodels.released import MomentNoise


def law_by_enumeration(vectors, diagonal, off):
    """Variance of each entry of VᵀEV, summed over the independent entries of E."""
    size = len(vectors)
    variance = np.zeros((size, size))
    for k in range(size):
        for j in range(k, size):
            values = np.zeros((size, size))
            values[k, j] = values[j, k] = diagonal if k == j else off
            variance += (vectors.T @ values @ vectors) ** 2
    return variance


@pytest.mark.parametrize(("diagonal", "off"), [(1.0, 1.0), (2.0, 0.5), (np.sqrt(2), 1.0)])
def test_the_law_of_independent_entries(diagonal, off):
    rng = np.random.default_rng(8)
    half = rng.normal(size=(6, 6))
    second = half @ half.T
    noise = MomentNoise(0.0, np.nan, diagonal, off)
    box = (np.full(6, -1.0), np.ones(6))
    cov = covariance(1.0, None, second, noise, max_rows=1, box=box, row_norm=1.0)
    result = eigen(cov.matrix)
    spectrum = read_spectrum(cov, result)
    expected = law_by_enumeration(result.vectors, diagonal, off)
    np.testing.assert_allclose(spectrum.pair_variance, expected, rtol=1e-10)


def test_an_unread_spectrum_answers_what_a_spectrum_answers():
    unread = Unread(np.array([3.0, 0.5, -0.1]))
    assert unread.distinct.tolist() == [True, True, False]
    for name in ("sd", "floor"):
        assert np.isnan(getattr(unread, name)).all()
    for answer in (unread.debiased(), unread.expected_cos2(), *unread.noise_interval(0.9)):
        assert answer.shape == (3,)
        assert np.isnan(answer).all()
    public = {name for name in dir(Unread) if not name.startswith("_")}
    assert public <= {name for name in dir(Spectrum) if not name.startswith("_")} | {
        "values",
        "entry_sd",
        "source",
    }


def test_of_an_estimate_as_many_are_distinct_as_its_source_tells():
    source = Spectrum(np.array([9.0, 1.2, 0.1]), 0.05 * (1 + np.eye(3)), np.zeros(3), 0.2)
    assert source.distinct.tolist() == [True, True, False]
    assert source.readable.tolist() == [True, False, False]
    unread = Unread(np.array([8.0, 3.0, 2.0]), source)
    assert unread.distinct.tolist() == [True, True, False]
    assert unread.readable.tolist() == [True, False, False]
    # One without variance in the estimate is not there.
    assert Unread(np.array([8.0, 0.0, -1.0]), source).distinct.tolist() == [True, False, False]
    assert np.isnan(unread.floor).all()
