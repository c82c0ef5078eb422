"""Rows in memory between the passes of one fit, where they fit a limit.

Whether they are there changes the time of a pass and nothing else: the parts are those that reading
gave, in the same order. They are never written to disk, and go with the rows they are of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NoReturn

from dpmodels.errors import PrivacyError

if TYPE_CHECKING:
    from dpmodels.design.rows import Part

MOST_BYTES: Final = 400 * 2**20
"""A choice: 10^6 rows of 50 numbers fit, and a process stays below 700 MB beside them."""


class KeptParts:
    """Parts of rows as the first complete reading gave them; shows nothing.

    `key` is what they are for: a coded formula, or None for rows as they are read.
    """

    __slots__ = ("_all_fit", "_parts", "key")

    def __init__(self, key: object) -> None:
        self.key = key
        self._parts: list[Part] | None = None
        self._all_fit = True

    def __repr__(self) -> str:
        return "<KeptParts, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("rows cannot be pickled or copied")

    def through(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield the parts that are in memory; else those that are read, to be kept if all fit."""
        if self._parts is not None:
            yield from self._parts
            return
        kept: list[Part] = []
        size = 0
        for part in parts:
            size += part.nbytes
            self._all_fit = self._all_fit and size <= MOST_BYTES
            if self._all_fit:
                kept.append(part)
            else:
                kept.clear()
            yield part
        if self._all_fit:
            self._parts = kept
