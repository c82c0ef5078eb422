"""Squares of persons' scores: how far a person moves them, by the noise and the price they have."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.private import unbound_design
from dpmodels.design.rows import requested_of
from dpmodels.errors import ArgumentError
from dpmodels.formula import design as formula_design
from dpmodels.mechanisms import Facts, robust_covariance
from dpmodels.mechanisms.regression import Moments
from dpmodels.mechanisms.robust_covariance import SQUARES, RobustCovariance
from dpmodels.noise import seeded
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    PureDP,
    group_events,
    planned_for_group,
    total_eps,
    total_rho,
)
from dpmodels.statistics import passes

NAMES = ("a", "b", "y")
BOOK = dp.codebook.uniform(NAMES, (-1, 1))
CLUSTERED = RobustCovariance(Moments(), vcov="cluster")


def facts(neighbours):
    return Facts(3, neighbours, centred=True)


def bound(rows, whose, neighbours):
    design = unbound_design(formula_design("~ a + b + y", BOOK))
    design = design.among(partial(requested_of, neighbours=neighbours, subset=None))
    return design.bind({**dict(zip(NAMES, np.reshape(rows, (-1, 3)).T, strict=True)), "id": whose})


def planned(neighbours, guarantee, mechanism=CLUSTERED):
    plan = partial(mechanism.plan, facts(neighbours))
    return planned_for_group(plan, lambda plan: plan.events, guarantee, neighbours.places)


@pytest.mark.parametrize("guarantee", [ZCDP(0.1), ApproxDP(1.0, 1e-6), PureDP(0.5)], ids=str)
@pytest.mark.parametrize("unit", ["mean", 1, 4])
def test_the_price_for_a_person_is_what_was_asked(guarantee, unit):
    neighbours = Adjacency("replace", unit, "id")
    plan = planned(neighbours, guarantee)
    events = group_events(plan.events, neighbours.places)
    if isinstance(guarantee, ZCDP):
        spent = total_rho(events) / guarantee.rho
    else:
        spent = total_eps(events, getattr(guarantee, "delta", 0.0)) / guarantee.eps
    assert 1 - 1e-6 < spent <= 1
    # Persons have the noise that rows have where neighbours differ in one.
    row = RobustCovariance(Moments()).plan(facts(Adjacency("replace")), guarantee)
    assert plan.scales[SQUARES] == pytest.approx(row.scales[SQUARES], rel=1e-6)


def furthest(unit, relation, guarantee):
    """How far persons are apart whose rows all change, by what the noise and its price allow."""
    neighbours = Adjacency(relation, unit, "id")
    plan = planned(neighbours, guarantee)
    rng = np.random.default_rng(1)
    whose = np.repeat(np.arange(150), 3)
    design = bound(rng.uniform(-1, 1, (450, 3)), whose, neighbours)
    scores = []
    original = robust_covariance.person_score_squares

    def kept(design, lattice, *words, **options):
        scores.append((lattice, *words))
        return original(design, lattice, *words, **options)

    with pytest.MonkeyPatch.context() as patch, dp.simulation(seed=1):
        patch.setattr(robust_covariance, "person_score_squares", kept)
        CLUSTERED.release(CLUSTERED.measure(design, plan), plan, seeded(1))
    ((lattice, score, finer, places),) = scores
    ends = np.array(np.meshgrid(*[[-1, 0.05, 1]] * 3)).reshape(3, -1).T
    # Persons of one row, of several alike, of several that are not.
    tables = [*ends[::2, None], *np.repeat(ends[::4, None], 4, axis=1), ends[::7], ends[:0]]
    # Ten times as long a score: all persons are cut.
    longer = score._replace(regressors=score.regressors * 10)
    norms, upper = [], np.triu_indices(3)
    for weights in (score, longer):
        cells = []
        for rows in tables:
            alone = bound(rows, [7] * len(rows), neighbours)
            exact = original(alone, lattice, weights, finer, places).cross()[0]
            cells.append(exact.astype(float))
        pairs = combinations(cells, 2) if relation == "replace" else [(cell, 0) for cell in cells]
        for left, right in pairs:
            change = left - right
            pure = isinstance(guarantee, PureDP)
            norm = np.abs(change[upper]).sum() if pure else np.sqrt((change**2).sum())
            norms.append(norm / (plan.scales[SQUARES] * finer.radius**2))
    return max(norms) * group_events(plan.events, neighbours.places)[-1].multiplier


@pytest.mark.parametrize("unit", ["mean", 3])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("guarantee", [ZCDP(0.1), PureDP(1.0)], ids=str)
def test_persons_are_within_the_sensitivity(unit, relation, guarantee):
    assert 0.6 < furthest(unit, relation, guarantee) <= 1 + 1e-9


def test_the_sensitivity_of_a_row_used_for_persons_shows(monkeypatch):
    """The planted fault: squares of rows with the noise that squares of persons need."""

    def rows_held(design, lattice, score, finer, places):
        return passes.score_squares(design, lattice, score, finer)

    monkeypatch.setattr(robust_covariance, "person_score_squares", rows_held)
    assert furthest(3, "add-remove", ZCDP(0.1)) > 2


def test_only_released_values_and_public_facts_steer_it(monkeypatch):
    """With the same released moments two tables of other persons are asked for the same scores."""
    neighbours = Adjacency("replace", 4, "id")
    plan, calls = planned(neighbours, ZCDP(0.1)), []
    tables = [bound(np.full((count, 3), 0.1), range(count), neighbours) for count in (90, 7)]
    released = Moments().release
    first = released(Moments().measure(tables[0], plan), plan, seeded(1))
    original = robust_covariance.person_score_squares

    def kept(design, lattice, score, *words, **options):
        calls.append((score.regressors.tolist(), score.residual.tolist(), words))
        return original(design, lattice, score, *words, **options)

    monkeypatch.setattr(Moments, "release", lambda *_: first)
    monkeypatch.setattr(robust_covariance, "person_score_squares", kept)
    for table in tables:
        CLUSTERED.release(CLUSTERED.measure(table, plan), plan, seeded(3))
    assert calls[0] == calls[1]


def test_scores_of_persons_need_persons():
    with pytest.raises(ArgumentError, match="person="):
        CLUSTERED.plan(facts(Adjacency("replace", 4)), ZCDP(0.1))
    with pytest.raises(ArgumentError, match=r'vcov=.*"HC" or "cluster"'):
        RobustCovariance(Moments(), vcov="iid")
