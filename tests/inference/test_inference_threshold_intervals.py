"""Intervals of counts that were released for being large enough: exact coverage."""

import numpy as np
import pytest

from dpmodels.inference.proportions import count_detected_with, detected_count_interval


def masses(scale, limit):
    weights = np.exp(-np.abs(np.arange(-limit, limit + 1)) / scale)
    return weights / weights.sum()


@pytest.mark.parametrize(("scale", "limit"), [(0.5, 5), (2.0, 27), (6.0, 79)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_they_cover_every_count_given_that_it_is_released(scale, limit, level):
    noise, chance = np.arange(-limit, limit + 1), masses(scale, limit)
    for count in (1, 2, limit // 2, limit, limit + 1, 2 * limit, 3 * limit):
        noisy = count + noise
        is_released = noisy > limit
        low, high = detected_count_interval(noisy[is_released].astype(float), scale, limit, level)
        assert (low >= 1).all()
        assert (low <= high).all()
        covered = (
            chance[is_released] @ ((low <= count) & (count <= high)) / chance[is_released].sum()
        )
        assert covered >= level - 1e-9


def test_far_above_the_threshold_they_are_those_of_the_noise():
    scale, limit = 6.0, 79
    low, high = detected_count_interval(np.array([1000.0]), scale, limit, 0.95)
    chance = masses(scale, limit)
    half = next(k for k in range(limit) if chance[limit - k : limit + k + 1].sum() >= 0.95)
    assert [low[0], high[0]] == pytest.approx([1000 - half, 1000 + half], abs=1)


@pytest.mark.guarding
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_how_many_rows_are_found(share):
    scale, limit = 4.0, 60
    chance = masses(scale, limit)

    def released(count):
        return chance[count + np.arange(-limit, limit + 1) > limit].sum()

    smallest = count_detected_with(share, scale, limit)
    assert released(smallest) >= share > released(smallest - 1)
