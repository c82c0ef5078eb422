"""Survival curves of counts: counts that agree, the product limit, what stands for how many."""

from itertools import permutations

import numpy as np
import pytest

from dpmodels.postprocess.survival import Followed, at_risk, followed, identified

EXACT = np.array([[3.0, 0, 2, 1, 4], [5.0, 6, 0, 2, 0]])
HALF, NONE = np.full(4, 0.5), np.zeros(4)


def test_exact_counts_come_back_and_make_the_product_limit():
    curve = followed(EXACT, np.ones(5), NONE, 4)
    assert curve.risk.tolist() == [23, 15, 9, 7]
    assert (curve.events.tolist(), curve.censored.tolist()) == ([5, 6, 0, 2], [3, 0, 2, 1])
    np.testing.assert_allclose(curve.survival, np.cumprod([18 / 23, 9 / 15, 1, 5 / 7]))
    actuarial = followed(EXACT, np.ones(5), HALF, 4)
    np.testing.assert_allclose(actuarial.hazard, [5 / 21.5, 6 / 15, 0, 2 / 6.5])


def test_noisy_counts_agree_and_the_curve_falls_within_0_and_1():
    rng = np.random.default_rng(1)
    for _ in range(30):
        curves = followed(EXACT + 8 * rng.standard_normal((2, 5)), rng.uniform(1, 9, 5), HALF, 4)
        np.testing.assert_array_equal(np.diff(curves.risk), -(curves.events + curves.censored)[:-1])
        assert min(curves.risk.min(), curves.events.min(), curves.censored.min()) >= 0
        assert curves.risk[-1] >= curves.events[-1] + curves.censored[-1]
        assert (np.diff(curves.survival, prepend=1.0) <= 0).all()
        assert curves.survival.min() >= 0


def test_the_level_of_those_at_risk_is_not_pushed_up_by_an_empty_end():
    """A late risk set that only clipped noise made would bend the curve up: it does not."""
    rng = np.random.default_rng(2)
    cells = np.zeros((2, 41))
    cells[:, :10] = 50
    curves = [
        followed(cells + 5 * rng.standard_normal((2, 41)), np.full(41, 40.0), np.zeros(40), 10)
        for _ in range(60)
    ]
    late = np.mean([curve.risk[9] for curve in curves]) - 100
    # 64 cells have noise of sd 5; of 60 means the sd is 5.2, and 25 is five of them.
    assert abs(late) < 25


def test_a_curve_ends_at_the_first_risk_set_that_is_not_told_from_noise():
    risk = np.array([90.0, 50, 24, 60])
    assert identified(risk, np.full(4, 5.0)) == 2
    assert identified(risk, np.zeros(4)) == 4
    assert identified(np.array([0.2, 9.0]), np.zeros(2)) == 0
    assert at_risk(EXACT).tolist() == [23, 15, 9, 7, 4]
    assert followed(EXACT, np.ones(5), NONE, 0).survival.size == 0


def test_without_censored_rows_a_point_is_a_share_of_all_rows():
    counts = Followed(np.array([20, 12, 9]), np.array([8, 3, 4]), np.zeros(3, int), np.zeros(3))
    np.testing.assert_allclose(counts.effective, 20)
    np.testing.assert_allclose(counts.survival, [12 / 20, 9 / 20, 5 / 20])


def test_with_censored_rows_it_stands_for_fewer_as_time_goes_by():
    curve = followed(EXACT, np.ones(5), NONE, 4)
    assert (np.diff(curve.effective) <= 0).all()
    assert curve.effective[0] == pytest.approx(23)
    assert curve.effective[-1] >= curve.risk[-1] / curve.survival[-2]
    nobody = Followed(np.array([20, 10]), np.zeros(2, int), np.array([10, 0]), np.zeros(2))
    assert nobody.effective.tolist() == [20, 10]
    everybody = Followed(np.array([5]), np.array([5]), np.array([0]), np.zeros(1))
    assert (everybody.survival.tolist(), everybody.effective.tolist()) == ([0.0], [5.0])


def test_no_order_within_an_interval_leaves_the_bounds_and_some_reach_them():
    def limit(order, risk):
        for event in order:
            yield 1 - event / risk
            risk -= 1

    counts = Followed(np.array([6]), np.array([3]), np.array([2]), np.full(1, 0.5))
    curves = [np.prod(list(limit(order, 6))) for order in permutations((1, 1, 1, 0, 0))]
    low, high = counts.unordered
    assert (min(curves), max(curves)) == pytest.approx((low[0], high[0]))
    assert low[0] < counts.survival[0] < high[0]


def test_where_nobody_is_left_no_order_moves_the_curve():
    counts = Followed(np.array([4, 0]), np.array([1, 0]), np.array([3, 0]), np.full(2, 0.5))
    low, high = counts.unordered
    assert (low.tolist(), high.tolist()) == ([0.0, 0.0], [0.75, 0.75])
