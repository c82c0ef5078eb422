"""CSV text as records: those of RFC 4180, or one a line."""

import re
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final, TextIO

MOST_CHARACTERS: Final = 2**16
"""Of a cell. A longer one is these characters and a digest of all, which no other cell equals."""

# Choices: characters read at a time, at most those of a cell; and read for one block.
_PIECE: Final = MOST_CHARACTERS
_BLOCK_CHARACTERS: Final = 2**26

# Possessive: nothing is ever tried twice, so a line takes time in proportion to its length.
_CELL: Final = re.compile(r'(?:^|,)(?:"([^"]*+(?:""[^"]*+)*+)"?+)?+([^,]*+)')


def blocks(
    file: TextIO, positions: Sequence[int], rows: int, *, lines: bool
) -> Iterator[list[tuple[str, ...]]]:
    """Read the cells at `positions` of up to `rows` records at a time, missing ones empty.

    With `lines` a line feed ends a record in quotes too.
    """
    count, wanted = max(positions, default=-1) + 1, frozenset(positions)
    pick = _picked(positions)
    block: list[tuple[str, ...]] = []
    room = _BLOCK_CHARACTERS
    for piece in iter(partial(file.readline, _PIECE), ""):
        if '"' not in piece and piece[-1] == "\n":
            cells = piece.rstrip("\r\n").split(",", count)
            room -= len(piece)
        else:
            cells = _cells(piece, file, wanted, lines=lines)
            room -= sum(map(len, cells))
        if len(cells) < count:
            cells.extend([""] * (count - len(cells)))
        block.append(pick(cells))
        if len(block) == rows or room < 0:
            yield block
            block, room = [], _BLOCK_CHARACTERS
    if block:
        yield block


def first_record(file: TextIO, *, lines: bool) -> list[str]:
    """Read all cells of the first record; none of an empty file."""
    piece = file.readline(_PIECE)
    return _cells(piece, file, range(_PIECE), lines=lines) if piece else []


def _picked(positions: Sequence[int]) -> Callable[[list[str]], tuple[str, ...]]:
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda cells: tuple(cells[at] for at in positions)


def _cells(piece: str, file: TextIO, wanted: Container[int], *, lines: bool) -> list[str]:
    """Split the record that begins with a piece, of which the file may have more."""
    cells = _split(piece, lines=lines) if piece.endswith("\n") else None
    return _LongRecord(wanted, lines=lines).read(piece, file) if cells is None else cells


def _split(line: str, *, lines: bool) -> list[str] | None:
    """Split a whole line; None where its record goes on in the next."""
    found = _CELL.findall(line.rstrip("\r\n") if lines else line)
    if not lines:
        quoted, rest = found[-1]
        if not rest.endswith("\n"):
            return None
        found[-1] = quoted, rest.rstrip("\r\n")
    return [quoted.replace('""', '"') + rest for quoted, rest in found]


class _LongRecord:
    """A record read piece by piece: several lines, or cells of any length.

    Memory is that of the wanted cells, each as far as it is kept.
    """

    def __init__(self, wanted: Container[int], *, lines: bool) -> None:
        self._wanted = wanted
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
        if len(self._cells) in self._wanted:
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
        self._digest: Any = None

    def add(self, text: str) -> None:
        """Append text."""
        if self._digest is None and len(text) > self._room:
            self._digest = sha256("".join(self._parts).encode())
        if self._digest is not None:
            self._digest.update(text.encode())
        if text and self._room:
            self._parts.append(text[: self._room])
            self._room -= len(self._parts[-1])

    @property
    def text(self) -> str:
        """The cell, or what stands for a longer one."""
        digest = "" if self._digest is None else self._digest.hexdigest()
        return "".join(self._parts) + digest
