import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmodels.errors import ArgumentError
from dpmodels.postprocess.denoise import RULES, denoise, denoise_values

SEED = 11
SHRINKING = ("auto", "invariant", "spiked")
# Repeated values included: width 16 and a small range make ties common.
spectra = arrays(float, st.integers(1, 15), elements=st.floats(-8, 8, width=16))
scales = st.floats(0.01, 3)
caps = st.none() | st.floats(0.01, 20)


def noise(size, off, rng):
    half = rng.normal(scale=off, size=(size, size)) / math.sqrt(2)
    return half + half.T


def truths(size):
    """Eigenvalues of trace 1."""
    places = np.arange(1, size + 1)
    spike = np.zeros(size)
    spike[0] = 1.0
    shapes = {
        "power 1": 1 / places,
        "power 2": 1 / places**2,
        "exponential": np.exp(-places / 10),
        "spike": spike,
        "spike and floor": 2 * spike + 1 / size,
        "flat": np.ones(size),
        "half flat": np.where(places <= size // 2, 1.0, 0.0),
    }
    return {name: shape / shape.sum() for name, shape in shapes.items()}


def squared_errors(truth, off, runs, rng, cap=None):
    """Mean squared Frobenius error of each rule; "best" has the best possible values."""
    fromkeys = dict.fromkeys((*RULES, "best"), 0.0)
    for _ in range(runs):
        values, vectors = np.linalg.eigh(np.diag(truth) + noise(len(truth), off, rng))
        best = (vectors**2).T @ truth
        for rule in fromkeys:
            shrunk = best if rule == "best" else denoise_values(values, off, rule, cap)
            fromkeys[rule] += (truth @ truth - 2 * shrunk @ best + shrunk @ shrunk) / runs
    return fromkeys


@pytest.mark.parametrize("name", truths(60))
@pytest.mark.parametrize("ratio", [0.05, 0.2, 0.5, 1.0, 3.0])
def test_auto_is_not_worse_than_spiked_or_invariant(name, ratio):
    # Stated tolerance, of the mean squared error: 1.05 times the smaller plus 16 off². The seed is
    # fixed, so there are no false alarms.
    truth = truths(60)[name]
    off = ratio * float(np.linalg.norm(truth)) / math.sqrt(60)
    result = squared_errors(truth, off, 8, np.random.default_rng(SEED))
    assert result["auto"] <= 1.05 * min(result["spiked"], result["invariant"]) + 16 * off**2


@pytest.mark.parametrize("name", ["power 1", "exponential", "spike and floor", "half flat"])
@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0])
def test_auto_comes_near_the_best_values(name, ratio):
    truth = truths(200)[name]
    off = ratio * float(np.linalg.norm(truth)) / math.sqrt(200)
    result = squared_errors(truth, off, 2, np.random.default_rng(SEED))
    assert result["auto"] <= 1.06**2 * (result["best"] + 2 * off**2)
    assert result["auto"] < 0.8 * result["psd"]


@pytest.mark.parametrize("height", [1.5, 3.0])
def test_error_of_one_spike_is_what_theory_says(height):
    # A spike h s above noise of radius s leaves the squared error 2s² - s²/h²: within 6 %, mean of
    # eight runs of a fixed seed, 200 columns.
    truth = np.zeros(200)
    truth[0] = height * math.sqrt(200)
    result = squared_errors(truth, 1.0, 8, np.random.default_rng(SEED))
    for rule in ("auto", "spiked", "best"):
        assert result[rule] == pytest.approx(200 * (2 - height**-2), rel=0.06), rule


@pytest.mark.parametrize("rule", RULES)
def test_without_noise_the_matrix_is_only_made_feasible(rule):
    matrix = np.diag([0.5, 0.3, -0.1])
    expected = np.diag([0.5, 0.3, 0.0])
    np.testing.assert_allclose(denoise(matrix, 0.0, rule), expected, atol=1e-15)
    np.testing.assert_allclose(denoise(matrix, 1e-9, rule), expected, atol=1e-6)


def test_noise_alone_becomes_nearly_nothing():
    matrix = noise(200, 1.0, np.random.default_rng(SEED))
    assert np.linalg.norm(denoise(matrix, 1.0)) < 0.03 * np.linalg.norm(matrix)


@pytest.mark.parametrize("value", [-2.0, 0.0, 0.7, 3.0])
def test_one_column_is_clipped(value):
    assert denoise(np.array([[value]]), 1.0) == pytest.approx(max(value, 0.0))
    assert denoise(np.array([[value]]), 1.0, trace_cap=0.5) == pytest.approx(
        min(max(value, 0), 0.5)
    )


def test_no_rule_leaves_everything_as_it_is():
    matrix = noise(4, 1.0, np.random.default_rng(SEED))
    assert denoise(matrix, 1.0, None, 0.1) is matrix


@pytest.mark.parametrize("rule", RULES)
@given(values=spectra, off=scales, cap=caps)
@example(values=np.array([1.0, 2.0**-24, 0.0, 0.0, 0.0]), off=1.0, cap=1.0)
def test_values_are_feasible_and_keep_their_order(rule, values, off, cap):
    result = denoise_values(values, off, rule, cap)
    assert result.min() >= 0
    assert cap is None or result.sum() <= cap * (1 + 1e-9)
    falling = result[np.argsort(-values, kind="stable")]
    assert np.all(np.diff(falling) <= 1e-9 * (1 + falling[0]))


@pytest.mark.parametrize("rule", RULES)
@given(values=spectra, off=scales)
def test_equal_values_stay_equal(rule, values, off):
    doubled = denoise_values(np.repeat(values, 2), off, rule)
    np.testing.assert_allclose(doubled[::2], doubled[1::2], rtol=1e-6, atol=1e-6 * off)


@pytest.mark.parametrize("rule", RULES)
@given(values=spectra, off=scales, cap=caps, seed=st.integers(0, 99))
def test_order_of_the_values_does_not_matter(rule, values, off, cap, seed):
    turn = np.random.default_rng(seed).permutation(len(values))
    result = denoise_values(values, off, rule, cap)
    turned = denoise_values(values[turn], off, rule, cap)
    np.testing.assert_allclose(turned, result[turn], rtol=1e-6, atol=1e-6 * off)


@pytest.mark.parametrize("rule", RULES)
@given(values=spectra, off=scales, power=st.integers(-20, 20))
def test_unit_of_measurement_does_not_matter(rule, values, off, power):
    unit = 2.0**power
    scaled = denoise_values(unit * values, unit * off, rule, unit * 3.0)
    np.testing.assert_allclose(scaled, unit * denoise_values(values, off, rule, 3.0), rtol=1e-9)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("cap", [None, 1.0, 0.3])
def test_rotations_pass_through(rule, cap):
    rng = np.random.default_rng(SEED)
    matrix = np.diag(truths(12)["power 1"]) + noise(12, 0.03, rng)
    turn, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    result = denoise(turn @ matrix @ turn.T, 0.03, rule, cap)
    np.testing.assert_allclose(result, turn @ denoise(matrix, 0.03, rule, cap) @ turn.T, atol=1e-9)
    assert np.array_equal(result, result.T)
    assert cap is None or np.trace(result) <= cap * (1 + 1e-9)


@pytest.mark.parametrize("rule", SHRINKING)
def test_a_far_spike_is_hardly_touched(rule):
    matrix = np.diag([1e6, *np.zeros(9)]) + noise(10, 1.0, np.random.default_rng(SEED))
    assert denoise(matrix, 1.0, rule)[0, 0] == pytest.approx(matrix[0, 0], rel=1e-6)


def test_one_eigendecomposition_is_enough(monkeypatch):
    calls, decompose = [], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: calls.append(1) or decompose(matrix))
    denoise(noise(20, 1.0, np.random.default_rng(SEED)), 1.0)
    assert calls == [1]


def test_input_is_left_alone():
    values = np.array([3.0, -1.0, 9.0])
    denoise_values(values, 1.0, trace_cap=2.0)
    np.testing.assert_array_equal(values, [3.0, -1.0, 9.0])


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.zeros((2, 3)), 1.0), "square"),
        ((np.zeros(3), 1.0), "square"),
        ((np.eye(2), -1.0), "off = -1.0"),
        ((np.eye(2), math.nan), "off = nan"),
        ((np.eye(2), 1.0, "best"), "'auto'"),
        ((np.eye(2), 1.0, "auto", 0.0), "trace_cap = 0.0"),
        ((np.eye(2), 1.0, None, math.nan), "trace_cap = nan"),
    ],
)
def test_refusals_say_what_to_write(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        denoise(*arguments)
