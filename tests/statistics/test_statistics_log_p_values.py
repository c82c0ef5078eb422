"""Levels of p-values, and how far one row moves them: every pair of sums on a grid."""

import numpy as np
import pytest
from scipy.stats import norm

from dpmodels.statistics import associations
from dpmodels.statistics.associations import STEPS, log_change, log_levels


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize(("scale", "change"), [(40.0, 7), (40.0, 1), (3.0, 20), (0.3, 5)])
@pytest.mark.parametrize("smallest", [0.02, 5e-5])
@pytest.mark.parametrize("steps", [STEPS, 5])
def test_no_sums_so_far_apart_have_levels_farther_apart(
    sides, scale, change, smallest, steps, monkeypatch
):
    monkeypatch.setattr(associations, "STEPS", steps)
    n_steps = int(7 * scale) + change
    sums = np.arange(0 if sides == 2 else -n_steps, n_steps + 1).astype(object)
    levels = log_levels(sums, scale, smallest, sides)
    largest = max((levels[:-by] - levels[by:]).max() for by in range(1, change + 1))
    declared = log_change(change, scale, smallest, sides)
    # Sums are whole numbers, the worst place is not: a part of the slope from one to the next.
    assert largest <= declared <= 1.2 * largest + 2 + (scale < 10) * steps
    assert (np.diff(levels) <= 0).all()


@pytest.mark.parametrize("sides", [1, 2])
def test_levels_are_logarithms_of_p_values(sides):
    sums = np.array([0, 1, 25, 80, 10**6], dtype=object)
    levels_found = log_levels(sums, 20.0, 1e-4, sides) / STEPS
    expected = np.log(np.maximum(sides * norm.sf(sums.astype(float) / 20), 1e-4))
    np.testing.assert_allclose(levels_found, expected, atol=1e-9)


def test_what_a_row_moves_is_what_a_z_test_is_known_for():
    # m = 1,000 and q = .1, at a hundred thousand rows of -1 or 1.
    change = log_change(2, float(np.sqrt(1e5)), 0.1 / 2_000, 1) / STEPS
    assert change == pytest.approx(0.026, abs=5e-4)
