"""The plan of `gauss` against the numbers of the theory, and its release."""

import math
from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import BudgetError
from dpmodels.mechanisms import Facts, Gauss
from dpmodels.mechanisms.add_noise import SMALLEST_SCALE
from dpmodels.noise import seeded
from dpmodels.noise.lattice import MAX_BITS, MIN_BITS
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    GaussianEvent,
    PureDP,
    adjacency,
    gaussian_delta,
    gaussian_multiplier,
)
from dpmodels.statistics import Statistic, moment_sensitivity, moment_weights

RELATIONS = [adjacency("replace"), adjacency("add-remove")]
USUAL = [ApproxDP(1.0, 1e-6), ApproxDP(8.0, 1e-5), ZCDP(0.1)]


def facts(columns=3, relation="replace", centred=False):
    return Facts(columns, adjacency(relation), centred=centred)


def exact_moments(columns, rows, bits=MAX_BITS):
    """Moments of so many rows at the origin."""
    cells = np.zeros((columns + 1, columns + 1), dtype=object)
    cells[0, 0] = rows * 4**bits
    return Statistic("augmented moments", cells, rows)


@pytest.mark.parametrize(
    ("relation", "centred", "expected"),
    [
        ("replace", False, math.sqrt(2)),
        ("replace", True, 1.25 * math.sqrt(2)),
        ("add-remove", False, math.sqrt(1.25)),
        ("add-remove", True, math.sqrt(1.75)),
    ],
)
def test_the_noise_is_the_sensitivity_where_the_multiplier_is_one(relation, centred, expected):
    plan = Gauss().plan(facts(relation=relation, centred=centred), ZCDP(0.5))
    assert plan.steps.diagonal / plan.lattice.radius**2 == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("guarantee", USUAL, ids=str)
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("centred", [True, False])
def test_the_noise_is_isometric(guarantee, relation, centred):
    plan = Gauss().plan(Facts(4, relation, centred=centred), guarantee)
    weights = moment_weights(relation, centred=centred)
    sensitivity = moment_sensitivity(relation, weights)
    sigma = gaussian_multiplier(guarantee) * sensitivity * plan.lattice.radius**2
    assert plan.steps.diagonal == pytest.approx(sigma, rel=2e-12)
    assert plan.steps.off == pytest.approx(sigma / math.sqrt(2), rel=2e-12)
    assert plan.steps.count == pytest.approx(sigma / weights.count, rel=2e-12)
    assert plan.events == (GaussianEvent(gaussian_multiplier(guarantee)),)
    if centred:
        assert plan.steps.mean == pytest.approx(sigma / weights.mean, rel=2e-12)
    else:
        assert math.isnan(plan.steps.mean)
    # Never below what was paid for, by whatever rounding.
    assert plan.steps.diagonal >= sigma


def test_the_scale_in_numbers():
    # At rho = 1/2 the multiplier is 1: sigma is the sensitivity.
    plan = Gauss().plan(facts(), ZCDP(0.5))
    unit = 4**MAX_BITS
    assert plan.steps.diagonal / unit == pytest.approx(1.414213562373, abs=1e-9)
    assert plan.steps.off / unit == pytest.approx(1.0, abs=1e-9)
    assert plan.steps.count / unit == pytest.approx(1.414213562373, abs=1e-9)


def test_the_event_gives_the_guarantee():
    for eps, delta in product((0.1, 1.0, 10.0), (1e-2, 1e-6)):
        (event,) = Gauss().plan(facts(), ApproxDP(eps, delta)).events
        assert gaussian_delta(eps, event.multiplier) <= delta * (1 + 1e-9)
        assert gaussian_delta(eps, event.multiplier * 0.999) > delta


def test_a_pure_guarantee_is_refused():
    with pytest.raises(BudgetError, match="write delta=1e-6"):
        Gauss().plan(facts(), PureDP(1.0))


@pytest.mark.parametrize("centred", [True, False])
def test_a_huge_budget_stops_at_the_smallest_scale(centred):
    steps = Gauss().plan(facts(centred=centred), ZCDP(1e40)).steps
    parts = {steps.count, steps.diagonal, steps.off} | ({steps.mean} if centred else set())
    assert parts == {SMALLEST_SCALE}
    assert SMALLEST_SCALE >= 2**10


def test_more_noise_has_a_coarser_lattice():
    bits = [Gauss().plan(facts(), ZCDP(10.0**-power)).lattice.bits for power in range(0, 24, 3)]
    assert bits == sorted(bits, reverse=True)
    assert bits[0] == MAX_BITS
    assert bits[-1] >= MIN_BITS
    with pytest.raises(BudgetError, match="larger eps"):
        Gauss().plan(facts(), ZCDP(1e-40))


@pytest.mark.parametrize("power", range(0, 24, 3))
def test_noise_fits_64_bits(power):
    plan = Gauss().plan(facts(centred=True), ZCDP(10.0**-power))
    # Beyond 40 scales the law has less than 2**-1000 of its mass.
    assert 40 * max(plan.steps.count, plan.steps.mean, plan.steps.diagonal) < 2**63


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("centred", [True, False])
def test_the_release_carries_its_terms(relation, centred):
    mechanism = Gauss()
    plan = mechanism.plan(facts(3, relation, centred), ApproxDP(1.0, 1e-6))
    release = mechanism.release(exact_moments(3, 50), plan, seeded(1))
    assert release.second.shape == (3, 3)
    assert (release.second == release.second.T).all()
    assert (release.total is None) == (not centred)
    assert release.rows == (50 if relation == "replace" else None)
    assert release.info is mechanism.info
    assert release.guarantee == plan.guarantee
    assert release.events == plan.events
    assert not release.simulated
    with dp.simulation(seed=1):
        assert mechanism.release(exact_moments(3, 50), plan, seeded(1)).simulated


def test_equal_words_give_equal_releases():
    plan = Gauss().plan(facts(5, centred=True), ZCDP(0.1))
    first, same, second = (
        Gauss().release(exact_moments(5, 50), plan, seeded(seed)) for seed in (1, 1, 2)
    )
    assert first.second.tolist() == same.second.tolist()
    assert first.total.tolist() == same.total.tolist()
    assert first.count == same.count != second.count


def test_the_isometric_noise_is_half_off_the_diagonal():
    # d = 60: 60 squares on the diagonal, 1770 off it; 8 sd of their ratio, below 1e-9.
    columns = 60
    plan = Gauss().plan(facts(columns), ZCDP(0.5))
    noise = Gauss().release(exact_moments(columns, 0), plan, seeded(3)).second
    upper = np.triu_indices(columns, 1)
    ratio = np.mean(noise[upper] ** 2) / np.mean(np.diagonal(noise) ** 2)
    assert 0.5 / (1 + 8 * math.sqrt(2 / 60)) < ratio < 0.5 * (1 + 8 * math.sqrt(2 / 60))
