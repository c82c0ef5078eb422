"""Simulated noise with known truth, and thresholds from false-alarm rates."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpmodels.inference import Spectrum

# Each statistical assertion may fail by chance once in a million runs.
ALARM = 1e-6


@pytest.fixture
def rng():
    return np.random.default_rng(20120)


@pytest.fixture
def noisy():
    """Draw spectra of ``diag(eigenvalues)`` under noise of sd 1 off the diagonal, √2 on it."""

    def draw(rng, eigenvalues, times):
        ell = np.asarray(eigenvalues, dtype=float)
        size = len(ell)
        noise = rng.normal(size=(times, size, size))
        matrices = np.diag(ell) + (noise + noise.transpose(0, 2, 1)) / math.sqrt(2)
        values, vectors = np.linalg.eigh(matrices)
        spectra = [Spectrum(y, 1 + np.eye(size), np.zeros(size), 1.0) for y in values[:, ::-1]]
        return spectra, vectors[:, :, ::-1]

    return draw


@pytest.fixture
def most():
    """Largest count that a share of at most ``share`` gives in ``times`` tries."""
    return lambda times, share: int(binom.isf(ALARM, times, share))


@pytest.fixture
def fewest():
    """Smallest count that a share of at least ``share`` gives in ``times`` tries."""
    return lambda times, share: int(binom.ppf(ALARM, times, share))


@pytest.fixture
def within():
    """Whether a mean is within a bias of 0, two-sided, by the central limit theorem."""

    def check(values, bias):
        error = np.std(values) / math.sqrt(len(values))
        return abs(np.mean(values)) <= bias + norm.isf(ALARM / 2) * error

    return check


@pytest.fixture
def same_sd():
    """Whether measured and said sds agree within a factor, by the law of a variance."""

    def check(values, message, factor):
        ratio = np.std(values) / np.sqrt(np.mean(np.square(message)))
        slack = math.exp(norm.isf(ALARM / 2) / math.sqrt(2 * len(values)))
        return 1 / (factor * slack) <= ratio <= factor * slack

    return check
