"""Rounds of clipping: what they cost, what noise they have, and that only released values steer."""

import math
from itertools import combinations

import numpy as np
import pytest
from moment_cases import fraction_spent

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.errors import ArgumentError, BudgetError, FrameError
from dpmodels.mechanisms import Facts
from dpmodels.mechanisms.add_noise import SMALLEST_SCALE
from dpmodels.mechanisms.covariance import coinpress
from dpmodels.mechanisms.covariance.coinpress import CoinPress, normal_radius
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency
from dpmodels.statistics import Passes, Statistic

RELATIONS = ("replace", "add-remove")
GUARANTEES = [
    ZCDP(0.1),
    ZCDP(1e-18),
    ZCDP(1e18),
    ApproxDP(1.0, 1e-6),
    ApproxDP(1e-9, 1e-9),
    ApproxDP(1e9, 1e-6),
]


def facts(columns, relation="replace", centred=False):
    return Facts(columns, adjacency(relation), centred=centred)


def bound(rows):
    names = [f"x{at}" for at in range(rows.shape[1])]
    book = dp.codebook.uniform(names, (-1, 1))
    data = {name: rows[:, at] for at, name in enumerate(names)}
    return private_design("~ .", data, book, scale=None, center=False, row_norm=1.0)


def released(rows, mechanism, plan, seed=1):
    return mechanism.release(mechanism.measure(bound(rows), plan), plan, seeded(seed))


def ellipse(rows, columns, seed=0):
    """Rows uniform in a cube, stretched: transformed back no row is long."""
    rng = np.random.default_rng(seed)
    cube = rng.uniform(-1, 1, (rows, columns))
    return cube * 2.0 ** -np.arange(columns) / math.sqrt(2)


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("rounds", [1, 2, 3, 20])
def test_the_events_compose_to_the_guarantee_and_use_it_up(guarantee, rounds):
    for relation in RELATIONS:
        plan = CoinPress(rounds).plan(facts(4, relation, centred=True), guarantee)
        assert len(plan.events) == len(plan.scales) == rounds
        assert 1 - 1e-6 < fraction_spent(plan.events, guarantee) <= 1


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_each_round_has_the_noise_it_pays_for(relation, guarantee):
    plan = CoinPress(3).plan(facts(4, relation), guarantee)
    unit = plan.lattice.radius**2
    sensitivity = math.sqrt(2) if relation == "replace" else 1.0
    for event, sigma in list(zip(plan.events, plan.scales.values(), strict=True))[1:]:
        sd = max(event.multiplier * sensitivity * unit, math.sqrt(2) * SMALLEST_SCALE)
        assert sd <= sigma <= sd * (1 + 1e-11)
        # Beyond 40 scales the law has less than 2**-1000 of its mass.
        assert 40 * sigma < 2**63


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("guarantee", [ZCDP(0.1), ZCDP(1e-18), ApproxDP(1.0, 1e-6)], ids=str)
def test_neighbours_are_within_the_sensitivity_of_each_round(relation, centred, guarantee):
    rng = np.random.default_rng(7)
    mechanism, missing = CoinPress(3), np.full((1, 3), np.nan)
    plan = mechanism.plan(facts(3, relation, centred), guarantee)
    ends = np.vstack([np.eye(3), -np.eye(3), rng.normal(size=(6, 3))])
    ends /= np.linalg.norm(ends, axis=1)[:, None]
    rows = np.vstack([ends, 0.3 * ends, np.zeros((1, 3)), missing])
    transforms = [np.eye(3), 9 * np.eye(3), rng.normal(size=(3, 3)) * np.array([100, 1, 0.1])]
    steps = plan.steps
    for number, transform in enumerate(transforms):
        passes = [mechanism.measure(bound(row[None]), plan).within(transform) for row in rows]
        cells = [statistic.cross()[0].astype(float) for statistic in passes]
        sigma = plan.scales[f"round {number + 1}"]
        pairs = combinations(cells, 2) if relation == "replace" else [(cell, 0) for cell in cells]
        furthest = 0.0
        for first, second in pairs:
            squares = (first - second) ** 2
            distance = squares[1:, 1:].sum() / sigma**2
            if number == 0:
                distance += squares[0, 0] / steps.count**2
                distance += squares[0, 1:].sum() / steps.mean**2 if centred else 0.0
            furthest = max(furthest, math.sqrt(distance) * plan.events[number].multiplier)
        # Floats carry the squares to 1e-15 of them. The last transform makes rows parallel.
        assert (0.9 if number < 2 else 0.5) < furthest <= 1 + 1e-12


def steered(monkeypatch, rows):
    """Transforms and integers of a release whose noise hides the rows altogether."""
    answers = np.random.default_rng(8)
    moments = [np.cov(answers.normal(size=(9, 3)), rowvar=False) * 4e13 for _ in range(3)]
    inputs, transforms, recorded = iter(moments), [], []

    def hidden(exact, diagonal, off, entropy):
        recorded.append((exact, diagonal, off))
        return next(inputs)

    within = Passes.within

    def watched(self, transform):
        transforms.append(transform)
        return within(self, transform)

    monkeypatch.setattr(coinpress, "noised_symmetric", hidden)
    monkeypatch.setattr(coinpress, "noised_count", lambda *_: (50.0, None))
    monkeypatch.setattr(Passes, "within", watched)
    mechanism = CoinPress(3)
    plan = mechanism.plan(facts(3), ZCDP(0.1))
    second = released(rows, mechanism, plan).second
    return plan, second, transforms, recorded


def test_released_values_alone_steer(monkeypatch):
    with monkeypatch.context() as patch:
        plan, second, transforms, recorded = steered(patch, ellipse(40, 3))
    with monkeypatch.context() as patch:
        _, second_plan, second_transforms, _ = steered(patch, -0.5 * ellipse(90, 3, seed=1))
    assert len(transforms) == 3
    assert [transform.tolist() for transform in transforms] == [
        transform.tolist() for transform in second_transforms
    ]
    assert second.tolist() == second_plan.tolist()
    assert transforms[0].tolist() == np.eye(3).tolist()
    for (exact, diagonal, off), sigma in zip(recorded, plan.scales.values(), strict=True):
        assert (diagonal, off) == (sigma, sigma / math.sqrt(2))
        assert exact.shape == (3, 3)
        assert np.trace(exact) <= 40 * 4**plan.lattice.bits


def test_no_round_leaves_the_ball_unfilled():
    # What a round's noise is paid for is reached: the transform has norm 1, or clips at gamma.
    rows = ellipse(500, 3)
    radii = []
    mechanism = CoinPress(3)
    plan = mechanism.plan(facts(3), ZCDP(10.0))
    statistic = mechanism.measure(bound(rows), plan)

    class Watched(Passes):
        def within(self, transform):
            radii.append(np.linalg.norm(transform, 2))
            return statistic.within(transform)

    watched = Watched(statistic.designs, plan.lattice)
    mechanism.release(watched, plan, seeded(1))
    assert len(radii) == 3
    assert min(radii) >= 1 - 1e-12


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_huge_budget_gives_the_exact_answer_where_no_row_is_clipped(relation, rounds):
    rows = ellipse(800, 3)
    mechanism = CoinPress(rounds)
    plan = mechanism.plan(facts(3, relation, centred=True), ZCDP(1e18))
    release = released(rows, mechanism, plan)
    np.testing.assert_allclose(release.second, rows.T @ rows, rtol=0, atol=2e-3)
    np.testing.assert_allclose(release.total, rows.sum(axis=0), rtol=0, atol=1e-2)
    assert release.count == pytest.approx(800, abs=1e-3)
    assert release.rows == (800 if relation == "replace" else None)


def test_a_bound_on_the_eigenvalues_clips_and_keeps_the_units():
    rows = np.vstack([ellipse(500, 2) / 20, [[0.9, 0.0]] * 20])
    mechanism = CoinPress(rounds=1, largest=1e-3)
    plan = mechanism.plan(facts(2, centred=True), ZCDP(1e18))
    release = released(rows, mechanism, plan)
    reach = normal_radius(2) * math.sqrt(1e-3)
    clipped = rows * np.minimum(1, reach / np.linalg.norm(rows, axis=1))[:, None]
    np.testing.assert_allclose(release.second, clipped.T @ clipped, rtol=0, atol=1e-3)
    np.testing.assert_allclose(release.total, clipped.sum(axis=0), rtol=0, atol=1e-2)
    plain = CoinPress(rounds=1).plan(facts(2, centred=True), ZCDP(1e18))
    ratio = release.noise.mean / released(rows, CoinPress(rounds=1), plain).noise.mean
    assert ratio == pytest.approx(reach)


def test_the_noise_of_one_round():
    # 60 columns without rows: squares of 1770 + 60 normals; their mean is within 8 sd,
    # false alarm below 1e-9. What is negative is cut off, half of the spectrum.
    plan = CoinPress(rounds=1).plan(facts(60), ZCDP(0.5))
    second = released(np.zeros((0, 60)), CoinPress(rounds=1), plan).second
    sd = plan.scales["round 1"] / plan.lattice.steps**2
    expected = sd**2 * 60 * 61 / 2 / 2
    assert abs((second**2).sum() / expected - 1) < 8 * math.sqrt(2 / 1830) + 0.05


def test_rounds_pay_on_their_own_ground():
    # Normal rows of few columns that are far shorter than the ball's radius: four rounds
    # have less error than one, the plain Gaussian mechanism. Two fixed runs.
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(50_000, 10)) * 0.05 * 2.0 ** -np.arange(10)
    errors = []
    for rounds in (1, 4):
        plan = CoinPress(rounds).plan(facts(10), ZCDP(0.01))
        second = released(rows, CoinPress(rounds), plan).second
        errors.append(np.linalg.norm(second - rows.T @ rows))
    assert errors[1] < errors[0] / 5


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_whatever_the_rows_the_release_is_finite(relation, centred, columns, guarantee):
    mechanism = CoinPress(3)
    plan = mechanism.plan(facts(columns, relation, centred), guarantee)
    none = np.zeros((0, columns))
    same = np.full((7, columns), 1 / math.sqrt(columns))
    for rows in (none, np.zeros((3, columns)), same, np.full((3, columns), np.nan)):
        release = released(rows, mechanism, plan)
        assert np.isfinite(release.second).all()
        assert (release.second == release.second.T).all()
        assert math.isfinite(release.count)
        assert math.isfinite(release.noise.count)
        assert math.isnan(release.noise.diagonal)
        assert math.isnan(release.noise.off)
        assert (release.total is not None) == centred == math.isfinite(release.noise.mean)
        assert release.total is None or np.isfinite(release.total).all()


def test_rows_that_can_be_read_once_are_refused_in_time():
    assert CoinPress.passes == "many"
    data = iter([{"x0": [0.1]}])
    design = private_design("~ .", data, dp.codebook(x0=(-1, 1)))
    with pytest.raises(FrameError, match="read only once"):
        design.require_passes()


def test_plain_moments_are_refused():
    plan = CoinPress().plan(facts(1), ZCDP(0.1))
    with pytest.raises(ArgumentError, match="measure"):
        CoinPress().release(Statistic("moments", np.zeros((2, 2), object), 0), plan, seeded(1))


def test_a_pure_guarantee_is_refused():
    with pytest.raises(BudgetError, match="write delta=1e-6"):
        CoinPress().plan(facts(3), PureDP(1.0))


@pytest.mark.parametrize(
    "words", [{"rounds": 0}, {"rounds": 21}, {"rounds": 2.0}, {"rounds": True}]
)
def test_rounds_outside_their_range_are_refused(words):
    with pytest.raises(ArgumentError, match="rounds="):
        CoinPress(**words)


@pytest.mark.parametrize("largest", [0, -1.0, 1.5, math.nan, "unit", True])
def test_a_bound_outside_its_range_is_refused(largest):
    with pytest.raises(ArgumentError, match="largest="):
        CoinPress(largest=largest)
