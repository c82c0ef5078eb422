"""Levels nobody declared: every event on every pair of neighbours, by exact fractions."""

from collections import Counter
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import BudgetError
from dpmodels.mechanisms import Partition
from dpmodels.mechanisms.counts.partition import LevelFacts
from dpmodels.noise import source
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    PureDP,
    adjacency,
    group_events,
    planned_for_group,
    total_eps,
)
from dpmodels.statistics import Statistic

BOTH = ("replace", "add-remove")
GUARANTEES = [ApproxDP(1.0, 1e-2), ApproxDP(0.3, 1e-4), ApproxDP(4.0, 0.2), ApproxDP(0.02, 1e-6)]


def planned(guarantee, relation, variables=1):
    return Partition().plan(LevelFacts(variables, adjacency(relation)), guarantee)


def law(plan):
    """The probability of each noise, to 60 digits."""
    with mpmath.workdps(60):
        weights = [
            mpmath.exp(-abs(z) / mpmath.mpf(plan.scale))
            for z in range(-plan.threshold, plan.threshold + 1)
        ]
        total = mpmath.fsum(weights)
        return {
            z: w / total
            for z, w in zip(range(-plan.threshold, plan.threshold + 1), weights, strict=True)
        }


def outcomes(count, plan, noise, extra=0):
    """The probability of each noisy count of one level that is released, and of None.

    `extra` moves the threshold.
    """
    if count == 0:
        return {None: mpmath.mpf(1)}
    chances = {count + z: p for z, p in noise.items() if count + z > plan.threshold + extra}
    return chances | {None: 1 - mpmath.fsum(chances.values())}


def exceeds(left, right, eps):
    """The largest excess of any event's probability over exp(eps) times the other's."""
    factor = mpmath.exp(eps)
    return mpmath.fsum(max(p - factor * right.get(n, 0), 0) for n, p in left.items())


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda mechanism: mechanism.describe())
def test_neighbours_of_one_level_are_told_apart_no_more_than_declared(guarantee):
    """Brute force, a level that only one side has among them: delta is kept, and all but met."""
    plan = planned(guarantee, "add-remove")
    noise = law(plan)
    counts = sorted(
        {*range(4), plan.threshold, plan.threshold + 1, 2 * plan.threshold, 2 * plan.threshold + 3}
    )
    with mpmath.workdps(60):
        excess = [
            exceeds(outcomes(a, plan, noise), outcomes(b, plan, noise), guarantee.eps)
            for c in counts
            for a, b in ((c, c + 1), (c + 1, c))
        ]
    assert max(excess) <= guarantee.delta
    assert max(excess) > guarantee.delta * np.exp(-guarantee.eps) * 0.99


def test_neighbours_that_change_a_level_are_told_apart_no_more_than_declared():
    """Brute force: a row leaves one level and enters another, both small."""
    guarantee = ApproxDP(2.0, 0.05)
    plan = planned(guarantee, "replace")
    noise = law(plan)
    with mpmath.workdps(40):
        for a, b in product((1, 2, plan.threshold, 2 * plan.threshold + 1), (0, 1, plan.threshold)):
            sides = [
                {
                    (n, m): p * q
                    for n, p in outcomes(left, plan, noise).items()
                    for m, q in outcomes(right, plan, noise).items()
                }
                for left, right in ((a, b), (a - 1, b + 1))
            ]
            assert exceeds(*sides, guarantee.eps) <= guarantee.delta
            assert exceeds(*sides[::-1], guarantee.eps) <= guarantee.delta


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("rows", [2, 4])
def test_neighbours_by_a_group_of_rows_are_told_apart_no_more_than_declared(relation, rows):
    """Brute force: all rows of a group name one level, or leave one for another."""
    guarantee = ApproxDP(1.5, 0.05)
    plan = planned_for_group(
        lambda mechanism: planned(mechanism, relation), lambda plan: plan.events, guarantee, rows
    )
    charged = group_events(plan.events, rows)
    assert total_eps(charged, guarantee.delta) <= guarantee.eps * (1 + 1e-9)
    noise = law(plan)
    with mpmath.workdps(40):
        for c in (0, 1, plan.threshold - 1, plan.threshold, 2 * plan.threshold + 1):
            fewer, larger = (outcomes(count, plan, noise) for count in (c, c + rows))
            assert exceeds(fewer, larger, guarantee.eps) <= guarantee.delta
            assert exceeds(larger, fewer, guarantee.eps) <= guarantee.delta


def test_one_threshold_lower_breaks_the_claim():
    plan = planned(ApproxDP(1.0, 1e-4), "add-remove")
    with mpmath.workdps(60):
        lower = outcomes(1, plan, law(plan), extra=-1)
        assert exceeds(lower, {None: 1}, 1.0) > 1e-4


def test_the_threshold_is_the_least():
    """With noise of q = 1/2, in fractions: no smaller bound has its mass within delta."""
    for delta in (Fraction(1, 3), Fraction(1, 10**4), Fraction(1, 10**9)):
        plan = planned(ApproxDP(float(np.log(2)), float(delta)), "add-remove")

        def mass(limit):
            return Fraction(1, 2) ** limit / (Fraction(3) - Fraction(1, 2) ** (limit - 1))

        smallest = next(limit for limit in range(1, 99) if mass(limit) * (1 + 1e-8) <= delta)
        # Laplace scales are rounded up by a hair, and so may be the bound.
        assert plan.threshold in (smallest, smallest + 1)
        assert mass(plan.threshold) <= delta


@pytest.mark.parametrize("relation", BOTH)
def test_deltas_of_all_that_a_row_changes_add_up(relation):
    guarantee = ApproxDP(1.0, 1e-6)
    plan = planned(guarantee, relation, variables=3)
    (event,) = plan.events
    assert event.count == (6 if relation == "replace" else 3)
    assert event.eps * event.count == pytest.approx(1.0)
    assert event.delta * event.count == pytest.approx(1e-6)
    assert plan.scale >= 1 / event.eps


def test_noise_and_threshold_are_the_plans():
    plan = planned(ApproxDP(1.0, 1e-3), "add-remove")
    rows = 3 * plan.threshold
    exact = np.empty(1, dtype=object)
    exact[0] = Counter({f"level {i}": rows for i in range(20_000)} | {"once": 1})
    with dp.simulation(seed=3):
        release = Partition().release(Statistic("levels", exact, 0), plan, source())
    (levels,) = release.levels
    assert list(levels) == sorted(levels)
    noise = release.values - rows
    assert np.abs(noise).max() == plan.threshold
    # The mass at either bound is known to 1/5 of itself from 20,000 draws: 40 draws, sd 6.3;
    # 5 sds and the discreteness of a count are exceeded less than once in a million.
    at = (np.abs(noise) == plan.threshold).sum()
    assert abs(at - 40_000 * float(law(plan)[plan.threshold])) < 40


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ZCDP(0.5)])
def test_a_guarantee_without_delta_is_refused(guarantee):
    with pytest.raises(BudgetError, match="write delta=1e-6"):
        planned(guarantee, "replace")


def test_noise_beyond_meaning_is_refused():
    with pytest.raises(BudgetError, match="beyond what is meaningful"):
        planned(ApproxDP(1e-14, 1e-6), "replace")
