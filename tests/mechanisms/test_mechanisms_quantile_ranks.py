"""Where quantiles are drawn: inside the rows."""

import math

import pytest

from dpmodels.mechanisms.scalar.exponential import MISSED, NEAR, Drawing


def test_a_quantile_with_rows_on_both_sides_stays():
    assert Drawing(0.25, 10_000, 1e6).middle(0.1) == 0.25


def test_the_nearest_rank_that_noise_leaves_among_the_rows():
    drawing = Drawing(0.0, 10_000, 5000.0)
    share = drawing.middle(0.1)
    assert 10_000 * math.exp(-0.1 * (share * 5000 - 0.5)) == pytest.approx(NEAR)
    assert Drawing(1.0, 10_000, 5000.0).middle(0.1) == pytest.approx(1 - share)


def test_too_few_rows_have_no_quantile():
    enough = 2 * math.log(10_000 / MISSED) / 0.1 + 1
    assert math.isnan(Drawing(0.5, 10_000, enough - 0.01).middle(0.1))
    assert Drawing(0.5, 10_000, enough + 0.01).middle(0.1) == 0.5
