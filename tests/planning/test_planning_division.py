"""A budget divided between calls whose noise is known: the optimum in closed form."""

import math

import numpy as np
import pandas as pd
import pytest

from dpmodels.planning.noise_curve import NoiseCurve, Release, SimulatedCall
from dpmodels.planning.study import Losses, TotalBudget, least_at
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    GaussianEvent,
    PureDP,
    PureEvent,
    compose_gaussians,
    gaussian_multiplier,
)
from dpmodels.privacy.calibrate import gaussian_eps

AMOUNTS = np.geomspace(1e-4, 10.0, 60)


def planted(noise, *, gaussian=False, sampling=1.0):
    """A call of one figure, whose noise is a function of its amount."""
    event = GaussianEvent(1.0) if gaussian else PureEvent(1.0)
    frame = pd.DataFrame({"value": [0.0], "sampling": [sampling]}, index=["x"])
    releases = tuple(
        Release("planted", (event,), np.array([noise(amount)]), np.ones(1)) for amount in AMOUNTS
    )
    return NoiseCurve(
        "planted", SimulatedCall(None, PureDP, None, frame), "median", AMOUNTS, releases
    )


def losses(guarantee, courses, weights=None, floors=None, fixed=None):
    total_budget = TotalBudget(
        guarantee, tuple(course.gaussian for course in courses), fixed or (None,) * len(courses)
    )
    ones = np.ones(len(courses)) if weights is None else np.array(weights)
    smallest_shares = np.zeros(len(courses)) if floors is None else np.array(floors)
    return Losses(total_budget, courses, ones, smallest_shares)


def laplace(scale):
    return planted(lambda eps: scale / eps)


def normal(scale, delta=1e-6):
    return planted(
        lambda eps: scale * gaussian_multiplier(ApproxDP(float(eps), delta)), gaussian=True
    )


def test_the_smallest_budget_that_identifies_is_asked_of_the_curve():
    """All budgets identify it, those from .01 on, or none."""
    assert planted(lambda _: 1.0).identifying == 0.0
    some = planted(lambda amount: 1.0 if amount >= 0.01 else math.inf)
    assert 0.01 <= some.identifying < 0.02
    assert planted(lambda _: math.inf).identifying == math.inf


def test_the_worst_ratio_is_least_where_laplace_scales_are_in_proportion_to_eps():
    privacy_losses = losses(PureDP(1.0), [laplace(0.1), laplace(0.3), laplace(0.6)])
    assert privacy_losses.least_worst() == pytest.approx([0.1, 0.3, 0.6], rel=1e-4)


def test_of_concentrated_noise_shares_are_squares_of_the_scales():
    courses = [planted(lambda rho, k=k: k / np.sqrt(rho), gaussian=True) for k in (0.1, 0.2)]
    privacy_losses = losses(ZCDP(0.5), courses)
    assert privacy_losses.least_worst() == pytest.approx([0.1, 0.4], rel=1e-4)


def test_gaussian_parts_under_a_delta_compose_to_the_whole_of_a_session():
    privacy_losses = losses(ApproxDP(1.0, 1e-6), [normal(0.1), normal(0.2)])
    parts = privacy_losses.least_worst()
    multipliers = [gaussian_multiplier(ApproxDP(eps, 1e-6)) for eps in parts]
    composed = gaussian_eps(0.8e-6, compose_gaussians(multipliers))
    assert composed == pytest.approx(1.0, rel=1e-6)
    assert composed <= 1.0
    assert multipliers[0] ** 2 / multipliers[1] ** 2 == pytest.approx(0.8 / 0.2, rel=1e-3)
    assert privacy_losses.budget.shares(parts) == pytest.approx([0.2, 0.8], rel=1e-3)


def test_gaussian_and_other_noise_share_eps_and_level_their_ratios():
    privacy_losses = losses(ApproxDP(1.0, 1e-6), [laplace(0.2), normal(0.1), normal(0.1)])
    parts = privacy_losses.least_worst()
    ratios = [curve.ratios(parts[k : k + 1])[0] for k, curve in enumerate(privacy_losses.curves)]
    assert np.ptp(ratios) < 1e-3 * ratios[0]
    square = sum(gaussian_multiplier(ApproxDP(eps, 1e-6)) ** -2 for eps in parts[1:])
    assert parts[0] + gaussian_eps(0.8e-6, square**-0.5) == pytest.approx(1.0, rel=1e-6)
    assert privacy_losses.budget.shares(parts).sum() == pytest.approx(1.0, rel=1e-6)


def test_the_geometric_mean_is_that_of_a_direct_search():
    privacy_losses = losses(PureDP(1.0), [laplace(0.1), laplace(0.6)], weights=(3.0, 1.0))

    def mean(first):
        return 3 * np.log(np.hypot(1, 0.1 / first)) + np.log(np.hypot(1, 0.6 / (1 - first)))

    # In proportion to weights and shares of noise, at the optimum.
    grid = np.linspace(0.01, 0.99, 9801)
    first, second = privacy_losses.least_mean()
    assert first + second == pytest.approx(1.0, rel=1e-6)
    assert mean(first) == pytest.approx(mean(grid).min(), rel=1e-4)
    noise = 3 / (1 + (first / 0.1) ** 2), 1 / (1 + (second / 0.6) ** 2)
    assert first / second == pytest.approx(noise[0] / noise[1], rel=0.02)
    assert mean(first) < mean(privacy_losses.least_worst()[0]) - 0.01


def test_weights_floors_and_amounts_that_are_said_are_kept():
    courses = [laplace(0.2), laplace(0.2), laplace(0.2)]
    heavy = losses(PureDP(1.0), courses, weights=(1.0, 1.0, 9.0)).least_worst()
    ratios = np.hypot(1, 0.2 / heavy) - 1
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-3)
    assert ratios[0] == pytest.approx(9 * ratios[2], rel=1e-2)
    floored = losses(PureDP(1.0), courses, floors=(0.8, 0.0, 0.0)).least_worst()
    assert floored == pytest.approx([0.8, 0.1, 0.1], rel=1e-4)
    message = losses(PureDP(1.0), courses, fixed=(0.5, None, None)).least_worst()
    assert message == pytest.approx([0.5, 0.25, 0.25], rel=1e-4)


def test_the_largest_loss_is_never_above_that_of_equal_parts():
    rng = np.random.default_rng(3)
    for _ in range(20):
        privacy_losses = losses(
            PureDP(1.0), [laplace(value) for value in rng.uniform(0.01, 2.0, 4)]
        )
        first, even = (
            max(curve.ratios(parts[k : k + 1])[0] for k, curve in enumerate(privacy_losses.curves))
            for parts in (privacy_losses.least_worst(), privacy_losses.even())
        )
        assert first <= even * (1 + 1e-6)


def test_a_falling_function_is_looked_up_between_its_points():
    fine = np.geomspace(0.1, 10.0, 200)
    assert least_at(fine, 1 / fine, 0.5) == pytest.approx(2.0, rel=1e-3)
    assert least_at(fine, 1 / fine, 100.0) == 0.1
    assert least_at(fine, 1 / fine, 0.01) == pytest.approx(10.0)
    blank = np.where(fine < 1.0, np.inf, 1 / fine)
    assert 1.0 <= least_at(fine, blank, 5.0) < 1.05
