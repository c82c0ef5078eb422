"""Products of rounded matrices with integer rows, against fractions."""

from fractions import Fraction

import numpy as np
import pytest

from dpmodels.noise.lattice import FINE_BITS, MAX_BITS, MIN_BITS, Lattice, to_lattice
from dpmodels.statistics.passes import squares_of_totals, turn


def extreme_rows(lattice, rng):
    """Integer rows as long as rows may be: along axes, along all, and at random."""
    points = rng.normal(size=(lattice.columns, 40))
    points[:, :2] = 1.0
    points[:, 2] = np.eye(lattice.columns)[0]
    return np.trunc(points * (lattice.radius / np.linalg.norm(points, axis=0)))


@pytest.mark.parametrize("bits", [MIN_BITS, MAX_BITS])
@pytest.mark.parametrize("columns", [1, 7, 200])
@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 0.1 + 2.0**40, 1e150])
def test_products_are_exact(bits, columns, size):
    rng, lattice = np.random.default_rng(columns), Lattice(bits, columns)
    rows = extreme_rows(lattice, rng)
    lines = size * np.vstack([np.ones(columns), rng.normal(size=columns)])
    turned = turn(lines, lattice)
    product = turned.integers @ rows
    times = turned.times(rows)
    for line in range(2):
        numbers = [int(number) for number in turned.integers[line].tolist()]
        for row in range(rows.shape[1]):
            terms = [a * int(b) for a, b in zip(numbers, rows[:, row].tolist(), strict=True)]
            assert sum(map(abs, terms)) < 2**53
            assert sum(terms) == product[line, row]
    assert (times == np.ldexp(product, -turned.powers)).all()
    assert (turn(lines, lattice, 20).times(rows) == np.ldexp(product, -turned.powers - 20)).all()


@pytest.mark.parametrize("bits", [MIN_BITS, MAX_BITS])
def test_no_entry_is_rounded_by_more_than_stated(bits):
    lines = np.random.default_rng(2).normal(size=(5, 9)) * 10.0 ** np.arange(-4, 5)
    turned = turn(lines, Lattice(bits, 9))
    for line, integers, (power,) in zip(
        lines, turned.integers, turned.powers.tolist(), strict=True
    ):
        rounding = Fraction(float(np.linalg.norm(line))) * Fraction(2) ** (bits - 52)
        for entry, integer in zip(line.tolist(), integers.tolist(), strict=True):
            assert abs(Fraction(entry) - Fraction(integer) / Fraction(2) ** power) <= rounding


def test_a_unit_that_is_part_of_the_matrix_changes_no_product():
    rng, lattice = np.random.default_rng(4), Lattice(MAX_BITS, 9)
    matrix = turn(rng.normal(size=(5, 9)) * 10.0 ** np.arange(-4, 5), lattice)
    assert matrix.scaled is not None
    rows = extreme_rows(lattice, rng)
    apart = matrix._replace(scaled=None)
    assert (matrix.times(rows) == apart.times(rows)).all()


def test_a_matrix_of_zeros_and_one_without_columns_give_zeros():
    assert not turn(np.zeros((2, 3)), Lattice(20, 3)).times(np.ones((3, 4))).any()
    assert turn(np.zeros((1, 0)), Lattice(20, 0)).times(np.ones((0, 4))).tolist() == [[0.0] * 4]


def test_a_fine_product_is_that_of_its_row_alone_and_loses_no_digit():
    rng, lattice = np.random.default_rng(5), Lattice(FINE_BITS, 9)
    rows, lines = extreme_rows(lattice, rng), rng.normal(size=(5, 9)) * 10.0 ** np.arange(-4, 5)
    matrix = turn(lines, lattice)
    products = matrix.times(rows)
    for at in range(rows.shape[1]):
        assert (matrix.times(rows[:, [at]])[:, 0] == products[:, at]).all()
    for line, product in zip(lines.tolist(), products.tolist(), strict=True):
        for row, rounded in zip(rows.T.tolist(), product, strict=True):
            exact = sum(Fraction(a) * int(b) for a, b in zip(line, row, strict=True))
            assert abs(exact - Fraction(rounded)) <= abs(exact) * Fraction(2) ** -52
    assert (turn(lines, lattice, 20).times(rows) == np.ldexp(products, -20)).all()


def test_fine_squares_are_exact_integers_of_vectors_no_longer_than_planned():
    rng, lattice = np.random.default_rng(6), Lattice(FINE_BITS, 3)
    totals = rng.normal(size=(3, 5_000))
    totals[:, 0] = 1e9
    marks = np.full((2, 5_000), 2**FINE_BITS)
    squares = squares_of_totals(totals, lattice, marks)
    vectors = totals.copy()
    to_lattice(vectors, np.ones(3), np.zeros(3), lattice)
    integers = np.array(np.vstack([marks, vectors]).astype(np.int64).tolist(), dtype=object)
    assert (squares == integers @ integers.T).all()
    longest = max(int((integers[2:, at] ** 2).sum()) for at in range(5_000))
    assert longest <= 4**FINE_BITS * (1 + Fraction(3, 2**51))
