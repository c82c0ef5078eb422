"""Whose rows are and the places they take, kept from the first reading to the later ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Integers

# A choice: tables of so many rows at most, in 8 bytes a row at the first reading, then in 5.
_MOST_ROWS: Final = 2**24


class Standing(NamedTuple):
    """Of n rows the numbers of their persons, -1 for nobody, and where each stands among theirs."""

    persons: NDArray[Any]
    positions: NDArray[Any]


class Kept:
    """Persons and places by row, as long as the rows are few enough to be kept."""

    __slots__ = ("_at", "_persons", "_places", "_rows", "_standing")

    def __init__(self) -> None:
        self._standing: list[Standing] = []
        self._rows = 0
        self._at = 0
        self._persons: Integers = np.zeros(0, dtype=np.int32)
        self._places: NDArray[np.uint8] | None = None

    def add(self, own: Standing) -> None:
        """Take note of rows of the first reading."""
        self._rows += len(own.persons)
        if self._rows > _MOST_ROWS:
            self._standing = []
        else:
            self._standing.append(Standing(*(each.astype(np.int32) for each in own)))

    def again(self, drawn: Callable[[Standing], NDArray[np.uint8]]) -> None:
        """Start at the first row; after the first reading the places of all are drawn."""
        if self._places is None and self._rows <= _MOST_ROWS:
            places = [drawn(own) for own in self._standing]
            self._places = np.concatenate([np.zeros(0, dtype=np.uint8), *places])
            self._persons = np.concatenate(
                [self._persons, *(own.persons for own in self._standing)]
            )
            self._standing = []
        self._at = 0

    def next(self, rows: int) -> tuple[NDArray[Any], NDArray[np.uint8]] | None:
        """Return persons and places of the next rows, None where they are not kept.

        Rows that the first reading did not see are nobody's.
        """
        if self._places is None:
            return None
        here = slice(self._at, self._at + rows)
        self._at += rows
        persons, places = self._persons[here], self._places[here]
        more = rows - len(places)
        if more:
            persons = np.pad(persons, (0, more), constant_values=-1)
            places = np.pad(places, (0, more))
        return persons, places
