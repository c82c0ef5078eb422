"""Names are compared before rows are read, and messages repeat no foreign name."""

import pandas as pd
import pyarrow as pa
import pytest

from dpmodels.errors import FrameError
from dpmodels.frames import open_rows, require


def test_all_missing_names_in_one_message():
    source = open_rows({"wage": [1.0], "educ": [2.0]})
    require(source, ("educ", "wage"))
    require(source, ())
    with pytest.raises(FrameError) as caught:
        require(source, ("Wage", "exper"))
    assert "'Wage' (did you mean 'wage'?), 'exper'" in str(caught.value)


def test_names_that_resemble_nothing_are_not_listed(tmp_path):
    path = tmp_path / "headless.csv"
    path.write_text("alice,77123\nbob,81234\n")
    with pytest.raises(FrameError) as caught:
        require(open_rows(path), ("salary",))
    assert "alice" not in str(caught.value)
    assert "77123" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "encoding", "remedy"),
    [
        ("age;sex;income", "utf-8", r'pandas.read_csv(path, sep=";", dtype=str), and make points'),
        ("age\tsex", "utf-8", r'sep="\t"'),
        ("age|sex", "utf-8-sig", 'sep="|"'),
        ("age,gr\u00f6\u00dfe", "latin-1", 'encoding="latin-1"'),
        ("age,sex", "utf-16", 'encoding="utf-16"'),
    ],
)
def test_a_line_that_was_not_read_as_names_is_not_quoted(tmp_path, line, encoding, remedy):
    path = tmp_path / "export.csv"
    path.write_text(f"{line}\n", encoding=encoding)
    with pytest.raises(FrameError) as caught:
        require(open_rows(path), ("agee", "gr\u00f6\u00dfe"))
    assert remedy in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_a_single_column_with_a_semicolon_in_its_name_is_read(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text('"a;b"\n1\n')
    require(open_rows(path), ("a;b",))


def _duplicated():
    frame = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "a", "b"])
    yield "pandas", frame
    yield "arrow", pa.Table.from_arrays([pa.array([float(k)]) for k in (1, 2, 3)], ["a", "a", "b"])


@pytest.mark.parametrize("data", [data for _, data in _duplicated()], ids=["pandas", "arrow"])
def test_a_duplicated_column_matters_only_where_it_is_wanted(data):
    source = open_rows(data)
    assert source.names == ("a", "a", "b")
    assert next(source.chunks(("b",), 10))["b"].tolist() == [3.0]
    for refuse in (require, lambda source, expected: source.chunks(expected, 10)):
        with pytest.raises(FrameError, match="more than one column called 'a'"):
            refuse(source, ("a", "b"))


def test_a_duplicated_column_of_a_csv_file(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("a,b,a\n1,2,3\n")
    source = open_rows(path)
    assert next(source.chunks(("b",), 10))["b"].tolist() == ["2"]
    with pytest.raises(FrameError, match="more than one column"):
        source.chunks(("a",), 10)


def test_names_that_are_not_text_cannot_be_wanted():
    source = open_rows(pd.DataFrame({0: [1.0], ("b", 1): [2.0], "c": [3.0]}))
    assert next(source.chunks(("c",), 10))["c"].tolist() == [3.0]
    with pytest.raises(FrameError, match="no column '0'"):
        source.chunks(("0",), 10)
