"""Proportional hazards of counts: derivatives, Cox's regression without noise, and the noise."""

from dataclasses import replace

import numpy as np
import pytest
from statsmodels.duration.hazard_regression import PHReg

from dpmodels.inference.proportions import SumNoise
from dpmodels.inference.survival import GroupedTimes, hazard_ratios
from dpmodels.postprocess.protocol import Spread

TERMS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
HALVED = np.array([0.5, 0.5, 0.0, 0.5, 0.5])


def flat(weights):
    """Independent noise of one variance in all cells."""
    return Spread((weights**2).sum(axis=(-2, -1)), (weights**4).sum(axis=(-2, -1)))


def counts(seed=0, ends=(5, 4, 5, 5)):
    cells = np.random.default_rng(seed).integers(5, 60, (4, 2, 6)).astype(float)
    cells[:, 1, -1] = 0
    return GroupedTimes(TERMS, cells, HALVED, np.array(ends))


def followed(rows, breaks, seed=1):
    """Times with proportional hazards, and their counts by group."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 4, rows)
    event = rng.exponential(12 / np.exp(TERMS[groups] @ [0.5, -0.4]))
    censored = np.minimum(rng.exponential(28, rows), 20)
    time, happened = np.minimum(event, censored), event <= censored
    cell = np.where(time < 20, time * breaks // 20, breaks).astype(int)
    cells = np.zeros((4, 2, breaks + 1))
    np.add.at(cells, (groups, happened.astype(int), cell), 1.0)
    times = GroupedTimes(TERMS, cells, np.full(breaks, 0.5), np.full(4, breaks))
    return times, PHReg(time, TERMS[groups], status=happened.astype(int)).fit(disp=0)


def test_the_influence_is_the_derivative_of_the_score_by_each_count():
    times, at, step = counts(), np.array([0.3, -0.2]), 1e-4
    influence = times.influence(at)
    for cell in np.ndindex(times.cells.shape):
        if cell[1:] == (1, 5):
            continue  # Nobody has the event after the end.
        values = []
        for sign in (1, -1):
            cells = times.cells.copy()
            cells[cell] += sign * step
            values.append(replace(times, cells=cells).score(at)[0])
        slope = (values[0] - values[1]) / (2 * step)
        np.testing.assert_allclose(influence[(slice(None), *cell)], slope, atol=1e-7)


def test_what_all_rows_add_is_the_score():
    times, at = counts(), np.array([0.3, -0.2])
    total = np.einsum("pgec,gec->p", times.influence(at), times.cells)
    np.testing.assert_allclose(total, times.score(at)[0], atol=1e-10)


@pytest.mark.product
def test_without_noise_on_a_fine_grid_it_is_coxs_regression():
    times, peer = followed(4_000, 2_000)
    fit = hazard_ratios(times, flat, SumNoise("gaussian", 0.0, 0.0), 1)
    np.testing.assert_allclose(fit.coefficients, peer.params, atol=2e-3)
    np.testing.assert_allclose(fit.sampling_sd, peer.bse, rtol=0.05)


@pytest.mark.parametrize("breaks", [1, 3, 10])
def test_expected_counts_of_proportional_hazards_have_their_ratios_on_any_grid(breaks):
    ends = np.linspace(0, 20, breaks + 1)
    rates = 0.08 * np.exp(TERMS @ [0.5, -0.4])
    survival = np.exp(-np.outer(rates, ends**1.3 / 2))
    cells = np.zeros((4, 2, breaks + 1))
    cells[:, 1, :-1], cells[:, 0, -1] = -1e4 * np.diff(survival), 1e4 * survival[:, -1]
    times = GroupedTimes(TERMS, cells, np.full(breaks, 0.5), np.full(4, breaks))
    fit = hazard_ratios(times, flat, SumNoise("gaussian", 0.0, 0.0), 1)
    np.testing.assert_allclose(fit.coefficients, [0.5, -0.4], atol=1e-8)


@pytest.mark.product
def test_censoring_within_intervals_moves_ratios_little():
    times, peer = followed(4_000, 10)
    fit = hazard_ratios(times, flat, SumNoise("gaussian", 0.0, 0.0), 1)
    np.testing.assert_allclose(fit.coefficients, peer.params, atol=0.2 * peer.bse.min())


@pytest.mark.product
def test_the_noise_of_the_coefficients_is_that_of_their_draws():
    """The variance of 150 draws is beyond 6 standard errors at a rate of 1e-8."""
    times, _ = followed(4_000, 6)
    noise = SumNoise("gaussian", 3.0, 0.0)
    exact = hazard_ratios(times, flat, noise, 1)
    rng, draws = np.random.default_rng(4), []
    for _ in range(150):
        cells = times.cells + rng.normal(0, 3.0, times.cells.shape)
        cells[:, 1, -1] = 0
        draws.append(hazard_ratios(replace(times, cells=cells), flat, noise, 1)[0])
    ratio = np.var(draws, axis=0) / (9.0 * exact.spread.squares)
    assert (np.abs(ratio - 1) < 6 * np.sqrt(2 / 150)).all()
    away = (np.mean(draws, axis=0) - exact.coefficients) / (3 * np.sqrt(exact.spread.squares))
    assert (np.abs(away) < 6 / np.sqrt(150)).all()


def test_a_term_that_does_not_vary_is_not_identified_and_leaves_the_others():
    times = counts(ends=(5, 0, 5, 0))
    fit = hazard_ratios(times, flat, SumNoise("gaussian", 0.1, 0.0), 1)
    assert np.isfinite(fit.coefficients).tolist() == [True, False]
    assert np.isfinite(fit.sampling_sd).tolist() == [True, False]


def test_information_within_its_noise_identifies_nothing():
    fit = hazard_ratios(counts(), flat, SumNoise("gaussian", 30.0, 0.0), 1)
    assert np.isnan(fit.coefficients).all()
    none = replace(counts(), ends=np.zeros(4, dtype=int))
    assert np.isnan(hazard_ratios(none, flat, SumNoise("gaussian", 1.0, 0.0), 1)[0]).all()


def test_noise_is_that_of_all_counts_of_a_term():
    """Four groups with and without the event, at five times and the end."""
    asked = []

    def recorded(weights):
        asked.append(weights.shape[-2:])
        return flat(weights)

    hazard_ratios(counts(), recorded, SumNoise("gaussian", 0.1, 0.0), 1)
    assert set(asked) == {(8, 6)}


def test_clusters_widen_the_sampling_error_alone():
    first, four = (
        hazard_ratios(counts(), flat, SumNoise("gaussian", 0.1, 0.0), effect) for effect in (1, 4)
    )
    np.testing.assert_allclose(four.sampling_sd, 2 * first.sampling_sd)
    np.testing.assert_array_equal(four.spread.squares, first.spread.squares)
