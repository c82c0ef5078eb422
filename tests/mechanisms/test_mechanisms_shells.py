"""The sensitivity of the increments by brute force; the plan and the release of `shells`."""

import math
from itertools import pairwise, product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import Facts
from dpmodels.mechanisms.add_noise import SMALLEST_SCALE, gaussian_count
from dpmodels.mechanisms.clipping_shells import MOST_BITS, SHARES, shell_scales, shells
from dpmodels.mechanisms.covariance.adaptive import Shells
from dpmodels.noise import seeded, source
from dpmodels.noise.lattice import Lattice
from dpmodels.postprocess import denoise
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    GaussianEvent,
    PureDP,
    adjacency,
    gaussian_multiplier,
    total_eps,
    total_rho,
)
from dpmodels.statistics import Statistic, clipped_moments
from dpmodels.statistics.clipped import (
    doublings,
    increment_norm,
    increment_sensitivity,
    increment_slack,
    increments,
    trace_weight,
)

RELATIONS = ("replace", "add-remove")
BITS = 9


def facts(columns=3, relation="replace", centred=False):
    return Facts(columns, adjacency(relation), centred=centred)


class OneRow:
    """A design of one row of integers."""

    def __init__(self, row):
        self.row = row
        self.facts, self.scattered = {}, None

    def blocks(self, function, lattice, *, count_public):
        yield function(np.array([[lattice.radius], *([cell] for cell in self.row)])), 1


def row_increments(row, lattice, chosen):
    exact, _ = clipped_moments(OneRow(row), lattice, chosen[-1], count_public=True).cross()
    return [part.astype(float) for part in increments(exact, chosen)]


def integer_rows(lattice, rng, count):
    """Rows of many norms: along axes, at random, just inside and outside every radius."""
    columns = lattice.columns
    directions = [*np.eye(columns), np.ones(columns), *rng.normal(size=(count, columns))]
    rows = [np.zeros(columns)]
    for direction in directions:
        unit = direction / np.linalg.norm(direction)
        for radius in (
            1,
            0.99,
            0.75,
            0.501,
            0.5,
            0.499,
            0.3,
            0.2501,
            0.25,
            0.2,
            0.126,
            0.125,
            0.1,
            0.02,
        ):
            rows += [np.trunc(sign * radius * lattice.radius * unit) for sign in (1, -1)]
    return [row for row in rows if row @ row <= lattice.radius**2]


def coordinates(part, weight):
    """Isometric coordinates of an increment, and its trace with its weight."""
    upper = np.triu_indices(len(part), 1)
    return np.concatenate(
        [np.diagonal(part), math.sqrt(2) * part[upper], [weight * np.trace(part)]]
    )


@pytest.mark.parametrize("bits", [BITS, MOST_BITS])
@pytest.mark.parametrize("columns", [1, 2, 7])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("chosen", [(0, 1, 2), (0, 1, 3)], ids=str)
def test_neighbours_move_an_increment_no_further_than_proved(chosen, relation, columns, bits):
    lattice, neighbours = Lattice(bits, columns), adjacency(relation)
    rows = integer_rows(lattice, np.random.default_rng(columns), 12)
    weight = trace_weight(neighbours)
    increments = [row_increments(row, lattice, chosen) for row in rows]
    for k, step in enumerate(doublings(chosen)):
        moves = np.array([coordinates(parts[k], weight) for parts in increments])
        bound = increment_sensitivity(neighbours, lattice, step)
        main = increment_norm(lattice, step)
        slack = increment_slack(lattice, step)
        alone = np.linalg.norm(moves, axis=1).max()
        matrices = np.array([np.linalg.norm(parts[k]) for parts in increments])
        assert matrices.max() <= main + slack
        # A row on an axis attains the bound but for what rounding may add.
        assert matrices.max() >= main * (1 - 2.0**-20)
        if relation == "add-remove":
            assert bound * (main / (main + slack)) * (1 - 1e-3) <= alone <= bound
            continue
        between = max(np.linalg.norm(moves - move, axis=1).max() for move in moves)
        assert max(alone, between) <= bound
        # Opposite corners: two rows at right angles, or any row and the origin.
        assert between >= math.sqrt(2) * main * (1 - 1e-3)


def test_the_increments_add_up_to_the_moments():
    rng = np.random.default_rng(1)
    lattice = Lattice(BITS, 4)
    for row in integer_rows(lattice, rng, 3):
        exact, _ = clipped_moments(OneRow(row), lattice, 3, count_public=True).cross()
        outer, middle, inner = increments(exact, (0, 1, 3))
        assert (16 * outer + middle + inner == 64 * exact[0][1:, 1:]).all()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("columns", [1, 3])
def test_the_count_and_the_sum_move_no_further_than_paid_for(relation, columns):
    noise = gaussian_count(facts(columns, relation, centred=True), 1.0)
    alone = gaussian_count(facts(columns, relation), 1.0)
    assert alone.rows == 1.0
    rng = np.random.default_rng(columns)
    rows = rng.normal(size=(300, columns))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    added = np.column_stack([np.ones(300) / noise.rows, rows / noise.total])
    added = np.vstack([added, added * [1, *([-1] * columns)]])
    single = np.linalg.norm(added, axis=1).max()
    paired = max(np.linalg.norm(added - row, axis=1).max() for row in added)
    worst = single if relation == "add-remove" else max(single, paired)
    assert worst == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 1e-6), ZCDP(0.1), ZCDP(10.0)], ids=str)
@pytest.mark.parametrize("columns", [5, 40])
def test_the_noise_pays_for_the_whole_release(columns, guarantee, relation, centred):
    plan = Shells().plan(facts(columns, relation, centred), guarantee)
    neighbours, unit = adjacency(relation), plan.lattice.radius**2
    price = [
        increment_sensitivity(neighbours, plan.lattice, step) / plan.scales[f"increment {k}"]
        for k, step in enumerate(doublings(shells(columns)))
    ]
    of_count = gaussian_count(plan.facts, 1.0)
    price.append(of_count.rows * unit / plan.steps.count)
    if centred:
        assert plan.steps.count / plan.steps.mean == pytest.approx(of_count.rows / of_count.total)
    total = math.hypot(*price)
    multiplier = gaussian_multiplier(guarantee)
    assert total * multiplier <= 1
    assert total * multiplier == pytest.approx(1, rel=1e-9)
    assert plan.events == (GaussianEvent(multiplier),)
    if isinstance(guarantee, ZCDP):
        assert total_rho(plan.events) <= guarantee.rho
    else:
        assert total_eps(plan.events, guarantee.delta) <= guarantee.eps
    shares = np.array(price[: len(SHARES)]) ** 2
    assert shares / shares.sum() == pytest.approx(np.array(SHARES), rel=1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_noise_off_the_diagonal_is_held_to_the_least_scale(relation):
    """It is the smallest, by the root of two; larger scales are multiples of the sensitivity."""
    finest = Lattice(BITS, 5)
    least = shell_scales(facts(5, relation, True), finest, [0.0] * 3)
    assert [*least.values()] == pytest.approx([math.sqrt(2) * SMALLEST_SCALE] * 3, rel=1e-15)
    scales = shell_scales(facts(5, relation, True), finest, [3.0, 30.0, 300.0])
    for multiplier, scale, step in zip(
        (3.0, 30.0, 300.0), scales.values(), doublings(shells(5)), strict=True
    ):
        expected = multiplier * increment_sensitivity(adjacency(relation), finest, step)
        assert expected <= scale <= expected * (1 + 1e-9)


def test_the_scale_in_numbers():
    # At rho = 1/2 the multiplier is 1; 1.1235 is the root of the sum of Δ²/share over radii.
    plan = Shells().plan(facts(), ZCDP(0.5))
    ideal = math.sqrt(2 / 0.98) * math.sqrt(
        sum(d**2 / s for d, s in zip((3 / 4, 3 / 16, 1 / 16), SHARES, strict=True))
    )
    diagonal = plan.steps.diagonal / plan.lattice.radius**2
    assert ideal < diagonal < ideal * 1.001
    assert plan.steps.off == plan.steps.diagonal / math.sqrt(2)
    assert math.isnan(plan.steps.mean)


def test_what_is_refused():
    with pytest.raises(BudgetError, match="write delta=1e-6"):
        Shells().plan(facts(), PureDP(1.0))
    with pytest.raises(ArgumentError, match="write one of"):
        Shells(denoise="smooth").plan(facts(), ZCDP(1.0))
    with pytest.raises(BudgetError, match="larger eps"):
        Shells().plan(facts(), ZCDP(1e-40))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("guarantee", [ApproxDP(1e-9, 1e-9), ApproxDP(1e9, 1e-9)], ids=str)
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("rule", ["auto", "invariant", "spiked", "psd", None])
def test_any_rows_and_budget_give_finite_output(columns, guarantee, relation, rule):
    mechanism = Shells(denoise=rule)
    plan = mechanism.plan(facts(columns, relation, centred=True), guarantee)
    radius = int(plan.lattice.radius)
    assert 40 * max(plan.scales.values()) < 2**63
    same = np.zeros((3, columns + 1, columns + 1), dtype=object)
    same[:, 0, 0] = same[:, 0, 1] = same[:, 1, 0] = same[:, 1, 1] = 50 * radius**2
    for exact, rows in ((same, 50), (same * 0, 0), (same * 0, 7)):
        release = mechanism.release(Statistic("clipped", exact, rows), plan, seeded(1))
        for part in (release.count, release.total, release.second, release.estimate):
            assert np.isfinite(part).all()
        assert np.linalg.eigvalsh(release.estimate)[0] >= -1e-9 * np.abs(release.estimate).max()
        assert release.rows == (rows if relation == "replace" else None)


def table(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, columns)) * np.linspace(1, 0.2, columns)
    numbers *= 0.3 / np.linalg.norm(numbers, axis=1)[:, None]
    return numbers, {f"x{i}": numbers[:, i] for i in range(columns)}


def measured(mechanism, plan, data, columns):
    book = dp.codebook(**{f"x{i}": (-1, 1) for i in range(columns)})
    formula = "~ " + " + ".join(data)
    design = private_design(formula, data, book, scale=None, row_norm=1.0)
    return mechanism.measure(design, plan)


def test_a_huge_budget_gives_the_exact_answer():
    mechanism, (numbers, data) = Shells(), table(200, 4)
    plan = mechanism.plan(facts(4, centred=True), ZCDP(1e30))
    assert plan.scales["increment 0"] == math.sqrt(2) * SMALLEST_SCALE
    release = mechanism.release(measured(mechanism, plan, data, 4), plan, seeded(3))
    # Half a step of rounding a coordinate, and eight standard deviations of the noise: 1e-14.
    slack = 200 * 3 * 2.0**-MOST_BITS
    truth = numbers.T @ numbers
    assert np.abs(release.second - truth).max() < slack + 8 * release.noise.diagonal
    assert np.abs(release.estimate - truth).max() < slack + 8 * release.noise.diagonal
    assert np.abs(release.total - numbers.sum(axis=0)).max() < slack + 8 * release.noise.mean
    assert abs(release.count - 200) < 8 * release.noise.count


@pytest.mark.product
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_sum_of_increments_is_unbiased_with_the_noise_it_states(relation):
    mechanism, (numbers, data) = Shells(denoise=None), table(50, 3)
    plan = mechanism.plan(facts(3, relation, centred=True), ZCDP(0.1))
    statistic = measured(mechanism, plan, data, 3)
    upper = np.triu_indices(3, 1)
    parts = {"count": [], "mean": [], "diagonal": [], "off": []}
    with dp.simulation(seed=5):
        for _ in range(600):
            release = mechanism.release(statistic, plan, source())
            noise = release.second - numbers.T @ numbers
            parts["diagonal"].append(np.diagonal(noise) / release.noise.diagonal)
            parts["off"].append(noise[upper] / release.noise.off)
            parts["count"].append([(release.count - 50) / release.noise.count])
            parts["mean"].append((release.total - numbers.sum(axis=0)) / release.noise.mean)
    for part, draws in parts.items():
        flat = np.array(draws).ravel()
        # Mean and mean square of n normals: 6 standard deviations each, below 1e-8; the
        # rounding of rows to the lattice is below 1e-3 of the noise.
        assert abs(flat.mean()) < 6 / math.sqrt(flat.size) + 1e-3, part
        assert abs((flat**2).mean() - 1) < 6 * math.sqrt(2 / flat.size) + 2e-3, part
    diagonal = np.array(parts["diagonal"])
    for first, second in pairwise(diagonal.T):
        assert abs((first * second).mean()) < 6 / math.sqrt(len(first))


@pytest.mark.parametrize(("relation", "centred"), list(product(RELATIONS, [True, False])))
def test_the_release_carries_its_terms(relation, centred):
    mechanism = Shells()
    plan = mechanism.plan(facts(3, relation, centred), ApproxDP(1.0, 1e-6))
    statistic = measured(mechanism, plan, table(40, 3)[1], 3)
    release = mechanism.release(statistic, plan, seeded(1))
    assert release.info is mechanism.info
    assert release.events == plan.events
    assert release.guarantee == plan.guarantee
    assert (release.total is None) == (not centred)
    assert (release.second == release.second.T).all()
    assert release.noise.off == pytest.approx(release.noise.diagonal / math.sqrt(2))
    again = mechanism.release(statistic, plan, seeded(1))
    assert again.second.tolist() == release.second.tolist()


@pytest.mark.expensive
def test_short_rows_have_a_better_estimate():
    # Rows of norm 0.3 in a ball of 1: the seed is fixed.
    mechanism, (numbers, data) = Shells(), table(3000, 30)
    plan = mechanism.plan(facts(30), ZCDP(0.05))
    release = mechanism.release(measured(mechanism, plan, data, 30), plan, seeded(2))
    truth = numbers.T @ numbers
    error = np.linalg.norm(release.estimate - truth)
    alone = denoise(release.second, release.noise.off)
    assert error < 0.7 * np.linalg.norm(alone - truth)
