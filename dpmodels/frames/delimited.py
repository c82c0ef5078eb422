"""CSV files, read as text line by line, so that what a line says is its own affair."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar, Final, TextIO

import numpy as np

from dpmodels.errors import FrameError
from dpmodels.frames.protocol import ANY, Chunk, Kind
from dpmodels.frames.require import require

# Possessive: nothing is ever tried twice, so a line takes time in proportion to its length.
_CELL: Final = re.compile(r'(?:^|,)(?:"([^"]*+(?:""[^"]*+)*+)"?+)?+([^,]*+)')


@dataclass(frozen=True, slots=True)
class DelimitedRows:
    r"""The rows of a CSV file: comma, double quote, UTF-8, names in the first line.

    A line is a row, whatever it says: it ends at its line feed, or at the end of the file, and
    quotes do not carry over it. Were it not so, a quote opened in one row would take the rows below
    into its cell, and one row would decide how many there are. No line raises. Short lines have
    empty cells at the end, surplus cells are ignored, a blank line is a row of empty cells,
    undecodable bytes become U+FFFD. All cells are text: nothing is inferred from a column. Carriage
    returns before a line feed are no part of a cell; any other control character is.

    A record that other software wrote over k lines, with line breaks inside its quotes, is k rows
    here. Tables with such cells are better written as Parquet.
    """

    path: Path
    names: tuple[str, ...] = field(repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def files(self) -> tuple[Path, ...]:
        """The file."""
        return (self.path,)

    @property
    def nrows(self) -> None:
        """Unknown: only reading the file would tell."""
        return None

    def kind(self, name: str) -> Kind:
        """Text, which can be anything."""
        return ANY

    def chunks(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        """Blocks of at most `rows` rows of the wanted columns, as text."""
        require(self, wanted)
        return self._read(wanted, rows)

    def _read(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        places = [self.names.index(name) for name in wanted]
        count = max(places, default=-1) + 1
        with _opened(self.path) as file:
            lines = islice(file, 1, None)
            while block := [_cells(line, count) for line in islice(lines, rows)]:
                yield {
                    name: np.array([row[at] if at < len(row) else "" for row in block], object)
                    for name, at in zip(wanted, places, strict=True)
                }


def open_delimited(path: Path) -> DelimitedRows:
    """Open a CSV file, of which the first line alone is read; it has to end at a line feed."""
    try:
        with _opened(path) as file:
            line = file.readline().rstrip("\r\n")
    except OSError:
        raise FrameError(f"{str(path)!r} cannot be opened: check its permissions") from None
    if "\r" in line:
        raise FrameError(
            f"the lines of {str(path)!r} end with carriage returns alone: write the file with line "
            'feeds, for example open(path, "w", newline="\\n")'
        )
    return DelimitedRows(path, tuple(_cells(line, len(line) + 1)) if line else ())


def _opened(path: Path) -> TextIO:
    return path.open(encoding="utf-8-sig", errors="replace", newline="\n")


def _cells(line: str, count: int) -> list[str]:
    """Split a line into its first `count` cells at least, where it has so many.

    A quote opens a cell as its first character, and the line's end closes it. What stands behind a
    closing quote belongs to the cell as it is.
    """
    line = line.rstrip("\r\n")
    if '"' not in line:
        return line.split(",", count)
    return [quoted.replace('""', '"') + rest for quoted, rest in _CELL.findall(line)]
