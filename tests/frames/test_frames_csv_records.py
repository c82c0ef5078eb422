"""CSV records: RFC 4180 against a slow reference, by brute force, in blocks of any size."""

import csv
import io
from itertools import product

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.frames import delimited, open_rows
from dpmodels.frames.delimited import MOST_CHARACTERS, CsvFile, blocks, first_record


def reference(text, *, lines):
    """Read records one character at a time."""
    if lines:
        parts = text.split("\n")
        return [reference_line(part.rstrip("\r")) for part in (parts if parts[-1] else parts[:-1])]
    records, rest = [], text
    while rest:
        cells, end = [], ","
        while end == ",":
            cell, end, rest = reference_cell(rest)
            cells.append(cell)
        records.append([] if end == "open" else cells)
    return records


def reference_cell(text):
    """Return the first cell, what ends it, and the text behind that."""
    quoted = ""
    if text[:1] == '"':
        text = text[1:]
        while text and (text[0] != '"' or text[:2] == '""'):
            quoted, text = quoted + text[0], text[2 if text[0] == '"' else 1 :]
        if not text:
            return quoted, "open", ""
        text = text[1:]
    size = next((at for at, character in enumerate(text) if character in ",\n"), len(text))
    rest, end = text[:size], text[size : size + 1]
    return quoted + (rest if end == "," else rest.rstrip("\r")), end, text[size + 1 :]


def reference_line(line):
    """Read a line as a record that it ends, in quotes too."""
    closed = reference(line + "\n", lines=False)
    if closed and closed[0]:
        return closed[0]
    # Still in quotes: what closes them here is no text.
    opened = reference(line + '"\n', lines=False)
    return opened[0]


def parsed(text, count=3, *, lines=False, rows=2):
    return [
        list(row)
        for block in blocks(io.StringIO(text, newline="\n"), range(count), rows, lines=lines)
        for row in block
    ]


def padded(records, count=3):
    return [[*record, "", "", ""][:count] for record in records]


@pytest.mark.parametrize("lines", [False, True], ids=["records", "lines"])
@pytest.mark.parametrize("piece", [1, 2, 3, MOST_CHARACTERS])
def test_all_short_texts_are_read_as_by_the_reference(monkeypatch, piece, lines):
    monkeypatch.setattr(delimited, "_PIECE", piece)
    longest = 6 if piece in (2, MOST_CHARACTERS) else 5
    for size in range(longest + 1):
        for characters in product('a,"\n\r', repeat=size):
            text = "".join(characters)
            assert parsed(text, lines=lines) == padded(reference(text, lines=lines)), repr(text)


@pytest.mark.parametrize("piece", [1, 2, 3])
def test_cells_that_are_not_wanted_change_nothing(monkeypatch, piece):
    monkeypatch.setattr(delimited, "_PIECE", piece)
    for characters in product('a,"\n', repeat=5):
        text = "".join(characters)
        file = io.StringIO(text, newline="\n")
        second = [row for block in blocks(file, [1], 3, lines=False) for row in block]
        assert second == [(row[1],) for row in padded(reference(text, lines=False))]


def test_long_cells_keep_their_identity(monkeypatch):
    monkeypatch.setattr(delimited, "MOST_CHARACTERS", 3)
    short, long = ["", "a", "aa", "aab"], ["aabb", "aabc", "bbbb", "aabb" * 9]
    cells = [*short, *long]
    for piece in (1, 2, 3):
        monkeypatch.setattr(delimited, "_PIECE", piece)
        for written in ("".join(f"{cell},{cell}\r\n" for cell in cells), *_quoted(cells)):
            first, second = zip(*parsed(written, 2), strict=True)
            assert first == second
            assert list(first[: len(short)]) == short
            assert len(set(first)) == len(cells)
            assert all(len(cell) == 3 + 64 for cell in first[len(short) :])


def _quoted(cells):
    yield "".join(f'"{cell}","{cell}"\n' for cell in cells)


def test_long_cells_are_missing_and_do_not_stay_in_memory(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f'x,y\n"{"1" * MOST_CHARACTERS}1",2\na\nb\n')
    (chunk,) = open_rows(path).chunks(("x", "y"), 9)
    assert [len(cell) for cell in chunk["x"]] == [MOST_CHARACTERS + 64, 1, 1]
    (chunk,) = open_rows(path).chunks(("y",), 9)
    assert chunk["y"].tolist() == ["2", "", ""]


PLAIN = ["", "a", 'a"', '"', '""', ",", "\n", '"\n', '\n"', "\r\n", '",\n"', 'a\n"b",c\n']
WRITERS = {
    "minimal": {"quoting": csv.QUOTE_MINIMAL},
    "all": {"quoting": csv.QUOTE_ALL},
    "text": {"quoting": csv.QUOTE_NONNUMERIC},
    "line feeds": {"quoting": csv.QUOTE_MINIMAL, "lineterminator": "\n"},
}


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_a_changed_record_changes_its_row_alone(tmp_path, words):
    rows = [["1", "x"], ["2", "y"], ["3", "z"]]
    for at, cell in product(range(3), PLAIN):
        changed = [list(row) for row in rows]
        changed[at] = [cell, cell]
        file = io.StringIO(newline="")
        csv.writer(file, **words).writerows([["a", "b"], *changed])
        assert _rows(tmp_path, file.getvalue()) == [tuple(row) for row in changed]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
def test_records_that_pandas_writes(tmp_path, quoting):
    cells = [*PLAIN, "a\rb"]
    table = pd.DataFrame({"a": cells, "b": cells[::-1]})
    text = table.to_csv(index=False, quoting=quoting)
    assert _rows(tmp_path, text) == list(table.itertuples(index=False, name=None))


def test_any_change_of_a_line_changes_that_row_alone():
    rows = ["1,x", "2,y", "3,z"]
    for at, size in product(range(3), range(5)):
        for characters in product('a,"\r', repeat=size):
            changed = [*rows[:at], "".join(characters), *rows[at + 1 :]]
            got = parsed("\n".join([*changed, ""]), 2, lines=True)
            assert len(got) == 3
            assert got[:at] + got[at + 1 :] == [
                row.split(",") for row in (*rows[:at], *rows[at + 1 :])
            ]


def _rows(folder, text):
    path = folder / "t.csv"
    path.write_bytes(text.encode())
    chunks = open_rows(path).chunks(("a", "b"), 2)
    return [row for chunk in chunks for row in zip(chunk["a"], chunk["b"], strict=True)]


def test_names_in_quotes_and_over_several_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbf"a, b","c\nd","e\r\nf"\r\n1,2,3\r\n')
    source = open_rows(path)
    assert source.names == ("a, b", "c\nd", "e\r\nf")
    (chunk,) = source.chunks(("c\nd", "a, b"), 5)
    assert {name: cells.tolist() for name, cells in chunk.items()} == {"c\nd": ["2"], "a, b": ["1"]}


def test_a_header_in_quotes_without_end_names_no_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,"b\n1,2\n')
    assert open_rows(path).names == ()
    assert open_rows(CsvFile(path, "lines")).names == ("a", "b")


def test_an_open_quote_makes_the_last_record_incomplete(tmp_path):
    assert _rows(tmp_path, 'a,b\n1,2\n3,"4\n5,6\n') == [("1", "2"), ("", "")]


@pytest.mark.parametrize("line", ['a""","', 'abcd,"', '"a\n\n\n\n\n'], ids=repr)
def test_quotes_and_line_breaks_take_linear_time(line):
    """A cell of n characters takes time in proportion to n: no step reads a text again."""
    reads = []

    class Counted(io.StringIO):
        def readline(self, *size):
            reads.append(size)
            return super().readline(*size)

    text = line * 20_000
    assert len(parsed_file(Counted(text, newline="\n"))) >= 1
    assert len(reads) <= text.count("\n") + len(text) // MOST_CHARACTERS + 3


def parsed_file(file):
    return [row for block in blocks(file, range(2), 1000, lines=False) for row in block]


def test_first_record_of_an_empty_file():
    assert first_record(io.StringIO(""), lines=False) == []


@pytest.mark.expensive
def test_free_text_with_line_breaks_adds_no_rows(tmp_path):
    table = pd.DataFrame({"x": np.arange(100), "note": "ok"})
    table.loc[7, "note"] = "\n".join("31,\n" * 15)
    table.to_csv(tmp_path / "t.csv", index=False)
    book = dp.codebook(x=(0, 100))
    fit = dp.dp_mean("~ x", tmp_path / "t.csv", codebook=book, eps=1.0)
    assert fit.release.rows == 100
    assert "Records:    CSV records" in str(fit.summary())
    lines = dp.dp_mean("~ x", tmp_path / "t.csv", codebook=book, eps=1.0, csv="lines")
    assert lines.release.rows > 100
    assert "Records:    CSV lines" in str(lines.summary())
