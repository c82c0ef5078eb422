"""The test of one event: no false alarm more often than stated, by exact enumeration."""

import math

import numpy as np
import pytest
from scipy import stats

from dpmodels.audit.claim import (
    Boundary,
    Claim,
    Counts,
    Guess,
    lower_bound,
    lower_rate,
    p_value,
    upper_rate,
)

N, M = 24, 18


def outcomes(function):
    """A function of all pairs of counts, as a matrix."""
    return np.array([[function(Counts(a, N, b, M)) for b in range(M + 1)] for a in range(N + 1)])


def chances(alarms, misses):
    """The probability of each pair of counts."""
    parts = stats.binom.pmf(np.arange(N + 1), N, alarms), stats.binom.pmf(range(M + 1), M, misses)
    return np.outer(*parts)


def on(line):
    """Rates on a line: alarms and misses."""
    alarms = np.linspace(max(0.0, (line.level - 1) / line.slope), min(1.0, line.level / line.slope))
    return [(a, min(1.0, max(0.0, line.level - line.slope * a))) for a in alarms]


@pytest.mark.parametrize("line", [Boundary(math.e, 0.999), Boundary(0.4, 0.4), Boundary(1.0, 0.7)])
def test_p_values_are_small_no_more_often_than_they_say(line):
    p = outcomes(lambda counts: p_value(counts, line))
    for level in (0.01, 0.05, 0.2):
        rates = [float(chances(*point)[p <= level].sum()) for point in on(line)]
        assert max(rates) <= level
        assert max(rates) >= level / 4  # nor is the test idle


def test_p_values_are_no_smaller_inside_the_claim():
    line = Boundary(2.0, 0.9)
    p = outcomes(lambda counts: p_value(counts, line))
    inside = float(chances(0.5, 0.2)[p <= 0.05].sum())
    assert inside <= 0.05


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.3, 0.5, 0.97, 1.0])
def test_bounds_of_a_rate_cover_it(rate):
    chance = stats.binom.pmf(np.arange(41), 40, rate)
    above = np.array([upper_rate(i, 40, 0.05) for i in range(41)])
    below = np.array([lower_rate(i, 40, 0.05) for i in range(41)])
    assert chance[above < rate].sum() <= 0.05
    assert chance[below > rate].sum() <= 0.05


@pytest.mark.parametrize("alarms", [0.05, 0.2, 1 / (1 + math.e)])
def test_bounds_of_eps_are_above_it_no_more_often_than_stated(alarms):
    # Rates at which eps = 1 is exact.
    guess = Guess(alarms, 1 - math.e * alarms)
    claim = Claim("eps", 9.9, 0.0)
    chance = chances(alarms, 1 - math.e * alarms)
    likely = chance > 1e-7
    bounds = np.zeros(chance.shape)
    for a, b in zip(*np.nonzero(likely), strict=True):
        counts = Counts(int(a), N, int(b), M)
        # Only counts far below the line can exceed it.
        if p_value(counts, claim.of(1.0).boundary(guess.alarms, guess.misses)) <= 0.06:
            bounds[a, b] = lower_bound(claim, counts, guess, 0.05)
    assert chance[bounds > 1.0].sum() <= 0.05


def test_more_runs_tell_more_and_bounds_come_near():
    mu, cut = 0.5, 0.4
    results = []
    for runs in (10**3, 10**5, 10**7):
        alarms, misses = float(stats.norm.sf(cut)), float(stats.norm.cdf(cut - mu))
        counts = Counts(round(alarms * runs), runs, round(misses * runs), runs)
        results.append(lower_bound(Claim("mu", 1.0, 1e-5), counts, Guess(alarms, misses), 0.05))
    assert results == sorted(results)
    assert 0.995 * mu < results[-1] < mu


def test_a_certain_event_is_bounded_by_the_runs_alone():
    counts = Counts(0, 1000, 0, 1000)
    bound = lower_bound(Claim("eps", 1.0, 1e-5), counts, Guess(0.001, 0.001), 0.05)
    assert math.log(1000 / 3.7) - 0.1 < bound < math.log(1000)


def test_rates_that_say_nothing_bound_nothing():
    assert lower_bound(Claim("mu", 1.0, 1e-5), Counts(6, 10, 5, 10), Guess(0.5, 0.5), 0.05) == 0
