"""The exponential mechanism for quantiles: its price against every neighbour of small tables."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from folded import each
from scipy import stats

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.quantile_facts import Grid
from dpmodels.mechanisms.scalar.exponential import (
    DETECTED,
    Drawing,
    Exponential,
    QuantileFacts,
    count_changes,
    draw_cell,
    loss_range,
    rank_errors,
)
from dpmodels.noise import seeded
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeEvent,
    LaplaceEvent,
    PureDP,
    adjacency,
    total_eps,
    total_rho,
)
from dpmodels.statistics import Statistic

RELATIONS = ("replace", "add-remove")
CELLS = 3
# The first and the last, which ordinary runs take, are those that a row moves most.
PROBS = (0.2, 0.0, 0.5, 1.0, 0.8)


def facts(probs=(0.5,), groups=1, level=0.95, relation="replace", grid=CELLS):
    return QuantileFacts(probs, groups, Grid(grid), level, adjacency(relation))


def tables(rows, groups):
    """Every table of so many rows: counts by group and cell, incomplete rows left out."""
    places = (*product(range(groups), range(CELLS)), None)
    for chosen in combinations_with_replacement(places, rows):
        counts = np.zeros((groups, CELLS), dtype=int)
        for place in filter(None, chosen):
            counts[place] += 1
        yield counts


def neighbours(groups, relation, rows=2):
    """Pairs of tables that differ in one row, each once or more."""
    places = (*product(range(groups), range(CELLS)), None)
    for counts in tables(rows, groups):
        for place in places:
            changed = counts.copy()
            if place is not None:
                changed[place] += 1
            if relation == "add-remove":
                yield counts, changed
                continue
            for replacement in places:
                instead = counts.copy()
                if replacement is not None:
                    instead[replacement] += 1
                yield changed, instead


def moved(counts, changed, prob):
    """Length of the interval that all groups' rank errors move in."""

    def errors(counts):
        return rank_errors(np.concatenate([[0], np.cumsum(counts)]), prob) / prob.denominator

    return sum(np.ptp(errors(a) - errors(b)) for a, b in zip(counts, changed, strict=True))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("prob", PROBS)
def test_no_neighbours_move_rank_errors_in_a_longer_interval(prob, relation):
    """Without groups; a rank at the very end moves less, one a little inside as declared."""
    share = Fraction(repr(prob))
    largest = max(moved(*pair, share) for pair in neighbours(1, relation, rows=5))
    declared = loss_range(facts(relation=relation), prob)
    assert largest <= declared * (1 + 1e-12)
    if 0 < prob < 1:
        assert largest >= declared * (1 - 1e-12)


@pytest.mark.parametrize("prob", PROBS)
def test_neighbours_in_two_groups_move_both_as_far(prob):
    """A row that leaves a group and enters another: all pairs of what either does to one."""
    share = Fraction(repr(prob))
    pairs = list(neighbours(2, "replace"))
    declared = loss_range(facts(groups=2), prob)
    assert max(moved(*pair, share) for pair in pairs) <= declared * (1 + 1e-12)
    largest = max(moved(*pair, share) for pair in neighbours(1, "add-remove", rows=5))
    assert 2 * largest <= declared * (1 + 1e-12)
    if 0 < prob < 1:
        assert 2 * largest >= declared * (1 - 1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("groups", [1, 2])
def test_the_numbers_of_rows_have_the_declared_sensitivity(groups, relation):
    largest = max(
        np.abs(left.sum(axis=1) - right.sum(axis=1)).sum()
        for left, right in neighbours(groups, relation)
    )
    assert largest == count_changes(facts(groups=groups, relation=relation))


@pytest.mark.parametrize("prob", [0.0, 0.1, 0.5, 0.93, 1.0])
@pytest.mark.parametrize("rows", [30.0, 41.5, 300.0, 1e6])
def test_a_rank_moved_inside_costs_no_more_neighbours(prob, rows):
    """The sensitivity at the share drawn is not above the one that was paid for."""
    width = Drawing(prob, 1000, rows).middle(0.9)
    if not math.isnan(width):
        public_facts = facts(groups=2)
        assert abs(width - 0.5) <= abs(prob - 0.5)
        assert loss_range(public_facts, width) <= loss_range(public_facts, prob)


@each("level", [None, 0.9])
@each("probs", [(0.5,), (0.1, 0.5, 0.9), tuple(np.arange(1, 40) / 40)])
@each("groups", [1, 4])
@each("relation", RELATIONS)
@each(
    "guarantee",
    [PureDP(0.7), PureDP(1e-9), PureDP(1e9), ZCDP(0.2), ApproxDP(1.0, 1e-6), ApproxDP(1e-9, 1e-6)],
)
def test_a_plan_costs_what_is_granted(guarantee, relation, groups, probs, level):
    public_facts = facts(probs, groups, level, relation, grid=1000)
    plan = Exponential().plan(public_facts, guarantee)
    if isinstance(guarantee, ZCDP):
        spent, granted = total_rho(plan.events), guarantee.rho
    else:
        delta = getattr(guarantee, "delta", 0.0)
        spent, granted = total_eps(plan.events, delta), guarantee.eps
    assert spent <= granted
    if not isinstance(guarantee, ApproxDP):
        assert spent >= granted * (1 - 1e-9)
    eps = [event.eps for event in plan.events if isinstance(event, BoundedRangeEvent)]
    (counted,) = (event for event in plan.events if isinstance(event, LaplaceEvent))
    for prob, slope in zip(probs, plan.middle, strict=True):
        assert slope * loss_range(public_facts, prob) <= eps[0]
    assert count_changes(public_facts) / plan.count_scale <= 1 / counted.multiplier
    assert len(eps) == 1


def test_a_delta_lets_many_draws_be_sharper_and_few_not():
    several = facts(tuple(np.arange(1, 20) / 20), level=None)
    plain, helped = (
        Exponential().plan(several, inputs).middle[0] for inputs in (PureDP(1), ApproxDP(1, 1e-6))
    )
    assert helped > 1.4 * plain
    single = facts(level=None)
    plain, helped = (
        Exponential().plan(single, inputs).middle[0] for inputs in (PureDP(1), ApproxDP(1, 1e-6))
    )
    assert helped == plain


@pytest.mark.parametrize("guarantee", [PureDP(1e-15), PureDP(1e-90), ZCDP(1e-40)], ids=str)
def test_noise_beyond_meaning_is_refused_and_not_cut_down(guarantee):
    with pytest.raises(BudgetError, match="larger eps"):
        Exponential().plan(facts(), guarantee)


# ---- draws ---------------------------------------------------------------------------


@pytest.mark.parametrize("prob", [0.0, 0.3, 1.0])
def test_cells_are_drawn_by_their_rank_errors(prob):
    """False alarms: 1e-8 nominal by the chi-square law, with 50 expected in each cell or more."""
    counts, slope, draws = np.array([2, 0, 1, 3, 0]), 0.4, 4000
    ranks = np.concatenate([[0], np.cumsum(counts)])
    away = np.maximum(np.maximum(ranks[:-1] - prob * 6, prob * 6 - ranks[1:]), 0)
    law = np.exp(-slope * away)
    entropy = seeded(4)
    share = Fraction(repr(prob))
    cells = [draw_cell(ranks, share, slope, entropy) for _ in range(draws)]
    expected = draws * law / law.sum()
    assert stats.chisquare(np.bincount(cells, minlength=5), expected).pvalue > 1e-8


def test_ranks_of_any_size_are_exact():
    """Products beyond machine integers are as exact as those within."""
    ranks = np.array([0, 5, 9])
    share = Fraction(10**30 + 1, 3 * 10**30)
    target = share * 9
    expected = [max(low - target, target - high, 0) for low, high in ((0, 5), (5, 9))]
    errors = rank_errors(ranks, share)
    assert [Fraction(int(error), share.denominator) for error in errors] == expected


def released(cells, probs, guarantee, level=0.95, relation="replace", seed=1):
    table = np.atleast_2d(cells)
    public_facts = facts(probs, len(table), level, relation, table.shape[1])
    plan = Exponential().plan(public_facts, guarantee)
    exact = np.append(table.ravel(), 0).astype(object)
    statistic = Statistic("counts", exact, int(table.sum()))
    return plan, Exponential().release(statistic, plan, seeded(seed))


def test_a_huge_budget_gives_the_quantiles_cells():
    cells = np.zeros(100, dtype=int)
    cells[[10, 40, 70]] = 30, 50, 20
    _, release = released(cells, (0.0, 0.5, 1.0), PureDP(1e6))
    assert release.values[0, :, 0] * 99 == pytest.approx([10, 40, 70])
    assert release.counts == pytest.approx([100])
    assert np.isnan(release.values[:, :, 1:]).all()


def test_a_group_not_told_from_none_has_no_quantiles():
    plan, release = released([[0] * 50, [400] * 50], (0.25, 0.5), PureDP(1.0))
    assert np.isnan(release.values[0, :, 0]).all()
    assert np.isnan(release.drawn[0]).all()
    assert np.isfinite(release.values[1, :, 0]).all()
    assert release.counts[0] < DETECTED * release.count_sd[0]
    assert plan.count_scale == pytest.approx(2 / 0.05)


def test_ranks_near_the_ends_are_moved_inside():
    _, release = released(np.full(1000, 3), (0.0, 0.5, 1.0), PureDP(1.0), level=None)
    low, middle, high = release.drawn[0]
    assert 0 < low < 0.1
    assert (middle, high) == pytest.approx((0.5, 1 - low))
    assert np.isnan(release.values[:, :, 1:]).all()
    assert released([3, 3], (0.0,), PureDP(1.0), relation="add-remove")[1].rows is None
