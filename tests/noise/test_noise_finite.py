"""Draws from finitely many things: the exact law, the same one by either path."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from dpmodels.noise import finite, seeded
from dpmodels.noise.finite import draw_finite, draw_ranked

# 1e-8 nominal keeps the false-alarm rate of each below 1e-6 with 50 expected in every cell.
NOMINAL_ALARM = 1e-8
DRAWS = 6000
CASES = [
    (np.array([0, 1, 1, 3, 2], dtype=object), Fraction(1, 2)),
    (np.array([5, 5, 5, 6], dtype=object), Fraction(1, 3)),
    (np.array([10**30, 10**30 + 10**29, 10**30 + 2 * 10**29], dtype=object), Fraction(1, 10**29)),
]


def probabilities(levels, unit):
    above = [float(unit * int(level - levels.min())) for level in levels]
    weights = np.exp(-np.array(above))
    return weights / weights.sum()


@pytest.mark.parametrize(("levels", "unit"), CASES)
@pytest.mark.parametrize("margin", [None, 2.0])
def test_draws_follow_the_law_by_either_path(levels, unit, margin, monkeypatch):
    draws = DRAWS
    if margin is not None:
        monkeypatch.setattr(finite, "_MARGIN", margin)
        draws //= 3
    entropy = seeded(11)
    result = np.bincount(
        [draw_finite(levels, unit, entropy) for _ in range(draws)], minlength=len(levels)
    )
    assert stats.chisquare(result, draws * probabilities(levels, unit)).pvalue > NOMINAL_ALARM


@pytest.mark.parametrize(("levels", "unit"), CASES)
def test_both_paths_draw_the_same_from_the_same_words(levels, unit, monkeypatch):
    quick = [draw_finite(levels, unit, seeded(seed)) for seed in range(200)]
    monkeypatch.setattr(finite, "_MARGIN", 2.0)
    assert [draw_finite(levels, unit, seeded(seed)) for seed in range(200)] == quick


def test_the_exact_path_settles_what_floats_leave_open(monkeypatch):
    """A word on the boundary itself: only further bits can tell."""

    class Words:
        def __init__(self):
            self.given = [2**63, 2**63 + 5, 0, 0, 0]

        def words(self, count):
            return np.array([self.given.pop(0) for _ in range(count)], dtype=np.uint64)

    levels = np.array([0, 0], dtype=object)
    assert draw_finite(levels, Fraction(1), Words()) in (0, 1)
    # exp(-1/2) : 1 has its boundary away from 1/2, so the first word decides alone.
    assert draw_finite(np.array([0, 1], dtype=object), Fraction(1, 2), Words()) == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [Fraction(1, 10**100), Fraction(10**100), Fraction(10**300)])
def test_any_unit_is_drawn_from_without_a_warning(unit):
    levels = np.array([0, 7, 10**20], dtype=object)
    names = {draw_finite(levels, unit, seeded(seed)) for seed in range(60)}
    assert names == ({0} if unit > 1 else {0, 1, 2})


def test_one_thing_is_always_drawn():
    assert draw_finite(np.array([3], dtype=object), Fraction(1), seeded(1)) == 0


@pytest.mark.product
def test_ranked_draws_have_the_law_of_one_draw_after_another():
    levels, unit, entropy = CASES[0][0], CASES[0][1], seeded(12)
    ranked = list(permutations(range(len(levels)), 2))
    result = probabilities(levels, unit)
    law = [result[first] * result[two] / (1 - result[first]) for first, two in ranked]
    values = [tuple(draw_ranked(levels, unit, 2, entropy).tolist()) for _ in range(DRAWS)]
    frequencies = [values.count(pair) for pair in ranked]
    assert stats.chisquare(frequencies, DRAWS * np.array(law)).pvalue > NOMINAL_ALARM
    everything = draw_ranked(levels, unit, len(levels), entropy)
    assert sorted(everything.tolist()) == list(range(len(levels)))
