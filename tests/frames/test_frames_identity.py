"""The id of a person follows from the cell alone, whichever software read the file."""

import datetime as dt
import io
import time
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
from dpmodels.frames.persons import Numbering, canonical_id, cell_bytes, person_keys

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
    high, low, has_id = person_keys(cells, SECRET)
    return [
        pair if has_key else None
        for pair, has_key in zip(zip(high.tolist(), low.tolist(), strict=True), has_id, strict=True)
    ]


def one(cell):
    return named(objects([cell]))[0]


ONE_PERSON = (
    (7, 7.0, np.int8(7), np.uint64(7), np.float32(7), Decimal(7), Decimal("7.0"), "7", " 7", b"7"),
    (0, 0.0, -0.0, "0"),
    (-5, -5.0, "-5"),
    (True, np.True_, "True"),
    (2**53, str(2**53), np.int64(2**53)),
    (2**53 + 1, str(2**53 + 1)),
    (20240101000000001, "20240101000000001", "20240101000000001\r"),
    (2**63 - 1, str(2**63 - 1)),
    (2**64 - 1, np.uint64(2**64 - 1), str(2**64 - 1)),
    (10**400, str(10**400)),
    ("p1", b"p1", np.str_("p1"), "p1 ", "\ufeffp1", "\tp1\r\n", "\0p1"),
    ("\u00e9", "e\u0301"),
    (1.5, "1.5", np.float64(1.5), Decimal("1.50")),
    (np.inf, "inf"),
    (SOME, str(SOME)),
    (dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), np.datetime64("2020-01-01"), "2020-01-01"),
)
OTHERS = (
    *("007", "7.0", "1.10", "1.1", "12E007", "1/01/001", "0x1f", "1_0", "10a", "+7", "-0", "P1"),
    *("NA", "NaN", "NULL", "None", "Inf", "12e400", "TRUE", "true", "\ud800", 10, "Ann Smith"),
    *("20240101000000002", 2.0**60, dt.datetime(2020, 1, 1, 12)),
)
NOBODY = (
    *(None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "us"), Decimal("nan")),
    *("", " ", "\r", "\ufeff"),
    *([1], {"a": 1}, (1,), Hostile(), Hostile, 1j),
)


@pytest.mark.parametrize("cells", ONE_PERSON, ids=repr)
def test_one_person_however_it_is_cell_bytes(cells):
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


@pytest.mark.product
@given(st.lists(CELLS, max_size=5), st.lists(CELLS, max_size=5))
@settings(max_examples=50)
def test_the_company_of_a_cell_has_no_part_in_it(first, second):
    total = named(objects([*first, *second]))
    assert total == [*named(objects(first)), *named(objects(second))]
    assert total == [one(cell) for cell in (*first, *second)]


def test_half_a_surrogate_pair_is_not_the_text_that_python_prints_for_it():
    """Undecodable bytes become such halves, which pandas reads as their repr among texts."""
    for cell, printed in ((b"a\xffb", "'a\\udcffb'"), ("\ud800", "'\\ud800'")):
        assert repr(canonical_id(cell)) == printed
        assert named(objects([cell, printed])) == [one(cell), one(printed)]
        assert one(cell) != one(printed)


def test_the_type_of_a_column_has_no_part_in_it():
    numbers = [0, 1, 2, 2**53 + 2]
    keys = [one(cell) for cell in numbers]
    for dtype in ("u8", "i8", "f8", "O", "U20", "S20", np.dtypes.StringDType()):
        column = np.array(
            [str(cell) for cell in numbers] if dtype not in ("u8", "i8", "f8", "O") else numbers,
            dtype,
        )
        assert named(column) == (keys if dtype != "f8" else [*keys[:3], one(2.0**53 + 2)])
    masked = np.ma.MaskedArray(np.array(numbers), mask=[0, 1, 0, 0])
    assert named(masked) == [keys[0], None, *keys[2:]]
    assert named(np.array(["2020-01-01", "NaT"], "M8[D]")) == [one("2020-01-01"), None]


def test_a_missing_cell_makes_no_other_person():
    """No container that keeps the digits of whole numbers beside a missing cell loses them here."""
    ids = [3, 2**53 + 1, 2**60 + 1]
    expected = [one(cell) for cell in ids]
    frames = {
        "nullable": lambda cells: pd.DataFrame({"id": pd.array(cells, dtype="Int64")}),
        "objects": lambda cells: pd.DataFrame({"id": pd.Series(cells, dtype=object)}),
        "arrow": lambda cells: pa.table({"id": pa.array(cells, pa.int64())}),
        "polars": lambda cells: pl.DataFrame({"id": pl.Series(cells, dtype=pl.Int64)}),
        "pandas arrow": lambda cells: pd.DataFrame({"id": pd.array(cells, dtype="int64[pyarrow]")}),
        "csv": lambda cells: pd.read_csv(
            io.StringIO("id,x\n" + "".join(f"{'' if c is None else c},1\n" for c in cells)),
            dtype=str,
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
    keys = {tuple(person_keys(texts, bytes([i]) * 24).high.tolist()) for i in range(3)}
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
    cell_bytes_of_all = cell_bytes(objects(cells))
    for at in range(1, len(cells)):
        assert (
            cell_bytes(objects(cells[:at])) + cell_bytes(objects(cells[at:])) == cell_bytes_of_all
        )
    assert cell_bytes(objects([1, 2])) != cell_bytes(objects([1, 3]))
    assert cell_bytes(np.array([2**60])) != cell_bytes(np.array([2**60 + 1]))
    nested = np.array([(None, 1), ("x", 2)], [("a", object), ("b", int)])
    assert cell_bytes(nested) == cell_bytes(nested[:1]) + cell_bytes(nested[1:])


@given(st.lists(CELLS, max_size=6), st.integers(0, 6))
@settings(max_examples=50)
def test_what_is_written_follows_from_each_cell(cells, at):
    total = cell_bytes(objects(cells))
    assert total == cell_bytes(objects(cells[:at])) + cell_bytes(objects(cells[at:]))


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
    lists = [[value] for value in odd] + [[first, second] for first in odd for second in odd]
    assert len({cell_bytes(objects(value)) for value in lists}) == len(lists)


def distinct(ids):
    return len(set(named(objects(ids))) - {None})


def test_long_and_odd_ids_are_as_many_persons_as_there_are():
    """Compared as floats, 2,000 ids of 18 digits were 126 persons, and 69 % of site codes one."""
    days = [20240101000000000 + k for k in range(2000)]
    assert distinct(list(days)) == 2000
    assert distinct([str(day) for day in days]) == 2000
    assert distinct([f"{k // 1000:02d}E{k % 1000:03d}" for k in range(20_000)]) == 20_000
    assert distinct([f"1.{k}" for k in range(1, 101)]) == 100
    assert distinct([f"{k * 2654435761 % 2**32:08x}" for k in range(20_000)]) == 20_000
    assert distinct(["x" * 2000, "x" * 2001]) == 2


def test_no_id_takes_a_time_that_grows_with_the_square_of_its_length():
    """Marks out of order, and whole numbers in decimal digits, took minutes in one cell."""
    marks, large = "e" + "\u0301\u0323" * 2**15, 3**10**5
    start = time.process_time()
    assert canonical_id(marks) == marks != canonical_id(marks + "\u0323")
    assert canonical_id(large) == hex(large) != canonical_id(-large) == hex(-large)
    assert time.process_time() - start < 2
    assert canonical_id("e" + "\u0301\u0323" * 400) == canonical_id(
        "\u1eb9" + "\u0301" * 400 + "\u0323" * 399
    )


@pytest.mark.product
def test_two_cells_are_one_person_if_their_canonical_ids_are_equal():
    """By brute force over pairs, and in any container that holds them."""
    cells = [cell for cells in ONE_PERSON for cell in cells] + list(OTHERS)
    for first, key in zip(cells, named(objects(cells)), strict=True):
        for second in cells:
            assert (key == one(second)) == (canonical_id(first) == canonical_id(second))


def test_declared_missing_ids_are_nobodys():
    cells = objects(["NA", "na", -9, "-9", 7, None])
    has_id = person_keys(cells, SECRET, frozenset(("NA", "-9"))).has_id
    assert has_id.tolist() == [False, True, False, False, True, False]
    keys = person_keys(np.array([-9, 7]), SECRET, frozenset(("-9",)))
    assert keys.has_id.tolist() == [False, True]


def test_ids_that_are_chosen_to_meet_in_a_table_do_not_meet():
    """Unkeyed, such ids took a quadratic time: their hashes depend on a secret here."""
    multiplier = pow(0xD1B54A32D192ED03, -1, 2**64)
    ids = np.array([k * multiplier % 2**63 for k in range(4000)], dtype=np.int64)
    high, low, _ = person_keys(ids, SECRET)
    table = Numbering(0)
    table.numbers(high, low)
    assert (table._numbers_at(table._first(high, low), high, low) < 0).mean() < 0.4
