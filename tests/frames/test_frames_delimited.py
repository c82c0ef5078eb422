"""CSV files: what a record or a line says, whatever stands around it."""

import csv
import io
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.errors import FrameError
from dpmodels.frames import open_rows
from dpmodels.frames.delimited import CsvFile, blocks, first_record


def _cells(tmp_path, content: bytes, name="b", rows=2, mode="lines"):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    chunks = [chunk[name] for chunk in open_rows(CsvFile(path, mode)).chunks((name,), rows)]
    assert all(part.dtype == object for part in chunks)
    return [cell for part in chunks for cell in part.tolist()]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,2\n3,4\n5,6\n", ["2", "4", "6"]),
        (b"a,b\r\n1,2\r\n3,4", ["2", "4"]),
        (b"a,b\r\r\n1,2\r\r\n3,4\r", ["2", "4"]),
        (b"a,b\n1,2\r3\n3,4\n", ["2\r3", "4"]),
        (b"\xef\xbb\xbfb,a\n1,2\n", ["1"]),
        (b"a,b\n\n1,2\n\n", ["", "2", ""]),
        (b"a,b\n1\n3,4,5,6\n,\n", ["", "4", ""]),
        (b'a,b\n1,"x, ""y"""\n3,4\n', ['x, "y"', "4"]),
        (b'a,b\n1,"x\ny"\n3,4\n', ["x", "", "4"]),
        (b'a,"b"\n1,"x"\n"3",4\n', ["x", "4"]),
        (b'a,b\n1,6" pipe\n3,4\n', ['6" pipe', "4"]),
        (b'a,b\n1,"x"y\n3,4\n', ["xy", "4"]),
        (b'a,b\n1,"x\n3,4\n5,6\n', ["x", "4", "6"]),
        (b'a,b\n1,"x\n3,"4"\n5,"6"\n', ["x", "4", "6"]),
        (b'a,b\n1,"x\n3,"4, 5"\n', ["x", "4, 5"]),
        (b'a,b\n1,"x,""y\n3,z"\n', ['x,"y', 'z"']),
        (b'a,b\n1,"x\n3,",5"\n', ["x", ",5"]),
        (b"a,b\n1,\xff\xfe\n3,4\n", [b"\xff\xfe", "4"]),
        (b"a,b\n1,\xc3\n3,\xc3\xa9\n", [b"\xc3", "\u00e9"]),
        (b"a,b\n1,x\x00y\n3,4\n", ["x\x00y", "4"]),
        (
            "a,b\n1,x\x0by\x0cz\x1c\x85\u2028\ufeff\n#3,4\n".encode(),
            ["x\x0by\x0cz\x1c\x85\u2028\ufeff", "4"],
        ),
        (b"a,b\n 1 , 2 \n", [" 2 "]),
        (b"a,b\n", []),
    ],
)
def test_lines(tmp_path, content, expected):
    assert _cells(tmp_path, content) == expected


def test_a_stray_quote_with_many_lines_behind_it(tmp_path):
    lines = [b"1,%d" % k for k in range(5000)]
    lines[7] = b'1,"7'
    got = _cells(tmp_path, b"\n".join([b"a,b", *lines]), rows=999)
    assert got == [str(k) for k in range(5000)]


def test_a_cell_of_any_length(tmp_path):
    long = "x" * 300_000
    content = f'a,b\n1,"{long}"\n1,{long}\n1,{long}y\n2,3\n'.encode()
    for mode in ("lines", "records"):
        first, second, right, last = _cells(tmp_path, content, mode=mode)
        assert first == second != right
        assert len(first) < 70_000
        assert last == "3"


@pytest.mark.parametrize(
    "odd", [b'1,"abc', b'a""","', b'"' * 99, b"", b"\r", b"\xff", b"1,\xe2\x80"]
)
def test_one_line_moves_no_count(tmp_path, odd):
    lines = [b"1,abc", *[b"1,ok"] * 900, b'1,z"', *[b"0,ok"] * 99]
    before = _cells(tmp_path, b"\n".join([b"x,note", *lines, b""]), "x", rows=64)
    after = _cells(tmp_path, b"\n".join([b"x,note", odd, *lines[1:], b""]), "x", rows=64)
    assert len(before) == len(after) == 1001
    assert before[1:] == after[1:]


# The stars stand for bytes that are no UTF-8.
SIGNS = '",1x#*\r\x00\x0b\x0c\x85\u2028\ufeff'
LINE = st.text(SIGNS, max_size=9)


@pytest.mark.expensive
@settings(deadline=None)
@given(st.text(SIGNS + "\n", max_size=40), LINE, st.integers(0, 9), st.booleans())
def test_a_line_is_a_row_and_says_nothing_of_another(text, other, at, ended):
    *lines, other = (
        value.encode().replace(b"*", b"\xe2\x80") for value in [*text.split("\n"), other]
    )
    at %= len(lines)
    rows = 1 + len(lines) % 3
    # Without a last line feed a blank line is the end of the file and no line.
    end = b"\n" if ended or not lines[-1] or not other else b""
    changed = [*lines[:at], other, *lines[at + 1 :]]
    with tempfile.TemporaryDirectory() as folder:
        first, two = (
            _rows(Path(folder), b"\n".join([b"a,b", *value]) + end, rows)
            for value in (lines, changed)
        )
        alone = _rows(Path(folder), b"a,b\n" + other + b"\n", rows)
    assert len(first) == len(two) == len(lines)
    assert first[:at] + first[at + 1 :] == two[:at] + two[at + 1 :]
    assert two[at : at + 1] == alone


def _rows(folder, content, rows):
    path = folder / "t.csv"
    path.write_bytes(content)
    chunks = open_rows(CsvFile(path, "lines")).chunks(("a", "b"), rows)
    return [row for chunk in chunks for row in zip(chunk["a"], chunk["b"], strict=True)]


def test_quotes_take_the_time_of_other_characters(tmp_path):
    seconds = {}
    for line in (b"abcd,e", b'a""","'):
        start = process_time()
        got = _cells(tmp_path, b"a,b\n" + (line + b"\n") * 20_000 + line * 10_000, rows=4096)
        seconds[line] = process_time() - start
        assert len(got) == 20_001
    # Three times as long; some hundred times where every line looks for its end in others.
    assert seconds[b'a""","'] < 40 * seconds[b"abcd,e"]


def test_lines_that_end_with_carriage_returns_alone(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\r93117,2\r3,4\r")
    with pytest.raises(FrameError, match="carriage returns alone") as caught:
        open_rows(tmp_path / "t.csv")
    assert "93117" not in str(caught.value)


def test_an_empty_file_has_no_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"")
    source = open_rows(path)
    assert source.names == ()
    with pytest.raises(FrameError, match="no column 'a'"):
        source.chunks(("a",), 5)


def test_a_file_may_be_read_twice(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2\n")
    source = open_rows(path)
    for _ in range(2):
        np.testing.assert_array_equal(next(source.chunks(("a",), 5))["a"], ["1"])


def test_an_empty_cell_in_a_file_of_one_column_is_still_a_row(tmp_path):
    counts = []
    for cell in (b"5", b""):
        path = tmp_path / "t.csv"
        path.write_bytes(b"\n".join([b"b", b"1", cell, b"3", b""]))
        counts.append(sum(len(chunk["b"]) for chunk in open_rows(path).chunks(("b",), 2)))
    assert counts == [3, 3]


CELL = st.text('",1x#\r\n\x00\u2028', max_size=9)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5),
    st.tuples(CELL, CELL),
    st.integers(0, 4),
    st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
)
def test_a_record_that_was_quoted_says_nothing_of_another(records, other, at, quoting):
    """Today's fault: a cell of k line breaks was k + 1 rows of its author's choice."""
    at %= len(records)
    changed = [*records[:at], other, *records[at + 1 :]]
    results = []
    for table in (records, changed):
        text = io.StringIO(newline="")
        csv.writer(text, quoting=quoting, lineterminator="\n").writerows([("a", "b"), *table])
        file = io.StringIO(text.getvalue(), newline="\n")
        first_record(file, lines=False)
        results.append([row for block in blocks(file, (0, 1), 9, lines=False) for row in block])
    left, two = results
    assert len(left) == len(two) == len(records)
    assert left[:at] + left[at + 1 :] == two[:at] + two[at + 1 :]
    for (first, second), read in zip(changed, two, strict=True):
        assert [first, second.rstrip("\r")] == [read[0], read[1].rstrip("\r")]


def test_a_quote_that_is_never_closed_makes_one_incomplete_record(tmp_path):
    content = b'a,b\n1,2\n3,"4\n5,6\n'
    assert _cells(tmp_path, content, mode="records") == ["2", ""]
    assert _cells(tmp_path, content, mode="lines") == ["2", "4", "6"]


def test_a_header_may_have_quoted_names_over_lines(tmp_path):
    assert _cells(tmp_path, b'"a\nx",b\n1,2\n', mode="records") == ["2"]
