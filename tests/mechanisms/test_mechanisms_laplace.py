"""The Laplace mechanism: its L1 sensitivity, found by search, and its noise."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from moment_cases import (
    EXTREME,
    KINDS,
    RELATIONS,
    USUAL,
    absolute,
    ball,
    check_finite,
    check_guarantee,
    check_huge,
    check_measure,
    check_noise,
    distances,
    facts,
    on_circle,
    thinned,
)

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import SMALLEST_LAPLACE, laplace_multipliers
from dpmodels.mechanisms.covariance.gauss import Laplace
from dpmodels.privacy import ZCDP, ApproxDP, LaplaceEvent, PureDP, adjacency
from dpmodels.statistics import MomentWeights
from dpmodels.statistics.moments import absolute_sensitivity, absolute_weights

TAKES = (PureDP, ApproxDP, ZCDP)
REPLACE, ADD_REMOVE = adjacency("replace"), adjacency("add-remove")
BARE = MomentWeights(0.0, 0.0)


def upper_norm(left, right):
    """The sum over the upper triangle of |x xᵀ - y yᵀ|."""
    delta = np.outer(left, left) - np.outer(right, right)
    return np.abs(delta[np.triu_indices(len(delta))]).sum()


def four_clusters(columns):
    """Two unit rows whose coordinates lie in four clusters of directions."""
    angles = np.pi / 8 + np.pi / 2 * np.arange(columns)
    points = math.sqrt(2 / columns) * np.vstack([np.cos(angles), np.sin(angles)])
    return points[0], points[1]


def sign_patterns(columns):
    """The sensitivity of the upper triangle, over all patterns of signs: exact.

    ``u(D) = max_S <S, D>`` over symmetric weights ±1 on the diagonal and ±1/2
    off it, and ``<S, xxᵀ - yyᵀ>`` is at most the spread of the eigenvalues.
    """
    upper = np.triu_indices(columns)
    signs = np.array(list(product((-1, 1), repeat=len(upper[0]))))
    patterns = np.zeros((len(signs), columns, columns))
    patterns[:, *upper] = signs * np.where(upper[0] == upper[1], 1, 0.5)
    patterns[:, upper[1], upper[0]] = patterns[:, *upper]
    values = np.linalg.eigvalsh(patterns)
    return np.maximum(values[:, -1], 0).max(), (values[:, -1] - values[:, 0]).max()


@pytest.mark.parametrize(("columns", "closeness"), [(1, 1), (2, 1), (3, 0.957), (4, 0.963)])
def test_the_bound_against_all_sign_patterns(columns, closeness):
    alone, between = sign_patterns(columns)
    # In one column two rows differ by one eigenvalue, not two.
    between = between if columns > 1 else alone
    declared = absolute_sensitivity(REPLACE, columns, BARE)
    assert closeness * declared * (1 - 1e-12) <= between <= declared * (1 + 1e-12)
    assert absolute_sensitivity(ADD_REMOVE, columns, BARE) == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("columns", [4, 8, 12, 40])
def test_four_clusters_nearly_attain_the_bound(columns):
    x, y = four_clusters(columns)
    assert np.linalg.norm(x) == pytest.approx(1, rel=1e-12)
    bound = upper_norm(x, y)
    assert bound == pytest.approx((columns + 1) / math.sqrt(2), rel=1e-12)
    declared = absolute_sensitivity(REPLACE, columns, BARE)
    assert 0.94 * declared <= bound <= declared
    assert declared < columns + 1


def test_the_bound_in_numbers():
    sensitivities = [absolute_sensitivity(REPLACE, columns, BARE) for columns in (1, 2, 3, 4, 50)]
    expected = [1, math.sqrt(5), 3, math.sqrt(14), 50 / math.sqrt(2) + 1]
    assert sensitivities == pytest.approx(expected, rel=1e-14)


def furthest(columns, weights, tries=400):
    """The largest distance of pairs of rows that climbing finds, by alternating signs."""
    rng = np.random.default_rng(columns)
    best, upper = 0.0, np.triu_indices(columns)
    for _ in range(tries):
        x, y = rng.normal(size=(2, columns))
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y) * rng.uniform(0.5, 1)
        y = -x if rng.random() < 0.1 else y
        for step in np.geomspace(0.3, 1e-3, 12):
            delta = np.sign(np.outer(x, x) - np.outer(y, y))
            pattern = (delta + np.diag(np.diagonal(delta))) / 2
            linear = weights.mean * np.sign(x - y)
            x, y = x + step * (2 * pattern @ x + linear), y - step * (2 * pattern @ y + linear)
            x, y = (point / max(1, np.linalg.norm(point)) for point in (x, y))
            change = np.abs((np.outer(x, x) - np.outer(y, y))[upper]).sum()
            best = max(best, weights.mean * np.abs(x - y).sum() + change)
    return best


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("mean", [0.0, 0.2, 1.0, 3.0])
def test_no_pair_of_rows_is_farther_apart(columns, mean):
    declared = absolute_sensitivity(REPLACE, columns, MomentWeights(0.0, mean))
    distance = furthest(columns, MomentWeights(0.0, mean))
    # In one column opposite rows have the same square: with a mean the bound is loose there.
    loose = 0.7 if columns == 1 else 0.85
    assert loose * declared <= distance <= declared * (1 + 1e-12)


def rows_of(columns):
    """Rows that reach the bounds: equal coordinates, four clusters, the circle, the sphere."""
    rows = [np.full(columns, columns**-0.5), *np.eye(columns)[:2], *ball(6, columns)]
    rows += [-rows[0], *four_clusters(columns), 0.3 * rows[0]]
    return np.array(rows if columns != 2 else [*rows, *on_circle(32)])


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize(("relation", "centred"), KINDS)
@pytest.mark.parametrize("guarantee", [USUAL[PureDP], PureDP(1e-9)], ids=str)
def test_neighbours_are_within_the_declared_distance(guarantee, columns, relation, centred):
    plan = Laplace().plan(facts(columns, relation, centred), guarantee)
    (event,) = plan.events
    declared = 1 / Fraction(event.multiplier)
    rows = rows_of(columns)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)
    between, alone = distances(rows, plan, absolute)
    assert max([*between, *alone]) <= declared
    # Rounding takes up to half a percent where the lattice is coarse.
    assert max(alone) >= Fraction(99, 100) * declared
    if relation == "replace" and not centred and columns > 1:
        assert max(between) >= Fraction(90, 100) * declared


@pytest.mark.parametrize("part", ["count", "diagonal", "off", "mean"])
def test_less_noise_is_found_out(part):
    plan = Laplace().plan(facts(4, "add-remove", centred=True), USUAL[PureDP])
    _, alone = distances(
        rows_of(4), thinned(plan, **{part: 0.9 * getattr(plan.steps, part)}), absolute
    )
    (event,) = plan.events
    assert max(alone) > 1 / Fraction(event.multiplier)


@pytest.mark.parametrize("columns", [1, 2, 5, 10, 50])
def test_the_count_and_the_mean_take_a_sensible_share(columns):
    bare = absolute_sensitivity(ADD_REMOVE, columns, BARE)
    for relation in (REPLACE, ADD_REMOVE):
        weights = absolute_weights(relation, columns, centred=True)
        assert 0.04 < weights.mean * math.sqrt(columns) / bare < 0.65
        assert weights.count > 0
        assert absolute_weights(relation, columns, centred=False).mean == 0
    # Where n is public the count costs nothing, but for one column.
    free = absolute_weights(REPLACE, columns, centred=False)
    cost = absolute_sensitivity(REPLACE, columns, free) / absolute_sensitivity(
        REPLACE, columns, BARE
    )
    assert cost == pytest.approx(1, rel=1e-12) if columns > 1 else cost < 1.7


def test_multipliers_by_guarantee():
    assert laplace_multipliers(PureDP(0.5)) == pytest.approx((2.0,), rel=1e-11)
    assert laplace_multipliers(ApproxDP(0.5, 1e-6)) == laplace_multipliers(PureDP(0.5))
    # eps**2 / 2 = rho, and shares are of rho.
    assert laplace_multipliers(ZCDP(2.0)) == pytest.approx((0.5,), rel=1e-11)
    assert laplace_multipliers(ZCDP(2.0), (1, 3)) == pytest.approx((1.0, 1 / math.sqrt(3)))
    assert laplace_multipliers(PureDP(2.0), (1, 3)) == pytest.approx((2.0, 2 / 3))


def test_one_event_is_charged():
    plan = Laplace().plan(facts(), PureDP(0.25))
    assert plan.events == (LaplaceEvent(*laplace_multipliers(PureDP(0.25))),)
    assert plan.steps.off == plan.steps.diagonal


@pytest.mark.parametrize("columns", [1, 3, 100])
@pytest.mark.parametrize(("relation", "centred"), KINDS)
def test_every_scale_is_one_that_is_sampled(columns, relation, centred):
    for guarantee in (*EXTREME[PureDP], *USUAL.values(), PureDP(1e30)):
        steps = Laplace().plan(facts(columns, relation, centred), guarantee).steps
        parts = [steps.count, steps.diagonal, steps.off] + [steps.mean] * centred
        assert all(SMALLEST_LAPLACE <= scale <= 2.0**55 for scale in parts)
    with pytest.raises(BudgetError, match="larger eps"):
        Laplace().plan(facts(columns, relation, centred), PureDP(1e-14))


@pytest.mark.product
def test_the_noise_is_the_plans():
    check_noise(Laplace(), USUAL[PureDP], "laplace")


@pytest.mark.product
def test_the_noise_of_the_least_scale_has_the_stated_deviation():
    check_noise(Laplace(), PureDP(1e30), "laplace")


def test_the_event_gives_the_guarantee():
    check_guarantee(Laplace(), TAKES)


def test_no_kind_of_guarantee_is_refused():
    for relation, kind in product(RELATIONS, TAKES):
        assert Laplace().plan(facts(2, relation), USUAL[kind]).guarantee == USUAL[kind]


def test_a_huge_budget_gives_the_exact_answer():
    check_huge(Laplace(), PureDP(1e30))


@pytest.mark.product
def test_every_release_is_finite():
    # An (eps, delta) guarantee has the plans of eps alone.
    check_finite(Laplace(), (PureDP, ZCDP))


def test_the_measured_statistic_is_exact():
    check_measure(Laplace(), USUAL[PureDP])


def test_the_upper_triangle_of_orthogonal_rows():
    # e1 against e2 moves two diagonal entries: 2, far from what spread-out rows move.
    assert [upper_norm(x, y) for x, y in combinations(np.eye(3), 2)] == [2, 2, 2]
