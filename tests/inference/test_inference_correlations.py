"""Correlations from noisy moments: R's without noise, and honest with it."""

import math

import numpy as np
import pytest
from scipy.stats import binom, kstest, pearsonr

from dpmodels.inference.correlations import UNKNOWN, correlation_of
from dpmodels.postprocess.normal_equations import NormalEquations

ROWS, RUNS = 2_000, 300


def released(rows, sd, rng, held=0):
    """Noisy equations of a constant and the first columns, `held` of them, and the last two."""
    matrix = np.column_stack([np.ones(len(rows)), rows])
    size = matrix.shape[1]
    noise = np.triu(rng.normal(size=(size, size)) * sd)
    moments = matrix.T @ matrix + noise + np.triu(noise, 1).T
    entries = np.eye(size)
    variance = np.full((size, size), max(sd, 1e-9) ** 2)
    equations = NormalEquations(moments, variance, entries[:, : held + 1], entries[:, -1], True)
    return equations, entries[:, -2:]


def normal(rng, rho, inputs=0.0):
    z = rng.normal(size=ROWS)
    x = inputs * z + rng.normal(size=ROWS)
    y = inputs * z + rho * (x - inputs * z) + math.sqrt(1 - rho**2) * rng.normal(size=ROWS)
    return np.clip(np.column_stack([z, x, y]) / 6 + 0.2, -1, 1)


def left(rows):
    """Return the exact partial correlation of the last two columns."""
    inverse = np.linalg.inv(np.corrcoef(rows.T))
    return -inverse[-1, -2] / math.sqrt(inverse[-1, -1] * inverse[-2, -2])


def test_without_noise_estimate_test_and_interval_are_rs():
    rows = normal(np.random.default_rng(1), 0.03)[:, 1:]
    estimate = correlation_of(*released(rows, 0.0, np.random.default_rng(2)), ROWS - 2)
    reference = pearsonr(*rows.T)
    assert estimate.estimate == pytest.approx(reference.statistic, abs=1e-9)
    assert estimate.test[2] == pytest.approx(reference.pvalue, rel=1e-6)
    assert estimate.ends(0.9) == pytest.approx(tuple(reference.confidence_interval(0.9)), abs=1e-9)
    assert estimate.noise_ends(0.9) == pytest.approx((estimate.estimate,) * 2, abs=1e-6)


@pytest.mark.parametrize(("rho", "sd"), [(0.0, 8.0), (0.6, 3.0), (0.95, 2.0)])
def test_noise_intervals_cover_the_exact_partial_correlation(rho, sd):
    rng = np.random.default_rng(3)
    rows = normal(rng, rho, 0.5)
    exact = left(rows)
    estimates = [correlation_of(*released(rows, sd, rng, 1), ROWS - 3) for _ in range(RUNS)]
    values = [estimate.noise_ends(0.95) for estimate in estimates if estimate.is_identified]
    hits = sum(low <= exact <= high for low, high in values)
    assert len(values) > RUNS / 3
    # 93 % at least: a false alarm at 1e-6.
    assert hits >= binom.ppf(1e-6, len(values), 0.93)
    spread = np.std([estimate.estimate for estimate in estimates if estimate.is_identified])
    sds = np.median([estimate.noise_sd for estimate in estimates if estimate.is_identified])
    assert 0.75 < sds / spread < 1.35


@pytest.mark.product
@pytest.mark.parametrize("sd", [0.5, 5.0])
def test_p_values_are_uniform_where_there_is_no_correlation(sd):
    rng = np.random.default_rng(5)
    pvalues = []
    for _ in range(RUNS):
        rows = normal(rng, 0.0)
        rows[:, 1] = rng.uniform(size=ROWS) < 0.3
        pvalues.append(correlation_of(*released(rows[:, 1:], sd, rng), ROWS - 2).test[2])
    # A false alarm at 1e-6, were they exactly uniform.
    assert kstest(pvalues, "uniform").pvalue > 1e-6


def test_a_column_without_variance_and_its_own_copy():
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, ROWS)
    flat = correlation_of(*released(np.column_stack([x, 0 * x + 0.3]), 2.0, rng), ROWS - 2)
    assert flat is UNKNOWN
    assert flat.noise_ends(0.95) == flat.ends(0.95) == (-1.0, 1.0)
    assert all(map(math.isnan, (flat.noise_sd, *flat.test)))
    for sign in (-1, 1):
        same = [
            correlation_of(*released(np.column_stack([x, sign * x]), 2.0, rng), ROWS - 2)
            for _ in range(30)
        ]
        ends = np.array([value.noise_ends(1 - 1e-7) for value in same])
        assert (ends[:, (1 + sign) // 2] == sign).all()
        assert all(abs(value.estimate) <= 1 for value in same)


def test_what_is_held_and_lost_in_noise_leaves_nothing():
    rng = np.random.default_rng(9)
    rows = normal(rng, 0.5)
    rows[:, 0] = 0.2 + rows[:, 0] / 1e3
    assert correlation_of(*released(rows, 3.0, rng, 1), ROWS - 3) is UNKNOWN
    assert correlation_of(*released(rows[:, 1:], 3.0, rng), ROWS - 2).is_identified
