"""The first-order noise law against noise that is pushed through the whole computation."""

import numpy as np
import pytest

from dpmodels.inference import read_spectrum
from dpmodels.postprocess import correlation, covariance, eigen
from dpmodels.released import MomentNoise

pytestmark = pytest.mark.kernels

ROWS, SIZE = 4_000, 4
SPECTRUM = np.array([0.9, 0.4, 0.2, 0.1])
MEAN = np.array([0.6, -0.4, 0.3, 0.0])
# As released: sums over rows in the unit ball. Small enough for first order.
NOISE = MomentNoise(count=4.0, mean=1.6, diagonal=np.sqrt(2) * 1.5, off=1.5)
NONE = MomentNoise(0.0, 0.0, 0.0, 0.0)


@pytest.fixture
def moments():
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(SIZE, SIZE)))[0]
    matrix = turn @ np.diag(SPECTRUM) @ turn.T
    second = (matrix * (ROWS - 1) + ROWS * np.outer(MEAN, MEAN)) / SIZE
    return MEAN * ROWS / np.sqrt(SIZE), second


def analysed(count, total, second, noise, scale):
    box = (np.full(SIZE, -1.0), np.ones(SIZE))
    cov = covariance(
        count, total, second, noise, max_rows=None, box=box, row_norm=float(np.sqrt(SIZE))
    )
    return correlation(cov) if scale == "sd" else cov


def drawn(rng, total, second, noise):
    upper = np.triu(rng.normal(size=(SIZE, SIZE)) * noise.off, 1)
    noised = second + upper + upper.T + np.diag(rng.normal(size=SIZE) * noise.diagonal)
    if total is not None:
        total = total + rng.normal(size=SIZE) * noise.mean
    return ROWS + rng.normal() * noise.count, total, noised


def exact_and_noisy(rng, moments, scale, centred, times, noise=NOISE):
    total, second = moments if centred else (None, moments[1])
    if not centred:
        noise = MomentNoise(noise.count, 0.0, noise.diagonal, noise.off)
    exact = analysed(ROWS, total, second, NONE, scale)
    draws = [analysed(*drawn(rng, total, second, noise), noise, scale).matrix for _ in range(times)]
    law = analysed(ROWS, total, second, noise, scale)
    return exact.matrix, np.array(draws), law


CASES = [("range", True), ("range", False), ("sd", True), ("sd", False)]


@pytest.mark.parametrize(("scale", "centred"), CASES)
def test_variances_in_the_eigenvector_basis(rng, same_sd, moments, scale, centred):
    # Within 6 % and what 4,000 draws leave at a false-alarm rate of 1e-6 each.
    exact, draws, law = exact_and_noisy(rng, moments, scale, centred, 4_000)
    decomposed = eigen(exact)
    spectrum = read_spectrum(law, decomposed)
    recorded = np.einsum("ai,rab,bj->rij", decomposed.vectors, draws - exact, decomposed.vectors)
    for i in range(SIZE):
        assert same_sd(recorded[:, i, i], spectrum.sd[i], 1.06), i
        for j in range(i):
            assert same_sd(recorded[:, i, j], np.sqrt(spectrum.pair_variance[i, j]), 1.06), (i, j)


@pytest.mark.parametrize(("scale", "centred"), CASES)
def test_noise_in_the_number_of_rows(rng, same_sd, moments, scale, centred):
    # All but alone: 1 % of the rows. Second order and 2,000 draws leave 6 %, rate 1e-6 each.
    noise = MomentNoise(40.0, 1e-6, 1e-6, 1e-6)
    exact, draws, law = exact_and_noisy(rng, moments, scale, centred, 2_000, noise)
    decomposed = eigen(exact)
    spectrum = read_spectrum(law, decomposed)
    recorded = np.einsum("ai,rab,bi->ri", decomposed.vectors, draws - exact, decomposed.vectors)
    if (scale, centred) == ("sd", False):
        # Cosines between columns do not depend on the number of rows.
        assert (spectrum.count_sd == 0).all()
        assert np.abs(recorded).max() < 1e-6
        return
    for i in range(SIZE):
        assert same_sd(recorded[:, i], spectrum.sd[i], 1.06), i


@pytest.mark.parametrize(("scale", "centred"), CASES)
def test_sd_of_a_typical_entry(rng, moments, scale, centred):
    # 24,000 entries in 4,000 draws: 7 % is more than 10 standard errors and 5 % of second order.
    exact, draws, law = exact_and_noisy(rng, moments, scale, centred, 4_000)
    off = (draws - exact)[:, *np.triu_indices(SIZE, 1)]
    entry_sd = read_spectrum(law, eigen(exact)).entry_sd
    ratio = np.sqrt((off**2).mean()) / entry_sd
    assert 0.93 <= ratio <= 1.07


def test_without_a_mean_all_entries_are_alike():
    second = np.diag([3.0, 2.0, 1.0, 0.5]) * ROWS / SIZE
    noise = MomentNoise(0.0, 0.0, np.sqrt(2) * 7.0, 7.0)
    law = analysed(ROWS, None, second, noise, "range")
    spectrum = read_spectrum(law, eigen(law.matrix))
    entry = 7.0 * SIZE / ROWS
    np.testing.assert_allclose(spectrum.pair_variance, entry**2 * (1 + np.eye(SIZE)))
    assert spectrum.entry_sd == pytest.approx(entry)
    np.testing.assert_allclose(spectrum.floor, spectrum.floor[0])


def test_one_column():
    box = (np.array([-1.0]), np.array([1.0]))
    noise = MomentNoise(1.0, 0.0, 3.0, 3.0 / np.sqrt(2))
    result = covariance(100, None, np.array([[40.0]]), noise, max_rows=None, box=box, row_norm=1.0)
    spectrum = read_spectrum(result, eigen(result.matrix))
    assert spectrum.sd[0] == pytest.approx(np.hypot(0.03, 0.4 * 0.01))
    assert spectrum.entry_sd == pytest.approx(0.03 / np.sqrt(2))


def test_a_correlation_matrix_has_no_noise_on_its_diagonal(moments):
    total, second = moments
    law = analysed(ROWS, total, second, NOISE, "sd")
    spectrum = read_spectrum(law, eigen(law.matrix))
    # Summed over the eigenvector basis, the diagonal's noise is that of the trace.
    off = SIZE * (SIZE - 1) * spectrum.entry_sd**2
    assert spectrum.pair_variance.sum() == pytest.approx(off, rel=1e-9)
