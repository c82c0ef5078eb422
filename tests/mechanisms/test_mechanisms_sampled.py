"""Caps of weights: noise and cost in units, cells, grids, the choice."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.sampled_rows import SLOTS
from dpmodels.formula.sampling import sampling_of
from dpmodels.mechanisms.protocol import Facts
from dpmodels.mechanisms.regression import Moments
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
