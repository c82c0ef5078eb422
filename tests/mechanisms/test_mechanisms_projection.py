"""The projection: a Gauss release, and next to it the nearest second moment."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from moment_cases import (
    EXTREME,
    HOLE,
    KINDS,
    RELATIONS,
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
    moments_of,
    on_circle,
    squared,
)

from dpmodels.mechanisms import Gauss
from dpmodels.mechanisms.add_noise import trace_cap
from dpmodels.mechanisms.covariance.gauss import Projection
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP

TAKES = (ApproxDP, ZCDP)
NEARLY = Fraction(99, 100) ** 2


def test_the_plan_and_the_noisy_matrix_are_those_of_gauss():
    for (relation, centred), kind in product(KINDS, TAKES):
        about = facts(4, relation, centred)
        plans = [mechanism.plan(about, USUAL[kind]) for mechanism in (Projection(), Gauss())]
        assert repr(plans[0]) == repr(plans[1])
        statistic = moments_of(ball(12, 4), plans[0])
        releases = [
            mechanism.release(statistic, plans[0], seeded(4))
            for mechanism in (Projection(), Gauss())
        ]
        assert releases[0].second.tolist() == releases[1].second.tolist()
        assert repr(releases[0].noise) == repr(releases[1].noise)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rho", [1e-4, 1e-2, 1.0])
def test_the_estimate_is_a_second_moment_and_never_farther(rho, relation):
    rows = ball(200, 8)
    plan = Projection().plan(facts(8, relation), ZCDP(rho))
    truth = moments_of(rows, plan).cross()[0][1:, 1:].astype(float) / plan.lattice.steps**2
    for seed in range(5):
        release = Projection().release(moments_of(rows, plan), plan, seeded(seed))
        values = np.linalg.eigvalsh(release.estimate)
        assert values.min() >= -1e-12 * values.max()
        errors = [np.linalg.norm(matrix - truth) for matrix in (release.estimate, release.second)]
        assert errors[0] <= errors[1] * (1 + 1e-12)
        if relation == "replace":
            assert np.trace(release.estimate) <= 200 * (1 + 1e-12)


def test_the_public_number_of_rows_bounds_the_trace():
    plans = [Projection().plan(facts(5, relation), ZCDP(1e-6)) for relation in RELATIONS]
    traces = [
        np.trace(Projection().release(moments_of(ball(10, 5), plan), plan, seeded(2)).estimate)
        for plan in plans
    ]
    # Noise of a thousand rows: all of the bound is used, and without one much more.
    assert traces[0] == pytest.approx(10, rel=1e-9)
    assert traces[1] > 100


def test_the_cap_is_public():
    assert trace_cap(facts(3, "replace"), 7) == 7
    assert trace_cap(facts(3, "replace"), 0) == 1
    assert trace_cap(facts(3, "add-remove"), 7) is None
    # Incomplete rows count: how many there are is private.
    plan = Projection().plan(facts(2), ZCDP(1e-6))
    release = Projection().release(moments_of(np.full((6, 2), HOLE), plan), plan, seeded(2))
    assert np.trace(release.estimate) == pytest.approx(6, rel=1e-9)


@pytest.mark.parametrize("guarantee", [*map(USUAL.get, TAKES), EXTREME[ApproxDP][0]], ids=str)
@pytest.mark.parametrize(("relation", "centred"), KINDS)
def test_neighbours_are_within_the_declared_distance(guarantee, relation, centred):
    plan = Projection().plan(facts(2, relation, centred), guarantee)
    (event,) = plan.events
    declared = 1 / Fraction(event.multiplier) ** 2
    between, alone = distances(np.vstack([on_circle(), ball(4, 2)]), plan, squared)
    assert NEARLY * declared <= max([*between, *alone]) <= declared


@pytest.mark.product
def test_the_noise_is_the_plans():
    check_noise(Projection(), USUAL[ApproxDP], "gaussian")


def test_the_event_gives_the_guarantee():
    check_guarantee(Projection(), TAKES)


def test_a_pure_guarantee_is_refused():
    check_refusals(Projection(), TAKES, "write delta=1e-6")


def test_a_huge_budget_gives_the_exact_answer():
    check_huge(Projection(), ZCDP(1e40))


def test_every_release_is_finite():
    check_finite(Projection(), TAKES)


def test_the_measured_statistic_is_exact():
    check_measure(Projection(), USUAL[ZCDP])
