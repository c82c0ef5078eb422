"""Noise in survival curves: weights by differences, joint noise by covariances, intervals."""

import numpy as np
import pytest
from ordered_survival import released

from dpmodels.inference.proportions import SumNoise
from dpmodels.inference.survival import (
    NoisyShares,
    cumulative_interval,
    hazard_weights,
    joint_noise,
    survival_weights,
)
from dpmodels.postprocess.flat_counts import FlatCounts
from dpmodels.postprocess.ordered import ordered
from dpmodels.postprocess.protocol import Spread
from dpmodels.postprocess.survival import Followed, at_risk

RNG = np.random.default_rng(3)
COUNTS = np.array([[3.0, 5, 2, 1, 4], [5.0, 6, 1, 2, 0]])
HALVED = np.array([0.5, 0.0, 0.5, 0.5])


def hazards(cells):
    risk = at_risk(cells)[:4]
    return cells[1, :4] / (risk - HALVED * cells[0, :4])


def derivative(function, cells, step=1e-5):
    """By central differences, shape (values, 2, cells)."""
    tables = np.empty((4, *cells.shape))
    for place in np.ndindex(*cells.shape):
        away = np.zeros_like(cells)
        away[place] = step
        tables[:, *place] = (function(cells + away) - function(cells - away)) / (2 * step)
    return tables


def test_weights_are_the_derivatives_by_the_counts():
    followed = Followed(at_risk(COUNTS)[:4], COUNTS[1, :4], COUNTS[0, :4], HALVED)
    np.testing.assert_allclose(followed.hazard, hazards(COUNTS))
    np.testing.assert_allclose(hazard_weights(followed, 5), derivative(hazards, COUNTS), atol=1e-8)
    expected = derivative(lambda cells: np.cumprod(1 - hazards(cells)), COUNTS)
    np.testing.assert_allclose(survival_weights(followed, 5), expected, atol=1e-8)


@pytest.mark.parametrize("public", [True, False])
def test_the_noise_of_several_rows_of_cells_is_that_of_all_counts_together(public):
    values = RNG.normal(size=4 * 6 + 1)
    counts = FlatCounts(released("flat", values, (4, 6), rows=9 if public else None), (4, 6))
    alone = FlatCounts(released("flat", values, (4, 6), rows=None), (4, 6))
    noise = joint_noise(alone.spread, 4, 6, public=public)
    weights = RNG.normal(size=(3, 4, 6))
    flat = np.concatenate([weights.reshape(3, -1), np.zeros((3, 1))], axis=1)
    cov = np.eye(25) - public / 25
    np.testing.assert_allclose(noise(weights).squares, np.diag(flat @ cov @ flat.T))
    empty = np.zeros((1, 4, 6))
    empty[0, 0] = weights[0, 0]
    np.testing.assert_allclose(noise(empty).squares, counts.spread(weights[:1, 0]).squares)
    np.testing.assert_allclose(noise(empty[:, :2]).squares, noise(empty).squares)


@pytest.mark.parametrize("kind", ["tree", "wavelet", "factorisation"])
def test_it_is_that_of_sums_that_were_released_too(kind):
    shape = (2, 16)
    with_total, without = (ordered(released(kind, None, shape, rows=n), shape) for n in (7, None))
    noise = joint_noise(without.spread, *shape, public=True)
    weights = RNG.normal(size=(4, 2, 16))
    weights[:, 1] = 0.0
    expected = with_total.spread(weights[:, 0]).squares
    np.testing.assert_allclose(noise(weights).squares, expected, rtol=1e-9)


def test_intervals_end_where_their_equation_holds():
    values, rows = np.array([1.0, 0.6, 0.0]), np.array([40.0, 30.0, 9.0])
    spread = Spread(np.array([1e-4, 4e-4, 1e-4]), np.zeros(3))
    noisy_shares = NoisyShares(values, spread, SumNoise("gaussian", 1.0, 0.0), rows)
    low, high = noisy_shares.interval(0.95)
    assert (low[0] > 0.8, high[0], low[2], high[2] < 0.5) == (True, 1.0, 0.0, True)
    for end in (low[1], high[1]):
        left, right = (0.6 - end) ** 2, 1.959964**2 * (end * (1 - end) / 30 + 4e-4)
        assert left == pytest.approx(right)
    inner = noisy_shares.noise_interval(0.95)
    np.testing.assert_allclose((inner[1] - inner[0])[1], 2 * 1.959964 * 0.02)


def test_cumulative_hazards_have_intervals_from_0_on():
    spread = Spread(np.array([0.0, 1e-4]), np.zeros(2))
    noise = SumNoise("gaussian", 1.0, 0.0)
    exposed = np.full(2, 50.0)
    low, high = cumulative_interval(np.array([0.0, 0.4]), spread, noise, exposed, 0.95)
    assert low[0] == 0.0 < high[0] < 0.1
    for end in (low[1], high[1]):
        assert (0.4 - end) ** 2 == pytest.approx(1.959964**2 * (end / 50 + 1e-4))
