"""Analyze Gauss: one scale on and above the diagonal, calibrated exactly."""

import math
from fractions import Fraction

import numpy as np
import pytest
from moment_cases import (
    EXTREME,
    KINDS,
    USUAL,
    ball,
    check_finite,
    check_guarantee,
    check_huge,
    check_measure,
    check_noise,
    check_refusals,
    distances,
    facts,
    on_circle,
    residuals,
    squared,
    thinned,
)

import dpmodels as dp
from dpmodels.mechanisms import Gauss
from dpmodels.mechanisms.covariance.gauss import AnalyzeGauss
from dpmodels.privacy import ZCDP, ApproxDP, GaussianEvent, gaussian_multiplier

TAKES = (ApproxDP, ZCDP)
GUARANTEES = [USUAL[kind] for kind in TAKES]
NEARLY = Fraction(99, 100) ** 2


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize(("relation", "centred"), KINDS)
def test_it_is_gauss_with_more_noise_off_the_diagonal(guarantee, relation, centred):
    about = facts(4, relation, centred)
    plan, isometric = (mechanism.plan(about, guarantee) for mechanism in (AnalyzeGauss(), Gauss()))
    assert plan.steps.off == plan.steps.diagonal == isometric.steps.diagonal
    assert plan.steps.off == pytest.approx(math.sqrt(2) * isometric.steps.off, rel=1e-12)
    assert plan.steps.count == isometric.steps.count
    assert plan.lattice == isometric.lattice
    assert plan.events == (GaussianEvent(gaussian_multiplier(guarantee)),)


def test_the_scale_in_numbers():
    # At rho = 1/2 the multiplier is 1: sigma is the sensitivity.
    plan = AnalyzeGauss().plan(facts(), ZCDP(0.5))
    assert plan.steps.off / plan.lattice.radius**2 == pytest.approx(1.414213562373, abs=1e-9)


@pytest.mark.parametrize("guarantee", [*GUARANTEES, EXTREME[ApproxDP][0]], ids=str)
@pytest.mark.parametrize(("relation", "centred"), KINDS)
def test_neighbours_are_within_the_declared_distance(guarantee, relation, centred):
    plan = AnalyzeGauss().plan(facts(2, relation, centred), guarantee)
    (event,) = plan.events
    declared = 1 / Fraction(event.multiplier) ** 2
    between, alone = distances(np.vstack([on_circle(), ball(4, 2)]), plan, squared)
    assert max([*between, *alone]) <= declared
    assert all(max(kind) >= NEARLY * declared for kind in (between, alone) if kind)


def test_the_largest_distance_is_between_orthogonal_rows():
    plan = AnalyzeGauss().plan(facts(2), ZCDP(0.5))
    between, _ = distances(np.eye(2), plan, squared)
    # A unit row has an integer norm of 2**20 - 1.
    assert float(max(between)) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize(("part", "relation"), [("off", "add-remove"), ("count", "replace")])
def test_less_noise_is_found_out(part, relation):
    plan = AnalyzeGauss().plan(facts(2, relation), ZCDP(0.5))
    faulty = thinned(plan, **{part: getattr(plan.steps, part) / 1.6})
    between, alone = distances(on_circle(), faulty, squared)
    assert max([*between, *alone]) > 1


@pytest.mark.product
def test_the_noise_is_the_plans():
    check_noise(AnalyzeGauss(), USUAL[ApproxDP], "gaussian")


def test_noise_of_isometric_coordinates_is_found_out():
    about = facts(4, "replace", centred=True)
    plan, isometric = (mechanism.plan(about, ZCDP(0.1)) for mechanism in (AnalyzeGauss(), Gauss()))
    with dp.simulation(seed=3):
        noise = residuals(AnalyzeGauss(), isometric, releases=200)["off"]
    # 1200 squares of half the planned variance: 12 sd below it.
    assert (noise**2).mean() < 0.7 * plan.steps.off**2


def test_the_event_gives_the_guarantee():
    check_guarantee(AnalyzeGauss(), TAKES)


def test_a_pure_guarantee_is_refused():
    check_refusals(AnalyzeGauss(), TAKES, "write delta=1e-6")


def test_a_huge_budget_gives_the_exact_answer():
    check_huge(AnalyzeGauss(), ZCDP(1e40))


def test_every_release_is_finite():
    check_finite(AnalyzeGauss(), TAKES)


def test_the_measured_statistic_is_exact():
    check_measure(AnalyzeGauss(), USUAL[ZCDP])
