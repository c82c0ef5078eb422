"""Caps of weights: noise and cost in units, cells, grids, the choice."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.sampled_rows import SLOTS
from dpmodels.formula.sampling import sampling_of
from dpmodels.mechanisms.protocol import Facts
from dpmodels.mechanisms.regression import Moments
from dpmodels.mechanisms.robust_covariance import SQUARES, RobustCovariance
from dpmodels.mechanisms.sampled_rows import UNITS, Sampled, best_cap, cap_grid
from dpmodels.models.verb_spec import slots_of
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    GaussianEvent,
    PureDP,
    gaussian_multiplier,
    group_events,
    planned_for_group,
)

DESIGN = dp.design(weights="w", bounds=(1, 50), weights_are="design")
SAMPLING = sampling_of(dp.Codebook({}, design=DESIGN))


def planned(guarantee, neighbours):
    """Return the plan of a cap and moments, as a verb makes it."""
    facts = Facts(3, slots_of(Adjacency(neighbours)), centred=True)
    strategy = Sampled(Moments(), SAMPLING)
    return planned_for_group(
        lambda part: strategy.plan(facts, part), lambda plan: plan.events, guarantee, SLOTS
    )


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_unit_is_charged_for_the_noise_of_its_places(neighbours):
    """The noise of counts of units follows from what a unit is charged, not a place."""
    guarantee = ApproxDP(1.0, 1e-6)
    plan = planned(guarantee, neighbours)
    events = group_events(plan.events, SLOTS)
    assert all(isinstance(event, GaussianEvent) for event in events)
    total = math.fsum(event.count / event.multiplier**2 for event in events) ** -0.5
    assert total >= gaussian_multiplier(guarantee) * (1 - 1e-9)
    units = math.sqrt(2) if neighbours == "replace" else 1.0
    assert plan.scales[UNITS] == pytest.approx(events[-1].multiplier * units, rel=1e-9)
    assert plan.scales[UNITS] >= events[-1].multiplier * units


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_strata_and_marks_are_charged(neighbours):
    """A unit is in a cell and in a stratum; its vector is as long as score and marks together."""
    guarantee, facts = ZCDP(0.1), Facts(3, slots_of(Adjacency(neighbours)), centred=True)
    plans = []
    for marks in ((), (0.7, 0.25)):
        base = RobustCovariance(Moments(), vcov="cluster", share=0.2, marks=marks)
        strategy = Sampled(base, SAMPLING)
        plans.append(
            planned_for_group(
                partial(strategy.plan, facts), lambda plan: plan.events, guarantee, SLOTS
            )
        )
    without, marked = plans
    assert marked.events == without.events
    assert marked.scales[UNITS] == pytest.approx(math.sqrt(2) * without.scales[UNITS])
    assert marked.scales[SQUARES] == pytest.approx(1.5525 * without.scales[SQUARES])


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ZCDP(0.1)])
def test_other_guarantees_add_up(guarantee):
    events = group_events(planned(guarantee, "replace").events, SLOTS)
    if isinstance(guarantee, PureDP):
        assert math.fsum(event.count / event.multiplier for event in events) <= 1 + 1e-9
    else:
        assert math.fsum(event.count / (2 * event.multiplier**2) for event in events) <= 0.1 + 1e-9


@pytest.mark.parametrize(
    ("upper", "in_units"), list(product([0.4, 1.0, 50.0, 5040.0, 21_000.0], [False, True]))
)
def test_caps_reach_the_largest_weight(upper, in_units):
    design = dp.design(weights="w", bounds=(upper / 10, upper), weights_are="design")
    grid = cap_grid(sampling_of(dp.Codebook({}, design=design)), in_units=in_units)
    assert grid[-1] >= upper * (10 if in_units else 1)
    assert (np.diff(grid) > 0).all()
    power = grid[0]
    assert math.isclose(math.log10(power), round(math.log10(power)), abs_tol=1e-12)
    whole = SLOTS * power / grid
    np.testing.assert_allclose(whole, np.rint(whole), rtol=1e-12)


def test_no_weight_is_cut_where_there_is_no_noise():
    ends = cap_grid(SAMPLING, in_units=False)
    counts = np.where(ends <= 25.2, 100.0, 0.0)
    cap = best_cap(ends, counts, 1e-6, 1e-9)
    assert cap.cap == pytest.approx(25.2)
    assert cap.beyond == 0


def test_more_noise_cuts_more_weight():
    ends = cap_grid(SAMPLING, in_units=False)
    counts = 1_000.0 * np.exp(-ends / 6)
    caps = [best_cap(ends, counts, 1.0, price) for price in (0.1, 3.0, 100.0)]
    assert caps[0].cap > caps[1].cap > caps[2].cap
    assert 0 <= caps[0].beyond < caps[1].beyond < caps[2].beyond < 1


def test_noise_alone_gives_the_largest_cap():
    ends = cap_grid(SAMPLING, in_units=False)
    cap = best_cap(ends, np.zeros(len(ends)), 1.0, 1.0)
    assert cap.cap == ends[-1]
    assert math.isnan(cap.beyond_sd)


def test_a_unit_moves_counts_by_at_most_the_root_of_two():
    """Brute force over neighbours in one unit, rows or sampling units."""
    from dpmodels.models.lm import lm_spec
    from dpmodels.request import requested
    from dpmodels.statistics.unit_weights import UnitWeights

    rng, book = np.random.default_rng(5), dp.codebook(x=(0, 1), y=(0, 1))
    words = {"weights": None, "row_norm": None, "vcov": None, "lump": None}
    for psu in (None, "u"):
        design = dp.design(weights="w", psu=psu, bounds=(1, 50), weights_are="design")
        request = requested("lm", "y ~ x", book, 1.0, 1e-6, None, None, design=design, **words)
        ends = cap_grid(sampling_of(request.codebook), in_units=psu is not None)
        for _ in range(20):
            rows = {
                "x": rng.random(60),
                "y": rng.random(60),
                "w": rng.uniform(0, 60, 60),
                "u": rng.integers(0, 12, 60),
            }
            other = {name: column.copy() for name, column in rows.items()}
            changed = np.flatnonzero(rows["u"] == rows["u"][0]) if psu else [0]
            other["w"][changed] = rng.choice([-1.0, np.nan, 1.0, 50.0, 1e9], len(changed))
            counts = [
                UnitWeights(lm_spec(request).private.bind(table), 50.0, count_public=True)
                for table in (rows, other)
            ]
            moved = counts[0].by_weight(ends) - counts[1].by_weight(ends)
            assert np.linalg.norm(moved.astype(float)) <= math.sqrt(2)
            assert np.abs(moved).sum() <= 2


STRATIFIED = dp.design(weights="w", psu="u", strata="s", bounds=(1, 50), weights_are="design")


def marked_squares(rows, cap, factors, amounts):
    """Exact integers of marks and scores of units, under a cap, on a coarse lattice."""
    from dpmodels.models.lm import lm_spec
    from dpmodels.noise.lattice import Lattice
    from dpmodels.request import requested
    from dpmodels.statistics.passes import Score, person_score_squares

    book = dp.codebook(x=(0, 1), y=(0, 1), s=["a", "b"])
    words = {"weights": None, "row_norm": None, "vcov": None, "lump": None}
    request = requested("lm", "y ~ x", book, 1.0, 1e-6, None, None, design=STRATIFIED, **words)
    design = lm_spec(request).private.bind(rows)
    for _ in design.unit_weights():
        pass
    matrix = np.array([[1.0, 0.4, 0.1], [0.2, 1.0, 0.3]])
    score = Score(matrix * SLOTS * 3, np.array([0.1, 0.5, 1.0]), np.eye(2))
    exact, _ = person_score_squares(
        design.capped(cap, factors),
        *(Lattice(12, 2), score, Lattice(10, 2), SLOTS, amounts),
        count_public=True,
    ).cross()
    return exact.astype(float)


@pytest.mark.parametrize(("amounts", "factors"), [((0.7,), ()), ((0.7, 0.25), (1.2, 0.4))])
def test_a_unit_with_marks_moves_squares_by_the_planned_sensitivity(amounts, factors):
    """Brute force: a unit is replaced, with all of its rows, its weights and its stratum."""
    rng, moved = np.random.default_rng(7), []
    planned = math.sqrt(2) * (1 + math.fsum(amount**2 for amount in amounts))
    for _ in range(12):
        rows = {
            "x": rng.integers(0, 2, 40).astype(float),
            "y": rng.integers(0, 2, 40).astype(float),
            "w": rng.choice([1.0, 8.0, 50.0, np.nan], 40),
            "u": rng.integers(0, 8, 40),
            "s": np.repeat("a", 40),
        }
        other = {name: column.copy() for name, column in rows.items()}
        changed = rows["u"] == rows["u"][0]
        other["w"][changed] = rng.choice([1.0, 50.0, 60.0])
        other["y"][changed] = rng.integers(0, 2)
        other["s"] = np.where(changed, rng.choice(["a", "b"]), other["s"])
        squares = [marked_squares(table, 20.0, factors, amounts) for table in (rows, other)]
        moved.append(np.linalg.norm(squares[0] - squares[1]) / 2.0**20)
    assert 0.4 * planned < max(moved) <= planned


def test_what_a_unit_adds_is_its_marks_and_its_score():
    rows = {
        "x": np.array([0.0, 1.0, 1.0]),
        "y": np.array([1.0, 0.0, 1.0]),
        "w": np.array([40.0, 10.0, 5.0]),
        "u": np.array([1, 2, 3]),
        "s": np.array(["a", "b", "a"]),
    }
    squares = marked_squares(rows, 20.0, (), (0.5, 0.25))
    assert np.diagonal(squares)[:3] == pytest.approx(np.array([1, 2, 1]) * [512**2, 256**2, 256**2])
    # The unit above the cap is of the first stratum, whose other unit has a shorter score.
    assert squares[0, 1] == 512 * 256
    assert squares[0, 2] == 0
    assert np.abs(squares[0, 3:] / 2).sum() > 0


@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_what_the_cap_cut_off_is_put_back(shift):
    """The score moves by the excess times the sum of scores, less where noise hides it."""
    from dpmodels.postprocess.capped_scores import put_back
    from dpmodels.postprocess.normal_equations import NormalEquations, least_squares
    from dpmodels.released import CapExcess, Meat, UnitCap, UnitScores

    rng = np.random.default_rng(2)
    columns = np.column_stack([np.ones(200), rng.normal(size=(200, 2))])
    moments = columns.T @ columns
    equations = NormalEquations(
        moments, np.full((3, 3), 1e-12), np.eye(3)[:, :2], np.eye(3)[:, 2], intercept=True
    )
    root = np.array([[2.0, 0.0], [0.5, 1.0]])
    units = UnitScores(np.array([shift, -shift]), capped_sd=1.0)
    meat = Meat(np.eye(2), root, 0.01, 1.0, 0.2, "u", units)
    excess = CapExcess(0.5, 0.1, 0.3, 0.2)

    class Release:
        pass

    release = Release()
    release.count = 0.0
    release.units, release.meat = UnitCap(10.0, 0.1, 0.01, excess=excess), meat
    back = put_back(equations, release)
    moved = least_squares(back) - least_squares(equations)
    kept = 1 - 1 / shift**2 if shift else 0.0
    expected = np.linalg.solve(moments[:2, :2], 0.45 * kept * root @ [shift, -shift])
    assert moved == pytest.approx(expected, abs=1e-12)
    # The error is that of the noise of all that might be put back, and a part of what was.
    errors = np.hypot(0.25, 0.2) * 0.45 * kept * root @ np.array([shift, -shift])
    covariance = 0.45**2 * root @ root.T + np.outer(errors, errors)
    assert back.pull == pytest.approx(covariance)
    # Related excess is allowed for with the spread of excess and the squares of scores.
    release.count = 400.0
    related = 0.08 * 0.9 * 0.2 * math.sqrt((0.3 - 0.25) * 400)
    wider = np.hypot(0.45, related)
    covariance = wider**2 * root @ root.T + np.outer(errors, errors)
    assert put_back(equations, release).pull == pytest.approx(covariance)
