"""Whom a cell names follows from that cell alone, however it was written."""

import datetime as dt
import io
import uuid
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.frames import open_rows
from dpmodels.frames.identity import person_keys, written

SECRET = bytes(range(24))
SOME = uuid.UUID(int=2**100 + 17)


class Hostile:
    """A cell that nobody should ask anything."""

    def __hash__(self):
        raise RuntimeError("asked for its hash")

    def __eq__(self, other):
        raise RuntimeError("asked whether it is equal")

    def __float__(self):
        raise RuntimeError("asked for a number")


def objects(cells):
    return np.fromiter(cells, object, len(cells))


def named(cells):
    """One key for each cell, None for nobody."""
    high, low, known = person_keys(cells, SECRET)
    return [
        pair if there else None
        for pair, there in zip(zip(high.tolist(), low.tolist(), strict=True), known, strict=True)
    ]


def one(cell):
    return named(objects([cell]))[0]


ONE_PERSON = (
    (7, 7.0, np.int8(7), np.uint64(7), np.float32(7), Decimal(7), "7", "7.0", "007", " 7", b"7"),
    (1, True, np.True_, "True", "TRUE", 1.0, "1"),
    (0, 0.0, -0.0, False, "-0"),
    (2**53, 2**53 + 1, float(2**53), str(2**53 + 1)),
    ("p1", b"p1", np.str_("p1")),
    (SOME, str(SOME)),
)
OTHERS = ("1_0", "10a", "p", "P1", " p1", "p1 ", "é", "\ud800", 1.5, -1, 10, "Ann", "Nan", "Inez")
NOBODY = (
    *(
        None,
        np.nan,
        pd.NA,
        pd.NaT,
        np.inf,
        -np.inf,
        10**400,
        "",
        "NA",
        "nan",
        "inf",
        "1e999",
        "NULL",
    ),
    *(dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), [1], {"a": 1}, (1,), Hostile(), Hostile, 1j),
)


@pytest.mark.parametrize("cells", ONE_PERSON, ids=repr)
def test_one_person_however_it_is_written(cells):
    assert len({one(cell) for cell in cells}) == 1
    assert one(cells[0]) is not None


def test_persons_are_told_apart():
    different = [cells[0] for cells in ONE_PERSON] + list(OTHERS)
    keys = named(objects(different))
    assert None not in keys
    assert len(set(keys)) == len(different)


@pytest.mark.parametrize("cell", NOBODY, ids=lambda cell: type(cell).__name__)
def test_nobody_is_named_and_nothing_raised(cell):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert one(cell) is None


CELLS = st.one_of(
    st.sampled_from([cell for cells in ONE_PERSON for cell in cells]),
    st.sampled_from(OTHERS),
    st.sampled_from([cell for cell in NOBODY if not isinstance(cell, Hostile)]),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.binary(max_size=4),
)


@given(st.lists(CELLS, max_size=5), st.lists(CELLS, max_size=5))
@settings(max_examples=50)
def test_the_company_of_a_cell_has_no_part_in_it(first, second):
    whole = named(objects([*first, *second]))
    assert whole == [*named(objects(first)), *named(objects(second))]
    assert whole == [one(cell) for cell in (*first, *second)]


def test_the_type_of_a_column_has_no_part_in_it():
    whole = [0, 1, 2, 2**53 + 2]
    keys = [one(cell) for cell in whole]
    for dtype in ("u8", "i8", "f8", "O", "U20", "S20", np.dtypes.StringDType()):
        column = np.array(
            [str(cell) for cell in whole] if dtype not in ("u8", "i8", "f8", "O") else whole, dtype
        )
        assert named(column) == keys
    masked = np.ma.MaskedArray(np.array(whole), mask=[0, 1, 0, 0])
    assert named(masked) == [keys[0], None, *keys[2:]]
    assert named(np.array(["2020-01-01"], "M8[D]")) == [None]


def test_a_missing_cell_makes_no_other_person():
    """Software turns a column of whole numbers with a gap into floats, or into objects."""
    ids = [3, 2**53 + 1, 2**60 + 1]
    expected = [one(cell) for cell in ids]
    frames = {
        "pandas": lambda cells: pd.DataFrame({"id": cells}),
        "nullable": lambda cells: pd.DataFrame({"id": pd.array(cells, dtype="Int64")}),
        "objects": lambda cells: pd.DataFrame({"id": pd.Series(cells, dtype=object)}),
        "arrow": lambda cells: pa.table({"id": pa.array(cells, pa.int64())}),
        "polars": lambda cells: pl.DataFrame({"id": pl.Series(cells, dtype=pl.Int64)}),
        "csv": lambda cells: pd.read_csv(
            io.StringIO("id,x\n" + "".join(f"{'' if c is None else c},1\n" for c in cells))
        ),
    }
    for make in frames.values():
        for cells, keys in ((ids, expected), ([*ids, None], [*expected, None])):
            (chunk,) = open_rows(make(cells)).chunks(("id",), 99)
            assert named(chunk["id"]) == keys


@pytest.mark.skipif(not hasattr(pa, "uuid"), reason="this pyarrow has no type of UUIDs")
def test_a_uuid_of_arrow_is_its_text():
    column = pa.array([SOME.bytes, None], pa.uuid())
    (chunk,) = open_rows(pa.table({"id": column})).chunks(("id",), 9)
    assert named(chunk["id"]) == [one(str(SOME)), None]


def test_another_secret_gives_texts_other_keys():
    texts = objects(["a", "b"])
    keys = {tuple(person_keys(texts, bytes([own]) * 24).high.tolist()) for own in range(3)}
    assert len(keys) == 3


def test_what_cells_say_is_the_same_for_any_blocks_and_never_raises():
    cells = [
        1,
        2,
        True,
        None,
        "p",
        10**5000,
        -(10**5000),
        Decimal(1),
        Hostile(),
        [1],
        "\ud800",
        b"p",
    ]
    whole = written(objects(cells))
    for at in range(1, len(cells)):
        assert written(objects(cells[:at])) + written(objects(cells[at:])) == whole
    assert written(objects([1, 2])) != written(objects([1, 3])) != written(objects(["1", 3]))


@given(st.lists(CELLS, max_size=6), st.integers(0, 6))
@settings(max_examples=50)
def test_what_is_written_follows_from_each_cell(cells, at):
    whole = written(objects(cells))
    assert whole == written(objects(cells[:at])) + written(objects(cells[at:]))


def test_cells_that_name_others_are_written_otherwise():
    odd = [
        "a",
        "b",
        "",
        "\0",
        "\1",
        "\1\0",
        "\0\1",
        "\0a",
        "a\0",
        "\0000",
        "\1" + "0",
        "0",
        "\ud800",
    ]
    lists = [[one] for one in odd] + [[one, other] for one in odd for other in odd]
    assert len({written(objects(own)) for own in lists}) == len(lists)
