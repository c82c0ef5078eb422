import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.errors import BudgetError
from dpmodels.privacy import bounded_range_to_zcdp, gaussian_eps, pure_to_zcdp, zcdp_to_approx


def test_conversions_into_zcdp():
    assert pure_to_zcdp(2.0) == 2.0
    assert bounded_range_to_zcdp(2.0) == 0.5


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 5.0, 20.0, 200.0])
@pytest.mark.parametrize("eps", [0.1, 1.0, 3.0])
def test_randomised_response_obeys_the_pure_conversion(eps, order):
    p = math.exp(eps) / (1 + math.exp(eps))
    renyi = math.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)) / (
        order - 1
    )
    assert renyi <= order * pure_to_zcdp(eps)


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 5.0, 20.0, 200.0])
@pytest.mark.parametrize("eps", [0.1, 1.0, 3.0])
def test_bounded_range_pairs_obey_their_conversion(eps, order):
    # Losses of a two-valued pair lie in [top - eps, top]; top in (0, eps) fixes the pair.
    for top in np.linspace(0.05, 0.95, 19) * eps:
        q = -math.expm1(top - eps) / (math.exp(top) - math.exp(top - eps))
        p = q * math.exp(top)
        high = order * math.log(p) + (1 - order) * math.log(q)
        low = order * math.log1p(-p) + (1 - order) * math.log1p(-q)
        renyi = np.logaddexp(high, low)
        assert renyi / (order - 1) <= order * bounded_range_to_zcdp(eps) * (1 + 1e-9)


@pytest.mark.product
@given(st.floats(-10, 6), st.floats(-200, -0.01))
@settings(max_examples=200, deadline=None)
def test_the_conversion_is_above_the_gaussian_and_below_the_simple_bound(rho, delta):
    rho, delta = 10**rho, 10**delta
    eps = zcdp_to_approx(rho, delta)
    assert eps >= gaussian_eps(delta, math.sqrt(0.5 / rho))
    assert eps <= (rho + 2 * math.sqrt(rho * -math.log(delta))) * (1 + 1e-6)


@pytest.mark.parametrize(("rho", "delta"), [(0.1, 1e-6), (1e-4, 1e-9), (30.0, 1e-5)])
def test_the_conversion_is_the_minimum_over_the_orders(rho, delta):
    order = 1 + np.exp(np.linspace(-15, 15, 200_001))
    bound = order * rho + np.log1p(-1 / order) - np.log(order * delta) / (order - 1)
    assert zcdp_to_approx(rho, delta) == pytest.approx(bound.min(), rel=1e-7)


@pytest.mark.parametrize(("rho", "delta"), [(0.0, 1e-6), (-1.0, 1e-6), (0.1, 0.0), (0.1, 1.0)])
def test_senseless_arguments_are_refused_by_name(rho, delta):
    with pytest.raises(BudgetError, match=r"(rho|delta)="):
        zcdp_to_approx(rho, delta)
