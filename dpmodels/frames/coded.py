"""Columns whose cells are entries of a dictionary, as Arrow, Parquet, polars and pandas keep text.

What a cell becomes follows from its entry alone. So each entry is read once and the result is
handed to its cells; an entry that no cell has can change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpmodels.typing import Array

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
