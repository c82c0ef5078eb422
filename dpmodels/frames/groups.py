"""Distinct rows with their counts, as a database groups them.

*Theorem 68 (a).* Let a source group its rows so that two rows are in one group only if each cell
of one is read as the cell of the other is. Then a statistic that is a sum over rows equals the sum
over groups of the count times what one row adds. A record that is added or removed changes one
count by one; one that is replaced changes two at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeGuard

import numpy as np

from dpmodels.frames.coded import decoded
from dpmodels.frames.engine import Engine
from dpmodels.frames.protocol import Chunk, RowSource
from dpmodels.typing import Integers


class Groups(NamedTuple):
    """Some of the distinct rows of a table, and how often each occurs, shape (rows,)."""

    chunk: Chunk
    counts: Integers


class GroupedSource(RowSource, Protocol):
    """A table whose equal rows can be read as one."""

    def repeats(self, name: str) -> bool:
        """Whether declared values are few cells to the source; by the column's type alone."""
        ...

    def groups(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Groups]:
        """Distinct rows of the columns, at most `block_rows` at once; a row may come repeatedly."""
        ...


def groups_rows(source: RowSource) -> TypeGuard[GroupedSource]:
    """Whether a source groups equal rows; nothing is read."""
    return hasattr(type(source), "groups")


def groups_of(engine: Engine, columns: tuple[str, ...], block_rows: int) -> Iterator[Groups]:
    """Read the distinct rows of some columns, in an order that does not depend on chance."""
    keys = ", ".join(map(engine.group_key, columns))
    order = ", ".join(str(at) for at in range(1, len(columns) + 1))
    query = f"SELECT {keys}, count(*) FROM {engine.table} GROUP BY {order} ORDER BY {order}"
    names = tuple(map(str, range(len(columns) + 1)))
    for chunk in engine.chunks(query, names, block_rows):
        *cells, counts = (chunk[name] for name in names)
        yield Groups(dict(zip(columns, cells, strict=True)), decoded(counts).astype(np.int64))
