"""Moments against loops over Python integers."""

from importlib import import_module

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.noise.lattice import MAX_BITS, MIN_BITS, Lattice
from dpmodels.statistics import moments

# The package's re-export hides the module of the same name.
MODULE = import_module("dpmodels.statistics.moments")
BOOK = dp.codebook(a=(-3, 9), b=(0, 1e6), g=["u", "v", "w"])
FORMULA = "~ a * b + g"


def rows(count, seed=0):
    rng = np.random.default_rng(seed)
    table = {
        "a": rng.uniform(-4, 10, count),
        "b": 10 ** rng.uniform(-3, 6.1, count),
        "g": rng.choice(["u", "v", "w", "elsewhere"], count),
    }
    table["a"][::7] = np.nan
    return table


def integer_rows(design, lattice):
    """The rows on the lattice as Python integers, with the radius in front."""
    results = []
    for block, _ in design.blocks(lambda z: z.copy(), lattice, count_public=True):
        assert (block == np.rint(block)).all()
        results += [[int(cell) for cell in row] for row in block.T]
    return results


def summed(table):
    size = len(table[0])
    return [[sum(row[i] * row[j] for row in table) for j in range(size)] for i in range(size)]


@pytest.mark.parametrize("bits", [MIN_BITS, 13, MAX_BITS])
@pytest.mark.parametrize("row_norm", [None, 0.4])
@pytest.mark.parametrize("center", [True, False])
def test_moments_are_those_of_a_loop_over_integers(bits, row_norm, center):
    design = private_design(FORMULA, rows(500), BOOK, row_norm=row_norm, center=center)
    lattice = Lattice(bits, len(design.public.names))
    exact, count = moments(design, lattice, count_public=True).cross()
    assert exact.dtype == object
    assert count == 500
    assert exact.tolist() == summed(integer_rows(design, lattice))


@pytest.mark.parametrize("bits", [MIN_BITS, 13, MAX_BITS])
@pytest.mark.parametrize("row_norm", [None, 0.4, 1e-7])
def test_integer_rows_stay_in_the_ball(bits, row_norm):
    design = private_design(FORMULA, rows(500), BOOK, row_norm=row_norm)
    lattice = Lattice(bits, len(design.public.names))
    table = integer_rows(design, lattice)
    for first, *row in table:
        assert first in (0, 2**bits)
        assert first or not any(row)
        assert sum(cell * cell for cell in row) <= 4**bits
    complete = sum(first > 0 for first, *_ in table)
    data = rows(500)
    assert complete == int((~np.isnan(data["a"]) & (data["g"] != "elsewhere")).sum())


def test_integer_rows_are_the_rounded_rows():
    data = {"a": np.linspace(-3, 9, 200), "b": np.linspace(0, 1e6, 200)}
    design = private_design("~ a + b", data, BOOK, scale=None, center=False)
    lattice = Lattice(MAX_BITS, 2)
    result = np.array(integer_rows(design, lattice), dtype=float)[:, 1:]
    expected = np.column_stack(list(data.values())) / design.scaling.row_norm * lattice.steps
    # Half a step of rounding, and the rounding of a product of numbers below 2**20.
    assert np.abs(result - expected).max() <= 0.5 + 1e-9


def test_many_carries_are_as_one(monkeypatch):
    data = rows(300)
    results = []
    for carry, block in ((512, 8192), (1, 1), (2, 7), (3, 1)):
        monkeypatch.setattr(MODULE, "BLOCKS_PER_CARRY", carry)
        monkeypatch.setattr(Lattice, "block_rows", block)
        design = private_design(FORMULA, data, BOOK)
        lattice = Lattice(MAX_BITS, len(design.public.names))
        results.append(moments(design, lattice, count_public=True).cross()[0].tolist())
    assert results == results[:1] * 4


class FullBlocks:
    """A design whose every block has the largest product that a block can have."""

    def __init__(self, count):
        self.count = count
        self.facts, self.scattered = {}, None

    def summed(self, lattice):
        return None

    def blocks(self, function, lattice, *, count_public):
        size = lattice.columns + 1
        largest = lattice.block_rows * 4.0**lattice.bits
        for number in range(self.count):
            yield np.full((size, size), largest if number % 3 else -largest), lattice.block_rows


@pytest.mark.parametrize("bits", [MIN_BITS, 16, MAX_BITS])
def test_the_carry_comes_before_an_overflow(bits):
    lattice, count = Lattice(bits, 2), 6_000
    largest = lattice.block_rows * 4**bits
    assert largest <= 2**53
    assert MODULE.BLOCKS_PER_CARRY * 2**53 < 2**63
    exact, n_rows = moments(FullBlocks(count), lattice, count_public=True).cross()
    assert exact.tolist() == [[(count - 2 * (count // 3)) * largest] * 3] * 3
    assert n_rows == count * lattice.block_rows


def test_no_rows_give_zeros():
    design = private_design(FORMULA, {"a": [], "b": [], "g": []}, BOOK)
    exact, count = moments(design, Lattice(MAX_BITS, 5), count_public=True).cross()
    assert not exact.any()
    assert count == 0


LIMITS_AT = (0.2, 0.45, 0.6, 0.8)
OUTER = Lattice(MAX_BITS, 3)
SHORTEST = int((0.45 * OUTER.radius) ** 2)
CELLS = tuple(int((part * OUTER.radius) ** 2) for part in LIMITS_AT)
BALL = dp.codebook(a=(-1, 1), b=(-1, 1), c=(-1, 1))


def by_length(table):
    table = np.asarray(table, dtype=np.float64)
    design = private_design("~ .", dict(zip("abc", table.T, strict=True)), BALL)
    return MODULE.moments_by_length(design, OUTER, CELLS, SHORTEST, count_public=True), design


def ball_rows(count, seed=0):
    table = np.random.default_rng(seed).uniform(-1.2, 1.2, (count, 3))
    table[::11, 0] = np.nan
    return table


@pytest.mark.parametrize("fraction", [0.45, 0.6, 0.99])
def test_moments_in_a_ball_that_is_chosen_later_are_those_of_rows_clipped_to_it(fraction):
    statistic, design = by_length(ball_rows(20_000))
    inner = statistic.inner(OUTER, fraction)
    expected = np.zeros((4, 4), dtype=object)
    for block, _ in design.blocks(lambda z: z.copy(), OUTER, count_public=True):
        rows, squares = block[1:], (block[1:] ** 2).sum(axis=0)
        longer = squares > inner.radius**2
        assert longer.sum() > 0
        rows[:, longer] = np.trunc(
            rows[:, longer] * (inner.radius * (1 - 2.0**-40) / np.sqrt(squares[longer]))
        )
        assert ((rows**2).sum(axis=0) <= inner.radius**2).all()
        block[0] = inner.inner * (block[0] > 0)
        expected += (block @ block.T).astype(np.int64).astype(object)
    assert statistic.within(inner).tolist() == expected.tolist()
    # Twice the same, since rows in memory are not changed.
    assert statistic.within(inner).tolist() == expected.tolist()


def test_numbers_by_length_are_those_of_another_reading():
    statistic, design = by_length(ball_rows(5000))
    counted = MODULE.norm_counts(design, OUTER, CELLS, count_public=True)
    assert statistic.cross()[0].tolist() == counted.cross()[0].tolist()
    assert statistic.cross()[1] == 5000
    assert "not released" in repr(statistic)


def test_a_ball_holds_the_rows_that_are_not_in_memory():
    statistic, _ = by_length(ball_rows(50))
    assert statistic.inner(OUTER, 0.45).inner ** 2 >= SHORTEST
    assert statistic.inner(OUTER, 0.449) is None
    assert statistic.inner(OUTER, 1.0).inner == OUTER.radius
    assert statistic.inner(OUTER, 1.001) is None


def test_a_row_moves_moments_in_a_ball_by_no_more_than_a_row_of_the_ball():
    ends = np.vstack([np.eye(3), -np.eye(3), np.sign(ball_rows(8, 1)), 0.5 * np.eye(3)])
    table = np.vstack([ends, 0.26 * ends, ball_rows(30, 2), np.zeros((1, 3))])
    for fraction in (0.45, 0.7):
        vectors = []
        for row in table:
            statistic, _ = by_length(row[None])
            inner = statistic.inner(OUTER, fraction)
            exact = statistic.within(inner).astype(float)
            weights = MODULE.moment_weights(dp.privacy.adjacency("replace"), centred=True)
            upper = np.triu_indices(3, 1)
            vectors.append(
                np.concatenate(
                    [
                        weights.count * exact[:1, 0],
                        weights.mean * exact[0, 1:],
                        np.diagonal(exact)[1:],
                        np.sqrt(2) * exact[1:, 1:][upper],
                    ]
                )
            )
        bound = MODULE.moment_sensitivity(dp.privacy.adjacency("replace"), weights)
        distances = [np.linalg.norm(left - right) for left in vectors for right in vectors]
        assert 0.9 < max(distances) / (bound * inner.radius**2) <= 1 + 1e-12
