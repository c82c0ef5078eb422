"""A second moment from noisy increments."""

import numpy as np
import pytest

from dpmodels.postprocess import denoise, nearest_psd
from dpmodels.postprocess.denoise import Increment, accumulate

RULES = ("auto", "invariant", "spiked", "psd", None)


def symmetric(size, off, rng):
    half = rng.normal(scale=off / np.sqrt(2), size=(size, size))
    return half + half.T


def shape(size, rank):
    values = np.zeros(size)
    values[:rank] = 1 / np.arange(1, rank + 1)
    return np.diag(values / values.sum())


def noisy(truth, off, rng):
    trace = float(np.trace(truth) + rng.normal(scale=off))
    return Increment(truth + symmetric(len(truth), off, rng), trace, off)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_without_noise_it_is_the_sum(rule, size):
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(3, 5, size))
    truths = [part.T @ part for part in rows]
    parts = [Increment(truth, float(np.trace(truth)), 0.0) for truth in truths]
    np.testing.assert_allclose(accumulate(parts, rule), sum(truths), atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_it_is_positive_and_below_the_cap(rule):
    rng = np.random.default_rng(0)
    parts = [noisy(scale * shape(20, 4), 0.3 * scale, rng) for scale in (8.0, 2.0, 1.0)]
    for cap in (None, 5.0):
        result = accumulate(parts, rule, cap)
        values = np.linalg.eigvalsh(result)
        assert (result == result.T).all()
        assert values[0] > -1e-9
        assert cap is None or values.sum() <= cap * (1 + 1e-9)


def test_one_increment_is_denoised():
    rng = np.random.default_rng(1)
    part = noisy(shape(30, 3), 0.05, rng)
    assert (accumulate([part]) == denoise(part.matrix, part.off)).all()
    assert (accumulate([part], None) == nearest_psd(part.matrix)).all()


@pytest.mark.expensive
def test_a_shape_known_from_inside_is_used_outside():
    # The outer increment alone is below its noise; predicted, its error is that of the inner
    # shape. The seeds are fixed.
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = shape(60, 5)
        outer, inner = noisy(12 * truth, 0.6, rng), noisy(4 * truth, 0.002, rng)
        together = np.linalg.norm(accumulate([outer, inner]) - 16 * truth)
        distance = np.linalg.norm(denoise(outer.matrix, outer.off) - 12 * truth)
        ratios.append(together / distance)
    assert np.mean(ratios) < 0.2


def test_a_change_of_shape_outside_is_found():
    rng = np.random.default_rng(5)
    inner, outer = shape(60, 5), np.diag(np.diagonal(shape(60, 5))[::-1])
    parts = [noisy(12 * outer, 0.05, rng), noisy(4 * inner, 0.002, rng)]
    truth = 12 * outer + 4 * inner
    noise = np.linalg.norm(parts[0].matrix - 12 * outer)
    assert np.linalg.norm(accumulate(parts) - truth) < 0.7 * noise


@pytest.mark.parametrize("trace", [-3.0, 0.0])
def test_traces_that_are_not_positive_predict_nothing(trace):
    rng = np.random.default_rng(6)
    parts = [noisy(np.zeros((8, 8)), 1.0, rng)._replace(trace=trace) for _ in range(3)]
    assert np.isfinite(accumulate(parts)).all()
