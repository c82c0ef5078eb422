"""A step of a generalised linear model to all weights: sensitivity, budget, scores, units."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

import dpmodels as dp
from dpmodels.design.parts import SLOTS
from dpmodels.formula.tally import sampling_of
from dpmodels.mechanisms.protocol import Facts, Plan, RegressionFacts, passes
from dpmodels.mechanisms.regression import COEFFICIENTS, Objective
from dpmodels.mechanisms.robust_covariance import SQUARES
from dpmodels.mechanisms.sampled_rows import UNITS, Sampled
from dpmodels.mechanisms.weighted_scores import (
    ENDS,
    LENGTHS,
    MARKS,
    ROUNDS,
    SHARES,
    ScoreNoise,
    WeightedGradients,
    _of_counted_rows,
    _unclipped,
    with_step,
)
from dpmodels.models.glm import glm_spec
from dpmodels.noise.lattice import FINE_BITS, MAX_BITS, Lattice
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    GaussianEvent,
    LaplaceEvent,
    PureDP,
    gaussian_multiplier,
    group_events,
    planned_for_group,
)
from dpmodels.released import Ball
from dpmodels.request import requested
from dpmodels.statistics.gradient import GradientScore
from dpmodels.statistics.losses import Multinomial, Poisson
from dpmodels.statistics.score_moments import UnitScores

STRATIFIED = dp.design(weights="w", psu="u", strata="s", bounds=(1, 50), weights_are="design")
BOOK = dp.codebook(x=(0, 1), y=(0, 1), n=(0, 9), s=["a", "b"])
OPTIONS = {
    "clip": None,
    "ridge": None,
    "inference": True,
    "scale": "range",
    "row_norm": None,
}
POINT, AXES = np.array([0.3, -0.8]), np.array([[1.0, 0.4], [-0.2, 1.5]])


def spec_of(family):
    """Return the specification of a regression under a design."""
    formula = "y ~ x" if family == "binomial" else "n ~ x"
    options = {**OPTIONS, "family": family}
    return glm_spec(
        requested("glm", formula, BOOK, 1.0, 1e-6, None, None, design=STRATIFIED, **options)
    )


def unit_scores(rows, family, cap, factors=()):
    """Return the exact scores of units, and the rows and facts that they are of."""
    spec = spec_of(family)
    design = spec.private.bind(rows)
    for _ in design.rows.unit_weights():
        pass
    gradients = passes(design.of(design.rows.capped(cap, factors)), spec.facts)
    score = GradientScore(AXES * SLOTS, POINT, spec.facts.predictors, _unclipped(spec.facts))
    exact = UnitScores(gradients.designs[0], gradients.lattice, score, SLOTS)
    return exact, spec.facts


def simulated(rng, n_rows=40):
    """Return rows of eight sampling units in one stratum, some without a valid weight."""
    return {
        "x": rng.integers(0, 2, n_rows).astype(float),
        "y": rng.integers(0, 2, n_rows),
        "n": rng.integers(0, 10, n_rows),
        "w": rng.choice([1.0, 8.0, 50.0, np.nan], n_rows),
        "u": rng.integers(0, 8, n_rows),
        "s": np.repeat("a", n_rows),
    }


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize(("levels", "factors"), [(0, ()), (2, (1.2, 0.4))])
def test_a_unit_moves_lengths_and_squares_by_the_planned_sensitivity(family, levels, factors):
    """Brute force: a unit is replaced, with all of its rows, its weights and its stratum."""
    rng, moved = np.random.default_rng(7), []
    marks = MARKS if levels else MARKS[:1]
    planned = math.sqrt(2) * (1 + math.fsum(mark**2 for mark in marks))
    least = math.sqrt(min(factors) / max(factors)) if factors else 1.0
    for _ in range(8):
        rows = simulated(rng)
        other = {name: column.copy() for name, column in rows.items()}
        changed = rows["u"] == rows["u"][0]
        other["w"][changed] = rng.choice([1.0, 50.0, 60.0])
        other["y"][changed], other["n"][changed] = rng.integers(0, 2), rng.choice([0, 9])
        other["s"] = np.where(changed, rng.choice(["a", "b"]), other["s"])
        lengths, squares = [], []
        for table in (rows, other):
            exact, _ = unit_scores(table, family, 20.0, factors)
            lengths.append(exact.by_length(ENDS).astype(float))
            squares.append(exact.squares(0.05, Lattice(10, 2), marks, least, levels).astype(float))
        assert np.linalg.norm(lengths[0] - lengths[1]) <= math.sqrt(2)
        moved.append(np.linalg.norm(squares[0] - squares[1]) / 2.0**20)
    assert 0.4 * planned < max(moved) <= planned


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_scores_of_units_are_weighted_sums_over_their_rows(family):
    rng = np.random.default_rng(3)
    rows = simulated(rng) | {"w": rng.choice([1.0, 5.0, 10.0, 42.0], 40)}
    exact, facts = unit_scores(rows, family, 504.0)
    half = facts.predictors.share
    z = np.stack([np.full(40, facts.predictors.constant), (2 * rows["x"] - 1) * half])
    linear = POINT @ z
    residual = rows["y"] - expit(linear) if family == "binomial" else rows["n"] - np.exp(linear)
    scores = AXES @ (z * residual * rows["w"] / 504.0 * SLOTS)
    expected = np.stack([np.bincount(rows["u"], line, 8) for line in scores])
    # Units are numbered in an order of their own.
    by_first = (array[:, np.argsort(array[0])] for array in (exact._scores, expected))
    np.testing.assert_allclose(*by_first, rtol=2e-4, atol=2e-3)
    lengths = np.sqrt((expected**2).sum(axis=0))
    limits = (np.sort(lengths)[[1, 4]] + np.sort(lengths)[[2, 5]]) / 2
    # Cells end at the limits, and the last one has the longer scores too.
    assert exact.by_length(limits).tolist() == [2, 6]


@pytest.mark.parametrize("bits", [MAX_BITS, FINE_BITS])
def test_a_score_is_a_function_of_its_row_alone(bits):
    """Bit for bit, whatever stands beside it: privacy rests on it."""
    facts = spec_of("poisson").facts
    predictors = replace(facts.predictors, bits=bits)
    score = GradientScore(AXES, POINT, predictors, _unclipped(facts))
    lattice, rng = predictors.lattice, np.random.default_rng(5)
    block = np.rint(rng.uniform(-0.7, 0.7, (3, 67)) * lattice.radius)
    block[0] = lattice.radius
    together = score.function(lattice)(block.copy())
    apart = np.hstack([score.function(lattice)(block[:, [at]]) for at in range(67)])
    np.testing.assert_array_equal(together, apart)


def planned_step(guarantee, neighbours, levels):
    """Return the plan of a cap, coefficients and the scores of a step."""
    facts = spec_of("binomial").facts
    facts = RegressionFacts(
        facts.predictors, facts.loss, dp.privacy.Adjacency(neighbours, SLOTS, "u")
    )
    sampling = sampling_of(dp.Codebook({}, design=dp.design(**WEIGHTS)))
    strategy = Sampled(with_step(Objective(), facts, levels), sampling)
    return planned_for_group(
        partial(strategy.plan, facts), lambda plan: plan.events, guarantee, SLOTS
    )


WEIGHTS = {"weights": "w", "bounds": (1, 50), "weights_are": "design"}


@pytest.mark.expensive
@pytest.mark.parametrize("guarantee", [PureDP(1.0), ZCDP(0.1), ApproxDP(1.0, 1e-6)])
def test_a_step_costs_the_budget(guarantee):
    events = group_events(planned_step(guarantee, "replace", 4).events, SLOTS)
    if isinstance(guarantee, PureDP):
        cost = math.fsum(
            event.count * (getattr(event, "eps", 0.0) or 1 / event.multiplier) for event in events
        )
        assert 0.98 < cost <= 1 + 1e-9
        return
    cost = math.fsum(event.count / event.multiplier**2 for event in events)
    budget = gaussian_multiplier(guarantee) ** -2
    assert 0.999 * budget < cost <= budget * (1 + 1e-9)


@pytest.mark.expensive
def test_strata_and_marks_are_charged():
    without, marked = (planned_step(ZCDP(0.1), "replace", levels) for levels in (0, 4))
    assert marked.events == without.events
    assert marked.scales[UNITS] == pytest.approx(math.sqrt(2) * without.scales[UNITS])
    assert marked.scales[SQUARES] == pytest.approx(2.0625 / 2 * without.scales[SQUARES])


@pytest.mark.expensive
def test_lengths_and_squares_have_no_less_noise_than_is_charged():
    """In fractions: a unit that is replaced moves two cells of lengths, and two scores."""
    plan = planned_step(ZCDP(0.1), "replace", 0)
    lengths, squares = (Fraction(event.multiplier) / SLOTS for event in plan.events[-3:-1])
    square = 1 + Fraction(MARKS[0]) ** 2
    for name, least in ((LENGTHS, lengths), (SQUARES, square * squares)):
        variance = Fraction(plan.scales[name]) ** 2
        assert 2 * least**2 < variance < 2 * least**2 * Fraction(1 + 1e-9)


@pytest.mark.parametrize("guarantee", [ZCDP(1e20), PureDP(1e12)])
def test_faint_scores_are_released_twice_for_what_one_costs(guarantee):
    adjacency = dp.privacy.Adjacency("replace", SLOTS, "u")
    plans = [
        ScoreNoise(2, 0, faint_rounds=rounds).plan(
            partial(plan_of_one_event, guarantee), adjacency, guarantee
        )
        for rounds in (1, 2)
    ]
    assert [plan.scales[ROUNDS] for plan in plans] == [1.0, 2.0]
    once, twice = (plan.events[1:] for plan in plans)
    assert twice[:2] == twice[2:]
    power = 2 if isinstance(guarantee, ZCDP) else 1
    for single, repeated in zip(once, twice[:2], strict=True):
        cost = 2 * Fraction(repeated.multiplier) ** -power
        assert abs(cost * Fraction(single.multiplier) ** power - 1) < 1e-9
    budget = guarantee.eps if power == 1 else 2 * guarantee.rho
    cost = sum(Fraction(event.multiplier) ** -power for event in twice)
    assert (1 - 1e-9) * budget < cost / Fraction(math.fsum(SHARES)) <= budget
    for name, event in zip((LENGTHS, SQUARES), twice[:2], strict=True):
        growth = plans[1].scales[name] / plans[0].scales[name]
        assert growth == pytest.approx(2 ** (1 / power), rel=1e-9)
        assert plans[1].scales[name] >= event.multiplier / SLOTS


def plan_of_one_event(first, guarantee):
    """Return a plan of one event that leaves all else to scores."""
    pure = isinstance(first, PureDP)
    event = LaplaceEvent(1.0) if pure else GaussianEvent(1.0)
    facts = Facts(2, dp.privacy.Adjacency("replace"), centred=True)
    return Plan(guarantee, (event,), Lattice(MAX_BITS, 2), facts)


def test_a_step_needs_curvature_and_one_linear_predictor():
    facts = spec_of("binomial").facts
    assert isinstance(with_step(Objective(), facts, 0), WeightedGradients)
    for base in (Objective(inference=False), COEFFICIENTS["output"]()):
        assert with_step(base, facts, 0) is base
    several = RegressionFacts(facts.predictors, Multinomial(3), facts.adjacency)
    assert not isinstance(with_step(COEFFICIENTS["gradients"](), several, 0), WeightedGradients)


def test_no_residual_is_clipped_in_a_step():
    loss = _unclipped(spec_of("poisson").facts)
    assert isinstance(loss, Poisson)
    linear, response = np.array([[-50.0, 0.0, 50.0]]), np.array([9.0, 0.0, 0.0])
    residual = loss.pull(linear, response) * loss.clip
    assert residual == pytest.approx(response - loss.expected(linear))


@pytest.mark.parametrize("axes", [None, np.array([[0.5]])])
def test_rows_beyond_a_released_ball_take_no_part_in_the_step(axes):
    """The curvature has left them out too."""
    spec, rows = spec_of("binomial"), {"x": np.array([0.0, 0.45, 0.55, 1.0])}
    rows |= {"y": np.zeros(4, int), "n": np.zeros(4, int), "w": np.full(4, 5.0)}
    rows |= {"u": np.arange(4), "s": np.repeat("a", 4)}
    gradients = passes(spec.private.bind(rows), spec.facts)
    scaling, public = gradients.scaling, spec.facts.predictors
    radius = 0.3 if axes is not None else 0.3 * scaling.row_norm
    onto = None if axes is None else axes * scaling.row_norm
    centre = scaling.centre[:1] + 0.02 * scaling.row_norm * scaling.scale[:1]

    class Release:
        ball = Ball(centre, radius, 0.0, 0.0, onto)

    predictors = _of_counted_rows(Release(), scaling, public)
    turn = None if axes is None else np.linalg.inv(axes)
    near = public.within(np.array([0.02]), 0.3, turn)
    lattice, x = public.lattice, np.array([-0.6, -0.1, 0.02, 0.1, 0.6])
    block = np.vstack([np.ones(5), x, np.zeros(5)]) * lattice.radius
    scores, expected = (
        GradientScore(np.eye(2), POINT, rows_of, _unclipped(spec.facts)).function(lattice)(block)
        for rows_of in (predictors, near)
    )
    inside = near.inside(block, lattice)
    assert 0 < inside.sum() < 5
    assert (scores[:, ~inside] == 0).all()
    assert (scores[:, inside] != 0).all()
    assert scores == pytest.approx(expected, rel=1e-9)


def test_rows_are_all_in_the_step_without_a_ball():
    public = spec_of("binomial").facts.predictors
    assert _of_counted_rows(SimpleNamespace(ball=None), None, public) is public
