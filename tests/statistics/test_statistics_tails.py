"""Fourth moments and increments beyond a ball: what they are, and how far one row moves them."""

from itertools import combinations

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import adjacency
from dpmodels.statistics.clipped import fourth_moments, increments_beyond, square_unit

BITS, UNITS = 20, 2**24
RELATIONS = ("replace", "add-remove")


def design(rows, radius):
    names = [f"x{at}" for at in range(rows.shape[1])]
    book = dp.codebook.uniform(names, (-1, 1))
    return private_design("~ .", dict(zip(names, rows.T, strict=True)), book, row_norm=radius)


def fourth(rows, radius, relation="replace"):
    """Exact fourth moments, in units of the ball, and their sensitivity in these units."""
    lattice, limits = Lattice(BITS, rows.shape[1]), (1 / radius,) * rows.shape[1]
    unit = square_unit(adjacency(relation), lattice, limits)
    exact, _ = fourth_moments(design(rows, radius), lattice, limits, unit).cross()
    return exact, lattice.radius**2, (unit * lattice.steps**2) ** 2


def beyond(rows, inner, radius):
    lattice, limits = Lattice(BITS, rows.shape[1]), (min(1 / radius, 1.0),) * rows.shape[1]
    exact, _ = increments_beyond(design(rows, radius), lattice, inner, limits, UNITS).cross()
    return int(exact[0])


def pool(columns, seed):
    """Rows at corners, along axes, inside, beyond the bounds, of zeros, and an incomplete one."""
    rng = np.random.default_rng(seed)
    corners = rng.choice([-1.0, 1.0], (6, columns))
    inside = rng.uniform(-1, 1, (8, columns))
    ends = [np.eye(columns), -np.eye(columns), corners, inside, 0.3 * inside, 7 * inside]
    return np.vstack([*ends, np.zeros((1, columns)), np.full((1, columns), np.nan)])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("columns", "radius"), [(1, 1.0), (2, 1.0), (3, 0.4), (3, 3**0.5), (5, 1.5)]
)
def test_one_row_moves_fourth_moments_within_the_sensitivity(columns, radius, relation):
    values = [fourth(row[None], radius, relation) for row in pool(columns, columns)]
    sensitivity, sums = values[0][1], [exact.astype(float) for exact, _, _ in values]
    pairs = combinations(sums, 2) if relation == "replace" else [(value, 0.0) for value in sums]
    farthest = max(float(np.linalg.norm(first - second)) for first, second in pairs)
    # Where both bounds are close no row attains either.
    assert 0.3 * sensitivity < farthest <= sensitivity


@pytest.mark.parametrize("inner", [0.02, 0.5, 0.9])
@pytest.mark.parametrize(("columns", "radius"), [(1, 1.0), (3, 3**0.5), (3, 0.8)])
def test_one_row_moves_increments_by_one_unit_at_most(columns, radius, inner):
    values = [beyond(row[None], inner, radius) for row in pool(columns, 7)]
    assert min(values) == 0
    assert 0.999 * UNITS < max(values) <= UNITS


def test_fourth_moments_are_those_of_the_rows():
    rows = np.random.default_rng(1).uniform(-1, 1, (500, 3))
    exact, _, unit = fourth(rows, 3**0.5)
    np.testing.assert_allclose(exact.astype(float) / unit * 9, (rows**2).T @ rows**2, rtol=1e-4)


@pytest.mark.parametrize("inner", [0.1, 0.4, 0.8])
def test_increments_bound_what_clipping_takes_off(inner):
    """Every entry, and every eigenvalue, of what second moments lose."""
    rng = np.random.default_rng(2)
    for shape in (0.3, 1.0, 4.0):
        rows = rng.beta(shape, shape, (300, 3)) * 2 - 1
        radius = 3**0.5
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        clipped = rows * np.minimum(1, inner * radius / lengths)
        lost = rows.T @ rows - clipped.T @ clipped
        total = beyond(rows, inner, radius) / UNITS
        assert (np.abs(lost) <= total * (1 + 1e-4)).all()
        assert np.linalg.eigvalsh(lost)[-1] <= total * radius**2 * (1 - inner**2) * (1 + 1e-4)


def test_order_and_chunks_change_nothing():
    rows = np.random.default_rng(3).normal(size=(20_000, 3))
    first, second = rows[:7_001], rows[7_001:]
    for measure in (lambda x: fourth(x, 1.0)[0], lambda x: np.array([beyond(x, 0.3, 1.5)])):
        together = measure(rows[::-1])
        assert (together == measure(first) + measure(second)).all()
