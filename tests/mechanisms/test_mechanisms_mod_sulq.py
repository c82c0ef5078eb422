"""MOD-SULQ: the published scale, and what the joint release costs."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from folded import each
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
    squared,
    thinned,
)

from dpmodels.mechanisms.add_noise import SMALLEST_SCALE, gaussian_scales
from dpmodels.mechanisms.covariance.gauss import ModSulq, published_scale
from dpmodels.privacy import ApproxDP, adjacency, gaussian_multiplier
from dpmodels.statistics import MomentWeights, moment_sensitivity

TAKES = (ApproxDP,)
GUARANTEES = [USUAL[ApproxDP], ApproxDP(0.1, 0.05), ApproxDP(20.0, 0.9), *EXTREME[ApproxDP]]
NEARLY = Fraction(99, 100) ** 2


def in_units(plan, part):
    return getattr(plan.steps, part) / plan.lattice.radius**2


def test_the_published_scale_in_numbers():
    # By hand: 11 sqrt(2 ln(110 / (0.05 * 5.0132565))) + 1, for any number of rows.
    assert published_scale(10, ApproxDP(1.0, 0.05)) == pytest.approx(39.3711, abs=1e-3)
    # At eps = 4: 6/4 sqrt(2 ln(30 / (1e-6 * 5.0132565))) + 1/2.
    assert published_scale(5, ApproxDP(4.0, 1e-6)) == pytest.approx(8.8798, abs=1e-3)


def test_a_negative_logarithm_counts_as_zero():
    assert published_scale(1, ApproxDP(4.0, 0.9)) == 0.5
    for guarantee in GUARANTEES:
        assert math.isfinite(published_scale(1, guarantee))


@each("guarantee", GUARANTEES)
@each("relation, centred", KINDS)
@each("columns", [1, 2, 5, 40])
def test_no_part_has_less_noise_than_published_or_than_exactness_asks(
    columns, guarantee, relation, centred
):
    about = facts(columns, relation, centred)
    plan = ModSulq().plan(about, guarantee)
    multiplier = gaussian_multiplier(guarantee)
    exact = gaussian_scales(about, multiplier)
    sd = exact.steps.diagonal / exact.lattice.radius**2
    published = published_scale(columns, guarantee)
    assert plan.steps.off == plan.steps.diagonal
    assert in_units(plan, "diagonal") >= max(sd, published)
    assert in_units(plan, "diagonal") == pytest.approx(max(sd, published), rel=1e-9)
    riders = ("count", "mean") if centred else ("count",)
    for part in riders:
        asked_of_it = getattr(exact.steps, part) / exact.lattice.radius**2
        # On a coarser lattice the smallest scale may be more.
        expected = max(asked_of_it, SMALLEST_SCALE / plan.lattice.radius**2)
        assert in_units(plan, part) == pytest.approx(expected, rel=1e-15)
    (event,) = plan.events
    assert event.multiplier >= multiplier


def test_the_published_scale_is_many_times_too_large():
    guarantee = USUAL[ApproxDP]
    smallest = math.sqrt(2) * gaussian_multiplier(guarantee)
    ratios = [published_scale(columns, guarantee) / smallest for columns in (5, 50, 100)]
    assert ratios == pytest.approx([5.8, 54.2, 110.8], abs=0.1)


@pytest.mark.parametrize("guarantee", GUARANTEES[:4], ids=str)
@pytest.mark.parametrize(("relation", "centred"), KINDS)
def test_neighbours_are_within_the_declared_distance(guarantee, relation, centred):
    plan = ModSulq().plan(facts(2, relation, centred), guarantee)
    (event,) = plan.events
    declared = 1 / Fraction(event.multiplier) ** 2
    between, alone = distances(np.vstack([on_circle(), ball(4, 2)]), plan, squared)
    assert NEARLY * declared <= max([*between, *alone]) <= declared


def test_less_noise_in_the_count_is_found_out():
    plan = ModSulq().plan(facts(2), USUAL[ApproxDP])
    faulty = thinned(plan, count=plan.steps.count / 1.1)
    _, alone = distances(on_circle(8), faulty, squared)
    (event,) = plan.events
    assert max(alone) > 1 / Fraction(event.multiplier) ** 2


@pytest.mark.parametrize("mean", [1.5, 2.0, 10.0])
def test_opposite_rows_are_farthest_where_the_mean_weighs_much(mean):
    rows = on_circle(96)
    second = np.einsum("ni,nj->nij", rows, rows).reshape(len(rows), -1)
    augmented = np.hstack([mean * rows, second])
    largest = np.linalg.norm(augmented[:, None] - augmented[None], axis=2).max()
    declared = moment_sensitivity(adjacency("replace"), MomentWeights(0.0, mean))
    assert largest == pytest.approx(declared, rel=1e-12)
    assert declared == pytest.approx(2 * mean, rel=1e-15)


@pytest.mark.product
def test_the_noise_is_the_plans():
    check_noise(ModSulq(), USUAL[ApproxDP], "gaussian")


def test_the_event_gives_the_guarantee():
    check_guarantee(ModSulq(), TAKES)


def test_other_guarantees_are_refused():
    check_refusals(ModSulq(), TAKES, "write eps=1.0, delta=1e-6")


def test_a_huge_budget_gives_the_exact_answer():
    check_huge(ModSulq(), ApproxDP(1e30, 1e-6))


def test_every_release_is_finite():
    check_finite(ModSulq(), TAKES)


def test_the_measured_statistic_is_exact():
    check_measure(ModSulq(), USUAL[ApproxDP])


def test_a_coarser_lattice_makes_room_for_the_published_scale():
    for columns, eps in product((2, 100), (1e-6, 1e-3)):
        plan = ModSulq().plan(facts(columns, centred=True), ApproxDP(eps, 1e-6))
        # Beyond 40 scales the law has less than 2**-1000 of its mass.
        assert 40 * plan.steps.diagonal < 2**63
