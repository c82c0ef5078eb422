"""The private search: its exact law for neighbours, and that it is drawn."""

import math
from itertools import product

import numpy as np
import pytest

from dpmodels.mechanisms.clipping_shells import SparseScales, first_above, sparse_scales
from dpmodels.noise import seeded
from dpmodels.privacy import adjacency

WIDE = 400


def weights(scale):
    steps = np.arange(-WIDE, WIDE + 1)
    chance = np.exp(-np.abs(steps) / scale)
    return steps, chance / chance.sum()


def law(numbers, thresholds, scales):
    """Probabilities of each answer, by summation over the noise of the threshold."""
    common, chance = weights(scales.threshold)
    steps, chances = weights(scales.number)
    below = np.concatenate([[0.0], np.cumsum(chances)])
    law_so_far, chance_below = [], np.ones_like(chance)
    for number, threshold in zip(numbers, thresholds, strict=True):
        # P(number + noise < threshold + r)
        place = np.clip(threshold + common - number - steps[0], 0, len(chances))
        under = below[place]
        law_so_far.append(float((chance * chance_below * (1 - under)).sum()))
        chance_below = chance_below * under
    return np.array([*law_so_far, float((chance * chance_below).sum())])


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_no_neighbour_changes_the_law_by_more_than_eps(relation, eps):
    scales = sparse_scales(eps, monotone=not adjacency(relation).n_public)
    moves = [(-1, 0, 1)] * 3 if relation == "replace" else [(0, 1)] * 3
    worst = 0.0
    for numbers, thresholds in product([(0, 0, 0), (3, -2, 1), (9, 9, 9)], [(0, 0, 0), (2, 4, 1)]):
        left = law(numbers, thresholds, scales)
        assert left.sum() == pytest.approx(1, abs=1e-9)
        for move in product(*moves):
            right = law(np.add(numbers, move), thresholds, scales)
            worst = max(worst, np.abs(np.log(left / right)).max())
    assert worst <= eps * (1 + 1e-9)
    # The bound is not idle: these few neighbours use more than half of it.
    assert worst > 0.5 * eps


@pytest.mark.product
def test_the_answer_follows_its_law():
    numbers, thresholds, scales = (3, -2, 6), (5, 1, 4), SparseScales(3.0, 6.0)
    runs, entropy = 20_000, seeded(1)
    answers = [first_above(numbers, thresholds, scales, entropy) for _ in range(runs)]
    counts = np.bincount(answers, minlength=4)
    expected = runs * law(numbers, thresholds, scales)
    # Chi-square of 3 degrees of freedom: above 37 with probability 5e-8.
    assert ((counts - expected) ** 2 / expected).sum() < 37


@pytest.mark.parametrize(("numbers", "place"), [([0, 0, 0], 3), ([0, 9, 9], 1), ([9, 0, 0], 0)])
def test_with_little_noise_it_is_the_first_above(numbers, place):
    tiny = SparseScales(2.0**-7, 2.0**-7)
    assert first_above(numbers, [5, 5, 5], tiny, seeded(2)) == place


def test_the_scales_in_numbers():
    # c = 1 is half each; c = 2 gives the numbers 2^(2/3) of what the threshold has.
    assert sparse_scales(1.0, monotone=True) == pytest.approx((2, 2))
    threshold, number = sparse_scales(1.0, monotone=False)
    assert (1 / threshold, 2 / number) == pytest.approx((1 / (1 + 2 ** (2 / 3)), 1 - 1 / threshold))
    assert math.isclose(1 / threshold + 2 / number, 1, rel_tol=1e-9)
