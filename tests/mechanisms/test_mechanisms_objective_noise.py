"""Privacy of a tilted minimum, from the exact density of the minimiser on neighbours."""

import itertools
import math
from functools import cache

import numpy as np
import pytest

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.minimise import (
    RIDGE,
    gaussian_scale,
    pure_ridge,
    pure_scale,
    row_loss,
    tilted_curve,
)
from dpmodels.privacy.calibrate import hockey_stick
from dpmodels.statistics.losses import Huber, Logistic

LOSSES = (Logistic(), Huber(0.5))
# Rows (z, label, how many), d = 1; the last table holds the minimum far from zero.
REST = ((), ((1.0, 1, 1),), ((0.3, -1, 1), (-1.0, 1, 1)), ((-1.0, 1, 5000),))
CHANGED = ((1.0, 1, 1), (1.0, -1, 1), (0.6, 1, 1), (-1.0, -1, 1), (0.1, -1, 1))


def minimiser_density(loss, ridge, points, log_noise):
    """Of a table the log density at points, shape (points, d): that of b, times the determinant."""
    points = points.reshape(len(points), -1)

    @cache
    def of(rows):
        b = -ridge * points
        curvature = np.tile(ridge * np.eye(points.shape[1]), (len(points), 1, 1))
        for x, label, times in rows:
            z = np.atleast_1d(x)
            margin = label * (points @ z)
            b = b + (times * label * loss.slope(margin))[:, None] * z
            curvature = curvature + times * loss.bend(margin)[:, None, None] * np.outer(z, z)
        return log_noise(b) + np.linalg.slogdet(curvature)[1]

    return of


def pure(scale):
    return lambda b: -np.linalg.norm(b, axis=1) / scale


def gaussian(scale):
    return lambda b: -(b**2).sum(axis=1) / (2 * scale**2)


def pairs(replaced):
    for rest, row in itertools.product(REST, CHANGED):
        if not replaced:
            yield (*rest, row), rest
            continue
        for changed in CHANGED:
            yield (*rest, row), (*rest, changed)


def largest_loss(loss, scale, ridge, replaced):
    points = np.linspace(-60 / ridge, 60 / ridge, 4001)
    log = minimiser_density(loss, ridge, points, pure(scale))
    return max(np.abs(log(rows) - log(changed)).max() for rows, changed in pairs(replaced))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("eps", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("times", [0.6, 1.0, 4.0])
def test_pure_noise_keeps_eps_on_a_line(loss, replaced, eps, times):
    """On a line two logistic rows never pull apart with all their weight; see the plane."""
    ridge = pure_ridge(loss, eps, 1, replaced=replaced) * times
    scale = pure_scale(loss, eps, ridge, replaced=replaced)
    loss_found = largest_loss(loss, scale, ridge, replaced)
    assert loss_found <= eps * (1 + 1e-9)
    assert loss_found >= (0.45 if replaced and loss.bell else 0.75) * eps


def test_less_noise_would_break_it():
    ridge = pure_ridge(Logistic(), 1.0, 1, replaced=False)
    scale = pure_scale(Logistic(), 1.0, ridge, replaced=False)
    assert largest_loss(Logistic(), 0.9 * scale, ridge, replaced=False) > 1


def far_points():
    """Points of the plane near and very far, where pulls are whole."""
    angle = np.linspace(0, 2 * math.pi, 121)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = (np.geomspace(1e-3, 1e5, 80)[:, None, None] * ring).reshape(-1, 2)
    strip = np.stack(np.meshgrid(np.linspace(-1, 1, 21), -np.geomspace(1, 1e4, 81)), axis=-1)
    return np.vstack([rings, strip.reshape(-1, 2)])


def plane_pairs():
    """Changed rows at several angles; 5,000 rows besides turn b along their difference."""
    turned = [(math.cos(t), math.sin(t)) for t in (0.02, 0.5, 1.6, 3.12)]
    few = ((tuple(0.8 * part for part in turned[1]), 1, 1), (turned[2], -1, 1))
    repeated = (((1.0, 0.0), 1, 5000),)
    rows = [(z, label, 1) for z in turned for label in (1, -1)]
    changed = list(itertools.permutations(rows, 2))
    return [
        ((*rest, rows), (*rest, second)) for rest in (few, repeated) for rows, second in changed
    ]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("less", [1.0, 0.85])
def test_pure_noise_keeps_eps_in_the_plane(loss, less):
    """And would not with less noise."""
    eps = 1.0
    ridge = pure_ridge(loss, eps, 2, replaced=True)
    scale = pure_scale(loss, eps, ridge, replaced=True) * less
    log = minimiser_density(loss, ridge, far_points(), pure(scale))
    largest = max(float(np.abs(log(rows) - log(changed)).max()) for rows, changed in plane_pairs())
    if less == 1:
        assert largest <= eps * (1 + 1e-9)
        assert largest >= 0.75 * eps
    elif loss.bell:
        assert largest > eps


def deltas(logs, cell, grid):
    densities = [np.exp(log - max(log.max() for log in logs)) for log in logs]
    first, second = (density / (density.sum() * cell) for density in densities)
    return np.array([(np.maximum(first - math.exp(e) * second, 0)).sum() * cell for e in grid])


@pytest.mark.parametrize("multiplier", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("replaced", [True, False])
def test_gaussian_noise_is_dominated_by_its_multiplier_on_a_line(multiplier, replaced):
    scale = gaussian_scale(multiplier * (1 + replaced), None)
    ridge = RIDGE * scale
    reach = (10 * scale + 40) / ridge
    points = np.linspace(-reach, reach, 20001)
    grid = np.linspace(0.0, 4 / multiplier, 15)
    bound = hockey_stick(grid, multiplier)
    log, closest = minimiser_density(Logistic(), ridge, points, gaussian(scale)), 0.0
    for value, changed in pairs(replaced):
        for pair in ((value, changed), (changed, value)):
            profile = deltas([log(rows) for rows in pair], points[1] - points[0], grid)
            assert (profile <= bound * (1 + 1e-6) + 1e-12).all()
            closest = max(closest, float(profile[3] / bound[3]))
    # On a line two logistic rows are one row's weight apart, half of what they may be.
    assert closest > (0.02 if replaced else 0.6)


@pytest.mark.product
def test_gaussian_noise_is_dominated_by_its_multiplier_in_the_plane():
    multiplier = 1.0
    scale = gaussian_scale(2 * multiplier, None)
    ridge = RIDGE * scale
    axis = np.linspace(-8 * scale - 4, 8 * scale + 4, 301) / ridge
    points, cell = np.stack(np.meshgrid(axis, axis), axis=-1), (axis[1] - axis[0]) ** 2
    points = points.reshape(-1, 2)
    grid = np.linspace(0.0, 4.0, 9)
    log = minimiser_density(Logistic(), ridge, points, gaussian(scale))
    for rows, changed in plane_pairs()[:56:4]:
        profile = deltas([log(rows), log(changed)], cell, grid)
        assert (profile <= hockey_stick(grid, multiplier) + 1e-9).all()


@pytest.mark.parametrize("ratio", [0.8, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("scale", [0.6, 3.0, 100.0])
def test_the_curve_is_that_of_its_loss(ratio, scale):
    """E(1 - exp(eps - m(a)))+ by the trapezoidal rule on a fine grid."""
    ridge = ratio * scale
    a = np.linspace(-9 / scale, 9 / scale, 100_001)
    q = np.linspace(0, 1, 401)[:, None]
    loss = np.full(a.shape, -np.inf)
    for coordinate in q[:, 0]:
        exponent = (
            coordinate * a + coordinate**2 / (2 * scale**2) + coordinate * (1 - coordinate) / ridge
        )
        np.maximum(loss, exponent, out=loss)
    density = np.exp(-((a * scale) ** 2) / 2) * scale / math.sqrt(2 * math.pi)
    grid = np.linspace(0, 2 / ridge, 7)
    summed = [np.trapezoid(-np.expm1(np.minimum(e - loss, 0)) * density, a) for e in grid]
    np.testing.assert_allclose(tilted_curve(grid, scale, ridge), summed, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("multiplier", [0.2, 1.0, 7.0, 1e3, 1e6])
def test_the_price_of_curvature_in_gaussian_noise(multiplier):
    assert multiplier <= gaussian_scale(multiplier, None) <= 1.17 * multiplier
    assert gaussian_scale(multiplier, 5 * multiplier) <= 1.008 * multiplier


def test_where_a_row_pulls_with_all_its_weight_it_does_not_bend():
    """With a ridge of at least the scale the curvature costs pure noise nothing."""
    assert row_loss(Logistic(), 2.0, 2.0) == pytest.approx(0.5, rel=1e-9)
    assert row_loss(Logistic(), 2.0, 1.9) > 0.5 * (1 + 1e-6)
    slopes = np.linspace(0, 1, 100_001)
    for scale, ridge in ((2.0, 0.3), (0.4, 0.1), (9.0, 30.0)):
        brute = (slopes / scale + np.log1p(slopes * (1 - slopes) / ridge)).max()
        assert row_loss(Logistic(), scale, ridge) == pytest.approx(brute, rel=1e-7)


def test_a_ridge_that_no_noise_makes_private_is_refused():
    with pytest.raises(BudgetError, match="too small"):
        pure_scale(Logistic(), 0.1, 0.01, replaced=True)
    with pytest.raises(BudgetError, match="too small"):
        gaussian_scale(10.0, 1.0)
