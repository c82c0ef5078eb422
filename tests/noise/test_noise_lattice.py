"""Rows on the lattice: each as if it were alone."""

import warnings
from itertools import product

import numpy as np
import pytest

from dpmodels.noise import lattice as lattice_module
from dpmodels.noise.lattice import Lattice, empty_lines, lengths, products, to_lattice, transformed


@pytest.mark.parametrize("columns", [1, 2, 7, 10, 33])
def test_a_length_has_the_same_bits_at_any_place(columns):
    rows = np.random.default_rng(columns).normal(size=(columns, 70))
    alone = [lengths(rows[:, [i]])[0] for i in range(70)]
    np.testing.assert_allclose(alone, np.linalg.norm(rows, axis=0), rtol=1e-14)
    for count in range(1, 34):
        for start in (0, 1, 5, 70 - count):
            part = slice(start, start + count)
            assert lengths(rows[:, part].copy()).tolist() == alone[part]
            assert lengths(np.asfortranarray(rows[:, part])).tolist() == alone[part]


def test_lengths_overflow_and_miss_in_silence():
    rows = np.array([[1e200, np.nan, np.inf, 0.0], [1.0, 1.0, 1.0, 0.0]])
    np.testing.assert_array_equal(lengths(rows), [np.inf, np.nan, np.inf, 0.0])


def test_a_long_row_is_held_alike_at_any_place():
    """Of rows far outside, on a lattice whose steps are nearly the last bits."""
    lattice, columns = Lattice(48, 10), np.ones(10)
    rows = 1e4 * np.random.default_rng(3).normal(size=(10, 40))
    alone = np.hstack([held(rows[:, [i]], columns, lattice) for i in range(40)])
    for count in range(2, 34):
        assert (held(rows[:, :count], columns, lattice) == alone[:, :count]).all()


def held(rows, columns, lattice):
    rows_copied = rows.copy()
    assert to_lattice(rows_copied, columns, 0 * columns, lattice).all()
    return rows_copied


@pytest.mark.parametrize(("columns", "count"), [(1, 3), (70, 40), (70, 1_300), (9, 5_000)])
def test_the_integers_are_those_of_operations_one_after_another(columns, count):
    """Whatever numpy's buffer is, which it has again afterwards."""
    rng, lattice = np.random.default_rng(count), Lattice(20, columns)
    rows = rng.standard_t(3, (columns, count)) / np.sqrt(columns)
    rows[rng.random(rows.shape) < 1e-3] = np.nan
    factor, shift = rng.uniform(0.5, 1.5, columns), rng.normal(size=columns) / 9
    scaled = rows * (factor * lattice.steps)[:, None] - (shift * lattice.steps)[:, None]
    rounded = np.rint(scaled)
    inside = (rounded**2).sum(axis=0) <= lattice.radius**2
    out = np.empty_like(rows)
    complete = to_lattice(rows, factor, shift, lattice, out)
    assert (complete == ~np.isnan(rows).any(axis=0)).all()
    assert (out[:, inside] == rounded[:, inside]).all()
    assert ((out**2).sum(axis=0) <= lattice.radius**2).all()
    assert not out[:, ~complete].any()


@pytest.mark.parametrize("bits", [8, 20, 40])
def test_products_clipped_to_those_of_the_ends_are_those_of_clipped_numbers(bits):
    rng, huge = np.random.default_rng(5), np.finfo(float).max
    lower, upper = np.array([-0.3, 1 / 3, -1e-9, 0.0]), np.array([0.7, 1e6 / 7, 1e-9, 0.1])
    edges = np.stack([lower, upper])
    near = np.concatenate([edges, np.nextafter(edges, -huge), np.nextafter(edges, huge)])
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, huge, -huge, 5e-324])
    columns = np.hstack([near.T, np.tile(odd, (4, 1)), rng.normal(size=(4, 1_000))])
    factor = 1 / ((upper - lower) * 1.7)
    shift, lattice = (lower + upper) / 2 * factor, Lattice(bits, 4)
    expected = np.clip(columns, lower[:, None], upper[:, None])
    complete = to_lattice(expected, factor, shift, lattice)
    integers = np.empty_like(columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = to_lattice(list(columns), factor, shift, lattice, integers, ends=(lower, upper))
    assert np.array_equal(integers, expected)
    assert np.array_equal(result, complete)
    assert complete.sum() == columns.shape[1] - 1


@pytest.mark.parametrize("bits", [8, 20, 40])
@pytest.mark.parametrize("size", [1.0, 1.01, 2.0])
def test_rows_at_the_corners_of_their_ends_are_in_the_ball(bits, size):
    """Those whose norm is not computed too; larger boxes than the ball holds have some outside."""
    rng, n_columns = np.random.default_rng(6), 5
    lower, upper = -np.ones(n_columns), np.full(n_columns, 3.0)
    corners = np.where(rng.random((n_columns, 64)) < 0.5, lower[:, None], upper[:, None])
    columns = np.hstack([corners, rng.uniform(-1, 3, (n_columns, 500))])
    factor = np.full(n_columns, size / (2 * np.sqrt(n_columns)))
    shift, lattice = factor.copy(), Lattice(bits, n_columns)
    expected, result, extremes = columns.copy(), np.empty_like(columns), np.empty((2, n_columns))
    complete = to_lattice(expected, factor, shift, lattice)
    ends = lower, upper
    flags = to_lattice(list(columns), factor, shift, lattice, result, None, ends, extremes)
    assert np.array_equal(result, expected)
    assert np.array_equal(flags, complete)
    scaled = columns * (factor * lattice.steps)[:, None]
    assert np.array_equal(extremes, [scaled.min(axis=1), scaled.max(axis=1)])
    assert (result**2).sum(axis=0).max() <= lattice.radius**2 * (1 + 1e-12)


@pytest.mark.parametrize("has_small_kernels", [True, False])
def test_products_are_exact_by_chunks_and_without(monkeypatch, has_small_kernels):
    monkeypatch.setattr(lattice_module, "_has_small_kernels", lambda: has_small_kernels)
    rng = np.random.default_rng(8)
    for n_lines, n_rows in product((1, 2, 5, 17, 51), (0, 1, 255, 256, 700)):
        rows = empty_lines(n_lines, n_rows)
        rows[:] = rng.integers(-(2**18), 2**18, rows.shape)
        matrix = rng.integers(-(2**20), 2**20, (3, n_lines)).astype(float)
        integers = rows.astype(np.int64)
        assert (products(rows) == integers @ integers.T).all()
        assert (transformed(matrix, rows) == matrix.astype(np.int64) @ integers).all()


@pytest.mark.parametrize("n_rows", [1, 8, 30, 8192])
def test_lines_begin_with_lines_of_the_cache(n_rows):
    for line in empty_lines(5, n_rows):
        assert line.__array_interface__["data"][0] % 64 == 0
