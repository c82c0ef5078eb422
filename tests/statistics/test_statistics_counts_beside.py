"""Counts by bounds that another statistic's reading makes: those of a reading of their own."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private, private_design, rows
from dpmodels.design.cells import PrivateCells
from dpmodels.design.parts import by_bounds
from dpmodels.design.regression import joint_design
from dpmodels.formula.response import two_sided
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import BoundSide, Category
from dpmodels.noise import source
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import moments
from dpmodels.statistics.counts import counts

BOOK = dp.codebook(x=(0, 1), y=(-1e6, 1e6 + 1), z=(1e9, 1e9 + 1), g=["a", "b"], w=(0, 2))
NAMES = ("x", "y", "z")
SLACK = 1e-9
SIDES = tuple(BoundSide(name, BOOK[name].lower - SLACK, BOOK[name].upper + SLACK) for name in NAMES)


def table(kind, n_rows=3_000):
    rng = np.random.default_rng(4)
    data = {"g": rng.choice(["a", "b", "c"], n_rows), "w": rng.random(n_rows)}
    for side in SIDES:
        lower, upper = BOOK[side.name].lower, BOOK[side.name].upper
        width = {"within": 0.8, "beyond": 2.0}.get(kind, 0.0)
        numbers = (lower + upper) / 2 + width * (upper - lower) * (rng.random(n_rows) - 0.5)
        if kind == "edges":
            ends = [(lower, upper), (side.lower, side.upper), (lower - 2 * SLACK, upper)]
            near = [np.nextafter(end, away) for end in ends[1] for away in (-np.inf, np.inf)]
            numbers = rng.choice([*np.ravel(ends), *near], n_rows)
        if kind == "odd":
            numbers = rng.choice([np.nan, np.inf, -np.inf, -0.0, lower], n_rows)
        data[side.name] = numbers
    return data


def expected(data):
    sides = [side({name: np.asarray(data[name]) for name in NAMES}) for side in SIDES]
    counted = [[np.count_nonzero(side == at) for at in (0, 1, 2)] for side in sides]
    missing = [np.count_nonzero(np.isnan(side)) for side in sides]
    return np.column_stack([counted, missing]).ravel().tolist()


def counted(design):
    tallies = [Tally((Category(side.name, ("b", "w", "a"), side),)) for side in SIDES]
    cells = PrivateCells(design.rows, "values beyond the bounds", tuple(tallies))
    return counts(cells, 1)


def designs(data):
    weighted = joint_design(two_sided("x ~ y + z", BOOK), BOOK, weights="w")
    return {
        "numbers": private_design("~ x + y + z", data, BOOK),
        "in a small ball": private_design("~ x + y + z", data, BOOK, row_norm=0.1),
        "unit": private_design("~ x + y + z", data, BOOK, row_norm="unit"),
        "coded": private_design("~ x * g + y + z", data, BOOK),
        "weighted": weighted.bind(data),
    }


@pytest.fixture
def readings(monkeypatch):
    """Counts the readings of rows, by many small parts."""
    calls, read = [], rows.Rows._read
    monkeypatch.setattr(rows.Rows, "_read", lambda self, *a: calls.append(1) or read(self, *a))
    monkeypatch.setattr(private, "CELLS_A_TURN", 2**9)
    return calls


@pytest.mark.parametrize("kind", ["within", "beyond", "edges", "odd"])
@pytest.mark.parametrize("form", ["numbers", "in a small ball", "unit", "coded", "weighted"])
@pytest.mark.parametrize("is_kept", [False, True])
def test_counts_beside_sums_are_those_of_the_rows(kind, form, is_kept, readings):
    data = table(kind)
    design, alone = designs(data)[form], designs(data)[form]
    if is_kept:
        design.require_passes()
    lattice, statistic = Lattice(20, len(design.public.names)), counted(design)
    first, n_rows = moments(design, lattice).cross()
    again, _ = moments(design, lattice).cross()
    exact, n_counted = statistic.cross()
    assert exact.tolist() == expected(data)
    assert n_rows == n_counted == 3_000
    assert len(readings) == 2 - is_kept
    sums, _ = moments(alone, lattice).cross()
    assert (first == sums).all()
    assert (again == sums).all()


def test_counts_have_a_reading_of_their_own_where_no_other_was_complete(readings):
    data = table("beyond", 300_000)
    design = private_design("~ x + y + z", data, BOOK)
    statistic, lattice = counted(design), Lattice(20, 3)
    next(design.blocks(len, lattice))
    thinned = design.of(design.rows.thinned(100, source()))
    moments(thinned, lattice)
    moments(design.of(design.rows.standing(2)), lattice)
    for side in design.sides(128, source()):
        moments(side, lattice)
    assert statistic.cross()[0].tolist() == expected(data)
    assert len(readings) == 6
    assert statistic.cross()[0].tolist() == expected(data)
    assert len(readings) == 6


def test_counts_beside_sums_add_over_tables():
    first, second = table("beyond", 100), table("odd", 50)
    pair = [private_design("~ x", data, BOOK) for data in (first, second)]
    statistics = [counted(private_design("~ x + y + z", data, BOOK)) for data in (first, second)]
    moments(pair[0], Lattice(20, 1))
    exact, n_rows = (statistics[0] + statistics[1]).cross()
    assert exact.tolist() == np.add(expected(first), expected(second)).tolist()
    assert n_rows == 150


@pytest.mark.parametrize("times", [2, 70, 3_000_000])
def test_counts_of_rows_that_count_several_times(times):
    data = table("beyond", 100)
    design = private_design("~ x + y + z", data, BOOK)
    several = design.of(design.rows.standing(times))
    statistic = counted(several)
    moments(several, Lattice(20, 3))
    exact, n_rows = statistic.cross()
    assert exact.tolist() == [times * count for count in expected(data)]
    assert n_rows == 100 * times


def test_a_part_without_rows_counts_none():
    empty = {name: np.zeros(0) for name in NAMES}
    assert not by_bounds(SIDES, empty).any()
