"""Noise on residual components: its cost for every pair of rows, its shares, its bits."""

import math
from itertools import combinations, product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import BudgetError
from dpmodels.mechanisms import protocol
from dpmodels.mechanisms.add_noise import SMALLEST_SCALE
from dpmodels.mechanisms.margins import Residual
from dpmodels.mechanisms.protocol import MarginFacts, all_cells, best_variances, squared_sensitivity
from dpmodels.noise import source
from dpmodels.postprocess.residuals import cells, split, subsets
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency
from dpmodels.statistics import Statistic

ADDED, REPLACED = adjacency("add-remove"), adjacency("replace")
# Sizes of variables, and margins.
SHAPES = [
    ((3,), ((0,),)),
    ((3, 4), ((0, 1),)),
    ((3, 5, 3), ((0,), (1,), (0, 1), (1, 2))),
    ((3, 3, 3, 4), ((0, 1), (1, 2), (2, 3), (0, 3))),
    ((3, 3, 4), ((0, 1, 2),)),
    ((2, 2, 2, 2, 2), tuple(combinations(range(5), 2))),
]


def component(part, row, sizes):
    """What a row adds to a component, by its definition."""
    vector = np.ones(1)
    for i in part:
        factor = -np.ones(sizes[i]) / sizes[i]
        factor[row[i]] += 1
        vector = np.kron(vector, factor)
    return vector


def moved(facts, variances, row, replacement):
    total = 0.0
    for part in facts.components:
        vector = component(part, row, facts.sizes)
        if replacement is not None:
            vector = vector - component(part, replacement, facts.sizes)
        total += float(vector @ vector) / variances[part]
    return total


@pytest.mark.parametrize(("sizes", "terms"), SHAPES)
@pytest.mark.parametrize("relation", [ADDED, REPLACED], ids=["add-remove", "replace"])
def test_no_neighbours_are_farther_and_some_are_as_far(sizes, terms, relation):
    facts = MarginFacts(sizes, terms, relation)
    rng = np.random.default_rng(0)
    uneven = {part: float(rng.uniform(0.2, 5)) for part in facts.components}
    for variances in (best_variances(facts), uneven):
        first = (0,) * len(sizes)
        replacements = product(*map(range, sizes)) if relation.n_public else [None]
        distances = [moved(facts, variances, first, replacement) for replacement in replacements]
        assert max(distances) == pytest.approx(squared_sensitivity(facts, variances), rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_for_many_variables_holds_and_is_near(seed):
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(2, 8, 9).tolist())
    every = [term for k in (1, 2, 3) for term in combinations(range(9), k)]
    few = rng.choice(len(every), 30, replace=False)
    for terms in ([every[i] for i in few], [cell for cell in every if len(cell) < 3]):
        facts = MarginFacts(sizes, tuple(terms), REPLACED)
        weights = {part: 1 / variance for part, variance in best_variances(facts).items()}
        exact = protocol._least(weights, sizes)
        assert protocol._bound(weights, sizes) <= exact + 1e-9


@pytest.mark.parametrize("size", [3, 6])
def test_all_pairs_of_forty_variables_cost_little_more_than_their_lengths(size):
    """Twice the squared length of what one row adds is a lower bound, as the mean pair has it."""
    facts = MarginFacts((size,) * 40, tuple(combinations(range(40), 2)), REPLACED)
    variances = best_variances(facts)
    alone = squared_sensitivity(
        MarginFacts(facts.sizes, facts.terms, ADDED), {(): math.inf, **variances}
    )
    assert 1 <= squared_sensitivity(facts, variances) / (2 * alone) < 1.02


def planned_by_hand(n, d, order):
    """The closed form of Xiao and others for all margins of so many variables, at unit cost."""
    total = 0.0
    for k in range(order + 1):
        p = ((n - 1) / n) ** k
        v = math.comb(d - k, order - k) * n**order * p * n ** (-2.0 * (order - k))
        total += math.comb(d, k) * math.sqrt(p * v)
    return total**2


@pytest.mark.parametrize(("n", "d", "order"), [(5, 20, 2), (6, 20, 2), (3, 7, 3), (4, 1, 1)])
def test_the_variances_have_the_least_sum(n, d, order):
    facts = MarginFacts((n,) * d, tuple(combinations(range(d), order)), ADDED)
    plan = Residual().plan(facts, ZCDP(0.5))
    variances = {part: sd**2 for part, sd in zip(plan.measured, plan.noise_sds, strict=True)}
    assert all_cells(facts, variances) == pytest.approx(planned_by_hand(n, d, order), rel=1e-9)
    replaced = MarginFacts(facts.sizes, facts.terms, REPLACED)
    release_plan = Residual().plan(replaced, ZCDP(0.5))
    values_by_name = {
        part: sd**2 for part, sd in zip(release_plan.measured, release_plan.noise_sds, strict=True)
    }
    if d > 1:
        assert all_cells(replaced, values_by_name) <= 1.02 * 2 * planned_by_hand(n, d, order)


def test_twenty_variables_have_less_noise_than_each_margin_alone():
    """Cells of five declared levels; alone they need no level for what is missing."""
    facts = MarginFacts((6,) * 20, tuple(combinations(range(20), 2)), REPLACED)
    plan = Residual().plan(facts, ZCDP(0.5))
    variances = {part: sd**2 for part, sd in zip(plan.measured, plan.noise_sds, strict=True)}
    cell = all_cells(facts, variances) / (190 * 36)
    assert cell <= 0.7 * 2 * 190


@pytest.mark.parametrize("guarantee", [ZCDP(1e-4), ZCDP(1e6), ApproxDP(1.0, 1e-6)])
def test_scales_have_many_steps_and_rows_are_multiples_of_the_cells(guarantee):
    facts = MarginFacts((3, 7, 1000), ((0, 1), (1, 2)), REPLACED)
    plan = Residual().plan(facts, guarantee)
    for part, unit, scale in zip(plan.measured, plan.units, plan.scales, strict=True):
        assert unit % cells(part, facts.sizes) == 0
        assert SMALLEST_SCALE <= scale < 2.0**50


def test_what_is_projected_away_leaves_no_bit():
    """Rows that differ in nothing that a component tells give the same bits with the same noise."""
    facts = MarginFacts((3, 4), ((0, 1),), ADDED)
    plan = Residual().plan(facts, ZCDP(0.1))
    table = np.random.default_rng(0).integers(0, 9, (3, 4))
    shifted = table + np.arange(1, 4)[:, None] * 10**9
    residuals = []
    for counts in (table, shifted):
        with dp.simulation(seed=1):
            statistic = Statistic("margins", counts.ravel().astype(object), int(counts.sum()))
            values = Residual().release(statistic, plan, source()).values
        residuals.append(split(values, subsets((0, 1)), facts.sizes))
    for part in ((1,), (0, 1)):
        assert (residuals[0][part] == residuals[1][part]).all()
    assert (residuals[0][(0,)] != residuals[1][(0,)]).any()


def test_budgets_that_it_does_not_give_are_refused():
    facts = MarginFacts((3, 4), ((0, 1),), ADDED)
    with pytest.raises(BudgetError, match="write"):
        Residual().plan(facts, PureDP(1.0))
    with pytest.raises(BudgetError, match="larger"):
        Residual().plan(facts, ZCDP(1e-40))
