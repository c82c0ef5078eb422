"""Parquet files: the wanted columns only, in constant memory."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.errors import FrameError
from dpmodels.frames import open_rows, to_codes, to_float

# VmHWM and not ru_maxrss, which a process inherits from its parent.
READ = """
import re, sys
from pathlib import Path
from dpmodels.frames import open_rows, to_float
def read(path):
    for chunk in open_rows(path).chunks(tuple("abcd"), 4096):
        for values in chunk.values():
            to_float(values)
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
read(sys.argv[1])
small, large = read(sys.argv[1]), read(sys.argv[2])
print(large - small)
"""


def _write(path, n):
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=n) for name in "abcde"}
    pq.write_table(pa.table(columns), path, row_group_size=n)
    return str(path)


@pytest.mark.product
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is read")
def test_peak_memory_does_not_grow_with_rows(tmp_path):
    files = [_write(tmp_path / f"{n}.parquet", n) for n in (2 * 10**5, 10**6)]
    done = subprocess.run(
        [sys.executable, "-c", READ, *files], capture_output=True, text=True, check=True
    )
    # The wanted columns of the large file take 32 MB, in one row group.
    assert int(done.stdout) < 8 * 1024


def test_projection_names_with_dots_and_nested_columns(tmp_path):
    path = tmp_path / "t.parquet"
    nested = pa.array([{"b": 1.0}, {"b": 2.0}])
    pq.write_table(pa.table({"a": nested, "x.y": [3.0, 4.0], "ab": ["F", None]}), path)
    source = open_rows(path)
    assert source.names == ("a", "x.y", "ab")
    assert source.nrows == 2
    chunk = next(source.chunks(("ab", "a", "x.y"), 10))
    assert to_codes(chunk["ab"], ("F",)).tolist() == [0, -1]
    assert np.isnan(to_float(chunk["a"])).all()
    assert to_float(chunk["x.y"]).tolist() == [3.0, 4.0]
    with pytest.raises(FrameError, match=r"no column 'a\.b'"):
        source.chunks(("a.b",), 10)


def test_what_is_no_parquet_file(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_text("secret-93117,2\n")
    with pytest.raises(FrameError, match="cannot be opened as a Parquet file") as caught:
        open_rows(path)
    assert "93117" not in str(caught.value)


def test_a_damaged_file_is_told_of_without_its_content(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": ["secret-93117"] * 100}), path, compression="none")
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\xff" * 60 + content[64:])
    with pytest.raises(FrameError, match="is damaged") as caught:
        list(open_rows(path).chunks(("x",), 10))
    assert caught.value.__context__ is None


def test_without_pyarrow(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(FrameError, match=r'pip install "dpmodels\[arrow\]"'):
        open_rows(path)


def test_bytes_that_are_not_utf_8_fail_no_column_of_categories(tmp_path):
    """Arrow checks the text of dictionaries when it reads a file, and of other columns not."""
    ends = pa.py_buffer(np.array([0, 1, 2], dtype=np.int32))
    entries = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"a\xe9")])
    path = tmp_path / "t.parquet"
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), entries)
    pq.write_table(pa.table({"x": cells}), path)
    (chunk,) = open_rows(path).chunks(("x",), 10)
    assert chunk["x"].tolist() == [b"a", b"\xe9", None, b"a"]
    assert to_codes(chunk["x"], ("a",)).tolist() == [0, -1, -1, 0]
