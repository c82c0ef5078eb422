"""Parts of rows as they are read, and the memory that they may stay in between passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import PrivacyError
from dpmodels.typing import Array, Floats


class Part(NamedTuple):
    """A chunk of rows: numeric columns, which rows count, the places they take, and their persons.

    `counted` is None if all count, `places` if each takes one, and `persons` without persons; else
    persons are numbered from 0, and -1 means no person. A row that does not count is treated as
    incomplete. `coded` has the columns of a coded formula, each of shape (rows,), where they are in
    memory; then `columns` has only those that are used beside them.
    """

    columns: Mapping[str, Floats]
    counted: NDArray[np.bool_] | None
    places: Array | None
    persons: Array | None = None
    coded: Sequence[Floats] | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        if self.coded is not None:
            return len(self.coded[0])
        return len(next(iter(self.columns.values())))

    @property
    def nbytes(self) -> int:
        """Memory of the rows."""
        beside = (self.counted, self.places, self.persons)
        arrays = (*self.columns.values(), *beside, *(self.coded or ()))
        return sum(int(array.nbytes) for array in arrays if array is not None)

    @property
    def taken(self) -> int:
        """Number of places that the rows take."""
        return self.rows if self.places is None else int(self.places.sum())

    def cut(self, at: int, n_rows: int) -> Part:
        """Return the rows from a position on."""
        return self.at(slice(at, at + n_rows))

    def at(self, rows: slice | NDArray[np.intp]) -> Part:
        """Return the rows at positions, each as often as it is named."""
        return Part(
            {name: column[rows] for name, column in self.columns.items()},
            None if self.counted is None else self.counted[rows],
            None if self.places is None else self.places[rows],
            None if self.persons is None else self.persons[rows],
            None if self.coded is None else [column[rows] for column in self.coded],
        )


# Rows in memory between the passes of one fit, where they fit a limit. Whether they are there
# changes the time of a pass and nothing else: the parts are those that reading gave, in the same
# order. They are never written to disk, and go with the rows they are of.

MOST_BYTES: Final = 400 * 2**20
"""A choice: 10^6 rows of 50 numbers fit, and a process stays below 700 MB beside them."""


class KeptParts:
    """Parts of rows as the first complete reading gave them; shows nothing.

    `key` is what they are for: a coded formula, or None for rows as they are read. Where the number
    of rows is given, none stay if the first part says that they will not fit.
    """

    __slots__ = ("_n_rows", "_pending", "_size", "all_fit", "key", "parts")

    def __init__(self, key: object, n_rows: int | None = None) -> None:
        self.key = key
        self._n_rows = n_rows
        self.parts: list[Part] | None = None  # None before a complete reading
        self.all_fit = True

    def __repr__(self) -> str:
        return "<KeptParts, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("rows cannot be pickled or copied")

    def start(self) -> None:
        """Start a reading."""
        self._pending: list[Part] = []
        self._size = 0

    def add(self, part: Part) -> None:
        """Keep a part that was read, if all fit."""
        self._size += part.nbytes
        expected = part.nbytes / max(part.rows, 1) * (self._n_rows or 0)
        self.all_fit = self.all_fit and max(self._size, expected) <= MOST_BYTES
        if self.all_fit:
            self._pending.append(part)
        else:
            self._pending.clear()

    def complete(self) -> None:
        """Let later passes have the parts, since all were read."""
        if self.all_fit:
            self.parts = self._pending

    def through(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield the parts that are in memory; else those that are read, to be kept if all fit."""
        if self.parts is not None:
            yield from self.parts
            return
        self.start()
        for part in parts:
            self.add(part)
            yield part
        self.complete()
