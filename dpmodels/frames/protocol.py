"""What every source of rows offers: its column names, then blocks of columns, or why not all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from dpmodels.errors import FrameError
from dpmodels.frames.coded import Cells

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
    ``"categorical"``; empty where it states none, or where types are inferred from cells. Not named
    are the types inside the type: the fields of a structure may have been keys in a row.
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

        Only what the container states counts. Files of text, and iterables, of which a table may be
        a single row, state nothing: their columns can hold anything. So can the column of several
        files if that of one of them can.
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
