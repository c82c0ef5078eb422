"""CSV files, read as text record by record, so that no record depends on another."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from operator import itemgetter
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TextIO, get_args

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import ArgumentError, FrameError, quoted
from dpmodels.frames.columns import require
from dpmodels.frames.engine import damaged, streamed
from dpmodels.frames.protocol import Chunk, FileState, Untyped

if TYPE_CHECKING:
    from _hashlib import HASH

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
class DelimitedRows(Untyped):
    r"""The rows of a CSV file: comma, double quote, UTF-8, names in the first record.

    With ``csv="records"`` a row is a record of RFC 4180, as programs that quote write it: pandas,
    R, spreadsheets, databases. A quote opens a quoted cell at the beginning of a cell only; quoted
    cells may contain commas, doubled quotes and line breaks. A quoted cell that is still open at
    the end of the file makes the last record an incomplete one, of which all cells are empty. With
    ``csv="lines"`` each line is a row, whatever quotes it has: for files whose writer does not
    quote, where a stray quote would take the rows below into its cell. No mixture of the two is
    safe for both kinds of files, so the curator says which, and the printed report repeats it.

    No record raises. Short records have empty cells at the end, surplus cells are ignored, a blank
    line is a row of empty cells. What follows a closing quote belongs to the cell. All cells are
    text, or bytes where they are not UTF-8: nothing is inferred from a column. Carriage returns
    before a line feed belong to no unquoted cell. A cell of more than 65,536 characters keeps that
    many and a digest of all: no level equals it, and long ids stay distinct. Unused cells are not
    kept.
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

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns, as text."""
        require(self, columns)
        return self._read(columns, block_rows)

    def _read(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        positions = [self.names.index(name) for name in columns]
        if self.state is not None:
            self.state.require_same()
        with _opened(self.path) as file:
            lines = self.mode == "lines"
            first_record(file, lines=lines)
            read = partial(blocks, file, positions, block_rows, lines=lines)
            for block in streamed(read, partial(damaged, repr(str(self.path)))):
                cells_by_column = zip(columns, zip(*block, strict=True), strict=True)
                yield {name: _array(cells) for name, cells in cells_by_column}
        if self.state is not None:
            self.state.require_same()


def csv_mode(value: object) -> CsvMode:
    """Return how a CSV file is read, as it was declared."""
    for mode in get_args(CsvMode):
        if isinstance(value, str) and value == mode:
            return mode  # type: ignore[no-any-return]
    raise ArgumentError(
        f'csv={quoted(value)}: expected "records", for files whose writer quotes cells (pandas, R, '
        'spreadsheets, databases), or "lines", where each line is a row'
    )


def open_delimited(path: Path, mode: CsvMode = "records") -> DelimitedRows:
    """Open a CSV file, of which the first record alone is read; lines end at line feeds."""
    try:
        state = FileState.of(path)
        with _opened(path) as file:
            first = first_record(file, lines=mode == "lines")
            names = [name.encode("utf-8", _ESCAPED).decode("utf-8", "replace") for name in first]
    except (OSError, EOFError, zlib.error):
        raise FrameError(
            f"{str(path)!r} cannot be opened: check its permissions, and whether it is what its "
            "suffix says"
        ) from None
    if any(re.search(r"\r(?!\n)", name) for name in names):
        raise FrameError(
            f"the lines of {str(path)!r} end with carriage returns alone: write the file with line "
            'feeds, for example open(path, "w", newline="\\n")'
        )
    return DelimitedRows(path, tuple(names) if names != [""] else (), mode, state)


def is_delimited(path: Path) -> bool:
    """Whether a path is that of a CSV file, compressed or not."""
    return path.name.lower().endswith((".csv", ".csv.gz"))


def _opened(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=_ESCAPED, newline="\n")
    return path.open(encoding="utf-8-sig", errors=_ESCAPED, newline="\n")


# How undecodable bytes are kept while a file is read.
_ESCAPED: Final = "surrogateescape"


def _array(cells: tuple[str, ...]) -> NDArray[np.object_]:
    """Return cells as objects, as bytes where they are not UTF-8: ids of different bytes differ."""
    is_text = all(map(str.isascii, cells))
    return np.array(cells if is_text else list(map(_decoded, cells)), object)


def _decoded(cell: str) -> str | bytes:
    cell_bytes = cell.encode("utf-8", _ESCAPED)
    try:
        return cell_bytes.decode()
    except UnicodeDecodeError:
        return cell_bytes


# CSV text as records: those of RFC 4180, or one a line.

MOST_CHARACTERS: Final = 2**16
"""Of a cell. A longer one is these characters and a digest of all, which no other cell equals."""

# Choices: characters read at a time, at most those of a cell; and read for one block.
_PIECE: Final = MOST_CHARACTERS
_BLOCK_CHARACTERS: Final = 2**26

# Possessive: nothing is ever tried twice, so a line takes time in proportion to its length.
_CELL: Final = re.compile(r'(?:^|,)(?:"([^"]*+(?:""[^"]*+)*+)"?+)?+([^,]*+)')


def blocks(
    file: TextIO, positions: Sequence[int], block_rows: int, *, lines: bool
) -> Iterator[list[tuple[str, ...]]]:
    """Read the cells at `positions` of up to `block_rows` records at a time, missing ones empty.

    With `lines` a line feed ends a record in quotes too.
    """
    count, selected = max(positions, default=-1) + 1, frozenset(positions)
    pick: Callable[[list[str]], tuple[str, ...]] = (
        itemgetter(*positions)
        if len(positions) > 1
        else lambda cells: tuple(cells[at] for at in positions)
    )
    block: list[tuple[str, ...]] = []
    budget = _BLOCK_CHARACTERS
    for piece in iter(partial(file.readline, _PIECE), ""):
        if '"' not in piece and piece[-1] == "\n":
            cells = piece.rstrip("\r\n").split(",", count)
            budget -= len(piece)
        else:
            cells = _cells(piece, file, selected, lines=lines)
            budget -= sum(map(len, cells))
        if len(cells) < count:
            cells.extend([""] * (count - len(cells)))
        block.append(pick(cells))
        if len(block) == block_rows or budget < 0:
            yield block
            block, budget = [], _BLOCK_CHARACTERS
    if block:
        yield block


def first_record(file: TextIO, *, lines: bool) -> list[str]:
    """Read all cells of the first record; none of an empty file."""
    piece = file.readline(_PIECE)
    return _cells(piece, file, range(_PIECE), lines=lines) if piece else []


def _cells(piece: str, file: TextIO, positions: Container[int], *, lines: bool) -> list[str]:
    """Split the record that begins with a piece, of which the file may have more."""
    cells = _split(piece, lines=lines) if piece.endswith("\n") else None
    return _LongRecord(positions, lines=lines).read(piece, file) if cells is None else cells


def _split(line: str, *, lines: bool) -> list[str] | None:
    """Split a whole line; None where its record goes on in the next."""
    pairs = _CELL.findall(line.rstrip("\r\n") if lines else line)
    if not lines:
        quoted, rest = pairs[-1]
        if not rest.endswith("\n"):
            return None
        pairs[-1] = quoted, rest.rstrip("\r\n")
    return [quoted.replace('""', '"') + rest for quoted, rest in pairs]


class _LongRecord:
    """A record read piece by piece: several lines, or cells of any length.

    Memory holds the selected cells, each up to its limit.
    """

    def __init__(self, positions: Container[int], *, lines: bool) -> None:
        self._positions = positions
        self._lines = lines
        self._cells: list[str] = []
        self._cell = _Cell()
        self._step = _LongRecord._start

    def read(self, piece: str, file: TextIO) -> list[str]:
        """Read from the first piece to the end of the record, or of the file."""
        ending = ""
        while piece:
            text = ending + piece
            body = text.rstrip("\r\n")
            ending = text[len(body) :]
            self._feed(body)
            ended = ending.endswith("\n")
            if ended and (self._lines or not self._open):
                break
            if ended or len(ending) > MOST_CHARACTERS:
                self._feed(ending)
                ending = ""
            piece = file.readline(_PIECE)
        if self._open and not self._lines:
            return []
        self._end_cell()
        return self._cells

    @property
    def _open(self) -> bool:
        return self._step is _LongRecord._quoted

    def _feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            at = self._step(self, text, at)

    def _start(self, text: str, at: int) -> int:
        opens = text[at] == '"'
        self._step = _LongRecord._quoted if opens else _LongRecord._unquoted
        return at + opens

    def _quoted(self, text: str, at: int) -> int:
        stop = text.find('"', at)
        self._keep(text[at:] if stop < 0 else text[at:stop])
        if stop < 0:
            return len(text)
        self._step = _LongRecord._after_quote
        return stop + 1

    def _after_quote(self, text: str, at: int) -> int:
        doubled = text[at] == '"'
        self._step = _LongRecord._quoted if doubled else _LongRecord._unquoted
        if doubled:
            self._keep('"')
        return at + doubled

    def _unquoted(self, text: str, at: int) -> int:
        stop = text.find(",", at)
        self._keep(text[at:] if stop < 0 else text[at:stop])
        if stop < 0:
            return len(text)
        self._end_cell()
        return stop + 1

    def _keep(self, text: str) -> None:
        if len(self._cells) in self._positions:
            self._cell.add(text)

    def _end_cell(self) -> None:
        self._cells.append(self._cell.text)
        self._cell = _Cell()
        self._step = _LongRecord._start


class _Cell:
    """A cell that grows, of which at most `MOST_CHARACTERS` and a digest are kept."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = MOST_CHARACTERS
        self._digest: HASH | None = None

    def add(self, text: str) -> None:
        """Append text."""
        if self._digest is None and len(text) > self._room:
            self._digest = sha256("".join(self._parts).encode("utf-8", _ESCAPED))
        if self._digest is not None:
            self._digest.update(text.encode("utf-8", _ESCAPED))
        if text and self._room:
            self._parts.append(text[: self._room])
            self._room -= len(self._parts[-1])

    @property
    def text(self) -> str:
        """The cell, or what stands for a longer one."""
        digest = "" if self._digest is None else self._digest.hexdigest()
        return "".join(self._parts) + digest
