import numpy as np
import pytest

from dpmodels.inference.spectrum import alike, reach_of_noise


def variance(size, entry=1.0):
    return entry * (1 + np.eye(size))


def test_one_component_is_a_group():
    assert alike(np.array([3.0]), variance(1)).tolist() == [[True]]


def test_far_apart_each_is_alone():
    values = np.array([90.0, 60.0, 30.0, 0.0])
    np.testing.assert_array_equal(alike(values, variance(4)), np.eye(4, dtype=bool))


def test_groups_are_runs_of_neighbours():
    together = alike(np.array([50.0, 49.0, 20.0, 1.0, 0.0, -1.0]), variance(6))
    np.testing.assert_array_equal(together[0], [1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(together[2], [0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(together[3], [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(together, together.T)


def test_less_noise_separates_what_more_noise_joins():
    values = np.array([11.0, 9.0])
    assert alike(values, variance(2)).all()
    assert not alike(values, variance(2, 0.01))[0, 1]


def test_slack_joins_more():
    values = np.array([16.0, 10.0])
    assert not alike(values, variance(2))[0, 1]
    assert alike(values, variance(2), slack=1.3)[0, 1]


def test_equal_values_without_noise_are_alike():
    assert alike(np.full(3, 2.0), np.zeros((3, 3))).all()


def test_values_without_noise_are_alone():
    assert not alike(np.array([2.0, 1.0]), np.zeros((2, 2)))[0, 1]


@pytest.mark.parametrize("size", [2, 5, 20])
def test_equal_eigenvalues_are_seldom_torn_apart(rng, noisy, most, size):
    # False alarms <= 1e-6 for a true share of at most 11 %, both ends counted.
    spectra, _ = noisy(rng, np.full(size, 100.0), 1_000)
    torn = sum(not spectrum.alike.all() for spectrum in spectra)
    assert torn <= most(1_000, 0.11)


@pytest.mark.expensive
@pytest.mark.parametrize("size", [2, 10, 40])
def test_eigenvalues_beyond_the_noise_are_found_apart(rng, noisy, fewest, size):
    # Six noise radii away; false alarms <= 1e-6 for a share of at least 90 %.
    spectra, _ = noisy(rng, np.r_[100 + 6 * np.sqrt(size), np.full(size - 1, 100.0)], 500)
    alone = sum(not spectrum.alike[0, 1:].any() for spectrum in spectra)
    assert alone >= fewest(500, 0.9)


def test_a_noisy_neighbour_does_not_join_quiet_components():
    noise = variance(3, 0.01)
    noise[2, 2] = 50.0
    together = alike(np.array([10.0, 7.0, 4.0]), noise)
    assert not together[0, 1]


def test_reach_counts_each_components_own_noise():
    noise = np.diag([2.0, 2.0, 8.0])
    noise[noise == 0] = 1.0
    reach = reach_of_noise(noise, np.ones((3, 3), dtype=bool))
    assert reach[2] > reach[0] == reach[1]
    alone = reach_of_noise(noise, np.eye(3, dtype=bool))
    np.testing.assert_allclose(alone[2] / alone[0], 2.0)
