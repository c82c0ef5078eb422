"""Many Parquet files as one table."""

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.frames import open_rows, to_float
from dpmodels.frames.parquet import prefetch

SECRET = "secret-93117"
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
BOOK = dp.codebook(x=(0, 100), y=(0, 1))


@pytest.fixture
def folder(tmp_path):
    """Five files of 0 to 40 rows, one a level below, and what is not to be read."""
    (tmp_path / "rows" / "more").mkdir(parents=True)
    places = ["b", "a", "c", "more/d", "more/empty"]
    for at, place in enumerate(places):
        count = 40 if place != "more/empty" else 0
        _write(tmp_path / f"rows/{place}.parquet", np.arange(count) + 40.0 * at)
    _write(tmp_path / "rows/_hidden.parquet", np.zeros(3))
    (tmp_path / "rows" / ".tmp").mkdir()
    _write(tmp_path / "rows/.tmp/part.parquet", np.zeros(3))
    (tmp_path / "rows" / "notes.txt").write_text("not rows")
    return tmp_path / "rows"


def _write(path, x, **columns):
    table = pa.table({"x": x, "y": pa.array(np.asarray(x) % 2), **columns})
    pq.write_table(table, path, row_group_size=7, compression="none", write_page_checksum=True)


def _read(data, expected=("x",), rows=16):
    chunks = list(open_rows(data).chunks(expected, rows))
    return np.concatenate([np.empty(0), *(to_float(chunk["x"]) for chunk in chunks)])


def test_folders_patterns_and_lists_are_one_table(folder):
    every = sorted(np.arange(160.0).tolist())
    names = ["a", "b", "c", "more/d", "more/empty"]
    files = [folder / f"{name}.parquet" for name in names]
    for data in (folder, str(folder), files, tuple(map(str, files)), [folder]):
        source = open_rows(data)
        assert source.nrows == 160
        assert source.rereadable
        assert sorted(_read(data).tolist()) == every
    assert sorted(_read(str(folder / "**" / "[a-z]*.parquet")).tolist()) == every
    assert _read(f"{folder}/?.parquet").tolist() == [
        *np.arange(40.0, 80), *np.arange(40.0), *np.arange(80.0, 120)
    ]  # fmt: skip


def test_a_folder_gives_the_integers_of_one_frame(folder):
    rows = {"x": np.arange(160.0), "y": np.arange(160.0) % 2}
    with dp.simulation(seed=3):
        fit = dp.dp_cov("~ x + y", rows, codebook=BOOK, eps=1.0, delta=1e-6)
    with dp.simulation(seed=3):
        cov_fit = dp.dp_cov("~ x + y", folder, codebook=BOOK, eps=1.0, delta=1e-6)
    np.testing.assert_array_equal(fit.cov, cov_fit.cov)


def test_numbers_and_texts_are_alike_however_they_are_stored(tmp_path):
    _write(tmp_path / "a.parquet", [1, 2], s=pa.array(["F", "M"]))
    _write(tmp_path / "b.parquet", [3.5], s=pa.array(["F"]).dictionary_encode())
    _write(tmp_path / "c.parquet", pa.array([4], pa.uint8()), s=pa.nulls(1))
    assert _read(tmp_path, ("x", "s")).tolist() == [1, 2, 3.5, 4]


DATES = pa.array([0, 1], pa.date32())


@pytest.mark.parametrize(
    "part",
    [["7", "odd"], pa.array([7, None], pa.int16()), pa.nulls(2), DATES, [True, False]],
    ids=["text", "integers", "nulls", "dates", "logical values"],
)
def test_no_part_decides_what_another_is_read_as(tmp_path, part):
    _write(tmp_path / "a.parquet", [1.5, 2.5])
    _write(tmp_path / "c.parquet", [8, 9])
    pq.write_table(pa.table({"x": part, "y": [0.0, 1.0]}), tmp_path / "b.parquet")
    alone = to_float(next(open_rows({"x": pa.array(part)}).chunks(("x",), 9))["x"])
    np.testing.assert_array_equal(_read(tmp_path), [1.5, 2.5, *alone, 8, 9])
    dp.dp_mean("x ~ 1", tmp_path, codebook=BOOK, eps=1.0)


def test_parts_of_dates_alone_are_refused_for_a_number(tmp_path):
    for name in ("a", "b"):
        pq.write_table(pa.table({"x": DATES, "y": [0.0, 1.0]}), tmp_path / f"{name}.parquet")
    ledger = dp.Ledger(eps=2.0)
    with pytest.raises(FrameError, match=r"'x' is of type date32\[day\]"):
        dp.dp_mean("x ~ 1", tmp_path, codebook=BOOK, eps=1.0, ledger=ledger)
    assert "0 of 2" in ledger.describe()


@pytest.fixture
def years(tmp_path):
    """Files in folders that are named by a year and a town, a missing one too."""
    for at, (year, town) in enumerate([(2023, "St.%20Ives"), (2023, HIVE_NULL), (2024, "%C3%81")]):
        place = tmp_path / "rows" / f"year={year}" / f"town={town}"
        place.mkdir(parents=True)
        _write(place / "part-0.parquet", np.arange(20.0) + 20 * at)
    return tmp_path / "rows"


@pytest.mark.expensive
def test_columns_in_the_names_of_folders_are_read(years):
    table = {
        "x": np.arange(60.0),
        "year": np.repeat([2023, 2024], [40, 20]),
        "town": [*["St. Ives"] * 20, *[None] * 20, *["Á"] * 20],
    }
    book = dp.codebook(x=(0, 60), year=[2023, 2024], town=["St. Ives", "Á"])
    for data in (years, f"{years}/year=*/*/*.parquet", sorted(years.rglob("*.parquet"))):
        assert open_rows(data).names == ("x", "y", "year", "town")
        chunks = list(open_rows(data).chunks(("town", "x"), 100))
        assert sorted(len(chunk["town"]) for chunk in chunks) == [20, 20, 20]
        for formula in ("~ town + year", "~ year"):
            with dp.simulation(seed=3):
                fit = dp.dp_table(formula, table, codebook=book, eps=1.0)
            with dp.simulation(seed=3):
                table_fit = dp.dp_table(formula, data, codebook=book, eps=1.0)
            assert fit.summary().as_text() == table_fit.summary().as_text()
    only = years / "year=2024" / "town=%C3%81" / "part-0.parquet"
    with dp.simulation(seed=3):
        mean = dp.dp_mean("year ~ 1", only, codebook=dp.codebook(year=(2000, 2030)), eps=1000.0)
    assert "2024.0" in mean.summary().as_text()


def test_no_message_shows_a_cell_that_a_folder_is_named_by(years):
    _write(years / "year=2024" / "more.parquet", [1.0])
    with pytest.raises(FrameError, match=r"'town' and .*\(file 3 by name\) has not") as caught:
        open_rows(years)
    assert "2024" not in str(caught.value)
    assert "year=*" in str(caught.value)
    (years / "year=2024" / "more.parquet").write_text("no Parquet file")
    with pytest.raises(FrameError, match="cannot be opened") as caught:
        open_rows(years)
    assert "2024" not in str(caught.value)


def test_a_column_in_files_and_names_of_folders_is_refused_where_it_is_wanted(tmp_path):
    (tmp_path / "x=3").mkdir()
    _write(tmp_path / "x=3" / "a.parquet", [1.0, 2.0])
    assert next(open_rows(tmp_path).chunks(("y",), 9))["y"].tolist() == [1.0, 0.0]
    with pytest.raises(FrameError, match="more than one column called 'x'"):
        open_rows(tmp_path).chunks(("x",), 9)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"x": [1.0]}, r"has a column 'y' and '.*b.parquet' has not"),
        ({"x": [1.0], "y": [1.0], "z": [1.0]}, r"b.parquet' has a column 'z' and '.*a.parquet'"),
    ],
)
def test_files_that_differ_are_refused_before_a_row_is_read(tmp_path, columns, says):
    _write(tmp_path / "a.parquet", [1.0])
    pq.write_table(pa.table(columns), tmp_path / "b.parquet")
    ledger = dp.Ledger(eps=2.0)
    with pytest.raises(FrameError, match=says):
        dp.dp_mean("x ~ 1", tmp_path, codebook=BOOK, eps=1.0, ledger=ledger)
    assert "0 of 2" in ledger.describe()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (lambda f: f / "absent", "does not have the suffix"),
        (lambda f: f / "absent.parquet", "there is no file"),
        (lambda f: f / "z*.parquet", "no file matches"),
        (lambda f: f / "*", "which does not have the suffix .parquet"),
        (lambda f: [f / "a.parquet", f / "more" / ".." / "a.parquet"], "listed twice"),
        (lambda f: [str(f / "a.parquet"), "absent.parquet"], "there is no file 'absent.parquet'"),
        (lambda f: ["F", "M"], "must be tables"),
        (lambda f: [], "gives no table"),
    ],
)
def test_what_is_no_set_of_files(folder, data, says):
    with pytest.raises(FrameError, match=says):
        _read(data(folder))


LINKS = {"hard": os.link, "symbolic": os.symlink}
WAYS = {
    "folder": lambda f: f,
    "pattern": lambda f: f"{f}/**/[a-z]*.parquet",
    "list": lambda f: sorted(f.rglob("[a-z]*.parquet")),
    "folder twice": lambda f: [f, f / "more" / ".."],
    "paths of an iterable": lambda f: iter(sorted(f.rglob("[a-z]*.parquet"))),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_a_file_with_two_names_counts_once(folder, way, link):
    link(folder / "a.parquet", folder / "more" / "e.parquet")
    with pytest.raises(FrameError, match="listed twice, and its rows would count twice"):
        _read(way(folder))


def test_a_folder_reached_twice_counts_once(folder):
    (folder / "again").symlink_to(folder / "more", target_is_directory=True)
    with pytest.raises(FrameError, match="listed twice"):
        _read(f"{folder}/**/[a-z]*.parquet")


@pytest.mark.parametrize("inputs", [list, iter], ids=["list", "iterator"])
def test_a_text_file_with_two_names_counts_once(tmp_path, inputs):
    (tmp_path / "a.csv").write_text("x\n1\n")
    os.link(tmp_path / "a.csv", tmp_path / "b.csv")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert _read(inputs(paths[:1])).tolist() == [1.0]
    with pytest.raises(FrameError, match=r"a.csv' and .*b.csv' are one file"):
        _read(inputs(paths))


def test_what_is_wrong_with_a_list_is_told_before_a_charge(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    ledger = dp.Ledger(eps=2.0)
    with pytest.raises(FrameError, match="listed twice"):
        dp.dp_mean("x ~ 1", [tmp_path / "a.csv"] * 2, codebook=BOOK, eps=1.0, ledger=ledger)
    assert "0 of 2" in ledger.describe()


def _spoil(path: Path, group: int, column: int) -> None:
    """Write over the last bytes of a column in one row group."""
    place = pq.read_metadata(path).row_group(group).column(column)
    # Pages lie one after the other, the dictionary's first.
    first = place.dictionary_page_offset or place.data_page_offset
    end = first + place.total_compressed_size
    content = bytearray(path.read_bytes())
    content[end - 6 : end] = b"\xff" * 6
    path.write_bytes(bytes(content))


def test_a_damaged_row_group_ends_the_release_and_stays_charged(tmp_path):
    notes = pa.array([f"{SECRET}{number}" for number in range(30)])
    _write(tmp_path / "b.parquet", [1.0] * 30, note=notes)
    _write(tmp_path / "a.parquet", [1.0] * 30, note=notes)
    _spoil(tmp_path / "b.parquet", group=2, column=2)
    ledger = dp.Ledger(eps=2.0)
    book = dp.codebook(note=[f"{SECRET}1", f"{SECRET}2"])
    with pytest.raises(FrameError, match=r"b\.parquet' is damaged.*Nothing was rel.*charged") as e:
        dp.dp_table("~ note", tmp_path, codebook=book, eps=1.0, ledger=ledger)
    assert "1.00 of 2.00" in ledger.describe()
    assert SECRET not in str(e.value)
    assert e.value.__cause__ is None
    assert e.value.__context__ is None
    # Columns that nobody wants are not read.
    assert _read(tmp_path).size == 60


def test_a_file_that_changed_since_it_was_opened_is_told_of(tmp_path):
    _write(tmp_path / "a.parquet", [1.0] * 30)
    source = open_rows(tmp_path)
    _write(tmp_path / "a.parquet", [1.0] * 29)
    with pytest.raises(FrameError, match="changed or replaced"):
        list(source.chunks(("x",), 10))


def test_reading_ahead_keeps_the_order_and_ends_with_its_thread():
    recorded = []

    def chunks():
        for number in range(5):
            recorded.append(threading.current_thread())
            yield {"x": np.array([number])}

    assert [int(chunk["x"][0]) for chunk in prefetch(chunks())] == list(range(5))
    assert threading.current_thread() not in recorded
    reading = prefetch(chunks())
    next(reading)
    del reading
    gc.collect()
    assert not any(thread.is_alive() for thread in recorded)


def test_what_reading_raises_comes_where_the_chunk_would_have_come():
    def chunks():
        yield {"x": np.zeros(1)}
        raise FrameError("damaged")

    reading = prefetch(chunks())
    next(reading)
    with pytest.raises(FrameError, match="damaged") as caught:
        next(reading)
    assert caught.value.__context__ is None
