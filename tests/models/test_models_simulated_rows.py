"""Invented rows: what shapes they have, and that blocks stand as often as they should."""

import numpy as np
import pytest

from dpmodels.mechanisms import CoinPress, Facts, Gauss, Rounds, RoundsPure
from dpmodels.models.simulated_rows import (
    LEAST_ROWS,
    SHAPES,
    Box,
    SimulatedRows,
    shaped,
    simulate_rows,
)
from dpmodels.noise import simulation, source
from dpmodels.privacy import ZCDP, PureDP, adjacency


def made(name, columns=6, n=5_000, seed=3):
    half = np.full(columns, columns**-0.5)
    shares = 1 / np.arange(1.0, columns + 1)
    rng = np.random.default_rng(seed)
    return shaped(SHAPES[name], shares / shares.sum(), Box(-half, half, 1.0), n, rng)


@pytest.mark.parametrize("strategy", [Gauss(), Rounds(), RoundsPure(), CoinPress()])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_block_that_stands_often_is_released_as_its_rows_are(strategy, neighbours):
    few = made("counts", n=5_000)
    every = np.concatenate([*[few.block] * few.full_blocks, few.remainder], axis=1)
    guarantee = PureDP(2.0) if isinstance(strategy, RoundsPure) else ZCDP(0.5)
    plan = strategy.plan(Facts(6, adjacency(neighbours), centred=True), guarantee)
    releases = []
    for rows in (few, SimulatedRows(every, 5_000)):
        with simulation(seed=7):
            releases.append(strategy.release(rows.measured(strategy, plan), plan, source()))
    first, second = releases
    assert first.rows == second.rows
    np.testing.assert_array_equal(first.second, second.second)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        pytest.param("dummies", 600, marks=pytest.mark.product),
        *((name, d) for name in SHAPES for d in (1, 7)),
    ],
)
def test_rows_lie_in_their_box_and_vary(name, columns):
    rows = made(name, columns).block
    assert rows.shape == (columns, max(2048, 4 * columns))
    assert (np.abs(rows) <= columns**-0.5 + 1e-12).all()
    assert (np.linalg.norm(rows, axis=0) <= 1 + 1e-9).all()
    assert np.isfinite(rows).all()
    assert rows[:, :2].std(axis=1).max() > 0


@pytest.mark.expensive
def test_shapes_are_what_they_say():
    length = {name: np.linalg.norm(made(name, 20).block, axis=0) for name in SHAPES}
    assert np.median(length["short"]) < 0.15
    assert np.max(length["tails"]) > 4 * np.median(length["tails"])
    assert 0.5 < np.median(length["box"]) < 0.65
    np.testing.assert_allclose(length["dummies"], 1.0)
    counts = made("counts", 20).block
    away = counts.mean(axis=1, keepdims=True)
    assert np.linalg.norm(away) > 0.7
    assert np.median(np.linalg.norm(counts - away, axis=0)) < 0.35
    assert 0.4 < np.mean(counts == counts.min()) < 0.6
    numbers = (counts * np.sqrt(20) + 1) / 2 * 9
    np.testing.assert_allclose(numbers, numbers.round(), atol=1e-9)


def test_short_rows_have_the_spectrum_exactly():
    rows = made("short", 8).block
    shares = 1 / np.arange(1.0, 9)
    values = np.linalg.eigvalsh(rows @ rows.T / rows.shape[1])[::-1]
    np.testing.assert_allclose(values, 0.01 * shares / shares.sum(), rtol=1e-9)


def test_rows_are_no_longer_than_the_codebook_allows():
    ones = np.ones(4)
    box = Box(0 * ones, ones, 1.0)
    rng = np.random.default_rng(1)
    rows = shaped(SHAPES["box"], ones / 4, box, 100, rng).block
    assert np.linalg.norm(rows, axis=0).max() == pytest.approx(1.0)


@pytest.mark.parametrize("n", [2, 3, 700, LEAST_ROWS, LEAST_ROWS + 1, 5_000])
@pytest.mark.parametrize("center", [True, False])
def test_invented_rows_have_the_covariance_they_say(n, center):
    result = simulate_rows(np.array([0.6, 0.3, 0.1, 0.0]), 0.5, n, np.random.default_rng(5))
    rows = np.concatenate([*[result.block] * result.full_blocks, result.remainder], axis=1)
    assert rows.shape == (4, n)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=0), 0.5)
    expected = np.cov(rows) if center else rows @ rows.T / n
    np.testing.assert_allclose(result.covariance(centred=center), expected, atol=1e-14)
    assert np.linalg.norm(result.covariance(centred=center)) > 0.01


@pytest.mark.parametrize(
    "columns", [1, 2, 5, pytest.param(LEAST_ROWS // 2 + 1, marks=pytest.mark.product)]
)
def test_a_block_has_exactly_the_chosen_spectrum(columns):
    shares = 1 / np.arange(1.0, columns + 1)
    shares /= shares.sum()
    rows = simulate_rows(shares, 0.8, 10_000, np.random.default_rng(5))
    second = rows.block @ rows.block.T / rows.block.shape[1]
    np.testing.assert_allclose(np.linalg.eigvalsh(second)[::-1], 0.64 * shares, atol=1e-12)
    np.testing.assert_allclose(rows.block.sum(axis=1), 0.0, atol=1e-10)


def test_the_statistic_is_that_of_all_rows():
    result = simulate_rows(np.array([0.6, 0.3, 0.1]), 0.5, 5_000, np.random.default_rng(5))
    plan = Gauss().plan(Facts(3, adjacency("replace"), centred=True), ZCDP(1.0))
    exact, rows = result.measured(Gauss(), plan).cross()
    assert rows == 5_000
    assert exact[0, 0] == 5_000 * 4**plan.lattice.bits
    second = exact[1:, 1:].astype(float) / plan.lattice.steps**2 / 5_000
    np.testing.assert_allclose(second, result.covariance(centred=False), atol=1e-5)
