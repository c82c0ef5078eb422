"""CSV files, read as text record by record, so that a record says nothing of another."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import fspath
from pathlib import Path
from typing import ClassVar, Final, Literal, TextIO, get_args

import numpy as np

from dpmodels.errors import ArgumentError, FrameError, said
from dpmodels.frames.csv_records import blocks, first_record
from dpmodels.frames.protocol import ANY, Chunk, Kind
from dpmodels.frames.require import require
from dpmodels.frames.unchanged import FileState

CsvMode = Literal["records", "lines"]
"""What one row of a CSV file is: a record of RFC 4180, or a line."""

RECORDS: Final = {
    "records": "CSV records; quoted cells may span lines",
    "lines": "CSV lines; quotes do not span lines",
}


@dataclass(frozen=True, slots=True)
class CsvFile:
    """The path of a CSV file, and what one of its rows is."""

    path: Path
    mode: CsvMode

    def __fspath__(self) -> str:
        return fspath(self.path)


@dataclass(frozen=True, slots=True)
class DelimitedRows:
    r"""The rows of a CSV file: comma, double quote, UTF-8, names in the first record.

    With ``csv="records"`` a row is a record of RFC 4180, as programs that quote write it: pandas,
    R, spreadsheets, databases. A quote opens a quoted cell at the beginning of a cell only; quoted
    cells may contain commas, doubled quotes and line breaks. A quoted cell that is still open at
    the end of the file makes the last record an incomplete one, of which all cells are empty. With
    ``csv="lines"`` each line is a row, whatever quotes it has: for files whose writer does not
    quote, where a stray quote would take the rows below into its cell. No mixture of the two is
    safe for both kinds of files, so the curator says which, and the printed report repeats it.

    No record raises. Short records have empty cells at the end, surplus cells are ignored, a blank
    line is a row of empty cells, undecodable bytes become U+FFFD. What follows a closing quote
    belongs to the cell. All cells are text: nothing is inferred from a column. Carriage returns
    before a line feed belong to no unquoted cell. Of a cell of more than 65,536 characters that
    many are kept, and a digest of the whole: no level equals it, and long ids stay apart. Of cells
    that are not wanted nothing is kept.
    """

    path: Path
    names: tuple[str, ...] = field(repr=False)
    mode: CsvMode = "records"
    state: FileState | None = field(default=None, repr=False)
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
        positions = [self.names.index(name) for name in wanted]
        if self.state is not None:
            self.state.require_same()
        with _opened(self.path) as file:
            first_record(file, lines=self.mode == "lines")
            for block in blocks(file, positions, rows, lines=self.mode == "lines"):
                columns = zip(wanted, zip(*block, strict=True), strict=True)
                yield {name: np.array(cells, object) for name, cells in columns}
        if self.state is not None:
            self.state.require_same()


def csv_mode(given: object) -> CsvMode:
    """Return how a CSV file is read, as it was declared."""
    for mode in get_args(CsvMode):
        if isinstance(given, str) and given == mode:
            return mode  # type: ignore[no-any-return]
    raise ArgumentError(
        f'csv={said(given)}: expected "records", for files whose writer quotes cells (pandas, R, '
        'spreadsheets, databases), or "lines", where each line is a row'
    )


def open_delimited(path: Path, mode: CsvMode = "records") -> DelimitedRows:
    """Open a CSV file, of which the first record alone is read; lines end at line feeds."""
    try:
        state = FileState.of(path)
        with _opened(path) as file:
            names = first_record(file, lines=mode == "lines")
    except OSError:
        raise FrameError(f"{str(path)!r} cannot be opened: check its permissions") from None
    if any(re.search(r"\r(?!\n)", name) for name in names):
        raise FrameError(
            f"the lines of {str(path)!r} end with carriage returns alone: write the file with line "
            'feeds, for example open(path, "w", newline="\\n")'
        )
    return DelimitedRows(path, tuple(names) if names != [""] else (), mode, state)


def _opened(path: Path) -> TextIO:
    return path.open(encoding="utf-8-sig", errors="replace", newline="\n")
