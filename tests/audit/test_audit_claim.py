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


@pytest.mark.parametrize("made", CLAIMS)
def test_lines_lie_under_coin_flipping_and_under_the_curve(made):
    alarms = np.linspace(0, 1, 401)
    least = made.misses(alarms)
    for rate in RATES:
        line = made.boundary(rate, float(made.misses(np.array([rate]))[0]))
        assert line.level <= min(1.0, line.slope) + 1e-12
        assert (
            least + line.slope * alarms >= line.level - 1e-3 * (made.unit == "rho") - 1e-9
        ).all()


@pytest.mark.parametrize("made", CLAIMS)
def test_curves_are_convex_falling_and_symmetric(made):
    alarms = np.linspace(0, 1, 401)
    least = made.misses(alarms)
    assert (np.diff(least) <= 1e-12).all()
    assert (np.diff(least, 2) >= -1e-9).all()
    inner = (alarms > 0.01) & (least > 0.01)
    back = made.misses(least[inner])
    np.testing.assert_allclose(back, alarms[inner], atol=2e-3 if made.unit == "rho" else 1e-9)


def test_a_gaussian_claim_is_its_calibration():
    made = claim(ApproxDP(1.0, 1e-5), "gaussian")
    assert made.eps == pytest.approx(1.0, rel=1e-6)
    assert float(made.profile(np.array(0.3))) == pytest.approx(gaussian_delta(0.3, 1 / made.value))
    np.testing.assert_allclose(
        made.misses(RATES), stats.norm.cdf(stats.norm.isf(RATES) - made.value)
    )


def test_zcdp_allows_what_gaussian_noise_of_the_same_rho_does():
    rho = 0.2
    gaussian = Claim("mu", math.sqrt(2 * rho), 1e-5)
    alarms = np.linspace(0.001, 0.999, 99)
    assert (Claim("rho", rho, 1e-5).misses(alarms) <= gaussian.misses(alarms) + 1e-9).all()


def test_pure_claims_pass_through_the_kink_of_randomised_response():
    made, rate = Claim("eps", 1.0, 0.0), 1 / (1 + math.e)
    assert float(made.misses(np.array([rate]))[0]) == pytest.approx(rate)
    # Every slope in between goes through the same point.
    for eps in (0.0, 0.4, 0.9):
        level = 1 - float(made.profile(np.array(eps)))
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
@pytest.mark.parametrize("made", CLAIMS)
def test_more_runs_detect_more(made):
    found = [detectable(made, runs, 0.05) for runs in (300, 3_000, 3_000_000)]
    assert found == sorted(found, reverse=True)
    # Gaussian noise, which stands in, does not reach what zCDP allows.
    most = 1.7 if made.unit == "rho" else 1.2
    assert made.value < found[-1] < most * made.value
    assert ceiling(made, 300, 0.05) < ceiling(made, 3_000, 0.05)


@pytest.mark.parametrize("unit", ["eps", "mu", "rho"])
def test_a_number_without_end_is_an_eps_without_end(unit):
    assert math.isinf(Claim(unit, math.inf, 1e-5).eps)
