"""What every source of rows offers: its column names, then blocks of cells, or why not all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpmodels.errors import FrameError
from dpmodels.typing import Array

# Columns whose cells are entries of a dictionary, as Arrow, Parquet, polars and pandas keep text.
#
# What a cell becomes follows from its entry alone. So each entry is read once and the result is
# handed to its cells; an entry that no cell has can change nothing.

Scalar = TypeVar("Scalar", bound=np.generic)


class Coded:
    """n cells of a column, as positions in a dictionary of entries.

    Read like an array of objects (`len`, slices, masks, ``np.asarray``), it decodes its cells.
    """

    __slots__ = ("entries", "positions")

    def __init__(self, entries: Array, positions: NDArray[np.integer]) -> None:
        self.entries = entries  # Shape (k,), of any type; they may repeat, and be masked
        self.positions = positions  # Shape (n,), from 0 to k, which stands for a missing cell

    def __repr__(self) -> str:
        return "<Coded, not shown>"

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, rows: slice | Array) -> Coded:
        return Coded(self.entries, self.positions[rows])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        objects: NDArray[np.object_] = np.fromiter(
            (*np.ma.getdata(self.entries), None), object, len(self.entries) + 1
        )
        objects[:-1][np.ma.getmaskarray(self.entries)] = None
        return np.asarray(objects[self.positions], dtype=dtype)

    def __iter__(self) -> Iterator[object]:
        return iter(self.tolist())

    def tolist(self) -> list[object]:
        """Return the cells, None where one is missing."""
        return cast("list[object]", np.asarray(self).tolist())

    def compact(self) -> Coded:
        """Return the same cells with no more entries than cells."""
        if len(self.entries) <= len(self):
            return self
        occurring, positions = np.unique(self.positions, return_inverse=True)
        return Coded(self.entries[occurring[occurring < len(self.entries)]], positions)

    def by_entry(
        self, read: Callable[[Array], NDArray[Scalar]], missing: object
    ) -> NDArray[Scalar]:
        """Read entries, and return for each cell what its entry is, or `missing`."""
        cells = self.compact()
        values = read(cells.entries)
        table = np.empty(len(values) + 1, dtype=values.dtype)
        table[:-1], table[-1] = values, missing
        return np.take(table, cells.positions)


def coded(entries: Array, positions: Array) -> Coded:
    """Code cells; a position outside the dictionary, as a damaged file may have, is missing."""
    outside = (positions < 0) | (positions >= len(entries))
    return Coded(entries, np.where(outside, len(entries), positions).astype(np.intp, copy=False))


Cells = Array | Coded
"""Cells of a column, shape (n,)."""


def decoded(cells: Cells) -> Array:
    """Return cells as an array, masked where it was."""
    return np.asarray(cells) if isinstance(cells, Coded) else cells


def joined(parts: Sequence[Coded]) -> Coded:
    """Join blocks of a column; their entries are of one type."""
    compact = [part.compact() for part in parts]
    entries: Array = np.ma.concatenate(  # type: ignore[no-untyped-call]
        [part.entries for part in compact]
    )
    starts = np.cumsum([0, *(len(part.entries) for part in compact[:-1])])
    positions = [
        np.where(part.positions == len(part.entries), len(entries), part.positions + start)
        for part, start in zip(compact, starts.tolist(), strict=True)
    ]
    masked = np.ma.getmaskarray(entries).any()
    return Coded(entries if masked else np.ma.getdata(entries), np.concatenate(positions))


Chunk = Mapping[str, Cells]


class Holds(IntEnum):
    """Cells of what sort a column can hold, fewest first."""

    NOTHING = 0
    """Neither numbers, dates nor text."""
    DAYS = 1
    """Dates and times."""
    WHOLE = 2
    """Whole numbers and logical values."""
    ANYTHING = 3
    """Numbers or text, or nobody knows before the cells are read."""


class Kind(NamedTuple):
    """What a column can hold, and the name of its type for messages.

    `declares` is the type of variable that the container states, such as ``"numeric"`` or
    ``"categorical"``; empty where it states none, or where types may be inferred from cells. Not
    named are the types inside the type: the fields of a structure may have been keys in a row.
    """

    holds: Holds
    name: str = ""
    declares: str = ""


ANY: Final = Kind(Holds.ANYTHING)


def kind_of_parts(kinds: Iterable[Kind]) -> Kind:
    """Combine the kinds of the parts of a column."""
    parts = tuple(kinds)
    is_mixed = {Holds.DAYS, Holds.WHOLE} <= {part.holds for part in parts}
    declared = {part.declares for part in parts}
    combined = ANY if is_mixed else max(parts)
    return combined if len(declared) == 1 else combined._replace(declares="")


class RowSource(Protocol):
    """A table whose rows can be read in consecutive blocks.

    A name that the table holds twice is listed twice.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in the order of the table."""
        ...

    @property
    def nrows(self) -> int | None:
        """The number of rows, or None where only reading them would tell."""
        ...

    @property
    def rereadable(self) -> bool:
        """Whether `chunks` may be called again, for the same rows."""
        ...

    def kind(self, name: str) -> Kind:
        """Tell what the column of that name can hold by its type, without a look at a cell.

        Only what a file or a database states counts. Tables in memory, queries and files of text,
        whose types may be inferred from cells, state nothing: their columns can hold anything. So
        can the column of several files if that of one of them can.
        """
        ...

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows: name to a 1-D array of any dtype, all of one length.

        Text may come as `Coded` cells, which are read once for each entry of their dictionary.
        Without a column the blocks are empty mappings, without the number of rows. The arrays may
        be views of the user's data: never write to them. A `FrameError` comes at the call, before a
        row is read, where a column is missing or is there twice.
        """
        ...


class Untyped:
    """A table whose types may follow from its cells, so that its columns can hold anything."""

    __slots__ = ()

    def kind(self, name: str) -> Kind:
        """Anything; the tables to come may also have other cells than the first."""
        return ANY


_CHARGED: Final = (
    "Nothing was released. A ledger is charged before the first row is read, so it has been, and "
    "remains so"
)


def unfinished(what: str) -> str:
    """Return the message for rows that could not be read to the end.

    `what` failed, and what to do; it may name files and containers, never a cell.
    """
    return what if what.endswith(_CHARGED) else f"{what}. {_CHARGED}"


def before_charge(error: FrameError) -> str:
    """Return the same message for rows that were read before a charge, to count persons."""
    return str(error).replace(_CHARGED, "Nothing was charged")


# What shows that a file is the one that was opened: its size, its time and its number.


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a file when it was opened; shows its path alone."""

    path: Path
    name: str
    facts: tuple[int, ...]

    @classmethod
    def of(cls, path: Path, name: str = "") -> FileState:
        """Return the present state of a file; `name` is what messages call it."""
        return cls(path, name or repr(str(path)), _facts(path))

    def require_same(self) -> None:
        """Refuse a file that was changed or replaced since: a FrameError after the charge."""
        try:
            same = _facts(self.path) == self.facts
        except OSError:
            same = False
        if not same:
            raise FrameError(
                unfinished(
                    f"{self.name} was changed or replaced since it was opened: give a file that "
                    "stays as it is"
                )
            )


def _facts(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev
