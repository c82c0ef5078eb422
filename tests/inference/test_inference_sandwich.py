"""The sandwich with noise inside, against its parts computed by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpmodels.inference.sandwich import sandwich
from dpmodels.privacy import PureDP, PureEvent, adjacency
from dpmodels.released import BoughtCurvature, CoefficientsRelease, MechanismInfo, MomentNoise

pytestmark = pytest.mark.kernels

CARD = MechanismInfo("objective", "", "", "", "idealised", "")
QUIET = MomentNoise(math.nan, math.nan, 0.0, 0.0)
RNG = np.random.default_rng(0)
Z = RNG.normal(size=(3, 60))
BREAD, MEAT = Z @ Z.T, (Z * 1.2) @ Z.T


def release(bread_noise=QUIET, meat_noise=QUIET, ridge=2.0, gradient_sd=0.0):
    curvature = BoughtCurvature(BREAD, MEAT, bread_noise, meat_noise)
    return CoefficientsRelease(
        coefficients=np.array([1.0, -2.0, 0.5]),
        ridge=ridge,
        gradient=-ridge * np.array([1.0, -2.0, 0.5]),
        gradient_sd=gradient_sd,
        coefficient_sd=0.0,
        curvature=curvature,
        rows=60,
        info=CARD,
        guarantee=PureDP(1.0),
        adjacency=adjacency("replace"),
        events=(PureEvent(1.0),),
        simulated=False,
    )


def noise(off, diagonal=None):
    return MomentNoise(
        math.nan, math.nan, off * math.sqrt(2) if diagonal is None else diagonal, off
    )


def test_without_noise_it_is_whites():
    covariance = sandwich(release(ridge=0.0))
    np.testing.assert_allclose(covariance.estimate, [1.0, -2.0, 0.5])
    np.testing.assert_allclose(covariance.noise, np.zeros((3, 3)), atol=1e-15)
    inverse = np.linalg.inv(BREAD)
    np.testing.assert_allclose(covariance.sampling, inverse @ MEAT @ inverse)
    assert covariance.robust == 1


def test_the_ridges_pull_is_taken_off():
    """The minimum of a quadratic with a ridge goes back to the one without."""
    best = np.array([0.7, 0.1, -0.4])
    pulled = np.linalg.solve(BREAD + 2 * np.eye(3), BREAD @ best)
    covariance = sandwich(replace(release(), coefficients=pulled, gradient=-2 * pulled))
    np.testing.assert_allclose(covariance.estimate, best)


def test_noise_in_the_gradient_is_inside():
    covariance = sandwich(release(gradient_sd=3.0))
    inverse = np.linalg.inv(BREAD)
    np.testing.assert_allclose(covariance.noise, 9 * inverse @ inverse)


def test_noise_that_masks_the_coefficients_adds_to_that_of_the_gradient():
    """Of a diagonal curvature: by its square times the variance of the mask."""
    bread = np.diag([9.0, 40.0, 100.0])
    masked = replace(release(gradient_sd=3.0), coefficient_sd=0.1)
    law = sandwich(replace(masked, curvature=BoughtCurvature(bread, bread, QUIET, QUIET))).noise_law
    np.testing.assert_allclose(np.sort(law.equations.variance[-1, :-1]), [9.81, 25.0, 109.0])


def test_the_full_law_is_the_noise_and_the_sampling_of_the_scores():
    """Beside a direction that noise hides, whose unknown part is in both."""
    bread = np.diag([100.0, 80.0, 0.01])
    curvature = BoughtCurvature(bread, 2 * bread, noise(1.0), QUIET)
    covariance = sandwich(replace(release(gradient_sd=3.0), curvature=curvature))
    assert covariance.lost.shape == (3, 1)
    full, alone = (
        law.equations.variance[-1, :-1] for law in (covariance.full_law, covariance.noise_law)
    )
    assert (alone > 3.0**2).all()
    np.testing.assert_allclose(np.sort(full - alone), [160.0, 200.0], rtol=1e-6)


@pytest.mark.product
@pytest.mark.parametrize("diagonal", [None, 0.5])
def test_noise_in_the_curvature_is_inside(diagonal):
    """Against draws of the noise, to first order."""
    small = noise(0.5, diagonal)
    covariance = sandwich(release(bread_noise=small))
    inverse, theta = np.linalg.inv(BREAD), np.array([1.0, -2.0, 0.5])
    rng = np.random.default_rng(1)
    estimates = []
    for _ in range(20_000):
        e = np.triu(rng.normal(size=(3, 3)) * small.off, 1)
        e = e + e.T + np.diag(rng.normal(size=3) * small.diagonal)
        estimates.append(inverse @ e @ inverse @ theta * 2)
    # 20,000 draws: an entry's standard error is at most 1 % of the largest.
    covariance_of_draws = np.cov(np.array(estimates).T)
    assert (
        np.abs(covariance_of_draws - covariance.noise).max() < 0.06 * np.abs(covariance.noise).max()
    )


def ends(covariance, direction, *, full=True):
    return covariance.interval(np.array(direction, float), 0.95, full=full)


def test_where_noise_swamps_the_curvature_there_is_nothing():
    assert sandwich(replace(release(), curvature=None)) is None
    assert sandwich(replace(release(), gradient=None)) is None
    assert sandwich(release(bread_noise=noise(200.0))) is None


def test_noisy_squared_gradients_give_way_to_the_curvature():
    covariance = sandwich(release(meat_noise=noise(50.0)))
    assert covariance.robust == 0
    np.testing.assert_allclose(covariance.sampling, np.linalg.inv(BREAD))
    some = sandwich(release(meat_noise=noise(4.0)))
    assert 0 < some.robust < 1


def test_equal_columns_are_not_told_apart_and_others_are():
    """However quiet the noise: their least eigenvalue is the rounding of the largest."""
    pair = BREAD.copy()
    pair[1], pair[:, 1] = pair[0], pair[:, 0]
    pair[1, 1] = pair[0, 0] * (1 + 2.0**-50)
    quiet = release(noise(1e-30), noise(1e-30), gradient_sd=1.0)
    covariance = sandwich(replace(quiet, curvature=replace(quiet.curvature, bread=pair)))
    for lost in ((1, 0, 0), (0, 1, 0), (1, -1, 0)):
        assert ends(covariance, lost) == (-math.inf, math.inf)
    for direction in ((0, 0, 1), (1, 1, 0)):
        assert np.isfinite(ends(covariance, direction)).all()


def test_faint_directions_may_be_dropped_with_the_error_of_their_step():
    """A direction of curvature 6, 2.1 noise sds, beside others that are clear."""
    turn = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    bread = (turn * [6.0, 40.0, 50.0]) @ turn.T
    quiet = release(noise(2.0), noise(1e-3), gradient_sd=9.0)
    pulled = replace(
        quiet, curvature=replace(quiet.curvature, bread=bread), gradient=turn @ [-12.0, 1.0, 2.0]
    )
    kept, dropped = sandwich(pulled), sandwich(pulled, drop_faint=True)
    assert kept.lost.shape == (3, 0)
    assert kept.swamped.any()
    assert not dropped.swamped.any()
    np.testing.assert_allclose(np.abs(dropped.lost[:, 0]), np.abs(turn[:, 0]))
    np.testing.assert_allclose(dropped.lost_sizes, math.hypot(12.0, 9.0) / 6)
    assert ends(dropped, turn[:, 0]) == (-math.inf, math.inf)
    assert np.isfinite(ends(dropped, turn[:, 1])).all()
    # A combination that loads a little on it allows for the error of the step along it.
    low, high = ends(dropped, turn[:, 1] + 0.1 * turn[:, 0])
    short, long = ends(dropped, turn[:, 1])
    allowed = 2 * 1.96 * 0.1 * dropped.lost_sizes[0]
    assert high - low == pytest.approx(math.hypot(long - short, allowed), rel=1e-3)


def test_scores_at_the_end_of_a_long_step_take_the_place_of_what_came_before():
    """A quadratic: the estimate and its noise follow from scores, whatever the start and its noise.

    Of a hidden direction the error is the way to the end, at the least.
    """
    best, end = np.array([0.7, 0.1, -0.4]), np.array([6.0, 0.5, -3.0])
    start = release(noise(0.1), noise(1e-3), gradient_sd=50.0)
    path = {"end": end, "first": 2 * BREAD, "first_noise": QUIET}
    bought = replace(start.curvature, **path, score=BREAD @ (end - best), score_sd=3.0)
    result = sandwich(replace(start, coefficient_sd=9.0, curvature=bought))
    np.testing.assert_allclose(result.estimate, best, atol=0.02)
    expected = 3.0 * np.sqrt(np.diagonal(np.linalg.inv(BREAD @ BREAD)))
    np.testing.assert_allclose(np.sqrt(np.diagonal(result.noise)), expected, rtol=0.2)
    axes = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    faint = replace(bought, bread=(axes * [0.1, 40.0, 50.0]) @ axes.T, bread_noise=noise(2.0))
    hidden = sandwich(replace(start, curvature=faint), drop_faint=True)
    distance = abs(hidden.lost[:, 0] @ (end - start.coefficients))
    assert hidden.lost_sizes[0] >= distance


def test_variances_are_sums_of_squares():
    """Along the way that columns nearly equal leave open, and across it."""
    turn = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    bread = turn @ np.diag([1e12, 1e6, 1.0]) @ turn.T
    quiet = release(noise(1e-9), noise(1e-9), gradient_sd=1.0)
    covariance = sandwich(
        replace(quiet, curvature=replace(quiet.curvature, bread=(bread + bread.T) / 2))
    )
    lengths = np.linalg.norm(turn[:, 0] @ covariance.noise_root)
    assert lengths == pytest.approx(1e-12, rel=0.1)


@pytest.mark.parametrize("strength", [5.0, 9.0, 30.0])
def test_ends_have_the_variance_of_the_values_they_test(strength):
    """Noise that raises the curvature shortens step and standard error together: Theorem 92."""
    curvature = BoughtCurvature(
        np.array([[strength]]), np.array([[strength]]), noise(math.sqrt(0.5)), QUIET
    )
    covariance = sandwich(
        replace(
            release(gradient_sd=0.3),
            coefficients=np.zeros(1),
            gradient=np.array([-2.0 * strength]),
            curvature=curvature,
        )
    )
    assert covariance.noise_law.clear
    z, estimate = 1.959964, 2.0
    low, high = covariance.interval(np.ones(1), 0.95, full=False)
    for end in (low, high):
        variance = 0.3**2 + (end if strength < 10 else estimate) ** 2
        assert (strength * (estimate - end)) ** 2 == pytest.approx(z**2 * variance, rel=1e-4)
    half = z * math.hypot(0.3, estimate) / strength
    assert high - estimate > (1.1 if strength == 5 else 0.999) * half
    low, high = covariance.interval(np.ones(1), 0.95, full=True)
    for end, root in ((low, z), (high, -z)):
        assert covariance.statistic(np.ones(1), end) == pytest.approx(root, rel=1e-3)
