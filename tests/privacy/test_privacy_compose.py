import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, ndtri

from dpmodels.errors import BudgetError
from dpmodels.privacy import (
    ApproxDP,
    BoundedRangeEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    compose_gaussians,
    gaussian_delta,
    gaussian_eps,
    gaussian_multiplier,
    gaussian_to_bounded_range,
    split,
    split_gaussian,
    total_eps,
    total_rho,
)

multipliers = st.floats(0.01, 1000)
gaussian_or_pure = st.one_of(
    st.builds(GaussianEvent, st.floats(0.5, 50), st.integers(1, 5)),
    st.builds(LaplaceEvent, st.floats(0.5, 50), st.integers(1, 5)),
    st.builds(PureEvent, st.floats(0.02, 2), st.integers(1, 5)),
)
events = gaussian_or_pure | st.builds(BoundedRangeEvent, st.floats(0.02, 2), st.integers(1, 5))
some_priced_exactly = st.lists(gaussian_or_pure, min_size=1, max_size=3)
SINGLE = [GaussianEvent(7.0), LaplaceEvent(8.0), BoundedRangeEvent(0.1), PureEvent(0.1)]
MIXED = (GaussianEvent(5.0), PureEvent(0.3), BoundedRangeEvent(0.2), LaplaceEvent(4.0))


@given(st.lists(multipliers, min_size=1, max_size=6), st.randoms())
def test_composition_of_gaussians_is_commutative_and_associative(given_multipliers, random):
    total = compose_gaussians(given_multipliers)
    shuffled = list(given_multipliers)
    random.shuffle(shuffled)
    assert compose_gaussians(shuffled) == pytest.approx(total, rel=1e-14)
    first, *rest = given_multipliers
    nested = compose_gaussians([first, compose_gaussians(rest)] if rest else [first])
    assert nested == pytest.approx(total, rel=1e-14)


@given(multipliers, st.lists(st.floats(0.01, 100), min_size=1, max_size=6))
def test_a_split_composes_to_the_whole_in_the_shares_asked(multiplier, shares):
    parts = split_gaussian(multiplier, shares)
    assert compose_gaussians(parts) == pytest.approx(multiplier, rel=1e-14)
    for part, share in zip(parts, shares, strict=True):
        assert (multiplier / part) ** 2 == pytest.approx(share / math.fsum(shares), rel=1e-12)


@given(multipliers, st.lists(st.floats(1e-9, 100), min_size=1, max_size=30))
def test_parts_never_add_up_to_more_than_the_whole(total, shares):
    parts = split(total, shares)
    assert sum(map(Fraction, parts)) <= Fraction(total)
    assert math.fsum(parts) == pytest.approx(total, rel=1e-14)
    for part, share in zip(parts, shares, strict=True):
        assert part == pytest.approx(total * share / math.fsum(shares), rel=1e-12)


def test_rounded_shares_would_add_up_to_more():
    """What :func:`split` is there for: products of floats do not stay within the whole."""
    products = [0.1 * share for share in (0.2, 0.8)]
    assert sum(map(Fraction, products)) > Fraction(0.1)


def test_nothing_composes_to_no_cost():
    assert compose_gaussians([]) == math.inf
    assert total_rho(()) == 0
    assert total_eps((), 1e-6) == 0
    assert total_eps((), 0.0) == 0


@pytest.mark.parametrize(("count", "eps"), [(1, 0.3969), (10, 1.3676), (1000, 19.424)])
def test_known_eps_of_gaussian_compositions(count, eps):
    assert total_eps((GaussianEvent(10.0, count),), 1e-6) == pytest.approx(eps, rel=1.5e-4)


@pytest.mark.parametrize("delta", [0.0, 1e-12, 1e-6])
@pytest.mark.parametrize("event", SINGLE)
def test_every_event_is_priced_linearly_in_its_count(event, delta):
    (noise, _) = (getattr(event, name) for name in event.__match_args__)
    counted = (type(event)(noise, count=100),)
    repeated = (event,) * 100
    partly = (type(event)(noise, count=60), event, type(event)(noise, count=39))
    assert total_eps(counted, delta) == total_eps(repeated, delta) == total_eps(partly, delta)
    for composition in (counted, repeated, partly):
        assert total_rho(composition) == pytest.approx(100 * total_rho((event,)), rel=1e-14)
    assert total_eps(counted, delta) > 3 * total_eps((event,), delta) or math.isinf(
        total_eps((event,), delta)
    )


def test_a_hundred_exponential_mechanisms_cost_more_than_one():
    # dp-accounting's Renyi accountant prices the hundred at 1.006.
    assert total_eps((BoundedRangeEvent(1.0, count=100),), 0.0) == 100
    assert total_eps((BoundedRangeEvent(1.0, count=100),), 1e-6) > 12.5


def test_pure_events_add_their_eps_at_delta_zero():
    pure = (LaplaceEvent(4.0), BoundedRangeEvent(0.5, 2), PureEvent(0.125))
    assert total_eps(pure, 0.0) == 1.375
    assert total_eps((*pure, GaussianEvent(1e6)), 0.0) == math.inf


def test_rho_of_each_event():
    rho = [total_rho((event,)) for event in SINGLE]
    assert rho == pytest.approx([1 / 98, 1 / 128, 0.01 / 8, 0.01 / 2], rel=1e-14)
    assert total_rho(SINGLE) == pytest.approx(sum(rho), rel=1e-14)


@given(st.lists(events, min_size=1, max_size=4), events, st.sampled_from([1e-9, 1e-6, 1e-3]))
@settings(max_examples=40, deadline=None)
def test_totals_grow_with_every_event_and_shrink_with_delta(some, another, delta):
    total = total_eps(some, delta)
    assert total <= total_eps([*some, another], delta) * (1 + 1e-6)
    assert total_eps(some, delta * 3) <= total * (1 + 1e-6)
    assert total <= total_eps(some, 0.0) * (1 + 1e-9)


@given(st.lists(events, min_size=1, max_size=5), st.randoms())
@settings(max_examples=30, deadline=None)
def test_totals_do_not_depend_on_the_order(some, random):
    shuffled = list(some)
    random.shuffle(shuffled)
    assert total_eps(shuffled, 1e-6) == pytest.approx(total_eps(some, 1e-6), rel=1e-12)
    assert total_rho(shuffled) == pytest.approx(total_rho(some), rel=1e-14)


@given(some_priced_exactly, some_priced_exactly)
@settings(max_examples=30, deadline=None)
def test_a_total_never_exceeds_basic_composition(some, others):
    half = 5e-7
    together = total_eps([*some, *others], 2 * half)
    assert together <= (total_eps(some, half) + total_eps(others, half)) * (1 + 1e-3)


def test_a_mixture_costs_less_than_the_sum_and_more_than_its_parts():
    gaussian, *pure = MIXED
    total = total_eps(MIXED, 1e-6)
    assert total < gaussian_eps(1e-6, gaussian.multiplier) + total_eps(pure, 0.0) - 0.05
    assert total > total_eps((gaussian,), 1e-6)
    assert total > total_eps(pure, 1e-6)


def brute_force_delta(eps, laws):
    """The hockey stick of a product of discrete laws, given as (p, q) pairs of vectors."""
    p, q = np.ones(1), np.ones(1)
    for first, second in laws:
        p, q = np.outer(p, first).ravel(), np.outer(q, second).ravel()
    return max(
        np.maximum(p - math.exp(eps) * q, 0).sum(), np.maximum(q - math.exp(eps) * p, 0).sum()
    )


def discrete_laplace(scale, shift):
    support = np.arange(-60 * scale - shift, 60 * scale + shift + 1)
    law = np.exp(-np.abs(support) / scale), np.exp(-np.abs(support - shift) / scale)
    return tuple(value / value.sum() for value in law)


@pytest.mark.parametrize("steps", [1, 2])
def test_the_price_of_laplace_noise_covers_the_coarsest_lattice(steps):
    laws = [discrete_laplace(2 * steps, steps)] * 2
    event = LaplaceEvent(2.0, count=2)
    for delta in (1e-1, 1e-2, 1e-3):
        price = total_eps((event,), delta)
        assert brute_force_delta(price, laws) <= delta
    # One step is randomised response: there the price is the exact one.
    if steps == 1:
        assert brute_force_delta(price - 1e-4, laws) > delta


def test_the_price_of_a_mixture_is_exact_for_randomised_response():
    chances = np.array([math.exp(0.5), 1]) / (1 + math.exp(0.5))
    mixture = (GaussianEvent(3.0), PureEvent(0.5, count=3))
    for delta in (1e-2, 1e-6, 1e-12):
        price = total_eps(mixture, delta)

        def total_delta(eps):
            terms = itertools.product((0, 1), repeat=3)
            return math.fsum(
                math.prod(chances[list(flips)])
                * signed_delta(eps - sum(0.5 - np.array(flips)), 3.0)
                for flips in terms
            )

        assert total_delta(price) <= delta
        assert total_delta(price * (1 - 1e-6)) > delta


def signed_delta(eps, multiplier):
    if eps >= 0:
        return gaussian_delta(eps, multiplier)
    return 1 - math.exp(eps) + math.exp(eps) * gaussian_delta(-eps, multiplier)


@pytest.mark.parametrize("delta", [1e-8, 1e-5])
def test_mixtures_agree_with_an_independent_accountant(delta):
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    grid = {"value_discretization_interval": 2.0**-10}
    total = pld.from_gaussian_mechanism(4.0, **grid)
    # Multiples of the grid: the accountant would round any other eps up.
    for eps, count in ((0.125, 30), (0.25, 12), (0.5, 3)):
        from_privacy_parameters = pld.from_privacy_parameters(
            common.DifferentialPrivacyParameters(eps, 0.0), **grid
        )
        total = total.compose(from_privacy_parameters.self_compose(count))
    epsilon_for_delta = total.get_epsilon_for_delta(delta)
    mixture = (
        GaussianEvent(4.0),
        PureEvent(0.125, count=30),
        LaplaceEvent(4.0, count=12),
        PureEvent(0.5, count=3),
    )
    assert epsilon_for_delta - 1e-4 <= total_eps(mixture, delta) <= epsilon_for_delta + 1e-9


def test_many_distinct_events_stay_close_to_the_exact_price():
    nearly = [PureEvent(0.1 * (1 + step * 1e-9)) for step in range(200)]
    exact = total_eps((PureEvent(0.1, count=200),), 1e-6)
    assert exact <= total_eps(nearly, 1e-6) <= exact * 1.01


def test_a_hundred_thousand_releases_and_more_have_a_price():
    few = total_eps((PureEvent(1e-3, count=100_000),), 1e-6)
    extra = total_eps((PureEvent(1e-3, count=100_001),), 1e-6)
    assert few < extra < few * 1.2


@pytest.mark.parametrize("eps", [1e-9, 1e-3, 1.0, 1e9])
def test_a_calibrated_release_costs_what_was_asked(eps):
    event = GaussianEvent(gaussian_multiplier(ApproxDP(eps, 1e-9)))
    assert total_eps((event,), 1e-9) == pytest.approx(eps, rel=2e-9)
    assert total_eps((event,), 1e-9) <= eps * (1 + 1e-9)


@pytest.mark.parametrize("shares", [(), (1, 0), (1, -1), (1, math.nan)])
def test_senseless_shares_are_refused_by_name(shares):
    with pytest.raises(BudgetError, match=r"^shares"):
        split_gaussian(1.0, shares)


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan])
def test_a_senseless_delta_is_refused_by_name(delta):
    with pytest.raises(BudgetError, match=r"^delta="):
        total_eps(SINGLE, delta)


def test_a_senseless_multiplier_is_refused_by_name():
    with pytest.raises(BudgetError, match=r"^multipliers="):
        compose_gaussians([1.0, 0.0])


@pytest.mark.parametrize("multiplier", [0.2, 1.0, 7.0, 300.0])
def test_no_pair_in_the_interval_is_farther_apart_than_normal_laws(multiplier):
    longest = gaussian_to_bounded_range(multiplier)
    # Two coins whose log ratios are the ends of the interval, wherever it lies.
    chance = expit(np.linspace(-30, 30, 20_001))
    second = expit(logit(chance) - longest)
    distance = ndtri(chance) - ndtri(second)
    assert distance.max() <= 1 / multiplier
    # The longest: half either way of evens it is as far, and a longer one is farther.
    assert distance.max() == pytest.approx(1 / multiplier, rel=1e-4)
