"""Claims: their lines support their curves, and their curves are the known ones."""

import math

import numpy as np
import pytest
from scipy import stats

from dpmodels.audit.claim import Claim, ceiling, claim, detectable
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, gaussian_delta

CLAIMS = [
    Claim("eps", 1.0, 1e-5),
    Claim("eps", 0.1, 0.0),
    Claim("mu", 0.27, 1e-5),
    Claim("mu", 3.0, 1e-5),
    Claim("rho", 0.1, 1e-5),
    Claim("rho", 4.0, 1e-5),
]
RATES = np.array([1e-6, 1e-3, 0.1, 0.3, 0.5, 0.8, 0.999])


@pytest.mark.parametrize("result", CLAIMS)
def test_lines_lie_under_coin_flipping_and_under_the_curve(result):
    alarms = np.linspace(0, 1, 401)
    misses = result.misses(alarms)
    for rate in RATES:
        line = result.boundary(rate, float(result.misses(np.array([rate]))[0]))
        assert line.level <= min(1.0, line.slope) + 1e-12
        assert (
            misses + line.slope * alarms >= line.level - 1e-3 * (result.unit == "rho") - 1e-9
        ).all()


@pytest.mark.parametrize("result", CLAIMS)
def test_curves_are_convex_falling_and_symmetric(result):
    alarms = np.linspace(0, 1, 401)
    misses = result.misses(alarms)
    assert (np.diff(misses) <= 1e-12).all()
    assert (np.diff(misses, 2) >= -1e-9).all()
    inner = (alarms > 0.01) & (misses > 0.01)
    back = result.misses(misses[inner])
    np.testing.assert_allclose(back, alarms[inner], atol=2e-3 if result.unit == "rho" else 1e-9)


def test_a_gaussian_claim_is_its_calibration():
    result = claim(ApproxDP(1.0, 1e-5), "gaussian")
    assert result.eps == pytest.approx(1.0, rel=1e-6)
    assert float(result.profile(np.array(0.3))) == pytest.approx(
        gaussian_delta(0.3, 1 / result.value)
    )
    np.testing.assert_allclose(
        result.misses(RATES), stats.norm.cdf(stats.norm.isf(RATES) - result.value)
    )


def test_zcdp_allows_what_gaussian_noise_of_the_same_rho_does():
    rho = 0.2
    gaussian = Claim("mu", math.sqrt(2 * rho), 1e-5)
    alarms = np.linspace(0.001, 0.999, 99)
    assert (Claim("rho", rho, 1e-5).misses(alarms) <= gaussian.misses(alarms) + 1e-9).all()


def test_pure_claims_pass_through_the_kink_of_randomised_response():
    claim, rate = Claim("eps", 1.0, 0.0), 1 / (1 + math.e)
    assert float(claim.misses(np.array([rate]))[0]) == pytest.approx(rate)
    # Every slope in between goes through the same point.
    for eps in (0.0, 0.4, 0.9):
        level = 1 - float(claim.profile(np.array(eps)))
        assert rate + math.exp(eps) * rate == pytest.approx(level)


def test_guarantees_become_claims():
    assert claim(PureDP(1.0), None) == Claim("eps", 1.0, 0.0)
    assert claim(ApproxDP(1.0, 1e-6), None) == Claim("eps", 1.0, 1e-6)
    assert claim(ZCDP(0.1), None).unit == "rho"
    assert claim(ZCDP(0.5), "gaussian").value == pytest.approx(1.0)


def test_laws_that_cannot_be_are_refused():
    with pytest.raises(ArgumentError, match="gaussian"):
        claim(PureDP(1.0), "normal")
    with pytest.raises(BudgetError):
        claim(PureDP(1.0), "gaussian")


@pytest.mark.product
@pytest.mark.parametrize("result", CLAIMS)
def test_more_runs_detect_more(result):
    results = [detectable(result, runs, 0.05) for runs in (300, 3_000, 3_000_000)]
    assert results == sorted(results, reverse=True)
    # Gaussian noise, which stands in, does not reach what zCDP allows.
    limit = 1.7 if result.unit == "rho" else 1.2
    assert result.value < results[-1] < limit * result.value
    assert ceiling(result, 300, 0.05) < ceiling(result, 3_000, 0.05)


@pytest.mark.parametrize("unit", ["eps", "mu", "rho"])
def test_a_number_without_end_is_an_eps_without_end(unit):
    assert math.isinf(Claim(unit, math.inf, 1e-5).eps)
