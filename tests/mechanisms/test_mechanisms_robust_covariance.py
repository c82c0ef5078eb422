"""Squares of scores after moments: what they cost, how far a row moves them, what steers them."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import Facts, Gauss, Laplace, Rounds, robust_covariance
from dpmodels.mechanisms.regression import AdaSSP, Moments
from dpmodels.mechanisms.robust_covariance import SQUARES, RobustCovariance
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP, LaplaceEvent, PureDP, adjacency, total_eps, total_rho
from dpmodels.statistics import Statistic, moments, passes

RELATIONS = ("replace", "add-remove")
NAMES = ("a", "b", "y")
BOOK = dp.codebook.uniform(NAMES, (-1, 1))


def facts(relation="replace", columns=3):
    return Facts(columns, adjacency(relation), centred=True)


def bound(rows):
    return private_design("~ a + b + y", dict(zip(NAMES, rows.T, strict=True)), BOOK)


def some_rows(count, seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, (count, 3))


@pytest.mark.parametrize("base", [Moments(), AdaSSP(), Gauss(), Laplace(), Rounds()], ids=repr)
@pytest.mark.parametrize("guarantee", [ZCDP(0.1), ApproxDP(1.0, 1e-6), PureDP(0.5)], ids=str)
def test_the_events_compose_to_the_guarantee_and_use_it_up(base, guarantee):
    for relation in RELATIONS:
        try:
            alone = base.plan(facts(relation), guarantee)
        except BudgetError:
            with pytest.raises(BudgetError):
                RobustCovariance(base).plan(facts(relation), guarantee)
            continue
        plan = RobustCovariance(base).plan(facts(relation), guarantee)
        assert plan.guarantee == guarantee
        assert len(plan.events) == len(alone.events) + 1
        if isinstance(guarantee, ZCDP):
            spent = total_rho(plan.events) / guarantee.rho
        else:
            pure = isinstance(alone.events[0], LaplaceEvent)
            delta = 0.0 if pure else guarantee.delta
            spent = total_eps(plan.events, delta) / guarantee.eps
        assert 1 - 1e-6 < spent <= 1


def furthest(relation, guarantee):
    """How far neighbours are apart, in units of what the noise of the squares allows."""
    mechanism = RobustCovariance(Moments())
    plan = mechanism.plan(facts(relation), guarantee)
    design = bound(some_rows(400))
    scores = []
    original = passes.score_squares

    def kept(design, lattice, score, finer, **words):
        scores.append((lattice, score, finer))
        return original(design, lattice, score, finer, **words)

    with pytest.MonkeyPatch.context() as patch, dp.simulation(seed=1):
        patch.setattr(robust_covariance, "score_squares", kept)
        mechanism.release(mechanism.measure(design, plan), plan, seeded(1))
    ((lattice, score, finer),) = scores
    ends = np.array(np.meshgrid(*[[-1, 0.05, 1]] * 3)).reshape(3, -1).T
    rows = [*ends, np.full(3, np.nan)]
    # Ten times as long a score: all rows are cut.
    longer = score._replace(regressors=score.regressors * 10)
    distances = []
    for weights in (score, longer):
        cells = [
            original(bound(row[None]), lattice, weights, finer).cross()[0].astype(float)
            for row in rows
        ]
        pairs = combinations(cells, 2) if relation == "replace" else [(cell, 0) for cell in cells]
        for left, right in pairs:
            change = left - right
            upper = np.triu_indices(3)
            norm = (
                np.abs(change[upper]).sum()
                if guarantee == PureDP(1.0)
                else np.sqrt((change**2).sum())
            )
            distances.append(norm / (plan.scales[SQUARES] * finer.radius**2))
    return max(distances) * plan.events[-1].multiplier


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("guarantee", [ZCDP(0.1), PureDP(1.0)], ids=str)
def test_neighbours_are_within_the_sensitivity(relation, guarantee):
    assert 0.6 < furthest(relation, guarantee) <= 1 + 1e-9


def test_a_planted_fault_shows(monkeypatch):
    """The scores are not held; the moments, whose rows are, do not come by this function."""

    def unheld(rows, lattice):
        return np.rint(np.nan_to_num(rows) * lattice.steps)

    monkeypatch.setattr(passes, "on_lattice", unheld)
    assert furthest("replace", ZCDP(0.1)) > 1.5


@pytest.mark.parametrize("guarantee", [ZCDP(0.1), PureDP(1.0)], ids=str)
def test_the_noise_has_the_law_that_is_stated(guarantee):
    """Of 80 releases whose moments repeat: false alarms 1e-6 by the test of Kolmogorov."""
    mechanism = RobustCovariance(Moments())
    plan = mechanism.plan(facts(), guarantee)
    statistic = mechanism.measure(bound(some_rows(60)), plan)
    noises, original = [], robust_covariance.noised_symmetric

    def kept(exact, steps, off, entropy, law):
        noisy = original(exact, steps, off, entropy, law)
        upper = np.triu_indices(3, 1)
        away = noisy - exact.astype(float)
        noises.append((np.diag(away) / steps, away[upper] / off, steps))
        return noisy

    with pytest.MonkeyPatch.context() as patch, dp.simulation(seed=3):
        patch.setattr(robust_covariance, "noised_symmetric", kept)
        from dpmodels.noise import source

        releases = [mechanism.release(statistic, plan, source()) for _ in range(80)]
    law = stats.laplace if isinstance(guarantee, PureDP) else stats.norm
    for part in (0, 1):
        values = np.concatenate([noise[part] for noise in noises])
        assert stats.kstest(values, law.cdf).pvalue > 1e-6
    meat, steps = releases[0].meat, noises[0][2]
    widest = 2.0 if isinstance(guarantee, PureDP) else 1.0
    unit = meat.most / (steps / plan.scales[SQUARES])
    assert meat.sd == pytest.approx(widest * steps * unit, rel=1e-3)


def test_only_released_values_steer_it(monkeypatch):
    """With the same released moments, two tables are asked for the same scores."""
    plan = RobustCovariance(Moments()).plan(facts(), ZCDP(0.1))
    release = Moments().release(
        moments(bound(some_rows(500)), plan.lattice),
        Moments().plan(facts(), ZCDP(0.1)),
        seeded(1),
    )
    calls, original = [], passes.score_squares
    monkeypatch.setattr(Moments, "release", lambda *_: release)

    def kept(design, lattice, score, finer, **words):
        calls.append((score.regressors.tolist(), score.residual.tolist(), finer))
        return original(design, lattice, score, finer, **words)

    monkeypatch.setattr(robust_covariance, "score_squares", kept)
    mechanism = RobustCovariance(Moments())
    for seed in (1, 2):
        rows = some_rows(20 * seed, seed)
        mechanism.release(mechanism.measure(bound(rows), plan), plan, seeded(3))
    assert calls[0] == calls[1]


def test_more_rows_leave_less_to_be_cut():
    """One row counts for less of a variance the more there are, as far as noise allows."""
    mechanism, radii = RobustCovariance(Moments()), []
    for count in (2_000, 20_000, 200_000):
        plan = mechanism.plan(facts(), ZCDP(1.0))
        with dp.simulation(seed=1):
            meat = mechanism.release(
                mechanism.measure(bound(some_rows(count)), plan), plan, seeded(1)
            ).meat
        radii.append(meat.most)
        assert 0 < meat.sd <= 0.2 * 1.01
    assert radii[2] < radii[0]


def test_what_is_no_share_is_refused():
    for share in (0.0, 1.0, "half", True):
        with pytest.raises(ArgumentError, match="share="):
            RobustCovariance(Moments(), share=share)
    plan = RobustCovariance(Moments()).plan(facts(), ZCDP(0.1))
    with pytest.raises(ArgumentError, match="measure"):
        RobustCovariance(Moments()).release(
            Statistic("moments", np.zeros((4, 4), object), 0), plan, seeded(1)
        )
