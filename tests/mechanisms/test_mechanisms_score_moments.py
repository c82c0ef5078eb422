"""Released means of scores, and the noise that is stated in each of their entries."""

import math

import numpy as np
import pytest
from differences import symmetric_derivative

from dpmodels.mechanisms.add_noise import NoisyMoments
from dpmodels.mechanisms.regression import scores
from dpmodels.released import MomentNoise


def test_the_noise_of_means_is_that_of_the_moments_times_their_derivatives(monkeypatch):
    """The fraction of residuals that is kept whole is held: its noise is the caller's."""
    monkeypatch.setattr(scores, "kept_whole", lambda square, cut: 0.6)
    rng = np.random.default_rng(4)
    root = rng.normal(size=(3, 3))
    second, off = root @ root.T / 9, 0.013
    noise = MomentNoise(0.02, 0.01, math.sqrt(2) * off, off)

    def means(matrix):
        noisy = NoisyMoments(50.0, np.array([0.3, -0.2, 0.1]), matrix, noise)
        return scores._means(noisy, 40.0, 1.7, 0.9)

    def entries(matrix):
        result = means(matrix)
        return np.array([result.gram[1, 2], result.gram[1, 1], result.score[1], result.square])

    slopes = [
        symmetric_derivative(lambda matrix, at=at: entries(matrix)[at], second) for at in range(4)
    ]
    moved = [slopes[0][0, 1], slopes[1][0, 0], slopes[2][0, 2], slopes[3][2, 2]]
    stated = means(second)
    sds = (stated.gram_sd, math.sqrt(2) * stated.gram_sd, stated.score_sd, stated.square_sd)
    for slope, sd, is_diagonal in zip(moved, sds, (False, True, False, True), strict=True):
        assert abs(slope) * (noise.diagonal if is_diagonal else off) == pytest.approx(sd, rel=1e-6)
    assert all(np.count_nonzero(np.abs(slope) > 1e-9) == 1 for slope in slopes)
