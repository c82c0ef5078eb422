"""The law of the smallest root against matrices that are drawn."""

import numpy as np
import pytest
from scipy.stats import binom, chi2

from dpmodels.inference.least_squares import as_chi_squared


def drawn(rng, strength, size):
    """Least root and gaps of M'M, M of unit normals about a matrix with one null direction."""
    middle = np.zeros((size, size))
    middle[: size - 1, : size - 1] = strength * np.eye(size - 1)
    matrix = middle + rng.normal(size=(size, size))
    roots = np.linalg.eigvalsh(matrix.T @ matrix)
    return roots[0], roots[1:] - roots[0]


@pytest.mark.guarding
@pytest.mark.parametrize(("strength", "size"), [(0.0, 2), (2.0, 4), (5.0, 3)])
def test_refusals_are_as_many_as_asked_and_never_more(strength, size):
    rng, repeats = np.random.default_rng(size), 1_000
    pairs = [drawn(rng, strength, size) for _ in range(repeats)]
    refused = sum(as_chi_squared(value, gaps, 1) > chi2.isf(0.05, 1) for value, gaps in pairs)
    # False alarms at 1e-7; half a percent is left to the approximation.
    assert refused <= binom.isf(1e-7, repeats, 0.055)
    plain = sum(value > chi2.isf(0.05, 1) for value, _ in pairs)
    assert refused >= plain
    if strength >= 4:
        assert refused >= binom.ppf(1e-7, repeats, 0.045)


def test_without_free_parameters_and_far_from_the_others_nothing_changes():
    assert as_chi_squared(3.0, np.array([]), 4) == 3.0
    assert as_chi_squared(3.0, np.array([1e6, 1e9]), 2) == 3.0
    assert as_chi_squared(0.0, np.array([2.0]), 1) == 0.0


@pytest.mark.parametrize("conditions", [1, 3])
def test_it_rises_with_the_distance_and_falls_with_the_gaps(conditions):
    values = [as_chi_squared(v, np.array([4.0, 9.0]), conditions) for v in (0.1, 1, 4, 20, 200)]
    assert values == sorted(values)
    gaps = [as_chi_squared(4.0, np.array([g]), conditions) for g in (0.1, 1.0, 10.0, 1e3, 9e3)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] == pytest.approx(4.0, rel=1e-3)


def test_what_is_no_minimum_is_left_alone():
    assert as_chi_squared(4.0, np.array([-1.0, 5.0]), 1) == 4.0
    assert as_chi_squared(1e4, np.array([3.0]), 1) == 1e4


def test_many_conditions_overflow_nothing():
    with np.errstate(all="raise", under="ignore"):
        result = as_chi_squared(450.0, np.array([30.0, 200.0]), 300)
    assert 450.0 <= result <= 500.0
