"""Eigenvalues and eigenvectors apart, by Gaussian noise: the split and both sensitivities."""

import math
from itertools import product

import numpy as np
import pytest
from moment_cases import RELATIONS, USUAL, ball, check_refusals, facts
from separate_cases import (
    GAUSSIAN_TWIN,
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

from dpmodels.mechanisms.add_noise import eigenvalue_scale, recombined
from dpmodels.mechanisms.covariance.separate import Separate
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    GaussianEvent,
    adjacency,
    compose_gaussians,
    gaussian_multiplier,
)
from dpmodels.statistics.moments import eigenvalue_sensitivity


@pytest.mark.parametrize("guarantee", [USUAL[ApproxDP], USUAL[ZCDP]], ids=str)
@pytest.mark.parametrize("share", [0.5, 0.1, 0.75])
def test_the_parts_compose_to_what_was_asked(share, guarantee):
    plan = Separate(share).plan(facts(), guarantee)
    values, vectors = (event.multiplier for event in plan.events)
    multiplier = gaussian_multiplier(guarantee)
    assert all(isinstance(event, GaussianEvent) for event in plan.events)
    assert compose_gaussians((values, vectors)) == pytest.approx(multiplier, rel=1e-13)
    assert (multiplier / values) ** 2 == pytest.approx(share, rel=1e-12)


def test_the_scale_of_the_eigenvalues_in_numbers():
    # At rho = 1/2, halved, the multiplier is sqrt 2.
    assert planned(GAUSSIAN_TWIN, ZCDP(0.5)) == pytest.approx(2, rel=1e-9)
    without = planned(GAUSSIAN_TWIN, ZCDP(0.5), "add-remove")
    assert without == pytest.approx(math.sqrt(2), rel=1e-9)


@pytest.mark.parametrize("norm", [1, 2])
def test_rounding_is_part_of_the_sensitivity(norm):
    scale = eigenvalue_scale(adjacency("replace"), Lattice(8, 100), 3.0, norm, 1.0)
    assert scale == pytest.approx(3 * (2 ** (1 / norm) * 4**8 + 100 ** (1 / norm)), rel=1e-11)


def test_the_sensitivities_are_attained_by_orthogonal_rows():
    changed = np.diag([12.0, 6.0, 2.0])
    x, y = (np.linalg.eigvalsh(changed + np.outer(e, e)) for e in np.eye(3)[:2])
    assert np.linalg.norm(x - y) == eigenvalue_sensitivity(adjacency("replace"), 2) == math.sqrt(2)
    assert np.abs(x - y).sum() == eigenvalue_sensitivity(adjacency("replace"), 1) == 2
    assert [eigenvalue_sensitivity(adjacency("add-remove"), norm) for norm in (1, 2)] == [1, 1]


def test_no_neighbours_have_eigenvalues_farther_apart():
    rng = np.random.default_rng(1)
    for columns, _ in product((1, 2, 5), range(300)):
        noise = rng.normal(size=(3, columns))
        base = noise.T @ noise
        x, y = ball(2, columns, seed=rng.integers(2**30))
        values = [np.linalg.eigvalsh(base + np.outer(row, row)) for row in (x, y)]
        values.append(np.linalg.eigvalsh(base))
        for relation, (left, right) in zip(RELATIONS, ((0, 1), (0, 2)), strict=True):
            sizes = np.abs(values[left] - values[right])
            bounds = [eigenvalue_sensitivity(adjacency(relation), norm) for norm in (1, 2)]
            assert sizes.sum() <= bounds[0] + 1e-12
            assert np.linalg.norm(sizes) <= bounds[1] + 1e-12


def test_neighbours_are_within_the_declared_distances():
    check_eigenvalue_neighbours(GAUSSIAN_TWIN)
    check_moment_neighbours(GAUSSIAN_TWIN)


@pytest.mark.product
def test_the_noise_of_the_moments_is_the_plans():
    check_moment_noise(GAUSSIAN_TWIN)


@pytest.mark.product
def test_the_noise_of_the_eigenvalues_is_the_plans():
    check_eigenvalue_noise(GAUSSIAN_TWIN)


def test_the_two_parts_have_noise_of_their_own():
    check_independence(GAUSSIAN_TWIN)


def test_recombined_values_are_feasible():
    second = np.diag([3.0, 9.0, 1.0])
    estimate = recombined(np.array([8.0, 2.0, -1.0]), second, None)
    np.testing.assert_allclose(estimate, np.diag([2.0, 8.0, 0.0]), atol=1e-12)
    capped = recombined(np.array([8.0, 2.0, -1.0]), second, 6.0)
    np.testing.assert_allclose(capped, np.diag([0.0, 6.0, 0.0]), atol=1e-12)


def test_the_estimate_is_a_second_moment_and_closer():
    check_feasible(GAUSSIAN_TWIN)
    check_closer(GAUSSIAN_TWIN, ZCDP(0.1))


def test_the_lattice_has_room_for_either_part():
    check_room(GAUSSIAN_TWIN, ApproxDP(1e-3, 1e-6))


def test_other_shares_are_refused():
    check_shares(GAUSSIAN_TWIN)


def test_a_pure_guarantee_is_refused():
    check_refusals(Separate(), GAUSSIAN_TWIN.takes, "write delta=1e-6")


@pytest.mark.expensive
def test_guarantee_answer_and_awkward_rows():
    check_ends(GAUSSIAN_TWIN)
