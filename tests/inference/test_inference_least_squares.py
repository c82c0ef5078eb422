"""The law of least squares: derivatives, agreement of its two forms, and coverage."""

import math

import numpy as np
import pytest
from scipy.stats import binom, kstest

from dpmodels.inference.least_squares import LeastSquares
from dpmodels.postprocess.normal_equations import MANY, NormalEquations, least_squares
from dpmodels.released import MomentNoise

pytestmark = pytest.mark.kernels

NOISE = MomentNoise(count=5.0, mean=8.0, diagonal=10.0, off=10 / math.sqrt(2))
TERMS = 3


def rows_of(rng, count, kind="uniform"):
    """Constant, terms and response, in scaled units, and the population's parameters."""
    terms = rng.uniform(-1, 1, (count, TERMS))
    if kind == "skewed":
        terms = np.clip(2 * rng.exponential(0.15, (count, TERMS)) - 1, -1, 1)
    theta = np.array([0.1, 0.4, -0.3, 0.0])
    matrix = np.column_stack([np.ones(count), terms])
    response = matrix @ theta + 0.2 * rng.normal(size=count)
    return np.column_stack([matrix, response]), theta


def variances(noise=NOISE, size=TERMS + 2):
    variance = np.full((size, size), noise.off**2)
    variance[0, :] = variance[:, 0] = noise.mean**2
    np.fill_diagonal(variance, noise.diagonal**2)
    variance[0, 0] = noise.count**2
    return variance


def released(rows, rng, scale=1.0):
    """Noisy equations for the last column on the others."""
    size = rows.shape[1]
    variance = variances(size=size) * scale**2
    noise = np.triu(rng.normal(size=(size, size)) * np.sqrt(variance))
    moments = rows.T @ rows + noise + np.triu(noise, 1).T
    columns = np.eye(size)
    return NormalEquations(moments, variance, columns[:, :-1], columns[:, -1], True)


@pytest.mark.parametrize(("freedom", "filling"), [(0.0, None), (400.0, None), (1.0, 90.0)])
def test_derivatives_of_the_distance(freedom, filling):
    rng, step = np.random.default_rng(3), 1e-5
    fill = None if filling is None else filling * (np.eye(TERMS + 1) + 0.5)
    law = LeastSquares(released(rows_of(rng, 400)[0], rng), freedom, fill)
    at = rng.normal(size=TERMS + 1) / 3
    distance, axes = law.distance(at), step * np.eye(TERMS + 1)
    pairs = [(law.distance(at + axis), law.distance(at - axis)) for axis in axes]
    slope = [(up.value - down.value) / (4 * step) for up, down in pairs]
    curvature = [(up.slope - down.slope) / (2 * step) for up, down in pairs]
    assert distance.slope == pytest.approx(np.array(slope), rel=1e-5, abs=1e-7)
    regressors = law.equations.regressors
    assert regressors.T @ distance.bends @ regressors == pytest.approx(
        np.array(curvature), rel=1e-4, abs=1e-5
    )


def test_the_distance_is_chi_squared_at_the_estimate_without_noise():
    rng = np.random.default_rng(11)
    rows, _ = rows_of(rng, 300)
    plain = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0]
    values = [LeastSquares(released(rows, rng)).distance(plain).value for _ in range(400)]
    # Exact for any noise: a false alarm at 1e-6.
    assert kstest(values, "chi2", args=(TERMS + 1,)).pvalue > 1e-6


def test_both_forms_agree_where_the_design_is_clear(monkeypatch):
    rng = np.random.default_rng(5)
    equations = released(rows_of(rng, 20_000)[0], rng)
    law, direction = LeastSquares(equations, 20_000.0), np.eye(TERMS + 1)[1]
    assert law.clear
    close = np.array([law.interval(direction, 0.99)[0]])
    delta = law.interval(direction, 0.95), law.distance_to(direction[None], close)
    monkeypatch.setattr("dpmodels.inference.least_squares.CLEAR", math.inf)
    assert not law.clear
    searched = law.interval(direction, 0.95), law.distance_to(direction[None], close)
    width = delta[0][1] - delta[0][0]
    assert searched[0] == pytest.approx(delta[0], abs=0.01 * width)
    assert searched[1] == pytest.approx(delta[1], rel=0.03)


def test_ends_of_an_interval_are_where_the_distance_is_the_quantile():
    rng = np.random.default_rng(6)
    law = LeastSquares(released(rows_of(rng, 900)[0], rng, 8.0))
    direction = np.array([0.5, 1.0, 0.0, -1.0])
    assert not law.clear
    ends = law.interval(direction, 0.9)
    for end in ends:
        assert law.distance_to(direction[None], np.array([end])) == pytest.approx(2.7055, rel=1e-2)
    wider = law.interval(direction, 0.99)
    assert wider[0] < ends[0] < ends[1] < wider[1]


def covered(kind, rows, scale, repeats, seed):
    """Hits and ends of noise and confidence intervals for all parameters."""
    rng = np.random.default_rng(seed)
    hits, ends = np.zeros((2, TERMS + 1)), np.zeros((2, TERMS + 1))
    for _ in range(repeats):
        table, truth = rows_of(rng, rows, kind)
        plain = np.linalg.lstsq(table[:, :-1], table[:, -1], rcond=None)[0]
        equations = released(table, rng, scale)
        pairs = ((0.0, plain), (rows - TERMS - 1.0, truth))
        for i, (freedom, aim) in enumerate(pairs):
            law = LeastSquares(equations, freedom)
            for j, direction in enumerate(np.eye(TERMS + 1)):
                low, high = law.interval(direction, 0.95)
                ends[i, j] += math.isfinite(low)
                hits[i, j] += low <= aim[j] <= high
    return hits, ends


@pytest.mark.product
@pytest.mark.parametrize(
    ("kind", "rows", "scale", "repeats"),
    [("uniform", 20_000, 1.0, 200), ("uniform", 600, 1.0, 200), ("skewed", 2_500, 1.0, 24)],
)
def test_intervals_cover(kind, rows, scale, repeats):
    hits, ends = covered(kind, rows, scale, repeats, seed=rows)
    # Eight counts at 0.95: each below its bound with probability 1e-7.
    assert hits.min() >= binom.ppf(1e-7, repeats, 0.95)
    assert ends.min() > 0.8 * repeats
    # Their mean varies no more than one of them: above its bound at 1e-6.
    assert hits.mean() <= binom.isf(1e-6, repeats, 0.95)


@pytest.mark.product
def test_where_noise_wins_intervals_have_no_end_and_refuse_nothing():
    hits, ends = covered("uniform", 300, 20.0, 10, seed=1)
    assert ends.max() <= 4
    assert hits.min() >= 7


def test_a_constant_alone():
    rng = np.random.default_rng(9)
    rows = np.column_stack([np.ones(2_000), rng.uniform(-1, 1, 2_000)])
    equations = released(rows, rng)
    low, high = LeastSquares(equations).interval(np.ones(1), 0.95)
    mean = equations.moments[0, 1] / equations.moments[0, 0]
    # The noise of the mean is that of the sum.
    assert (high - low) / 2 == pytest.approx(1.96 * 8 / 2_000, rel=0.05)
    assert (high + low) / 2 == pytest.approx(mean)


def test_constraints_on_all_parameters_need_no_search():
    rng = np.random.default_rng(4)
    law = LeastSquares(released(rows_of(rng, 500)[0], rng, 4.0))
    assert not law.clear
    at = rng.normal(size=TERMS + 1)
    assert law.distance_to(np.eye(TERMS + 1), at) == pytest.approx(law.distance(at).value)


def test_joint_tests_have_the_noise_of_the_values_they_test():
    """Where X'X is a few of its noise sds, as intervals of single combinations: Theorem 95."""
    rng = np.random.default_rng(8)
    law = LeastSquares(released(rows_of(rng, 1_500)[0], rng, 6.0), 1.0, 90 * np.eye(TERMS + 1))
    assert law.clear
    conditions, values = np.eye(TERMS + 1)[1:3], np.array([3.0, -4.0])
    assert law.bends(conditions)
    # All parameters: the score at these values in the metric of its covariance there.
    at = np.array([0.1, 3.0, -4.0, 1.0])
    assert law.distance_to(np.eye(TERMS + 1), at) == pytest.approx(law.distance(at).value)
    # One condition: the square of its root, at which an interval ends.
    root = law.roots(conditions[:1], values[:1], np.ones(1, dtype=bool))[0]
    assert law.distance_to(conditions[:1], values[:1]) == pytest.approx(root**2)
    # The same conditions in other words, which are not the delta method's.
    joint, turn = law.distance_to(conditions, values), np.array([[1.0, 1.0], [0.3, -2.0]])
    assert law.distance_to(turn @ conditions, turn @ values) == pytest.approx(joint)
    off = conditions @ least_squares(law.equations) - values
    delta = conditions @ law.root
    assert joint < 0.9 * float(off @ np.linalg.solve(delta @ delta.T, off))


@pytest.mark.parametrize("count", [150, 20_000])
def test_roots_have_the_sign_of_the_difference(count):
    """Where the design is clear and where it is not; at an end of an interval they are z."""
    rng = np.random.default_rng(8)
    law = LeastSquares(released(rows_of(rng, count)[0], rng), 1.0)
    assert law.clear == (count > 150)
    direction, found = np.eye(TERMS + 1)[1:2], np.ones(1, dtype=bool)
    for end, sign in zip(law.interval(direction[0], 0.9), (1, -1), strict=True):
        assert law.roots(direction, np.array([end]), found)[0] == pytest.approx(
            sign * 1.6449, rel=0.01
        )
    assert np.isnan(law.roots(direction, np.zeros(1), ~found)).all()


def test_a_search_ends_no_higher_than_it_began():
    rng = np.random.default_rng(2)
    for scale in (0.5, 3.0, 30.0):
        law = LeastSquares(released(rows_of(rng, 300)[0], rng, scale), 300.0)
        start = least_squares(law.equations) + rng.normal(size=TERMS + 1)
        free = np.linalg.qr(rng.normal(size=(TERMS + 1, 2)))[0]
        nearest_point, value = law.nearest(free, start)
        assert value <= law.distance(start).value
        assert value == pytest.approx(law.distance(nearest_point).value)
        # Only along the directions given.
        off = nearest_point - start
        assert off == pytest.approx(free @ (free.T @ off), abs=1e-9)


def test_many_parameters_take_the_delta_form_earlier():
    rng, size = np.random.default_rng(8), 30
    rows = rng.uniform(-1, 1, (4_000, size))
    noise = MomentNoise(count=5.0, mean=60.0, diagonal=60.0, off=45.0)
    moments = rows.T @ rows + noise.off * np.diag(rng.normal(size=size))
    columns = np.eye(size)
    equations = NormalEquations(
        moments, variances(noise, size), columns[:, 1:-1], columns[:, -1], False
    )
    assert 1 < equations.strength < 5
    assert len(equations.gram) > MANY
    assert LeastSquares(equations).clear


def test_weak_designs_need_firmer_refusals(monkeypatch):
    rng = np.random.default_rng(6)
    law, direction = LeastSquares(released(rows_of(rng, 900)[0], rng, 8.0)), np.eye(TERMS + 1)[1]
    assert 0.5 < law.equations.strength < 2
    assert math.isfinite(law.interval(direction, 0.9)[0])
    monkeypatch.setattr("dpmodels.inference.least_squares.WEAK", math.inf)
    monkeypatch.setattr("dpmodels.inference.least_squares.FIRM", 1e3)
    assert LeastSquares(law.equations).interval(direction, 0.9) == (-math.inf, math.inf)
