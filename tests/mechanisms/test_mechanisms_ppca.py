"""The exponential mechanism for a space: its law, its loss on neighbours, its price."""

import math
import time
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from scipy.special import i0e, i1e
from subspace_rows import (
    ADD_REMOVE,
    GUARANTEES,
    RELATIONS,
    REPLACE,
    ball,
    circle,
    facts,
    log_density,
    mean_square_in_the_plane,
    nothing,
    sphere,
    statistic,
)

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.second_moment import scatter_of_rows
from dpmodels.mechanisms.subspace import PPCA
from dpmodels.noise import bingham_frames, seeded
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeEvent,
    GaussianEvent,
    LaplaceEvent,
    PureDP,
    total_eps,
    total_rho,
)

EPS = 1 - 1e-12  # what is used of one


@pytest.fixture(autouse=True)
def _quick_small_draws(monkeypatch):
    """Leave threads as they are: holding them takes longer than a small draw."""
    monkeypatch.setattr(bingham_frames, "one_blas_thread", nullcontext)


def frames(mechanism, exact, plan, draws, seed):
    entropy = seeded(seed)
    return np.stack([mechanism.release(exact, plan, entropy).frame for _ in range(draws)])


def price(events, guarantee):
    if isinstance(guarantee, ZCDP):
        return total_rho(events) / guarantee.rho
    return total_eps(events, getattr(guarantee, "delta", 0.0)) / guarantee.eps


def test_the_concentration_in_numbers():
    expected = {
        (REPLACE, False): 1 / 2,
        (ADD_REMOVE, False): 1,
        (REPLACE, True): 1 / (3 * math.sqrt(3)),
        (ADD_REMOVE, True): 1 / 4,
    }
    for (relation, centred), slope in expected.items():
        known_facts = facts(6, 2, relation, centred)
        for guarantee, eps in zip(GUARANTEES, (1, 1, math.sqrt(0.8)), strict=True):
            plan = PPCA().plan(known_facts, guarantee)
            assert plan.scales["concentration"] == pytest.approx(eps * slope, rel=1e-11)
            assert plan.events == (BoundedRangeEvent(eps * EPS),)


def test_one_column_after_another_divides_the_budget():
    mechanism = PPCA(sampler="sequential")
    assert mechanism.plan(facts(6, 3), PureDP(1.0)).events == (BoundedRangeEvent(1 / 3 * EPS, 3),)
    # The last column of a full frame costs nothing.
    assert mechanism.plan(facts(6), PureDP(1.0)).events == (BoundedRangeEvent(1 / 5 * EPS, 5),)
    assert mechanism.plan(facts(1), PureDP(1.0)).events == (BoundedRangeEvent(EPS),)
    (event,) = mechanism.plan(facts(6, 3), ZCDP(0.3)).events
    assert event == BoundedRangeEvent(math.sqrt(8 * 0.3 / 3) * EPS, 3)


def test_eigenvalues_take_their_share():
    mechanism = PPCA(eigenvals="private", share=0.25)
    first, second = mechanism.plan(facts(6, 3), PureDP(2.0)).events
    assert first == BoundedRangeEvent(1.5 * EPS)
    assert isinstance(second, LaplaceEvent)
    assert second.multiplier == pytest.approx(2.0)
    plan = mechanism.plan(facts(6, 3), ZCDP(0.5))
    assert plan.events[0] == BoundedRangeEvent(math.sqrt(3.0) * EPS)
    assert isinstance(plan.events[1], GaussianEvent)
    assert plan.events[1].multiplier == pytest.approx(2.0)
    unit = plan.lattice.radius**2
    assert plan.steps.diagonal / unit == pytest.approx(2 * math.sqrt(2), rel=1e-9)
    assert plan.steps.off / unit == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize(
    "guarantee", [*GUARANTEES, PureDP(1e-6), ApproxDP(9, 1e-2), ZCDP(7)], ids=str
)
@pytest.mark.parametrize("sampler", ["joint", "sequential"])
@pytest.mark.parametrize("eigenvals", [None, "private"])
def test_the_events_cost_what_was_asked(guarantee, sampler, eigenvals):
    mechanism = PPCA(sampler, eigenvals)
    for columns, components, relation in product((1, 4, 40), (0, 1, 3), RELATIONS):
        n_directions = min(components, columns)
        plan = mechanism.plan(facts(columns, n_directions, relation), guarantee)
        paid = price(plan.events, guarantee)
        assert paid <= 1
        # The Gaussian curve and the sharper sum of draws cost less than their eps together.
        assert paid > (0.1 if isinstance(guarantee, ApproxDP) else 1 - 1e-9)


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("eps", [0.5, 3.0])
def test_the_loss_on_neighbours_is_within_eps(columns, relation, centred, eps):
    plan = PPCA().plan(facts(columns, 1, relation, centred), PureDP(eps))
    points, slope = (circle() if columns == 2 else sphere(150)), plan.scales["concentration"]

    def loss(times, greater, less):
        scatter, second = (
            slope
            * scatter_of_rows(
                statistic(rows, times=np.add(times, row)), plan.lattice, centred=centred
            ).matrix
            for row in (greater, less)
        )
        ratio = log_density(scatter, points) - log_density(second, points)
        return np.abs(ratio).max(), np.ptp(ratio)

    # Rows at 60 degrees, the axes, the opposite; then any rows.
    rows = np.zeros((6, columns))
    rows[:, :2] = [
        [0.5, 0.75**0.5],
        [0.5, -(0.75**0.5)],
        [1, 0],
        [0, 1],
        [-1, 0],
        [-(0.5**0.5), 0.5**0.5],
    ]
    none, picks = np.zeros(6, dtype=int), np.eye(6, dtype=int)
    bases = [
        np.zeros(6, dtype=int),
        [0, 0, 0, 40, 0, 0],
        [0, 60, 0, 0, 2000, 0],
        [40, 0, 0, 0, 2000, 0],
    ]
    rng = np.random.default_rng(6)
    losses = []
    for base in [*bases, *rng.integers(0, 30, (3, 6))]:
        for i, j in product(range(6), [*range(6), None]):
            if relation is REPLACE or j is None:
                losses.append(loss(base, picks[i], none if j is None else picks[j]))
    largest, widest = np.max(losses, axis=0)
    assert largest <= eps * (1 + 1e-6)
    assert widest <= eps * (1 + 1e-6)
    assert largest > 0.4 * eps


def sine(frame):
    return 1 - frame[:, 0, 0] ** 2


@pytest.mark.product
@pytest.mark.parametrize(
    ("relation", "centred"), [(REPLACE, False), (ADD_REMOVE, False), (REPLACE, True)]
)
@pytest.mark.parametrize("eps", [0.2, 2.0])
def test_the_angle_in_the_plane_is_the_closed_form(relation, centred, eps):
    # Three rows on either side along the first axis, one on either side along the second.
    exact = statistic([[1, 0], [-1, 0], [0, 1], [0, -1]], times=[6, 6, 2, 2])
    mechanism = PPCA()
    plan = mechanism.plan(facts(2, 1, relation, centred), PureDP(eps))
    squares = sine(frames(mechanism, exact, plan, 3_000, 11))
    expected = mean_square_in_the_plane(8 * plan.scales["concentration"])
    # z-test at 6 standard errors: false-alarm rate 2e-9.
    assert abs(squares.mean() - expected) < 6 * squares.std() / math.sqrt(3_000)


def largest_z(average, expected):
    """Largest z-statistic of the means of the first axis, one row a draw."""
    return (np.abs(average.mean(0) - expected) / (average.std(0) / math.sqrt(len(average)))).max()


TURN = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
SPACE = np.vstack([TURN, -TURN])
TIMES = [12, 6, 1] * 2
UPPER = np.triu_indices(3)


@pytest.mark.product
def test_the_law_on_the_sphere_is_the_integral():
    inputs, mechanism = statistic(SPACE, times=TIMES), PPCA()
    plan = mechanism.plan(facts(3, 1), PureDP(0.6))
    exact = scatter_of_rows(inputs, plan.lattice, centred=False)
    matrix = plan.scales["concentration"] * exact.matrix
    points = sphere()
    weights = np.exp(log_density(matrix, points)) / points.shape[1]
    expected = (points * weights @ points.T)[UPPER]
    directions = frames(mechanism, inputs, plan, 3_000, 12)[:, :, 0]
    # Six z-statistics at 6 standard errors: false-alarm rate 1.2e-8.
    assert largest_z((directions[:, :, None] * directions[:, None])[:, *UPPER], expected) < 6
    # The law of twice the concentration is another.
    doubled = np.exp(log_density(2 * matrix, points)) / points.shape[1]
    assert (
        largest_z(
            (directions[:, :, None] * directions[:, None])[:, *UPPER],
            (points * doubled @ points.T)[UPPER],
        )
        > 12
    )


@pytest.mark.product
def test_one_column_after_another_has_its_law_exactly():
    inputs, mechanism = statistic(SPACE, times=TIMES), PPCA(sampler="sequential")
    plan = mechanism.plan(facts(3, 2), PureDP(1.2))
    exact = scatter_of_rows(inputs, plan.lattice, centred=False)
    matrix = plan.scales["concentration"] * exact.matrix
    first = sphere(200)
    weights = np.exp(log_density(matrix, first)) / first.shape[1]
    # On the circle orthogonal to the first column the second's law is known in closed form.
    across = np.eye(3) - np.einsum("in,jn->nij", first, first)
    values, vectors = np.linalg.eigh(across @ matrix @ across - 1e6 * (np.eye(3) - across))
    gap = values[:, 2] - values[:, 1]
    share = (1 + i1e(gap / 2) / i0e(gap / 2)) / 2
    lead, right = (np.einsum("ni,nj->nij", v, v) for v in (vectors[:, :, 2], vectors[:, :, 1]))
    second = np.einsum("n,nij->ij", weights * share, lead) + np.einsum(
        "n,nij->ij", weights * (1 - share), right
    )
    directions = frames(mechanism, inputs, plan, 3_000, 13)
    expected = ((first * weights @ first.T)[UPPER], second[UPPER])
    for column in (0, 1):
        directions_of_column = directions[:, :, column]
        # Six z-statistics at 6 standard errors each: false-alarm rate 2.4e-8 together.
        assert (
            largest_z(
                (directions_of_column[:, :, None] * directions_of_column[:, None])[:, *UPPER],
                expected[column],
            )
            < 6
        )


@pytest.mark.product
def test_the_expected_loss_is_the_mean_loss():
    rng = np.random.default_rng(8)
    values = np.array([900, 700, 200, 100, 50])
    rows = np.vstack([np.eye(5), -np.eye(5)])
    exact = statistic(rows, times=[*values, *values])
    for mechanism, draws in ((PPCA(), 60), (PPCA(sampler="sequential"), 400)):
        plan = mechanism.plan(facts(5, 2), PureDP(rng.uniform(0.9, 1.1)))
        directions = frames(mechanism, exact, plan, draws, 14)
        losses = 2 * (1_600 - np.einsum("i,nik->n", values, directions**2))
        stated = mechanism.release(exact, plan, seeded(1)).expected_loss
        # A fifth for the approximation; z-test at 6 standard errors.
        assert abs(losses.mean() - stated) < 0.2 * stated + 6 * losses.std() / math.sqrt(draws)


@pytest.mark.parametrize(
    ("n_directions", "sampler", "limit", "ordered"),
    [
        (1, "joint", "", True),
        (2, "joint", "128 sweeps", False),
        (4, "joint", "", False),
        (5, "joint", "", False),
        (2, "sequential", "", True),
        (5, "sequential", "", True),
    ],
)
def test_the_release_says_what_holds(n_directions, sampler, limit, ordered):
    exact = statistic(ball(np.random.default_rng(9), 50, 5), incomplete=3)
    for relation, eigenvals in product(RELATIONS, (None, "private")):
        mechanism = PPCA(sampler, eigenvals)
        plan = mechanism.plan(facts(5, n_directions, relation), PureDP(1.0))
        release = mechanism.release(exact, plan, seeded(2))
        assert bool(release.limit) == bool(limit)
        assert limit in release.limit
        assert release.ordered == (ordered or eigenvals is not None)
        assert release.rows == (53 if relation is REPLACE else None)
        assert release.frame.shape == (5, n_directions)
        np.testing.assert_allclose(
            release.frame.T @ release.frame, np.eye(n_directions), atol=1e-13
        )
        slope = plan.scales["concentration"]
        assert release.expected_loss == pytest.approx(
            n_directions * (5 - n_directions) / (2 * slope)
        )
        assert (release.variances is None) == (eigenvals is None) == math.isnan(release.count)
        assert release.info is PPCA.info
        assert (release.events, release.guarantee) == (plan.events, plan.guarantee)
        assert not release.simulated
    with dp.simulation(seed=1):
        assert mechanism.release(exact, plan, seeded(2)).simulated


@pytest.mark.product
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("centred", [True, False])
def test_the_bought_variances_have_the_noise_that_is_stated(guarantee, centred):
    # One column: the direction is known but for its sign.
    inputs = statistic([[0.9], [-0.5]], times=[300, 100])
    mechanism = PPCA(eigenvals="private")
    plan = mechanism.plan(facts(1, 1, centred=centred), guarantee)
    exact = scatter_of_rows(inputs, plan.lattice, centred=centred).matrix[0, 0]
    entropy = seeded(15)
    releases = [mechanism.release(inputs, plan, entropy) for _ in range(2_000)]
    sd = releases[0].variance_sd
    for estimates, truth in (
        (np.array([release.variances[0] for release in releases]), exact),
        (np.array([release.count for release in releases]), 400.0),
    ):
        # Mean at 6 standard errors: 2e-9. Standard deviation within 15 %: the
        # relative error is 2.5 % for kurtosis 6, so 6 standard errors.
        assert abs(estimates.mean() - truth) < 6 * sd / math.sqrt(2_000)
        assert abs(estimates.std() / sd - 1) < 0.15


def test_bought_axes_are_the_principal_ones():
    exact = statistic(SPACE, times=[10**8, 10**7, 10**6] * 2)
    for sampler in ("joint", "sequential"):
        mechanism = PPCA(sampler, "private")
        release = mechanism.release(exact, mechanism.plan(facts(3), ZCDP(0.5)), seeded(3))
        np.testing.assert_allclose(np.abs(TURN @ release.frame), np.eye(3), atol=1e-3)
        np.testing.assert_allclose(release.variances, [2e8, 2e7, 2e6], rtol=1e-4)


@pytest.mark.parametrize("eps", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("sampler", ["joint", "sequential"])
@pytest.mark.parametrize("eigenvals", [None, "private"])
def test_whatever_the_rows_the_release_is_finite(eps, sampler, eigenvals):
    mechanism = PPCA(sampler, eigenvals)
    for columns, n_directions, centred in [
        (1, 1, True),
        (2, 1, False),
        (4, 2, True),
        (4, 4, False),
    ]:
        plan = mechanism.plan(facts(columns, n_directions, centred=centred), PureDP(eps))
        constant = np.full((1, columns), 0.3)
        bits = plan.lattice.bits
        for exact in (
            nothing(columns, bits),
            nothing(columns, bits, rows=7),
            statistic(constant, bits, times=[1]),
            statistic(constant, bits, times=[10**9]),
            statistic(np.eye(columns)[:1], bits, times=[10**4]),
        ):
            release = mechanism.release(exact, plan, seeded(4))
            assert np.isfinite(release.frame).all()
            np.testing.assert_allclose(
                release.frame.T @ release.frame, np.eye(n_directions), atol=1e-12
            )
            assert release.variances is None or np.isfinite(release.variances).all()


def test_equal_words_give_equal_releases():
    exact = statistic(ball(np.random.default_rng(10), 50, 6))
    mechanism = PPCA(eigenvals="private")
    plan = mechanism.plan(facts(6, 3), PureDP(1.0))
    first, same, second = (mechanism.release(exact, plan, seeded(seed)).frame for seed in (1, 1, 2))
    assert first.tolist() == same.tolist() != second.tolist()


@pytest.mark.product
def test_many_columns_take_seconds():
    columns = 120
    exact = statistic(ball(np.random.default_rng(11), 500, columns), times=[40] * 500)
    mechanism = PPCA()
    started = time.perf_counter()
    mechanism.release(exact, mechanism.plan(facts(columns, 8), PureDP(1.0)), seeded(5))
    assert time.perf_counter() - started < 15


@pytest.mark.parametrize("sampler", ["gibbs", None, True, ["joint"]])
def test_a_sampler_is_one_of_two(sampler):
    with pytest.raises(ArgumentError, match='"joint" or "sequential"'):
        PPCA(sampler=sampler)
