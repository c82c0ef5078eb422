"""Intervals of counts that were released for being large enough: exact coverage."""

import numpy as np
import pytest

from dpmodels.inference.proportions import count_detected_with, detected_count_interval


def masses(scale, most):
    weights = np.exp(-np.abs(np.arange(-most, most + 1)) / scale)
    return weights / weights.sum()


@pytest.mark.parametrize(("scale", "most"), [(0.5, 5), (2.0, 27), (6.0, 79)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_they_cover_every_count_given_that_it_is_released(scale, most, level):
    noise, chance = np.arange(-most, most + 1), masses(scale, most)
    for count in (1, 2, most // 2, most, most + 1, 2 * most, 3 * most):
        noisy = count + noise
        seen = noisy > most
        low, high = detected_count_interval(noisy[seen].astype(float), scale, most, level)
        assert (low >= 1).all()
        assert (low <= high).all()
        covered = chance[seen] @ ((low <= count) & (count <= high)) / chance[seen].sum()
        assert covered >= level - 1e-9


def test_far_above_the_threshold_they_are_those_of_the_noise():
    scale, most = 6.0, 79
    low, high = detected_count_interval(np.array([1000.0]), scale, most, 0.95)
    chance = masses(scale, most)
    half = next(k for k in range(most) if chance[most - k : most + k + 1].sum() >= 0.95)
    assert [low[0], high[0]] == pytest.approx([1000 - half, 1000 + half], abs=1)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_how_many_rows_are_found(share):
    scale, most = 4.0, 60
    chance = masses(scale, most)

    def released(count):
        return chance[count + np.arange(-most, most + 1) > most].sum()

    least = count_detected_with(share, scale, most)
    assert released(least) >= share > released(least - 1)
