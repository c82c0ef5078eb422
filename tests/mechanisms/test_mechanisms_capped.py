"""`capped`: its cost, its noise, and the cap it finds."""

import math

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.mechanisms.sampled import Capped
from dpmodels.models.mean import mean_spec
from dpmodels.noise import source
from dpmodels.postprocess import weight_caps
from dpmodels.postprocess.ranges import CellNoise, excess_above
from dpmodels.postprocess.weight_caps import best_cap, weight_edges
from dpmodels.privacy import ZCDP, ApproxDP, GaussianEvent, PureDP, adjacency, gaussian_multiplier
from dpmodels.request import requested

DESIGN = dp.design(weights="w", bounds=(1, 50), weights_are="design")


def facts(name="replace", **words):
    return CountFacts(1, 7, divided=True, adjacency=adjacency(name), side_tables=1, **words)


@pytest.mark.parametrize("guarantee", [ZCDP(0.02), ApproxDP(1.0, 1e-6)])
@pytest.mark.parametrize("name", ["replace", "add-remove"])
@pytest.mark.parametrize("tables", [1, 2])
def test_gaussian_rounds_cost_the_budget_for_the_stated_norms(guarantee, name, tables):
    facts = CountFacts(1, 7, divided=True, adjacency=adjacency(name), side_tables=tables)
    plan = Capped().plan(facts, guarantee)
    assert all(isinstance(event, GaussianEvent) for event in plan.events)
    spent = sum(event.multiplier**-2 for event in plan.events)
    assert spent <= gaussian_multiplier(guarantee) ** -2
    assert spent == pytest.approx(gaussian_multiplier(guarantee) ** -2, rel=1e-6)
    changed = math.sqrt(2 if name == "replace" else 1)
    norm = changed * math.hypot(1, *(0.5, 0.25)[:tables])
    assert plan.noise_sd >= norm * plan.events[1].multiplier
    assert plan.first.noise_sd >= changed * plan.events[0].multiplier


def test_laplace_rounds_cost_the_budget():
    plan = Capped().plan(facts(), PureDP(1.0))
    assert sum(1 / event.multiplier for event in plan.events) == pytest.approx(1, rel=1e-6)
    assert plan.scale / plan.units_per_row >= 2 * 1.25 * plan.events[1].multiplier


def test_products_of_shares_beside_counts_are_in_the_norm():
    """Of a table of counts by strata: L2 √(1 + 2κ² + κ²/4), L1 1 + 2κ + κ/2."""
    facts = CountFacts(
        1, 9, divided=False, adjacency=adjacency("replace"), side_tables=2, products=1
    )
    plan = Capped().plan(facts, ZCDP(0.02))
    norm = math.sqrt(2 * (1 + 2 * 0.5**2 + 0.25**2))
    assert plan.noise_sd == pytest.approx(norm * plan.events[1].multiplier, rel=1e-3)
    pure = Capped().plan(facts, PureDP(1.0))
    norm = 2 * (1 + 2 * 0.25 + 0.125)
    assert pure.scale / pure.units_per_row >= norm * pure.events[1].multiplier


def test_equal_weights_need_no_cap():
    plan = Capped().plan(facts(capped=False), ZCDP(0.02))
    assert plan.first is None
    assert len(plan.events) == 1


@pytest.mark.product
def test_the_noise_has_the_planned_scale():
    """600 values of one kind, 300 of another; sds beyond 20 and 30 % have a chance of 1e-11."""
    rows = {"y": [0.5] * 50, "w": [5.0] * 50}
    book = dp.codebook(y=(0, 1), design=DESIGN)
    spec = mean_spec(requested("mean", "~ y", book, None, 0.0, dp.ZCDP(0.02), None))
    plan = Capped().plan(spec.facts, dp.ZCDP(0.02))
    statistic = Capped().measure(spec.private.bind(rows), plan)
    values, capped = [], []
    for _ in range(100):
        release = Capped().release(statistic, plan, source())
        share = min(5 / release.weights.cap, 1.0)
        exact = share * np.outer([share, 1 - share], [0.25, 0.5, 0.25]).ravel()
        values.append((release.values[:-1] - exact * 50) / release.noise_sd)
        is_capped = 50 * (release.weights.cap < 5)
        away = np.array(release.weights.capped) - is_capped * np.array([0.25, 0.5, 0.25])
        capped.append(away / release.weights.capped_sd)
    assert abs(np.std(values) - 1) < 0.2
    assert abs(np.std(capped) - 1) < 0.3


def test_edges_cover_the_weights():
    edges = weight_edges(1.0, 50.0)
    assert edges[0] <= 1.0
    assert edges[-1] == 50.0
    np.testing.assert_allclose(edges[1:] / edges[:-1], 2**0.25)
    assert weight_edges(3.0, 3.0).tolist() == pytest.approx([3 / 2**0.25, 3.0])


def test_the_cap_is_near_the_best_of_exact_weights():
    """Without noise in the numbers, within 1.2 times the error of the best cap in hindsight.

    They are read as if they had a noise sd of 20, against which the choice is cautious.
    """
    rng = np.random.default_rng(5)
    for spread in (0.3, 0.6, 0.9):
        weights = np.clip(np.exp(rng.normal(1, spread, 20_000)), 1, 50)
        edges = weight_edges(1.0, 50.0)
        counts = np.histogram(weights, np.concatenate([[0], edges[1:]]))[0].astype(float)
        price, removal = 7.3, 0.15

        def error(cap, price=price, removal=removal, weights=weights):
            above = weights[weights > cap]
            excess = float((above - cap).mean()) if len(above) else 0.0
            lost = removal * float(np.maximum(weights - cap, 0).sum())
            return math.hypot(price * cap, max(lost, 2 * price * excess))

        cap = best_cap(edges, counts, CellNoise("gaussian", 20.0), price, removal, 2.0).cap
        assert error(cap) < 1.2 * min(map(error, edges[1:]))


def test_weights_that_were_trimmed_at_their_bound_have_a_cell():
    """At the middle of a wider cell they have half of what a cap just below cuts off them."""
    rng = np.random.default_rng(6)
    weights = np.clip(np.rint(np.exp(rng.normal(1.6, 1.1, 5_000))), 1, 50)
    assert (weights == 50).sum() > 90
    edges, means = weight_edges(1.0, 50.0, at_bound=True), []
    exact, cap = np.histogram(weights, np.append(0, edges[1:]))[0], float(edges[-3])
    # Values on an edge are of the cell below it.
    exact[-2:] = (weights[weights > cap] < 50).sum(), (weights == 50).sum()
    for _ in range(20):
        counts = exact + rng.normal(scale=10.0, size=len(exact))
        means.append(excess_above(edges, counts, CellNoise("gaussian", 10.0), cap).mean)
    assert np.mean(means) == pytest.approx((weights[weights > cap] - cap).mean(), rel=0.1)


@pytest.mark.product
def test_the_least_of_noisy_estimates_does_not_choose_a_cap():
    """Where noise hides large weights a low cap looks better than it is; it was one of ten."""
    rng, edges, noise = np.random.default_rng(3), weight_edges(1.0, 50.0), CellNoise("gaussian", 70)
    weights = np.clip(np.rint(np.exp(rng.normal(1.6, 1.1, 5_000))), 1, 50)
    exact = np.histogram(weights, np.append(0, edges[1:]))[0]
    numbers = exact + rng.normal(0, 70, (60, len(exact)))
    caps = np.array([best_cap(edges, counts, noise, 11.0, 0.15, 2.0).cap for counts in numbers])
    assert (caps < 22).mean() < 0.04


def test_the_mean_excess_is_near_that_of_the_weights():
    """Of totals of units, from exact numbers that are read as if they had noise: within half."""
    rng = np.random.default_rng(2)
    for spread in (0.25, 0.5, 0.8):
        totals = np.exp(rng.normal(3, spread, 2_000))
        edges = weight_edges(1.0, 50.0 * 2**16, 8)
        counts = np.histogram(totals, edges)[0].astype(float)
        cap = best_cap(edges, counts, CellNoise("gaussian", 6.0), 2.0, 0.15, 2.0)
        above = totals[totals > cap.cap] - cap.cap
        assert cap.mean_excess_sd < cap.mean_excess
        if len(above) > 20:
            assert 0.5 < cap.mean_excess / above.mean() < 2


def test_far_cells_without_units_are_left_out():
    edges = weight_edges(1.0, 2.0**20, 1)
    counts = np.zeros(20)
    counts[:3] = 500.0
    cap = best_cap(edges, counts, CellNoise("laplace", 1.0), 1e-9, 1.0, 2.0)
    assert 8 <= cap.cap <= 64


def test_units_far_above_are_not_made_of_noise():
    """Of 206 cells most are empty: noise of all of them extends none of 200 ranges of weights."""
    rng, edges = np.random.default_rng(8), weight_edges(1.0, 50.0 * 2**20, 8)
    totals = np.exp(rng.normal(5, 0.3, 2_000))
    exact = np.histogram(totals, edges)[0]
    for _ in range(200):
        counts = exact + rng.normal(0, 40, len(exact))
        ends = weight_caps._occupied(edges, counts, CellNoise("gaussian", 40.0))[0]
        assert 300 < ends[-1] < 2_500


def test_a_fitted_tail_does_not_contradict_the_numbers():
    """Whole even weights: a tail that falls from the first cell at once leaves most weight out."""
    rng, edges = np.random.default_rng(9), weight_edges(1.0, 50.0)
    weights = np.clip(2 * np.rint(np.exp(rng.normal(1.0, 1.1, 5_000))), 2, 50)
    exact = np.histogram(weights, np.append(0, edges[1:]))[0]
    for _ in range(10):
        counts = exact + rng.normal(0, 70, len(exact))
        cap = best_cap(edges, counts, CellNoise("gaussian", 70.0), 14.0, 0.06, 2.0).cap
        assert np.maximum(weights - cap, 0).sum() < 0.3 * weights.sum()


def test_several_tables_have_the_norm_of_all_their_sums():
    """Of three tables by strata, two of counts: L1 3 (1 + 3κ/2) + 2κ, L2 √(3 (1 + 5κ²/4) + 2κ²)."""
    relation = adjacency("replace")
    words = {"divided": True, "adjacency": relation, "side_tables": 2, "products": 2}
    facts = CountFacts(3, 40, **words)
    gaussian, laplace = Capped().plan(facts, ZCDP(0.02)), Capped().plan(facts, PureDP(1.0))
    norm = math.sqrt(2 * (3 * (1 + 5 * 0.5**2 / 4) + 2 * 0.5**2))
    assert gaussian.noise_sd == pytest.approx(norm * gaussian.events[1].multiplier, rel=1e-3)
    scale = 2 * (3 * (1 + 1.5 * 0.25) + 2 * 0.25) * laplace.events[1].multiplier
    assert laplace.noise_sd == pytest.approx(math.sqrt(2) * scale, rel=1e-3)


def test_where_noise_hides_all_units_means_have_a_public_cap():
    """Totals have the largest weight; either way no cell of noise decides."""
    from dpmodels.postprocess.weight_caps import are_detected, public_cap

    edges, noise = weight_edges(1, 50 * 2**16, 8), CellNoise("gaussian", 60.0)
    rng, false_alarms = np.random.default_rng(6), 0
    for _ in range(200):
        counts = rng.normal(scale=60.0, size=len(edges) - 1)
        counts[40:46] += 10
        false_alarms += are_detected(edges, counts, noise)
    # At most .001 a release is expected: 6 of 200 in one of 10^8 runs.
    assert false_alarms < 6
    counts[40:46] += 300
    assert are_detected(edges, counts, noise)
    assert public_cap(50.0, 50.0) == (50.0, 0.0, 0.0, 0.0)
    of_units = public_cap(50.0, float(edges[-1]))
    assert of_units[:2] == (50.0, 75.0)
    assert of_units.mean_excess_sd == pytest.approx(150 / math.sqrt(12))


def test_laplace_noise_is_seldom_taken_for_units():
    """Sums of few cells of Laplace noise have longer tails than normal ones."""
    from dpmodels.postprocess.weight_caps import are_detected

    edges, noise = weight_edges(1, 2**20, 1), CellNoise("laplace", 60.0)
    samples = np.random.default_rng(7).laplace(scale=60 / math.sqrt(2), size=(1000, len(edges) - 1))
    # At most 1 is expected: 10 in one of 10^7 runs. With normal quantiles 15 are.
    assert sum(are_detected(edges, counts, noise) for counts in samples) < 10
    samples[0, 9] += 600
    assert are_detected(edges, samples[0], noise)


def test_the_error_of_the_mean_excess_has_a_lump_of_hidden_units():
    """Of 1 % of units far above the others, where a fitted law alone had an error of nearly 0."""
    rng, edges = np.random.default_rng(1), weight_edges(1, 200)
    weights = np.where(rng.random(20_000) < 0.01, 100.0, rng.uniform(2, 15, 20_000))
    cells = np.minimum(np.searchsorted(edges[1:], weights), len(edges) - 2)
    exact, noise = np.bincount(cells, minlength=len(edges) - 1), CellNoise("gaussian", 10.0)
    cap = float(edges[np.argmin(abs(edges - 14.0))])
    true = (weights[weights > cap] - cap).mean()
    gaps = []
    for _ in range(20):
        excess = excess_above(edges, exact + rng.normal(scale=10.0, size=len(exact)), noise, cap)
        gaps.append((excess.mean - true) / excess.mean_sd)
    assert np.abs(gaps).max() < 5
    assert np.abs(gaps).max() > 0.01


LIMITS = (1.0, 50.0 * 2**16)


@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 1e-6), ZCDP(0.02), PureDP(1.0)])
def test_few_units_get_a_larger_share_in_wider_cells(guarantee):
    """So much that half of them are detected, from their public number; the budget is the same."""
    default, few = Capped(), Capped().for_units(facts(), guarantee, *LIMITS, 500)
    assert default.for_units(facts(), guarantee, *LIMITS, 20_000) == default
    assert default.for_units(facts(), guarantee, *LIMITS, 20) == default
    fewer = default.for_units(facts(), guarantee, *LIMITS, 350)
    assert (few.per_octave, fewer.per_octave, default.share) == (4, 2, 0.03)
    assert 0.03 <= few.share <= 0.15
    assert 0.03 <= fewer.share <= 0.15
    plan = few.plan(facts(), guarantee)
    edges, noise = weight_edges(*LIMITS, few.per_octave), plan.first.noise_sd
    shape = np.zeros(len(edges) - 1)
    shape[30 : 30 + 2 * few.per_octave] = 1 / (2 * few.per_octave)
    n_units = 510 if few.share > 0.03 else 500
    is_detected = weight_caps.are_detected(edges, n_units / 2 * shape, CellNoise("gaussian", noise))
    assert is_detected
    costs = [1 / event.multiplier for event in plan.events]
    if isinstance(guarantee, PureDP):
        assert sum(costs) == pytest.approx(1.0, rel=1e-6)
    else:
        whole = gaussian_multiplier(guarantee)
        assert math.hypot(*costs) == pytest.approx(1 / whole, rel=1e-6)


@pytest.mark.expensive
def test_totals_of_few_units_have_a_cap_that_was_found():
    """500 units of ten rows: without a detected weight the cap is 65,536 rows of the largest."""
    rng = np.random.default_rng(4)
    unit = np.repeat(np.arange(500), 10)
    rows = {"y": rng.uniform(0, 1, 5_000), "w": rng.uniform(5, 15, 5_000), "u": unit}
    design = dp.design(weights="w", psu="u", bounds=(1, 50), weights_are="design")
    book = dp.codebook(y=(0, 1), design=design)
    with dp.simulation(seed=1):
        fit = dp.dp_total("~ y", rows, codebook=book, eps=1.0, delta=1e-6)
    assert 50 < fit.release.weights.cap < 400
    assert len({event.multiplier for event in fit.release.events}) == 2
