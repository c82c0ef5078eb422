"""The noise of noisy gradients and their first step, where rounding has the last word."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dpmodels.mechanisms import gradient_noise
from dpmodels.mechanisms.add_noise import SMALLEST_SCALE
from dpmodels.mechanisms.protocol import RegressionFacts
from dpmodels.mechanisms.regression import gradients
from dpmodels.mechanisms.regression.gradients import Start
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, adjacency
from dpmodels.statistics import Statistic
from dpmodels.statistics.losses import Logistic, Multinomial, Poisson, Predictors

FACTS = RegressionFacts(Predictors(3, True, 0.9, 0.5, 1.0), Logistic(), adjacency("replace"))


def longest(point, lattice):
    """Give the gradient of one row, as long as one can be."""
    exact = np.array([int(lattice.radius)] + [0] * (len(point) - 1), dtype=object)
    return Statistic("gradient", exact, 1)


@pytest.mark.parametrize("power", [-60, -21, -20, -10, -1, 0, 1, 17, 18, 30])
def test_a_sum_has_the_noise_that_was_asked_in_at_least_the_smallest_scale(power, monkeypatch):
    noise, scales, original = 1.25 * 2.0**power, [], gradient_noise.add_noise

    def kept(exact, scale, *rest):
        scales.append((exact, scale))
        return original(exact, scale, *rest)

    monkeypatch.setattr(gradient_noise, "add_noise", kept)
    rows = SimpleNamespace(gradient=longest)
    released = gradient_noise.noisy_gradient(rows, np.zeros(4), FACTS, noise, seeded(1))
    ((exact, scale),) = scales
    assert scale >= SMALLEST_SCALE
    assert scale / exact[0] == max(noise, 2.0**-20)
    assert math.isclose(released.sd, scale / exact[0], rel_tol=0.01)
    # 5.4 standard deviations of one coordinate have a chance of 7e-8; rounding moves it by 1 %.
    assert abs(released.gradient[0] - 1) < 5.4 * released.sd + 0.01


@pytest.mark.parametrize("smallest", [-1e-13, 0.0, 1e-13])
def test_a_moment_that_rounding_made_negative_has_no_root_taken(smallest):
    start = Start(np.zeros(2), np.eye(2), np.diag([smallest, 4.0]))
    assert start.step(np.array([-1.0, 0.0])).tolist() == [1.0, 0.0]
    assert start.step(np.array([0.0, -3.0])).tolist() == [0.0, 0.5]


@pytest.mark.parametrize(("relation", "change"), [("replace", 2.0), ("add-remove", 1.0)])
def test_each_sum_has_the_noise_that_its_event_says_of_what_a_neighbour_changes(relation, change):
    """A row has a gradient of length 1 at most, so that a replaced one changes a sum by 2."""
    facts = RegressionFacts(FACTS.predictors, FACTS.loss, adjacency(relation))
    plan = gradients.NoisyGradients(steps=3).plan(facts, ZCDP(0.5))
    start, steps, last = plan.events[:3]
    assert plan.scales["start"] == start.multiplier
    assert steps.count == 3
    assert plan.scales["noise"] == pytest.approx(change * steps.multiplier, rel=1e-9)
    assert plan.scales["noise"] >= change * steps.multiplier
    assert plan.scales["last"] == pytest.approx(change * last.multiplier, rel=1e-9)
    assert plan.scales["last"] >= change * last.multiplier


def test_the_model_of_means_alone_has_the_curvature_and_the_pull_of_its_rows():
    """Twice the curvature of a row, and the mean square of its pull, by the longest gradient."""
    counts = gradients.constant_model(np.array([2.0]), Poisson(clip=5.0, upper=20.0))
    assert counts.linear == pytest.approx([math.log(2.0)])
    assert counts.bend == pytest.approx(np.array([[2 * 2.0 / 5.0]]))
    assert counts.square == pytest.approx(2.0 / 5.0**2)

    loss, chances = Multinomial(3), np.array([0.5, 0.3, 0.2])
    levels = gradients.constant_model(chances[1:], loss)
    answers = np.eye(3)
    covariance = sum(
        chance * np.outer(answer - chances, answer - chances)
        for chance, answer in zip(chances, answers, strict=True)
    )
    assert levels.mean == pytest.approx(chances)
    assert levels.bend == pytest.approx(2 * covariance / loss.length)
    assert levels.square == pytest.approx(np.trace(covariance) / 2 / loss.length**2)
