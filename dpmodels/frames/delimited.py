"""CSV files, read as text line by line, so that a bad line stays alone."""

import csv
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar, Final, TextIO

import numpy as np

from dpmodels.errors import FrameError
from dpmodels.frames.protocol import Chunk
from dpmodels.frames.require import require

_LOOKAHEAD: Final = 1000
"""Lines that a row with line breaks inside its quotes may have."""

_LONGEST: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class DelimitedRows:
    """The rows of a CSV file: comma, double quote, UTF-8, names in the first line.

    No line raises. Short lines have empty cells at the end, surplus cells are ignored, a
    blank line is a row of empty cells (were it none, a row could change how many there
    are), undecodable bytes become U+FFFD. All cells are text: nothing
    is inferred from a column. A quoted cell may hold line breaks; a stray quote is kept
    to its line, unless a second stray quote below makes one well-formed row of both,
    which no reader can tell from a row that was meant.

    Parameters
    ----------
    path : Path
        The file; it is opened anew for every pass.
    names : tuple of str
        Its first line.
    """

    path: Path
    names: tuple[str, ...] = field(repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def nrows(self) -> None:
        """Unknown: only reading the file would tell."""
        return None

    def chunks(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        """Blocks of at most `rows` rows of the wanted columns, as text."""
        require(self, wanted)
        return self._read(wanted, rows)

    def _read(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        places = [self.names.index(name) for name in wanted]
        with _opened(self.path) as file:
            records = islice(_records(file, len(self.names)), 1, None)
            while block := _taken(records, rows):
                yield {
                    name: np.array([row[at] if at < len(row) else "" for row in block], object)
                    for name, at in zip(wanted, places, strict=True)
                }


def open_delimited(path: Path) -> DelimitedRows:
    """Open a CSV file, of which the first line alone is read.

    Raises
    ------
    FrameError
        The file cannot be opened.
    """
    try:
        with _opened(path) as file:
            return DelimitedRows(path, tuple(*_taken(_records(file, None), 1)))
    except OSError:
        raise FrameError(f"{str(path)!r} cannot be opened: check its permissions") from None


def _taken(records: Iterator[list[str]], rows: int) -> list[list[str]]:
    with _unlimited():
        return list(islice(records, rows))


def _opened(path: Path) -> TextIO:
    return path.open(encoding="utf-8-sig", errors="replace", newline="")


def _records(lines: Iterator[str], width: int | None) -> Iterator[list[str]]:
    """Split lines into the cells of each row; a blank line has none.

    A row with quotes ends where the quotes are closed, as RFC 4180 has it, if that
    takes it no further than its line or makes it a row of `width` cells (any number
    for None). Otherwise, as with a stray quote, the line is a row by itself.
    """
    source = _Lines(lines)
    reader = csv.reader(source, strict=True)
    while True:
        source.taken.clear()
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error:
            record = source.first_alone()
        if len(source.taken) > 1 and width not in (None, len(record)):
            record = source.first_alone()
        yield record


class _Lines(Iterator[str]):
    """Lines of which those taken since a row began can be given back, but the first."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._ahead: deque[str] = deque()
        self.taken: list[str] = []

    def __next__(self) -> str:
        if len(self.taken) >= _LOOKAHEAD:
            raise StopIteration
        line = self._ahead.popleft() if self._ahead else next(self._lines)
        self.taken.append(line)
        return line

    def first_alone(self) -> list[str]:
        """Split the first taken line by itself and give the others back."""
        first, *others = self.taken
        self._ahead.extendleft(reversed(others))
        self.taken = [first]
        return next(csv.reader([first.rstrip("\r\n")]))


@contextmanager
def _unlimited() -> Iterator[None]:
    """Lift the csv module's limit on the length of a cell, which is one for the process."""
    limit = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
