"""CSV files: what a line says, whatever the lines around it."""

import csv

import numpy as np
import pytest

from dpmodels.errors import FrameError
from dpmodels.frames import open_rows


def _cells(tmp_path, content: bytes, name="b", rows=2):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    chunks = [chunk[name] for chunk in open_rows(path).chunks((name,), rows)]
    assert all(part.dtype == object for part in chunks)
    return [cell for part in chunks for cell in part.tolist()]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,2\n3,4\n5,6\n", ["2", "4", "6"]),
        (b"a,b\r\n1,2\r\n3,4", ["2", "4"]),
        (b"a,b\r1,2\r3,4\r", ["2", "4"]),
        (b"\xef\xbb\xbfb,a\n1,2\n", ["1"]),
        (b"a,b\n\n1,2\n\n", ["", "2", ""]),
        (b"a,b\n1\n3,4,5,6\n,\n", ["", "4", ""]),
        (b'a,b\n1,"x, ""y"""\n3,4\n', ['x, "y"', "4"]),
        (b'a,b\n1,"x\ny"\n3,4\n', ["x\ny", "4"]),
        (b'a,"b"\n1,"x"\n"3",4\n', ["x", "4"]),
        (b'a,b\n1,6" pipe\n3,4\n', ['6" pipe', "4"]),
        (b'a,b\n1,"x"y\n3,4\n', ["xy", "4"]),
        (b'a,b\n1,"x\n3,4\n5,6\n', ["x", "4", "6"]),
        (b'a,b\n1,"x\n3,"4"\n5,"6"\n', ["x", "4", "6"]),
        (b'a,b\n1,"x\n3,"4, 5"\n', ["x", "4, 5"]),
        (b'a,b\n1,"x\n3,",5"\n', ["x", ",5"]),
        (b"a,b\n1,\xff\xfe\n3,4\n", ["\ufffd\ufffd", "4"]),
        (b"a,b\n1,\xc3\n3,4\n", ["\ufffd", "4"]),
        (b"a,b\n1,x\x00y\n3,4\n", ["x\x00y", "4"]),
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


def test_a_cell_longer_than_the_csv_module_allows(tmp_path):
    limit = csv.field_size_limit()
    long = "x" * (2 * limit)
    assert _cells(tmp_path, f'a,b\n1,"{long}"\n1,{long}\n2,3\n'.encode()) == [long, long, "3"]
    assert csv.field_size_limit() == limit


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
