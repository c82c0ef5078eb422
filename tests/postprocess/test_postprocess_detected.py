"""Places that exceed their noise: the finest first, without those detected within them."""

import numpy as np
import pytest

from dpmodels.postprocess.plane import Blocks, detected_density

SIZE = (8, 8)


def levels(fine, coarse):
    first, two = (np.arange(0, 8, step) for step in (1, 4))
    return [Blocks((first, first), SIZE, fine), Blocks((two, two), SIZE, coarse)]


def test_a_peak_is_drawn_alone_and_the_rest_of_its_block_without_it():
    counts = np.full(SIZE, 2.0)
    counts[1, 2] = 500.0
    counts[4:, 4:] = 0.1
    density = detected_density(counts, np.ones(SIZE), levels(20.0, 10.0))
    assert density[1, 2] == 500.0
    assert density[0, 0] == pytest.approx(2.0)
    assert density[7, 0] == pytest.approx(2.0)
    assert np.isnan(density[4:, 4:]).all()
    assert np.isnan(density).sum() == 16


def test_what_is_taken_out_brings_its_noise_along():
    """The rest of 30 rows would be told by the block's own noise, and is not by both."""
    counts = np.full(SIZE, 2.0)
    counts[1, 2] = 500.0
    density = detected_density(counts, np.ones(SIZE), levels(40.0, 10.0))
    assert np.isnan(density[0, 0])
    assert density[7, 0] == pytest.approx(2.0)


def test_counts_are_divided_by_what_room_they_have():
    sizes = np.outer(np.arange(1.0, 9), np.ones(8))
    density = detected_density(3.0 * sizes, sizes, levels(1.0, 1.0))
    assert density == pytest.approx(3.0)
    assert np.isnan(detected_density(np.zeros(SIZE), sizes, levels(1.0, 1.0))).all()
