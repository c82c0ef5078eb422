"""Counts of rows by column and by turned length, against counting by hand."""

from dataclasses import replace

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics.passes import column_counts, turned_counts

LATTICE = Lattice(20, 2)
ENDS = np.array([0.05, 0.5])
LIMITS = tuple(int(end) for end in (LATTICE.radius * ENDS) ** 2)


def bound(rows):
    book = dp.codebook.uniform(["a", "b"], (-1, 1))
    return private_design("~ .", {"a": rows[:, 0], "b": rows[:, 1]}, book)


def test_rows_are_counted_by_each_column():
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1, 1, (3_000, 2)) ** 9
    rows[7], rows[:5, 0], rows[8] = np.nan, 0.0, 1.0
    exact, n_rows = column_counts(bound(rows), LATTICE, 6).cross()
    # Scaled rows are divided by the root of 2.
    squares = rows[~np.isnan(rows[:, 0])] ** 2 / 2
    ends = [-1, *2.0 ** -np.arange(6, -1, -1)]
    expected = [np.histogram(value, ends)[0] for value in squares.T]
    # Rounding takes a row across an end with a probability of some 1e-6.
    assert np.abs(exact.astype(int) - expected).max() <= 1
    assert exact.sum(axis=1).tolist() == [2_999, 2_999]
    assert n_rows == 3_000


def test_a_square_at_the_end_of_a_cell_is_in_it():
    design = bound(np.array([[1.0, 0.0]]))
    clipped = replace(design, scaling=replace(design.scaling, row_norm=1.0, centre=np.zeros(2)))
    lattice = Lattice(10, 2)
    integer = round(lattice.steps)
    halvings = 20
    exact, _ = column_counts(clipped, lattice, halvings).cross()
    cell = int(np.flatnonzero(exact[0])[0])
    assert 2.0 ** (cell - 1) < integer**2 <= 2.0**cell
    assert exact[1].tolist() == [1] + [0] * halvings


@pytest.mark.parametrize("bits", [8, 14, 15, 20])
def test_an_incomplete_row_is_in_no_cell_of_a_column_on_any_lattice(bits):
    for missing, count in (([np.nan, 0.3], 0), ([0.0, 0.0], 1)):
        design = bound(np.array([missing]))
        exact, _ = column_counts(design, Lattice(bits, 2), 30).cross()
        assert exact.sum(axis=1).tolist() == [count, count]
        assert np.count_nonzero(exact) == 2 * count


def test_turned_rows_are_counted_by_their_length():
    rng = np.random.default_rng(3)
    rows = rng.uniform(-1, 1, (3_000, 2))
    rows[5, 0] = np.nan
    turn = np.array([[0.9, 0.3], [-2.0, 0.2]])
    lengths = np.linalg.norm(rows[~np.isnan(rows).any(axis=1)] @ turn.T, axis=1) / np.sqrt(2)
    exact, n_rows = turned_counts(bound(rows), LATTICE, turn, LIMITS).cross()
    expected = np.histogram(np.minimum(lengths, 1), [0, *ENDS, 2])[0]
    # Rounding takes a row across an end with a probability of some 1e-6.
    assert np.abs(exact.astype(int) - expected).max() <= 1
    assert (exact.sum(), n_rows) == (2_999, 3_000)


@pytest.mark.parametrize("counts", [column_counts, turned_counts])
def test_counts_of_parts_add_up_to_those_of_all(counts):
    rows = np.random.default_rng(4).uniform(-1, 1, (500, 2))
    words = (9,) if counts is column_counts else (np.diag([3.0, 0.5]), LIMITS)
    combined, first, second = (
        counts(bound(part), LATTICE, *words) for part in (rows, rows[:123], rows[123:])
    )
    assert ((first + second).cross()[0] == combined.cross()[0]).all()
