"""The private power method: its price, its sensitivity, its answers."""

import math
from itertools import product

import numpy as np
import pytest
from moment_cases import fraction_spent
from subspace_rows import ADD_REMOVE, RELATIONS, REPLACE, ball, facts, nothing, statistic

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms.second_moment import scatter_of_rows
from dpmodels.mechanisms.subspace import ITERATIONS, Power, _noisy_product, _read_together
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, gaussian_multiplier

USUAL = (ApproxDP(1.0, 1e-6), ApproxDP(8.0, 1e-2), ZCDP(0.1))


@pytest.mark.parametrize(
    ("relation", "centred", "n_directions", "expected"),
    [
        (REPLACE, False, 2, math.sqrt(2)),
        (REPLACE, False, 1, 1),
        (ADD_REMOVE, False, 2, 1),
        (REPLACE, True, 2, 4),
        (ADD_REMOVE, True, 2, 4),
        (REPLACE, True, 1, 4),
    ],
)
def test_the_noise_in_numbers(relation, centred, n_directions, expected):
    # At rho = 1/2 the whole multiplier is 1, that of each of four steps 2.
    plan = Power(iterations=4).plan(facts(6, n_directions, relation, centred), ZCDP(0.5))
    (event,) = plan.events
    assert event.count == 4
    assert event.multiplier == pytest.approx(2.0, rel=1e-11)
    assert plan.scales["product"] / plan.lattice.radius**2 == pytest.approx(2 * expected, rel=1e-9)
    assert math.isnan(plan.steps.diagonal)


@pytest.mark.parametrize("guarantee", [*USUAL, ZCDP(1e-6), ApproxDP(1e-9, 1e-9)], ids=str)
@pytest.mark.parametrize("eigenvals", [None, "private"])
@pytest.mark.parametrize("iterations", [1, ITERATIONS, 50])
def test_the_events_cost_what_was_asked(guarantee, eigenvals, iterations):
    mechanism = Power(iterations, eigenvals, 0.3)
    for columns, relation, centred in product((1, 4, 40), RELATIONS, (True, False)):
        plan = mechanism.plan(facts(columns, min(columns, 3), relation, centred), guarantee)
        assert 1 - 1e-8 < fraction_spent(plan.events, guarantee) <= 1
        assert len(plan.events) == (1 if eigenvals is None else 2)
        if eigenvals:
            share = (gaussian_multiplier(guarantee) / plan.events[1].multiplier) ** 2
            assert share == pytest.approx(0.3, rel=1e-9)


def test_a_pure_guarantee_is_refused():
    with pytest.raises(BudgetError, match="write delta=1e-6"):
        Power().plan(facts(3, 1), PureDP(1.0))


def test_a_budget_that_leaves_no_lattice_is_refused():
    for eigenvals in (None, "private"):
        with pytest.raises(BudgetError, match="larger eps"):
            Power(eigenvals=eigenvals).plan(facts(3, 1), ZCDP(1e-40))


@pytest.mark.parametrize("iterations", [0, -1, 2.0, True, "6", 10_001, None])
def test_the_number_of_steps_is_a_public_whole_number(iterations):
    with pytest.raises(ArgumentError, match="write iterations=6"):
        Power(iterations=iterations)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("n_directions", [1, 2])
def test_rounded_products_of_neighbours_are_no_farther_apart_than_planned(
    relation, centred, n_directions
):
    mechanism, rng = Power(iterations=1), np.random.default_rng(1)
    plan = mechanism.plan(facts(3, n_directions, relation, centred), ZCDP(0.5))
    unit, largest = plan.lattice.radius**2, 0.0
    rows = np.vstack([ball(rng, 16, 3), np.eye(3), -np.eye(3), np.zeros((1, 3))])
    bases = [np.zeros(23, dtype=int), 10**6 * np.eye(23, dtype=int)[19]]
    picks = np.eye(23, dtype=int)
    for base, _ in product(bases, range(300)):
        i, j = rng.choice(23, 2, replace=False)
        i = rng.choice([i, 16, 16, 17])
        replacement = picks[j] if relation is REPLACE else np.zeros(23, dtype=int)
        frame = np.linalg.qr(rng.normal(size=(3, n_directions)) * [[1], [9], [0.1]])[0]
        frame = frame if rng.random() < 0.5 else np.eye(3)[:, :n_directions]
        products = [
            np.rint(
                scatter_of_rows(
                    statistic(rows, times=base + pick), plan.lattice, centred=centred
                ).matrix
                @ frame
                * unit
            )
            for pick in (picks[i], replacement)
        ]
        largest = max(largest, np.linalg.norm(products[0] - products[1]))
    # The multiplier is 1: the planned noise is the sensitivity, rounding included.
    assert 0.99 * plan.scales["product"] < largest <= plan.scales["product"]


def spread(columns, scale=10**7):
    """Rows along the axes with variances that fall by half."""
    axes = np.vstack([np.eye(columns), -np.eye(columns)])
    times = [scale // 2**i for i in range(columns)]
    return statistic(axes, times=times * 2), 2 * np.array(times)


@pytest.mark.parametrize("guarantee", USUAL, ids=str)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("eigenvals", [None, "private"])
def test_many_rows_give_the_principal_axes_in_order(guarantee, centred, eigenvals):
    exact, variances = spread(6)
    mechanism = Power(iterations=40, eigenvals=eigenvals)
    plan = mechanism.plan(facts(6, 3, centred=centred), guarantee)
    release = mechanism.release(exact, plan, seeded(2))
    np.testing.assert_allclose(np.abs(release.frame), np.eye(6)[:, :3], atol=1e-3)
    assert release.ordered
    assert release.limit == ""
    assert math.isnan(release.expected_loss)
    if eigenvals:
        np.testing.assert_allclose(release.variances, variances[:3], rtol=1e-3)
        assert abs(release.count - variances.sum()) < 8 * release.variance_sd


def test_the_noise_of_one_step_has_the_planned_scale():
    # Without rows the product is its noise: 40 x 20 squares, whose mean has the
    # relative error 0.05; within 6 standard errors, false-alarm rate 2e-9.
    columns, n_directions = 40, 20
    mechanism = Power(iterations=1)
    plan = mechanism.plan(facts(columns, n_directions), ZCDP(0.5))
    noise = _noisy_product(np.zeros((columns, n_directions)), plan, seeded(3))
    assert np.mean(noise**2) == pytest.approx(2.0, rel=6 * 0.05)


def test_the_first_frame_owes_nothing_to_the_rows():
    # With one step and no rows the frame is that of noise: uniform. Its first
    # coordinate squared has mean 1/d; z-test at 6 standard errors.
    mechanism, entropy = Power(iterations=1), seeded(4)
    plan = mechanism.plan(facts(4, 1), ZCDP(0.5))
    squares = [mechanism.release(nothing(4), plan, entropy).frame[0, 0] ** 2 for _ in range(1_000)]
    assert abs(np.mean(squares) - 0.25) < 6 * np.std(squares) / math.sqrt(1_000)


@pytest.mark.parametrize("guarantee", [ZCDP(1e-12), ZCDP(0.1), ApproxDP(1e9, 1e-6)], ids=str)
@pytest.mark.parametrize("eigenvals", [None, "private"])
def test_whatever_the_rows_the_release_is_finite(guarantee, eigenvals):
    mechanism = Power(eigenvals=eigenvals)
    for columns, n_directions, centred in [
        (1, 1, True),
        (2, 1, False),
        (4, 2, True),
        (4, 4, False),
    ]:
        plan = mechanism.plan(facts(columns, n_directions, centred=centred), guarantee)
        constant, bits = np.full((1, columns), 0.3), plan.lattice.bits
        for exact in (
            nothing(columns, bits, rows=7),
            statistic(constant, bits, times=[1]),
            statistic(constant, bits, times=[10**9]),
            statistic(np.eye(columns)[:1], bits, times=[10**4]),
        ):
            release = mechanism.release(exact, plan, seeded(5))
            np.testing.assert_allclose(
                release.frame.T @ release.frame, np.eye(n_directions), atol=1e-12
            )
            assert release.variances is None or np.isfinite(release.variances).all()


def test_the_release_carries_its_terms():
    exact = statistic(ball(np.random.default_rng(6), 50, 5), incomplete=3)
    for relation in RELATIONS:
        plan = Power().plan(facts(5, 2, relation), ApproxDP(1.0, 1e-6))
        release, same, second = (Power().release(exact, plan, seeded(seed)) for seed in (1, 1, 2))
        assert release.rows == (53 if relation is REPLACE else None)
        assert (release.info, release.guarantee) == (Power.info, plan.guarantee)
        assert release.events == plan.events
        assert release.variances is None
        assert math.isnan(release.count)
        assert release.frame.tolist() == same.frame.tolist() != second.frame.tolist()
    with dp.simulation(seed=1):
        assert Power().release(exact, plan, seeded(1)).simulated


def test_all_products_say_more_than_the_last():
    rng = np.random.default_rng(7)
    values = 1 / np.arange(1, 21)
    losses = []
    for _ in range(40):
        frame, frames, products = np.linalg.qr(rng.normal(size=(20, 2)))[0], [], []
        for _ in range(6):
            frames.append(frame)
            products.append(values[:, None] * frame + 0.05 * rng.normal(size=(20, 2)))
            frame = np.linalg.qr(products[-1])[0]
        guess = _read_together(np.hstack(frames), np.hstack(products), 0.05)
        together = np.linalg.eigh(guess)[1][:, -2:]
        losses.append([1.5 - (values[:, None] * summary**2).sum() for summary in (frame, together)])
    alone, together = np.mean(losses, axis=0)
    assert together < 0.75 * alone


def test_without_noise_a_few_products_span_the_whole_space():
    # Eigenvalues too close for the last of six steps, which alone would be far off.
    exact = statistic(np.vstack([np.eye(4), -np.eye(4)]), times=[1_050, 1_000, 950, 900] * 2)
    plan = Power().plan(facts(4, 2), ZCDP(1e9))
    frame = Power().release(exact, plan, seeded(8)).frame
    np.testing.assert_allclose(np.abs(frame), np.eye(4)[:, :2], atol=1e-3)


@pytest.mark.parametrize("scale", [1.0, 1e-5])
def test_products_read_together_give_the_mean_of_the_scatter(scale):
    """Of normal entries, on the diagonal with twice the variance, by least squares of them all."""
    rng = np.random.default_rng(3)
    frames = np.hstack([np.linalg.qr(rng.normal(size=(4, 2)))[0] for _ in range(2)])
    products, noise = rng.normal(size=(4, 4)) * scale, 0.3 * scale
    first, second = np.triu_indices(4)
    entries = np.zeros((len(first), 4, 4))
    entries[range(len(first)), first, second] = entries[range(len(first)), second, first] = 1
    design = (entries @ frames).reshape(len(first), -1).T
    prior = ((products**2).mean() - noise**2) * (1 + (first == second))
    precision = design.T @ design / noise**2 + np.diag(1 / prior)
    expected = np.linalg.solve(precision, design.T @ products.ravel() / noise**2)
    guess = _read_together(frames, products, noise)
    np.testing.assert_allclose(guess[first, second], expected, rtol=1e-9)
    np.testing.assert_array_equal(guess, guess.T)
    # Products that are no larger than their noise say nothing.
    assert np.abs(_read_together(frames, products, 2 * scale)).max() < 1e-9 * scale
