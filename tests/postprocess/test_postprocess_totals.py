"""Counts that agree with their total, whole or not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmodels.postprocess.protocol import balanced, consistent, rising, whole

COUNTS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12).map(np.array)
TOTALS = st.none() | st.integers(0, 10**6)


@given(COUNTS, TOTALS)
def test_whole_counts_add_up_and_are_not_negative(values, total):
    result = whole(values, total)
    expected = max(round(float(values.sum())), 0) if total is None else total
    assert result.dtype == np.int64
    assert (result >= 0).all()
    assert result.sum() == expected


@given(COUNTS, TOTALS)
def test_whole_counts_and_their_runs_are_less_than_one_from_the_nearest(values, total):
    expected = max(round(float(values.sum())), 0) if total is None else total
    gaps = np.cumsum(np.append(0.0, whole(values, total) - consistent(values, expected)))
    runs = np.subtract.outer(gaps, gaps)
    assert np.abs(runs).max() <= 1 + 1e-6


def test_rounding_favours_no_cell():
    """Six sds of a mean of numbers in (-1, 1), 1e-8 a cell."""
    rng = np.random.default_rng(0)
    exact, runs = np.full(12, 50.0), 3000
    draws = exact + rng.geometric(0.4, (runs, 12)) - rng.geometric(0.4, (runs, 12))
    gaps = [whole(draw, 600) - consistent(draw, 600) for draw in draws]
    assert np.abs(np.mean(gaps, axis=0)).max() <= 6 * np.std(gaps) / np.sqrt(runs) + 0.01


@given(COUNTS, TOTALS)
def test_nearest_counts_satisfy_the_conditions_of_optimality(values, total):
    result = consistent(values, total)
    assert (result >= 0).all()
    largest = max(float(values.sum()) if total is None else total, 0.0)
    assert result.sum() == pytest.approx(largest, abs=1e-6)
    # One shift for all that are above 0, no smaller one for those at 0.
    shifts = values - result
    above = result > 1e-7
    if above.any():
        assert np.ptp(shifts[above]) <= 1e-5
        assert (shifts[~above] <= shifts[above].max() + 1e-5).all()


@given(COUNTS)
def test_exact_counts_stay(values):
    exact = np.abs(np.rint(values))
    assert whole(exact, exact.sum()).tolist() == exact.tolist()
    assert whole(exact).tolist() == exact.tolist()


def test_balanced_counts_move_alike():
    values = np.array([3.0, -1.0, 5.5])
    result = balanced(values, 10)
    assert result.sum() == pytest.approx(10)
    assert np.ptp(result - values) == pytest.approx(0)
    assert balanced(values, None) is values


def test_rising_totals_are_no_farther_from_any_that_rise():
    rng = np.random.default_rng(3)
    for sd in (0.1, 3.0, 100.0):
        values = np.cumsum(rng.poisson(0.4, (20, 30)), axis=1) + sd * rng.normal(size=(20, 30))
        result = rising(values)
        assert (np.diff(result, axis=1) >= 0).all()
        assert result.min() >= 0
        for true in (np.zeros(30), np.arange(30.0), np.cumsum(rng.poisson(9, 30))):
            before, after = (np.linalg.norm(counts - true, axis=1) for counts in (values, result))
            assert (after <= before + 1e-9).all()
