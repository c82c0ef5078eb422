"""Curves against the lines under them, the exact laws of noise, and each other."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpmodels.audit.claim import Claim
from dpmodels.privacy import ZCDP, ApproxDP, GaussianEvent, LaplaceEvent, PureDP, PureEvent
from dpmodels.privacy.calibrate import hockey_stick
from dpmodels.privacy.trade_off import advantage, curve_of, misses, odds_factor, power, shifted

CURVES = [
    PureDP(0.1),
    PureDP(2.0),
    ApproxDP(1.0, 0.01),
    ZCDP(0.02),
    ZCDP(0.5),
    GaussianEvent(1.0),
    GaussianEvent(0.4),
]
CLAIMS = [Claim("eps", 2.0, 0.0), Claim("eps", 1.0, 0.01), Claim("rho", 0.5, 0.0)]
CLAIMS += [Claim("mu", 1.0, 0.0), Claim("mu", 2.5, 0.0)]
RATES = np.linspace(0, 1, 101)


def best_tests(null, alternative):
    """Levels and powers of the best tests of one law against another, by Neyman and Pearson."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-alternative / null, kind="stable")
    return (np.concatenate([[0.0], np.cumsum(law[order])]) for law in (null, alternative))


def discrete_laplace(scale, shift):
    at = np.arange(-600, 601) - shift
    mass = np.exp(-np.abs(at) / scale)
    return mass / mass.sum()


def discrete_gaussian(sd, shift):
    at = np.arange(-60 * round(sd), 60 * round(sd) + 1) - shift
    mass = np.exp(-(at**2) / (2 * sd**2))
    return mass / mass.sum()


def revealing(eps, delta):
    """Two laws at (eps, delta): each gives itself away, or else is a randomised response."""
    yes = (1 - delta) / (1 + math.exp(-eps))
    return np.array([delta, yes, 1 - delta - yes, 0.0]), np.array(
        [0.0, 1 - delta - yes, yes, delta]
    )


@pytest.mark.parametrize(
    "guarantee", CLAIMS, ids=lambda guarantee: f"{guarantee.unit} {guarantee.value}"
)
def test_curves_are_the_lines_of_their_profiles(guarantee):
    slopes = (
        np.array([-guarantee.value, guarantee.value])
        if guarantee.unit == "eps"
        else np.linspace(-15, 15, 1201)
    )
    lines = guarantee.levels(slopes) - np.exp(slopes) * RATES[:, None]
    misses = guarantee.misses(RATES)
    # Profiles of zCDP are rounded up on a grid, so that their lines lie lower.
    assert (misses >= lines.max(axis=1).clip(0) - 1e-9).all()
    below = 4e-3 if guarantee.unit == "rho" else 2e-4 if guarantee.unit == "mu" else 1e-12
    np.testing.assert_allclose(misses, lines.max(axis=1).clip(0), atol=below)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("units", [1, 2, 3])
def test_curves_of_groups_are_convex_symmetric_and_under_coin_flipping(curve, units):
    result = misses(curve, RATES, units)
    assert (result <= 1 - RATES + 1e-12).all()
    assert (np.diff(result) <= 1e-12).all()
    assert (np.diff(result, 2) >= -1e-9).all()
    inner = (RATES > 0) & (result > 1e-3)
    np.testing.assert_allclose(misses(curve, result[inner], units), RATES[inner], atol=1e-9)


def test_the_power_at_eps_one_is_the_known_one():
    assert 0.1359 < power(PureDP(1.0), 0.05) <= 0.136


@pytest.mark.parametrize(
    ("curve", "total_variation"),
    [
        (PureDP(1.0), math.tanh(0.5)),
        (ApproxDP(1.0, 0.1), (math.e - 1 + 0.2) / (math.e + 1)),
        (GaussianEvent(0.5), 2 * norm.cdf(1.0) - 1),
    ],
)
def test_advantages_are_those_of_closed_form(curve, total_variation):
    assert advantage(curve) == pytest.approx(total_variation, abs=1e-11)
    levels = np.linspace(0, 1, 2001)
    assert (1 - levels - misses(curve, levels)).max() == pytest.approx(total_variation, abs=1e-3)


def test_groups_of_gaussian_noise_and_of_laplace_noise_are_the_noise_of_their_distance():
    alphas = np.array([0.01, 0.05, 0.3, 0.7])
    np.testing.assert_allclose(
        misses(GaussianEvent(3.0), alphas, 3), misses(GaussianEvent(1.0), alphas), atol=1e-12
    )
    # Laplace noise of scale 1/eps at distance 2, whose total variation is 1 - e^-eps.
    assert advantage(PureDP(0.7), 2) == pytest.approx(1 - math.exp(-0.7), abs=1e-11)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_no_test_of_discrete_laplace_noise_has_more_power(scale, steps):
    levels, powers = best_tests(discrete_laplace(scale, 0), discrete_laplace(scale, steps))
    guarantee = PureDP(steps / scale)
    allowed = 1 - misses(guarantee, levels.clip(0, 1))
    assert (powers <= allowed + 1e-12).all()
    if steps == 1:  # this is randomised response, all of whose tests are the best ones
        np.testing.assert_allclose(powers, allowed, atol=1e-12)
    else:  # rarer outputs still have the largest likelihood ratio
        rare = levels <= 0.5 * math.exp(-steps / scale)
        np.testing.assert_allclose(powers[rare], allowed[rare], atol=1e-12)
        assert (powers < allowed - 1e-3).any()
        np.testing.assert_array_less(
            powers, 1 - misses(PureDP(1 / scale), levels.clip(0, 1), steps) + 1e-12
        )


@pytest.mark.parametrize("steps", [50, 200])
def test_tests_of_discrete_gaussian_noise_have_the_power_of_the_curve(steps):
    levels, powers = best_tests(discrete_gaussian(200.0, 0), discrete_gaussian(200.0, steps))
    inner = (levels > 1e-6) & (levels < 1 - 1e-6)
    allowed = 1 - misses(GaussianEvent(200.0 / steps), levels[inner])
    # Of a lattice of 200 steps a standard deviation: 1/200 of a step's probability.
    np.testing.assert_allclose(powers[inner], allowed, atol=2e-5)
    guarantee = ZCDP((steps / 200.0) ** 2 / 2)
    assert (powers[inner] <= 1 - misses(guarantee, levels[inner]) + 1e-12).all()


@pytest.mark.parametrize("delta", [0.01, 0.1])
def test_a_release_that_gives_itself_away_has_the_power_of_its_curve(delta):
    null, alternative = revealing(1.0, delta)
    levels, powers = best_tests(alternative, null)
    allowed = 1 - misses(ApproxDP(1.0, delta), levels.clip(0, 1))
    np.testing.assert_allclose(powers[1:], allowed[1:], atol=1e-12)


@pytest.mark.parametrize("beta", [0.02, 0.05, 0.3])
def test_odds_rise_by_more_with_no_more_than_the_stated_probability(beta):
    null, alternative = revealing(1.0, 0.01)
    with np.errstate(divide="ignore"):
        ratio = alternative / null
    assert alternative[ratio > odds_factor(ApproxDP(1.0, 0.01), beta) * (1 + 1e-9)].sum() <= beta
    mu = 0.8
    above = math.log(odds_factor(GaussianEvent(1 / mu), beta))
    assert norm.sf(above / mu - mu / 2) <= beta  # of the noise as it came
    # Who is told no more than whether a test of that power rejects has these odds.
    level = float(misses(GaussianEvent(1 / mu), np.array([1 - beta]))[0])
    assert power(GaussianEvent(1 / mu), level) == pytest.approx(beta)
    assert beta / level == pytest.approx(math.exp(above))


def test_without_a_delta_odds_have_a_bound_and_with_one_they_have_none():
    assert odds_factor(PureDP(1.0), 1e-9, 2) == pytest.approx(math.exp(2))
    assert odds_factor(ApproxDP(1.0, 1e-6), 0.05) == pytest.approx(math.e, rel=1e-4)
    assert odds_factor(ApproxDP(1.0, 1e-6), 1e-6) == math.inf
    assert shifted(0.01, odds_factor(ApproxDP(1.0, 0.1), 0.05)) == 1.0
    assert shifted(0.3, 1.0) == pytest.approx(0.3)
    assert shifted(0.3, math.e) == pytest.approx(0.3 * math.e / (0.7 + 0.3 * math.e))


@given(
    eps=st.floats(1e-3, 20),
    more=st.floats(0, 5),
    delta=st.floats(1e-9, 0.4),
    times=st.floats(1, 2),
    alpha=st.floats(1e-6, 0.999),
    units=st.integers(1, 3),
)
def test_larger_budgets_and_groups_allow_more(eps, more, delta, times, alpha, units):
    small, large = ApproxDP(eps, delta), ApproxDP(eps + more, delta * times)
    for read in (
        lambda guarantee: power(guarantee, alpha, units),
        lambda guarantee: advantage(guarantee, units),
        lambda guarantee: odds_factor(guarantee, alpha, units),
    ):
        assert read(small) <= read(large) * (1 + 1e-9) + 1e-12
    assert power(PureDP(eps), alpha) <= power(small, alpha) + 1e-12
    assert power(small, alpha, units) <= power(small, alpha, units + 1) + 1e-12
    assert alpha - 1e-12 <= power(small, alpha)


@settings(max_examples=25)
@given(rho=st.floats(1e-4, 3), times=st.floats(1, 2), alpha=st.floats(1e-4, 0.99))
def test_zcdp_allows_more_with_rho_and_whatever_implies_it_allows_less(rho, times, alpha):
    bound = power(ZCDP(rho), alpha)
    assert bound <= power(ZCDP(rho * times), alpha) + 1e-12
    assert power(PureDP(math.sqrt(2 * rho)), alpha) <= bound + 1e-12
    assert power(GaussianEvent(1 / math.sqrt(2 * rho)), alpha) <= bound + 1e-12


def test_events_of_one_kind_have_a_curve_and_mixtures_have_none():
    composed = curve_of([GaussianEvent(2.0), GaussianEvent(4.0, 12)])
    assert isinstance(composed, GaussianEvent)
    assert composed.multiplier == pytest.approx(1.0)
    assert curve_of([LaplaceEvent(2.0), PureEvent(0.5)]) == PureDP(1.0)
    assert curve_of([GaussianEvent(2.0), PureEvent(0.5)]) is None
    assert curve_of([]) is None


def test_profiles_at_zero_are_advantages():
    assert advantage(GaussianEvent(2.0)) == pytest.approx(float(hockey_stick(np.array(0.0), 2.0)))
    zcdp = float(Claim("rho", 0.5, 0.0).profile(np.array(0.0)))
    assert zcdp - 6e-3 < advantage(ZCDP(0.5)) <= zcdp  # the profile is rounded up on a grid
