"""Where quantiles are drawn: inside the rows, ends of intervals outside the quantile."""

import math

import pytest
from scipy import stats

from dpmodels.mechanisms.quantile_ranks import MISSED, NEAR, Drawing


def test_a_quantile_with_rows_on_both_sides_stays():
    assert Drawing(0.25, 10_000, 1e6).middle(0.1) == 0.25


def test_the_nearest_rank_that_noise_leaves_among_the_rows():
    own = Drawing(0.0, 10_000, 5000.0)
    share = own.middle(0.1)
    assert 10_000 * math.exp(-0.1 * (share * 5000 - 0.5)) == pytest.approx(NEAR)
    assert Drawing(1.0, 10_000, 5000.0).middle(0.1) == pytest.approx(1 - share)


def test_too_few_rows_have_no_quantile():
    enough = 2 * math.log(10_000 / MISSED) / 0.1 + 1
    assert math.isnan(Drawing(0.5, 10_000, enough - 0.01).middle(0.1))
    assert Drawing(0.5, 10_000, enough + 0.01).middle(0.1) == 0.5


@pytest.mark.parametrize("prob", [0.2, 0.5, 0.9])
def test_without_noise_the_ends_are_the_binomials(prob):
    low, high = Drawing(prob, 1000, 1e4).ends(1e6, 0.95)
    half = stats.norm.ppf(0.975) * math.sqrt(prob * (1 - prob) / 1e4)
    assert (low, high) == pytest.approx((prob - half, prob + half), abs=1e-5)


def test_noise_moves_the_ends_apart_and_beyond_the_rows():
    quiet, loud = (Drawing(0.5, 1000, 1e4).ends(slope, 0.95) for slope in (1.0, 0.01))
    assert loud[0] < quiet[0] < 0.5 < quiet[1] < loud[1]
    assert all(map(math.isnan, Drawing(0.5, 1000, 50.0).ends(0.01, 0.95)))


def test_no_end_is_where_the_empty_range_could_take_it_to_the_wrong_side():
    low, high = Drawing(0.02, 1000, 2000.0).ends(0.05, 0.95)
    assert math.isnan(low)
    assert (high * 2000 - 0.5) * 0.05 == pytest.approx(math.log(1000 / 0.025))
