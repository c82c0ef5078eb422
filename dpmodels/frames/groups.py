"""Distinct rows with their counts, as a database groups them.

*Theorem 68.* Let a source group its rows so that two rows are in one group only if every cell of
one is read as the corresponding cell of the other is. Then a statistic that is a sum over rows
equals the sum over groups of the group's count times what its row adds, and one record changes the
counts of at most two groups, each by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from dpmodels.frames.protocol import Chunk, RowSource
from dpmodels.typing import Integers


class Groups(NamedTuple):
    """Some of the distinct rows of a table, and how often each occurs, shape (rows,)."""

    chunk: Chunk
    counts: Integers


@runtime_checkable
class GroupedSource(RowSource, Protocol):
    """A table whose equal rows can be read as one."""

    def groups_exactly(self, name: str) -> bool:
        """Whether cells of a column that are grouped are read as the same; by its type alone."""
        ...

    def groups(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Groups]:
        """Distinct rows of the columns, at most `block_rows` at once; a row may come repeatedly."""
        ...
