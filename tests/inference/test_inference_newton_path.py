"""Corrections for a curvature that changes along the step, against sums of logistic losses."""

import math
from dataclasses import replace

import numpy as np
import pytest
from differences import derivative
from scipy.special import expit

from dpmodels.inference.sandwich import NewtonPath, _rate, newton_path, pooled, sandwich
from dpmodels.privacy import PureDP, PureEvent, adjacency
from dpmodels.released import BoughtCurvature, CoefficientsRelease, MechanismInfo, MomentNoise

RNG = np.random.default_rng(5)
N, RIDGE = 4000, 25.0
Z = np.column_stack([np.full(N, 0.45), 0.25 * RNG.normal(size=(N, 2))])
Y = (RNG.random(N) < expit(Z @ np.array([-1.0, 6.0, -4.0]))).astype(float)
CARD = MechanismInfo("objective", "", "", "", "idealised", "")


def gradient(theta):
    return Z.T @ (expit(Z @ theta) - Y)


def curvature(theta):
    weight = expit(Z @ theta) * expit(-Z @ theta)
    return (Z * weight[:, None]).T @ Z


def mean_curvature(start, end):
    parts = (np.arange(200) + 0.5) / 200
    return np.mean([curvature(start + part * (end - start)) for part in parts], axis=0)


def minimum(ridge):
    theta = np.zeros(3)
    for _ in range(60):
        slope = gradient(theta) + ridge * theta
        theta = theta - np.linalg.solve(curvature(theta) + ridge * np.eye(3), slope)
    return theta


def release(noise_sd, scale=1.0, along=True):
    """The ridged minimum with all matrices, symmetric noise of sd `noise_sd` in them."""
    point, rng = minimum(RIDGE), np.random.default_rng(9)
    end = point - scale * np.linalg.solve(curvature(point), -RIDGE * point)

    def noisy(matrix):
        draw = rng.normal(size=(3, 3)) * noise_sd
        return matrix + (draw + draw.T) / math.sqrt(2)

    noise = MomentNoise(math.nan, math.nan, math.sqrt(2) * noise_sd + 1e-9, noise_sd + 1e-9)
    bread = mean_curvature(point, end) if along else curvature(point)
    bought = BoughtCurvature(noisy(bread), noisy(curvature(end)), noise, noise)
    if along:
        bought = replace(bought, first=noisy(curvature(point)), first_noise=noise, end=end)
    return CoefficientsRelease(
        coefficients=point,
        ridge=RIDGE,
        gradient=-RIDGE * point,
        gradient_sd=5.0,
        coefficient_sd=0.0,
        curvature=bought,
        rows=N,
        info=CARD,
        guarantee=PureDP(1.0),
        adjacency=adjacency("replace"),
        events=(PureEvent(1.0),),
        simulated=False,
    )


@pytest.mark.parametrize("scale", [0.6, 1.0, 1.5])
def test_the_estimate_is_the_likeliest_where_the_ridge_pulled_far(scale):
    best, point = minimum(0.0), minimum(RIDGE)
    distance = np.linalg.norm(best - point)
    covariance = sandwich(release(0.0, along=False))
    assert np.linalg.norm(covariance.estimate - best) > 0.3 * distance
    covariance_of_release = sandwich(release(0.0, scale))
    assert np.linalg.norm(covariance_of_release.estimate - best) < 0.09 * distance
    assert covariance_of_release.is_short


def test_errors_are_those_of_the_curvature_at_the_estimate():
    covariance, best = sandwich(release(0.0)), minimum(0.0)
    right = 5.0 * np.linalg.inv(curvature(best))
    sds = np.sqrt(np.diagonal(covariance.noise)) / np.sqrt(np.diagonal(right @ right.T))
    assert (np.abs(sds - 1) < 0.12).all()
    start = 5.0 * np.linalg.inv(curvature(minimum(RIDGE)))
    assert (np.diagonal(start) < 0.6 * np.diagonal(right)).any()


def test_noise_in_both_matrices_is_averaged():
    plain = release(2.0)
    path = newton_path(plain)
    assert path.along < path.whole < 0
    joint_curvature = pooled(plain.curvature, path)
    assert joint_curvature.bread_noise.off == pytest.approx(
        plain.curvature.bread_noise.off / math.sqrt(2)
    )
    right = mean_curvature(plain.coefficients, plain.curvature.end)
    off, alone = (
        np.linalg.norm(curvature.bread - right) for curvature in (joint_curvature, plain.curvature)
    )
    assert off < alone


def test_a_step_that_is_too_long_is_refused():
    steep = release(0.0)
    bought = replace(steep.curvature, first=4 * steep.curvature.first)
    assert not sandwich(replace(steep, curvature=bought)).is_short
    # Unless the known gradient is far below its noise.
    assert sandwich(replace(steep, curvature=bought, gradient_sd=1e4)).is_short


def test_without_a_step_nothing_is_corrected():
    still = release(0.0)
    for gradient_now in (np.zeros(3), -still.gradient):
        moved_release = replace(still, gradient=gradient_now)
        assert newton_path(moved_release) is None
        assert sandwich(moved_release).is_short


@pytest.mark.parametrize("along", [-0.05, -0.4, -1.5])
@pytest.mark.parametrize("part", [0.3, 0.6])
def test_what_moves_with_the_gradient_is_a_derivative(along, part):
    path = NewtonPath(along, along, np.array([1.5]), np.array([-2.0]))

    def end(step):
        return np.array([path.length(step) * float(step[0])])

    step = np.array([1.5 * part])
    moved = path.length(step) * float(path.spread(end(step))[0, 0])
    assert moved == pytest.approx(float(derivative(end, step)[0, 0]), rel=1e-6)
    rate = _rate(along)
    assert rate / -math.expm1(-rate) == pytest.approx(1 - along)
