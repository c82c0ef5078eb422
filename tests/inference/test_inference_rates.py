"""Intervals of expected numbers of events: exact roots, and coverage by sums over the laws."""

import numpy as np
import pytest
from scipy import stats

from dpmodels.inference.proportions import SumNoise, rate_interval
from dpmodels.postprocess.protocol import Spread


def interval(count, law="gaussian", sd=2.0, effect=1, level=0.95):
    sums = np.atleast_1d(np.asarray(count, dtype=float))
    ones = np.ones_like(sums)
    return rate_interval(sums, Spread(ones, ones), SumNoise(law, sd, 0.0), effect, level)


@pytest.mark.guarding
@pytest.mark.parametrize("effect", [1, 4])
def test_ends_are_where_the_score_is_refused(effect):
    counts = np.array([30.0, 400.0, 1e6])
    z = stats.norm.ppf(0.975)
    for end in interval(counts, effect=effect):
        assert (counts - end) ** 2 == pytest.approx(z**2 * (effect * end + 4.0))


@pytest.mark.parametrize(("law", "sd"), [("gaussian", 3.0), ("gaussian", 0.1), ("laplace", 3.0)])
@pytest.mark.parametrize("mean", [2.0, 10.0, 300.0])
def test_it_covers_about_as_often_as_stated(law, sd, mean):
    """By quadrature over the noise and sums over Poisson's law: no chance enters."""
    shape = stats.norm(scale=sd) if law == "gaussian" else stats.laplace(scale=sd / np.sqrt(2))
    noise = shape.ppf((np.arange(4_000) + 0.5) / 4_000)
    number = np.arange(stats.poisson.ppf(1 - 1e-9, mean) + 1)
    low, high = interval((number[:, None] + noise).ravel(), law, sd)
    inside = ((low <= mean) & (mean <= high)).reshape(len(number), -1).mean(axis=1)
    covered = float(stats.poisson.pmf(number, mean) @ inside)
    assert 0.935 <= covered <= 0.985


def test_a_count_below_none_has_an_interval_from_none():
    low, high = interval([-50.0, 0.0])
    assert low.tolist() == [0.0, 0.0]
    assert high[0] == high[1] > 0
