"""Rows of persons and of subsets make the statistic of the table they stand for."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.design.columns import multiplied, placed
from dpmodels.design.rows import requested_of
from dpmodels.errors import FrameError, PrivacyError
from dpmodels.formula.sides import parse_sides, subset
from dpmodels.formula.tally import Tally
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency
from dpmodels.statistics import moments
from dpmodels.statistics.clipped import clipped_moments
from dpmodels.statistics.counts import counts
from dpmodels.statistics.passes import Passes, Score, score_squares
from tests.private_rows import private_cells

BOOK = dp.codebook(x=(-1, 1), g=["a", "b"])
LATTICE = Lattice(20, 1)
# Nobody has more rows to choose from than places that they share evenly.
TABLE = pd.DataFrame(
    {
        "id": ["p", "q", None, "p", "r", "q", "p", "s"],
        "x": [0.5, -0.25, 0.9, 0.125, np.nan, 1.0, -0.5, 0.75],
        "g": list("abababab"),
    }
)
EVEN = {"p": 20, "q": 30, "r": 60, "s": 60}


SCORE = Score(np.eye(2), np.array([0.5, 0.5]), np.eye(1))
MEASURED = {
    "moments": lambda design: moments(design, LATTICE),
    "clipped": lambda design: clipped_moments(design, LATTICE, 2),
    "passes": lambda design: Passes((design,), LATTICE).within(np.eye(1)),
    "scores": lambda design: score_squares(design, LATTICE, SCORE, Lattice(20, 2)),
}


def among(rows, adjacency="replace", condition=None):
    return lambda terms: requested_of(
        terms, Adjacency(adjacency, rows, "id"), subset(condition, BOOK)
    )


def of_design(data, rows=None, **words):
    design = private_design("~ x", data, BOOK)
    if rows is not None:
        design = design.among(among(rows, **words)).bind(data)
    return moments(design, LATTICE).cross()


def of_cells(data, rows=None, degree=1, **words):
    sides = parse_sides("x ~ g", BOOK)
    tally = Tally((sides.groups[0],), sides.described[0], degree)
    design = private_cells(sides.text, data, sides.codebook, (tally,))
    if rows is not None:
        design = design.among(among(rows, **words)).bind(data)
    return counts(design, 2**20).cross()


def expanded(rows):
    """Each row as often as it takes a place, and a row without numbers for every other place."""
    identified = TABLE.dropna(subset="id")
    times = identified["id"].map(EVEN) if rows == "mean" else np.ones(len(identified), dtype=int)
    table = identified.loc[identified.index.repeat(times)]
    size = 4 * (60 if rows == "mean" else rows)
    empty = pd.DataFrame({"x": [np.nan], "g": [None]}, index=[0] * (size - len(table)))
    return pd.concat([table, empty], ignore_index=True)[["x", "g"]]


def of_powers(data, rows=None):
    return of_cells(data, rows, degree=4)


@pytest.mark.parametrize(
    ("measured", "rows"),
    [(of_design, "mean"), (of_cells, "mean"), *product([of_design, of_cells, of_powers], [3, 5])],
)
def test_a_person_is_so_many_places_of_a_table(measured, rows):
    exact, recorded = measured(TABLE, rows)
    expected, size = measured(expanded(rows))
    assert (exact == expected).all()
    assert recorded == size == 4 * (60 if rows == "mean" else rows)


@pytest.mark.parametrize("measured", [of_design, of_cells])
def test_of_a_private_number_of_persons_no_empty_place_is_told(measured):
    _, n_rows = measured(TABLE, 5, adjacency="add-remove")
    assert n_rows == 7


@pytest.mark.parametrize("measured", [of_design, of_cells])
def test_a_row_of_nobody_moves_nothing(measured):
    change = TABLE.assign(x=TABLE["x"].where(TABLE["id"].notna(), -1.0))
    assert (measured(change, 3)[0] == measured(TABLE, 3)[0]).all()


@pytest.mark.parametrize("measured", [of_design, of_cells])
def test_rows_outside_a_subset_are_incomplete(measured):
    inside = TABLE.assign(x=TABLE["x"].where(TABLE["x"] > 0.0))
    assert (measured(TABLE, 3, condition="x > 0")[0] == measured(inside, 3)[0]).all()


def test_a_person_gives_places_to_rows_of_the_subset_alone():
    exact, _ = of_design(TABLE, "mean", condition="x > 0.6")
    expected, _ = of_design({"x": [1.0] * 60 + [0.75] * 60})
    assert (exact == expected).all()


@given(st.lists(st.integers(0, 3), max_size=60), st.sampled_from([1, 2, 5, "mean"]))
def test_no_person_has_more_places_than_declared(persons, rows):
    data = {
        "id": [str(person) for person in persons],
        "x": np.array(persons) / 4,
        "g": ["a"] * len(persons),
    }
    design = private_design("~ x", data, BOOK).among(among(rows)).bind(data)
    counts = np.zeros(4)
    parts = list(design.rows.parts())
    for part in parts[:-1]:
        counts += np.bincount((4 * part.columns["x"]).astype(int), part.places, 4)
    n_largest = 60 if rows == "mean" else rows
    n_by_place = np.bincount(persons, minlength=4) if persons else np.zeros(4)
    expected = (
        np.where(n_by_place > 0, n_largest, 0)
        if rows == "mean"
        else np.minimum(n_by_place, n_largest)
    )
    assert (counts == expected).all()
    assert counts.sum() + parts[-1].places.sum() == n_largest * len(set(persons))


def test_rows_that_are_read_once_give_the_first_of_each_person():
    def tables():
        yield TABLE[:4]
        yield TABLE[4:]

    design = private_design("~ x", tables(), BOOK).among(among(1)).bind(tables())
    exact, n_rows = moments(design, LATTICE).cross()
    expected, _ = of_design({"x": [0.5, -0.25, 0.75]})
    assert (exact == expected).all()
    assert n_rows == 4


def test_rows_that_are_read_once_have_no_mean():
    with pytest.raises(FrameError, match="rows=4 for the first four rows of a person"):
        private_design("~ x", iter([TABLE]), BOOK).among(among("mean")).bind(iter([TABLE]))


def test_the_person_is_a_column():
    with pytest.raises(FrameError, match="id"):
        private_design("~ x", TABLE, BOOK).among(among(3)).bind(TABLE.drop(columns="id"))


def test_rows_show_nothing():
    rows = private_design("~ x", TABLE, BOOK).rows
    assert repr(rows) == "<Rows, not shown>"
    with pytest.raises(PrivacyError):
        rows.__reduce__()


@given(st.lists(st.integers(0, 200), max_size=30), st.sampled_from([1, 2, 8, 64]))
def test_a_row_counts_as_often_as_it_takes_a_place(places, block):
    counted = np.zeros(len(places), dtype=int)
    for value, size, times in placed(np.array(places, dtype=np.int64), len(places), block):
        assert size * times <= block
        counted[value] += times
    assert counted.tolist() == places


@given(st.lists(st.integers(0, 9), max_size=30), st.sampled_from([1, 2, 8]), st.booleans())
def test_a_block_may_count_so_many_times(places, block, in_order):
    counted, blocks = np.zeros(len(places), dtype=int), 0
    positions = np.array(sorted(places) if in_order else places, dtype=np.uint8)
    for part, size, times in placed(positions, len(places), block, 64):
        assert len(counted[part]) == size <= block
        counted[part] += times
        blocks += 1
    assert (counted == positions).all()
    if in_order:
        # Each row is read once, in blocks that are full but for the last of each number.
        assert blocks <= len(places) // block + len(set(places) - {0})


@given(st.lists(st.integers(0, 5_040), min_size=70, max_size=300, unique=True))
def test_many_numbers_of_places_take_few_blocks(places):
    counted, blocks = np.zeros(len(places), dtype=int), 0
    for part, size, times in placed(np.array(places), len(places), 8_192, 64):
        assert len(counted[part]) == size <= 8_192
        assert size * times <= 64 * 8_192
        counted[part] += times
        blocks += 1
    assert counted.tolist() == places
    assert blocks <= 2 * 13


def _many(measured):
    """What is measured of a full block of persons, each of one row, and of the same by row."""
    rng = np.random.default_rng(1)
    data = {"x": 1.0 - rng.random(8192) / 16, "id": np.arange(8192)}
    design = private_design("~ x", data, BOOK, center=False)
    return [
        measured(value)
        for value in (design, design.among(among("mean", adjacency="add-remove")).bind(data))
    ]


@pytest.mark.parametrize("measured", MEASURED)
def test_a_full_block_that_counts_many_times_is_exact(measured):
    """Products of a block may take all 53 bits of a float: 60 times as much would be rounded."""
    once, often = _many(lambda design: MEASURED[measured](design).cross())
    assert any(int(60.0 * float(value)) != 60 * value for value in once[0].ravel())
    assert (often[0] == 60 * once[0]).all()
    assert often[1] == 60 * once[1]


def test_an_answer_counts_as_often_as_its_rows():
    ids = np.array([1, 2])
    assert multiplied(ids, 1) is ids
    assert multiplied({"a": (ids, 3.0)}, 2)["a"][1] == 6.0
    assert multiplied((ids, None), 3)[0].tolist() == [3, 6]
