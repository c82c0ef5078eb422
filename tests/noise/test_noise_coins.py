"""Coins of probability exp(-x) and permute-and-flip: the exact law, the same by either path."""

from fractions import Fraction
from itertools import product
from math import exp, prod

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dpmodels.noise import finite, seeded
from dpmodels.noise.finite import draw_flipped, exp_coins

# 1e-8 nominal keeps the false-alarm rate of each below 1e-6 with 20 expected in every cell.
NOMINAL_ALARM = 1e-8
DRAWS = 4000
CASES = [
    (np.array([0, 1, 1, 3, 2, 9], dtype=object), Fraction(1, 2)),
    (np.array([5, 5, 5, 6], dtype=np.int64), Fraction(1, 3)),
    (np.array([10**30, 10**30 + 10**29, 10**30 + 2 * 10**29], dtype=object), Fraction(1, 10**29)),
]


def flipped(levels, unit):
    """The law of the first draw, by enumeration of all coins."""
    heads = [exp(-float(unit * int(level - min(levels)))) for level in levels]
    law = np.zeros(len(heads))
    for coin in product((0, 1), repeat=len(heads)):
        chance = prod(p if up else 1 - p for p, up in zip(heads, coin, strict=True))
        if chance:
            law += chance * np.array(coin) / sum(coin)
    return law


def ranked(levels, unit, count):
    """The law of all draws in their order."""
    if count == 0:
        return {(): 1.0}
    results = {}
    for first, chance in enumerate(flipped(levels, unit)):
        left = [place for place in range(len(levels)) if place != first]
        for rest, values in ranked([levels[place] for place in left], unit, count - 1).items():
            results[(first, *(left[place] for place in rest))] = chance * values
    return results


@pytest.mark.expensive
@pytest.mark.parametrize(("levels", "unit"), CASES)
@pytest.mark.parametrize("margin", [None, 2.0])
def test_draws_follow_the_enumerated_law_by_either_path(levels, unit, margin, monkeypatch):
    draws = DRAWS
    if margin is not None:
        monkeypatch.setattr(finite, "_MARGIN", margin)
        draws //= 4
    entropy = seeded(5)
    law = ranked(levels.tolist(), unit, 2)
    values = [tuple(draw_flipped(levels, unit, 2, entropy).tolist()) for _ in range(draws)]
    expected = np.array([law[pair] * draws for pair in law])
    result = np.array([values.count(pair) for pair in law])
    # Pairs that are expected less than 20 times count as one.
    rare = expected < 20
    merged = [np.append(value[~rare], value[rare].sum()) for value in (result, expected)]
    is_enough = merged[1] > 0
    assert stats.chisquare(merged[0][is_enough], merged[1][is_enough]).pvalue > NOMINAL_ALARM


def test_both_paths_toss_the_same_from_the_same_words(monkeypatch):
    levels = np.arange(500, dtype=object)
    quick = exp_coins(levels, Fraction(1, 70), seeded(3))
    monkeypatch.setattr(finite, "_MARGIN", 2.0)
    assert exp_coins(levels, Fraction(1, 70), seeded(3)).tolist() == quick.tolist()


def test_the_lowest_level_always_shows_heads():
    class Highest:
        def words(self, count):
            return np.full(count, 2**64 - 1, dtype=np.uint64)

    assert exp_coins(np.array([0, 1]), Fraction(1, 9), Highest()).tolist() == [True, False]


def test_the_law_is_that_of_the_largest_with_exponential_noise():
    scores, unit = (4, 3, 3, 0), 0.7

    def largest(index):
        def density(noise):
            at = scores[index] + noise / unit
            alternatives = (score for place, score in enumerate(scores) if place != index)
            return exp(-noise) * prod(
                1 - exp(-unit * max(at - alternative, 0.0)) for alternative in alternatives
            )

        # It bends where another's noise begins to be enough.
        bends = {unit * max(score - scores[index], 0) for score in scores} - {0}
        ends = [0.0, *sorted(bends), 60.0]
        return sum(quad(density, *ends[place : place + 2])[0] for place in range(len(ends) - 1))

    law = flipped([-score for score in scores], Fraction(7, 10))
    assert law == pytest.approx([largest(place) for place in range(4)], abs=1e-9)


def test_every_thing_is_drawn_once():
    draws = draw_flipped(np.zeros(7, dtype=np.int64), Fraction(1), 7, seeded(1))
    assert sorted(draws.tolist()) == list(range(7))
