"""Clipped moments against loops over Python integers."""

import math
from importlib import import_module

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.noise.lattice import MAX_BITS, MIN_BITS, Lattice
from dpmodels.statistics import clipped_moments, moments

# The package's re-export may hide a module of the same name.
MODULE = import_module("dpmodels.statistics.clipped")
BOOK = dp.codebook(a=(-3, 9), b=(-1, 1))
FORMULA = "~ a * b"
COLUMNS = 3


def rows(count, seed=0):
    """Rows of all norms, the origin among them, some of them incomplete."""
    rng = np.random.default_rng(seed)
    small = 2.0 ** -rng.uniform(0, 18, count)
    table = {
        "a": 3 + 6 * small * rng.choice([-1, 1], count),
        "b": small * rng.uniform(-1, 1, count),
    }
    table["a"][1::9] = np.nan
    table["a"][2::9], table["b"][2::9] = 3.0, 0.0
    return table


def integer_rows(design, lattice):
    results = []
    for block, _ in design.blocks(lambda z: z.copy(), lattice, count_public=True):
        results += [[int(cell) for cell in row] for row in block.T]
    return results


def held(row, level, lattice):
    """The row doubled so often and kept in the ball, by Python integers where it fits."""
    first, *rest = row
    norm = sum(cell * cell for cell in rest)
    if norm * 4**level <= 4**lattice.bits:
        return [first] + [cell * 2**level for cell in rest]
    shrink = lattice.radius * (1 - 2.0**-40) / math.sqrt(norm)
    values = [math.trunc(cell * shrink) for cell in rest]
    assert sum(cell * cell for cell in values) <= 4**lattice.bits
    return [first, *values]


def summed(table):
    size = len(table[0])
    return [[sum(row[i] * row[j] for row in table) for j in range(size)] for i in range(size)]


def statistic(table, bits, halvings, formula=FORMULA):
    design = private_design(formula, table, BOOK, scale=None, row_norm=7.0)
    lattice = Lattice(bits, len(design.public.names))
    return clipped_moments(design, lattice, halvings, count_public=True), design, lattice


@pytest.mark.parametrize("bits", [MIN_BITS, 13, 16, MAX_BITS])
@pytest.mark.parametrize("halvings", [0, 2, 11])
def test_levels_are_those_of_a_loop_over_integers(bits, halvings):
    result, design, lattice = statistic(rows(400), bits, halvings)
    exact, count = result.cross()
    assert count == 400
    assert exact.shape == (halvings + 1, COLUMNS + 1, COLUMNS + 1)
    table = integer_rows(design, lattice)
    for level in range(halvings + 1):
        expected = summed([held(row, level, lattice) for row in table])
        assert exact[level].tolist() == expected
    plain, _ = moments(design, lattice, count_public=True).cross()
    assert exact[0].tolist() == plain.tolist()


def test_the_rows_of_the_test_are_of_many_bands():
    _, design, lattice = statistic(rows(400), MAX_BITS, 0)
    table = integer_rows(design, lattice)
    norms = [math.hypot(*row[1:]) for row in table]
    bands = {min(math.floor(math.log2(lattice.radius / max(norm, 1))), 12) for norm in norms}
    assert bands == set(range(13))


@pytest.mark.parametrize("limit", [1, 2**40, 2**56])
def test_blocks_order_and_width_of_integers_are_irrelevant(limit, monkeypatch):
    data = rows(120)
    expected = statistic(data, 16, 5)[0].cross()[0].tolist()
    order = np.random.default_rng(3).permutation(120)
    monkeypatch.setattr(MODULE, "FITS_INT64", limit)
    for block in (1, 7, 8192):
        monkeypatch.setattr(Lattice, "block_rows", block)
        inputs = {name: column[order] for name, column in data.items()}
        exact, _ = statistic(inputs, 16, 5)[0].cross()
        assert exact.tolist() == expected
        if limit == 1:
            assert exact.dtype == object
            assert {type(cell) for cell in exact.ravel()} == {int}


def test_disjoint_rows_add():
    data, place = rows(90), np.arange(90) % 3
    combined, count = statistic(data, 16, 4)[0].cross()
    parts = [
        statistic({name: column[place == part] for name, column in data.items()}, 16, 4)[0]
        for part in range(3)
    ]
    added, n_rows = (parts[0] + parts[1] + parts[2]).cross()
    assert added.tolist() == combined.tolist()
    assert n_rows == count


def test_noise_of_python_integers_makes_python_integers():
    exact, _ = statistic(rows(30), 16, 2)[0].cross()
    assert exact.dtype == np.int64
    noisy = exact.ravel() + np.full(exact.size, 2**62).astype(object)
    assert {type(cell) for cell in noisy} == {int}


class FullBlocks:
    """A design whose every block has rows on the surface, all alike."""

    def __init__(self, count):
        self.count = count
        self.facts, self.scattered = {}, None

    def blocks(self, function, lattice, *, count_public):
        block = np.zeros((lattice.columns + 1, lattice.block_rows))
        block[:2] = lattice.radius
        result = function(block)
        for _ in range(self.count):
            yield result, lattice.block_rows


def test_no_sum_overflows():
    lattice, count = Lattice(MAX_BITS, 2), 1100
    exact, n_rows = clipped_moments(FullBlocks(count), lattice, 1, count_public=True).cross()
    largest = count * lattice.block_rows * 4**lattice.bits
    assert largest >= 2**63
    assert n_rows == count * lattice.block_rows
    assert exact[0].tolist() == [[largest, largest, 0], [largest, largest, 0], [0, 0, 0]]
    on = math.trunc(lattice.radius * (1 - 2.0**-40))
    assert exact[1][1, 1] == n_rows * on * on


@pytest.mark.parametrize("halvings", [0, 3])
def test_no_rows_give_zeros(halvings):
    exact, count = statistic({"a": [], "b": []}, 16, halvings)[0].cross()
    assert exact.shape == (halvings + 1, COLUMNS + 1, COLUMNS + 1)
    assert not exact.any()
    assert count == 0


@pytest.mark.parametrize("columns", [1, 2, 7, 40])
@pytest.mark.parametrize("bits", [MIN_BITS, 12, 20])
def test_the_slack_of_an_increment_covers_rounding_towards_zero(bits, columns):
    # Each coordinate of a row at the surface is off by 1 + R 2**-39 or less.
    lattice = Lattice(bits, columns)
    rounding = math.sqrt(columns) * (1 + lattice.radius * 2.0**-39)
    proved = 2 * lattice.radius * rounding + rounding**2
    for step in (1, 3):
        assert proved <= MODULE.increment_slack(lattice, step) <= proved * (1 + 2.0**-14)
    assert MODULE.increment_slack(lattice, 0) == 0
