"""Vectors that are rounded first, and shortened only where they may be too long."""

import numpy as np
import pytest

from dpmodels.codebook import Codebook
from dpmodels.mechanisms.regression.column_location import column_ranges
from dpmodels.noise.lattice import Lattice, lengths, on_lattice, products
from dpmodels.statistics import score_moments
from dpmodels.statistics.passes import turn
from tests.private_rows import private_regression

LATTICE, FINER = Lattice(20, 3), Lattice(18, 4)
HALF = score_moments._HALF


def blocks(rng):
    """Rows of the lattice: of any length, at the surface, and incomplete ones."""
    rows = rng.normal(size=(4, 600))
    rows[1:] /= np.maximum(lengths(rows[1:]), 1.0)
    on_lattice(rows[1:], LATTICE)
    rows[0] = LATTICE.radius
    rows[:, ::7] = 0.0
    return rows


def shortened_first(block, matrix, finer):
    """Score coordinates, without a shortcut: each row is shortened before it is rounded."""
    rows = matrix.times(block)
    rows *= HALF / np.maximum(score_moments._norms(rows[:-1]), HALF)
    rows[-1] = np.clip(rows[-1], -HALF, HALF)
    on_lattice(rows, finer)
    rows[:, block[0] == 0] = 0.0
    return rows


@pytest.mark.parametrize("size", [1e-3, 0.3, HALF, 1.0, 40.0, 1e100])
def test_coordinates_are_those_of_rows_shortened_one_by_one(size):
    rng = np.random.default_rng(1)
    block = blocks(rng)
    directions = rng.normal(size=(4, 4))
    # Of the first transform terms are as long as may be, or a rounding more.
    for transform in (np.diag([size, 0, 0, 1.0]), np.diag([0, size, size, 1.0]), size * directions):
        matrix = turn(transform, LATTICE, LATTICE.bits)
        with np.errstate(over="ignore"):
            expected = shortened_first(block, matrix, FINER)
        assert (score_moments._held(block, matrix, FINER) == expected).all()
        assert ((expected**2).sum(axis=0) <= FINER.radius**2).all()


def test_rows_that_may_be_too_long_are_among_those_near_the_surface():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(5, 20_000))
    rows *= rng.choice([0.5, 1 - 1e-6, 1 - 1e-9, 1.0, 1 + 1e-9, 2.0], 20_000) / lengths(rows)
    lattice = Lattice(12, 5)
    is_long = lengths(rows) > 1
    positions = score_moments._near_surface(np.rint(rows * lattice.steps), 1.0, lattice)
    assert is_long[positions].sum() == is_long.sum()
    assert lengths(rows)[positions].min() > 0.99


@pytest.mark.parametrize("largest", [0.0, 0.9, 0.999, 1.0, 3.0])
def test_norms_of_powers_are_computed_only_where_a_row_may_be_near_the_surface(
    monkeypatch, largest
):
    rows = np.random.default_rng(4).uniform(-0.9, 0.9, (3, 300))
    rows[:, 7], rows[1, 9] = largest, np.nan
    names, looked_at = ["a", "b", "y"], []
    table = dict(zip(names, rows, strict=True))
    design = private_regression("y ~ a + b", table, Codebook.uniform(names, (-1, 1)))
    powers = column_ranges(design.public.blocks, design.scaling).powers
    finer, near_surface = Lattice(20, len(powers.column)), score_moments._near_surface

    def sums():
        return score_moments.power_sums(design, LATTICE, powers, finer).cross()

    def looked(*args):
        looked_at.append(len(args[0].T))
        return near_surface(*args)

    monkeypatch.setattr(score_moments, "_near_surface", looked)
    quick = sums()
    assert looked_at == [300] * (largest >= 1)
    monkeypatch.setattr(score_moments, "_largest_squares", lambda *_: np.inf)
    slow = sums()
    assert looked_at[-1] == 300
    assert (quick[0] == slow[0]).all()


@pytest.mark.parametrize("lines", [1, 2, 12, 16, 17, 30])
def test_products_are_those_of_whole_numbers(lines):
    rows = np.random.default_rng(3).integers(-(2**20), 2**20, (lines, 700))
    expected = rows.astype(object) @ rows.T.astype(object)
    assert products(rows.astype(float)).tolist() == expected.tolist()
    assert products(np.zeros((lines, 0))).tolist() == [[0] * lines] * lines
