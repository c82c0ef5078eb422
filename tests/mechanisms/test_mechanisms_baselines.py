"""Baselines: zeros and random directions, which cost nothing, and the answer without noise."""

import math
from itertools import product

import numpy as np
import pytest
from moment_cases import (
    ALARM,
    EXTREME,
    HOLE,
    KINDS,
    RELATIONS,
    USUAL,
    ball,
    check_finite,
    check_guarantee,
    check_measure,
    facts,
    moments_of,
)
from scipy import stats

import dpmodels as dp
from dpmodels.errors import BudgetError
from dpmodels.mechanisms.covariance.none import Unprivate, Zero
from dpmodels.mechanisms.subspace import Random
from dpmodels.noise import seeded, source
from dpmodels.privacy import ZCDP, ApproxDP, PureDP

TAKES = (PureDP, ApproxDP, ZCDP)
ASKED = [guarantee for kind in TAKES for guarantee in (USUAL[kind], *EXTREME[kind])]


class Untouched:
    """Entropy that must not be asked."""

    def words(self, count):
        raise AssertionError("a baseline without noise drew random words")


@pytest.mark.parametrize(("relation", "centred"), KINDS)
def test_zero_is_zero_whatever_the_rows(relation, centred):
    plan = Zero().plan(facts(3, relation, centred), PureDP(1.0))
    releases = [
        Zero().release(moments_of(rows, plan), plan, Untouched())
        for rows in (ball(20, 3), ball(20, 3, seed=1), np.full((20, 3), HOLE))
    ]
    for release in releases:
        assert release.second.tolist() == np.zeros((3, 3)).tolist()
        assert release.estimate is None
        assert release.count == (20 if relation == "replace" else 0)
        assert release.rows == (20 if relation == "replace" else None)
        assert (release.total.tolist() == [0, 0, 0]) if centred else release.total is None
        noise = release.noise
        assert all(map(math.isnan, (noise.count, noise.mean, noise.diagonal, noise.off)))
        assert release.events == ()
        assert release.info is Zero.info


@pytest.mark.parametrize(("relation", "centred"), KINDS)
def test_the_answer_itself_in_a_simulation(relation, centred):
    rows = np.vstack([ball(30, 4), np.full((2, 4), HOLE)])
    with dp.simulation(seed=1):
        plan = Unprivate().plan(facts(4, relation, centred), PureDP(1.0))
        statistic = moments_of(rows, plan)
        release = Unprivate().release(statistic, plan, Untouched())
    exact, lattice = statistic.cross()[0], plan.lattice
    assert (release.second * lattice.steps**2 == exact[1:, 1:].astype(float)).all()
    public_rows = rows[:30]
    # Rounding moves an entry of one row's square by at most 1.5 steps.
    slack = 30 * 1.5 / lattice.steps
    np.testing.assert_allclose(release.second, public_rows.T @ public_rows, rtol=0, atol=slack)
    assert release.count == 30
    assert release.rows == (32 if relation == "replace" else None)
    noise = release.noise
    assert (noise.count, noise.diagonal, noise.off) == (0, 0, 0)
    if centred:
        np.testing.assert_allclose(release.total, public_rows.sum(axis=0), rtol=0, atol=slack)
        assert noise.mean == 0
    else:
        assert release.total is None
        assert math.isnan(noise.mean)
    assert release.events == ()
    assert release.simulated


@pytest.mark.parametrize("guarantee", ASKED, ids=str)
def test_the_answer_itself_is_refused_elsewhere(guarantee):
    write = r"write `with dp\.simulation\(seed=1\):`"
    with pytest.raises(BudgetError, match=write):
        Unprivate().plan(facts(), guarantee)
    with dp.simulation(seed=1):
        plan = Unprivate().plan(facts(), guarantee)
    with pytest.raises(BudgetError, match=write):
        Unprivate().release(moments_of(ball(5, 3), plan), plan, Untouched())


@pytest.mark.parametrize("make", [Zero, Random, Unprivate])
def test_nothing_is_charged(make):
    with dp.simulation(seed=1):
        for (relation, centred), guarantee in product(KINDS, ASKED):
            plan = make().plan(facts(3, relation, centred, components=2), guarantee)
            assert plan.events == ()
            assert plan.guarantee == guarantee
        check_guarantee(make(), TAKES)


def test_every_release_is_finite():
    check_finite(Zero(), TAKES)
    with dp.simulation(seed=1):
        check_finite(Unprivate(), TAKES)


def test_the_measured_statistic_is_exact():
    with dp.simulation(seed=1):
        for make in (Zero, Random, Unprivate):
            check_measure(make(), PureDP(1.0))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("columns", "components"), [(1, 0), (1, 1), (5, 0), (5, 2), (40, 39)])
def test_random_directions_are_orthonormal(columns, components, relation):
    plan = Random().plan(facts(columns, relation, components=components), PureDP(1.0))
    release = Random().release(moments_of(ball(6, columns), plan), plan, seeded(1))
    n_directions = components or columns
    assert release.frame.shape == (columns, n_directions)
    np.testing.assert_allclose(release.frame.T @ release.frame, np.eye(n_directions), atol=1e-13)
    assert release.variances is None
    assert all(map(math.isnan, (release.variance_sd, release.count, release.expected_loss)))
    assert not release.ordered
    assert release.limit == ""
    assert release.rows == (6 if relation == "replace" else None)
    assert release.events == ()
    assert not release.simulated


def test_random_directions_do_not_depend_on_the_rows():
    plan = Random().plan(facts(4, components=2), PureDP(1.0))
    frames = [
        Random().release(moments_of(rows, plan), plan, seeded(7)).frame.tolist()
        for rows in (ball(9, 4), np.full((9, 4), HOLE), [])
    ]
    assert frames[0] == frames[1] == frames[2]


def test_random_directions_are_uniform():
    """A coordinate's square is Beta(1/2, 3/2), its sign is even: each at half the false alarms."""
    plan = Random().plan(facts(4, components=3), PureDP(1.0))
    none = moments_of([], plan)
    with dp.simulation(seed=20240303):
        frames = np.array([Random().release(none, plan, source()).frame for _ in range(3000)])
    # One entry of each column: 3 tests of each kind.
    for column in range(3):
        entries = frames[:, column, column]
        uniform = stats.kstest(entries**2, stats.beta(0.5, 1.5).cdf, method="asymp")
        assert uniform.pvalue > ALARM / 6
        positive = int((entries > 0).sum())
        assert stats.binomtest(positive, len(entries)).pvalue > ALARM / 6
