"""Losses: derivatives of their values, and the constants guarantees rest on."""

import numpy as np
import pytest

from dpmodels.errors import ArgumentError
from dpmodels.statistics.losses import Huber, Logistic, Poisson

MARGINS = np.linspace(-6, 6, 4001)


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.5), Huber(0.1), Huber(1)])
def test_slope_and_bend_are_derivatives(loss):
    step = 1e-6
    slope = -(loss.value(MARGINS + step) - loss.value(MARGINS - step)) / (2 * step)
    np.testing.assert_allclose(loss.slope(MARGINS), slope, atol=1e-5)
    bend = -(loss.slope(MARGINS + step) - loss.slope(MARGINS - step)) / (2 * step)
    kinks = np.abs(np.abs(MARGINS - 1) - getattr(loss, "width", 9)) < 1e-3
    np.testing.assert_allclose(loss.bend(MARGINS)[~kinks], bend[~kinks], atol=1e-5)


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.5)])
def test_constants_bound_and_are_reached(loss):
    slope, bend = loss.slope(MARGINS), loss.bend(MARGINS)
    assert slope.min() >= 0
    assert slope.max() <= 1
    assert bend.max() == pytest.approx(loss.smoothness, rel=1e-5)
    if loss.bell:
        assert (bend <= slope * (1 - slope) * (1 + 1e-9)).all()


def test_poisson_residuals_are_held_within_their_bound():
    loss = Poisson(upper=20.0, clip=4.0)
    linear = np.array([-5.0, 0.0, 2.0, 800.0])
    pull = loss.pull(linear, np.array([3.0, 1.0, 20.0, 0.0]))
    np.testing.assert_allclose(pull, [(3 - np.exp(-5)) / 4, 0.0, 1.0, -1.0])


@pytest.mark.parametrize("width", [0, -1, 20, "wide", True, float("nan")])
def test_a_width_that_is_none_is_refused(width):
    with pytest.raises(ArgumentError, match="width"):
        Huber(width)


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.5)])
def test_misses_are_in_the_unit_and_no_farther_apart_than_stated(loss):
    missed = loss.miss(MARGINS)
    assert missed.min() >= 0
    assert missed.max() <= 1
    assert (np.diff(missed) <= 0).all()
    for steps in (1, 50, 2000):
        spread = steps * (MARGINS[1] - MARGINS[0])
        largest = (missed[:-steps] - missed[steps:]).max()
        assert largest <= loss.largest_difference(spread) + 1e-12
        # Reached by small steps of the one loss and by all of the other.
        assert largest > (0.9 if steps < 200 else 0.5) * loss.largest_difference(spread)


def test_a_brier_score_is_proper():
    odds, chance = np.linspace(-4, 4, 801), 0.3
    expected = chance * Logistic().miss(odds) + (1 - chance) * Logistic().miss(-odds)
    assert odds[expected.argmin()] == pytest.approx(np.log(chance / (1 - chance)), abs=0.01)
