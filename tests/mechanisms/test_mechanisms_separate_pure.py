"""Eigenvalues and eigenvectors apart, by Laplace noise: the split and both sensitivities."""

import pytest
from moment_cases import USUAL, facts
from separate_cases import (
    PURE_TWIN,
    check_closer,
    check_eigenvalue_neighbours,
    check_eigenvalue_noise,
    check_ends,
    check_feasible,
    check_independence,
    check_moment_neighbours,
    check_moment_noise,
    check_room,
    check_shares,
    planned,
)

from dpmodels.mechanisms.covariance.separate import SeparatePure
from dpmodels.privacy import ZCDP, ApproxDP, LaplaceEvent, PureDP


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_the_parts_add_to_what_was_asked(share):
    values, vectors = SeparatePure(share).plan(facts(), PureDP(2.0)).events
    assert isinstance(values, LaplaceEvent)
    assert isinstance(vectors, LaplaceEvent)
    assert 1 / values.multiplier == pytest.approx(2 * share, rel=1e-11)
    assert 1 / vectors.multiplier == pytest.approx(2 * (1 - share), rel=1e-11)
    # Of a zCDP guarantee the shares are of rho, which leaves each part more.
    values, vectors = SeparatePure(share).plan(facts(), ZCDP(2.0)).events
    assert 0.5 / values.multiplier**2 == pytest.approx(2 * share, rel=1e-11)
    assert 0.5 / vectors.multiplier**2 == pytest.approx(2 * (1 - share), rel=1e-11)


def test_delta_is_not_used():
    plans = [SeparatePure().plan(facts(), USUAL[kind]) for kind in (PureDP, ApproxDP)]
    assert plans[0].events == plans[1].events
    assert plans[0].scales == plans[1].scales
    assert plans[1].guarantee == USUAL[ApproxDP]


def test_the_scale_of_the_eigenvalues_in_numbers():
    # At eps = 1, halved, the multiplier is 2.
    assert planned(PURE_TWIN, PureDP(1.0)) == pytest.approx(4, rel=1e-9)
    assert planned(PURE_TWIN, PureDP(1.0), "add-remove") == pytest.approx(2, rel=1e-9)


def test_neighbours_are_within_the_declared_distances():
    check_eigenvalue_neighbours(PURE_TWIN)
    check_moment_neighbours(PURE_TWIN)


@pytest.mark.product
def test_the_noise_of_the_moments_is_the_plans():
    check_moment_noise(PURE_TWIN)


@pytest.mark.product
def test_the_noise_of_the_eigenvalues_is_the_plans():
    check_eigenvalue_noise(PURE_TWIN)


def test_the_two_parts_have_noise_of_their_own():
    check_independence(PURE_TWIN)


def test_the_estimate_is_a_second_moment_and_closer():
    check_feasible(PURE_TWIN)
    check_closer(PURE_TWIN, PureDP(3.0))


def test_the_lattice_has_room_for_either_part():
    check_room(PURE_TWIN, PureDP(1e-3))


def test_other_shares_are_refused():
    check_shares(PURE_TWIN)


@pytest.mark.product
def test_guarantee_answer_and_awkward_rows():
    check_ends(PURE_TWIN)
