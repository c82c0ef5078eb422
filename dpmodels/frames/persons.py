"""Contribution bounding: how many of its person's places each row takes.

A person has a public number of places. Where they are shared evenly, each of its rows takes as many
as whole numbers allow; else each of its rows takes one while there are any. Which of its rows get
more than the others is drawn by a secret and the person's key, all with the same chance. So the
places that the rows of a person take depend on the secret, its key, its number of rows and their
ranks, and on no other person; a row without an id takes none and changes nothing.

No person takes more than its places: rows beyond the number at the first reading take none, and the
ranks of the others differ. If a digest shows that a later reading had other persons, nothing is
released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FrameError
from dpmodels.frames.coded import Cells, Coded
from dpmodels.frames.identity import Numbering, Words, cell_bytes, person_keys
from dpmodels.frames.protocol import unfinished
from dpmodels.typing import Array, Integers

# Bytes of the secret: 16 name persons, 8 draw among their rows.
SECRET_BYTES: Final = 24
# Odd numbers of no meaning, one a round of shuffling.
_ODD: Final = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7, 0xF1357AEA2E62A9C5)


class PersonRows(NamedTuple):
    """Rows of persons that count, shapes (n,)."""

    rows: NDArray[np.intp]  # Which of those that were read, by how many places they take
    persons: Array  # Their numbers, from 0
    places: NDArray[np.uint8]  # How many each takes


class Persons:
    """Numbers of rows by person, in memory as long as the rows are read."""

    __slots__ = (
        "_cache",
        "_digests",
        "_even",
        "_first",
        "_missing",
        "_n_read",
        "_names",
        "_places",
        "_secret",
        "_seeds",
        "_totals",
    )

    def __init__(
        self,
        places: int,
        secret: bytes,
        *,
        even: bool,
        missing: Sequence[str] = (),
    ) -> None:
        self._places = places
        self._missing = missing  # Canonical ids that stand for no person
        self._even = even
        self._secret = secret
        self._names = Numbering(int.from_bytes(secret[16:SECRET_BYTES], "little"))
        self._n_read = np.zeros(0, dtype=np.int64)
        self._totals: Integers | None = None  # As many as the first reading saw
        self._seeds: Words = np.zeros(0, dtype=np.uint64)
        self._cache = PersonCache()
        self._digests = sha256(), sha256()
        self._first = b""

    def __repr__(self) -> str:
        return "<Persons, not shown>"

    @property
    def number(self) -> int:
        """How many persons there are."""
        return self._names.size

    def count(self, cells: Cells, counted: NDArray[np.bool_]) -> None:
        """Count each person's rows that are `counted`; persons without any are registered too."""
        self._cache.add(self._ranks(cells, counted))

    def again(self) -> None:
        """Start a new reading, after all rows were counted."""
        if self._totals is None:
            self._totals, self._first = self._n_read.copy(), self._digest()
            self._seeds = self._names.salted()
        self._n_read[:] = 0
        self._digests = sha256(), sha256()
        self._cache.again(self._places_of)

    def taken(self, cells: Cells, counted: NDArray[np.bool_]) -> PersonRows:
        """Return the persons of rows and the places they take, after all were counted."""
        cached = self._cache.next(len(cells))
        if cached is None:
            ranks = self._ranks(cells, counted)
            cached = ranks.persons, self._places_of(ranks)
        else:
            self._update_digests(cells, counted)
        return _those(*cached)

    def require_same(self) -> None:
        """Refuse rows that are, at the end of a reading, not those of the first: a FrameError."""
        if self._digest() != self._first:
            raise FrameError(
                unfinished("the rows changed between two readings: give data that stay as they are")
            )

    def first(self, cells: Cells, counted: NDArray[np.bool_]) -> PersonRows:
        """Return the same for rows read once: a person's first rows take one place each."""
        ranks = self._ranks(cells, counted)
        places = (ranks.persons >= 0) & (ranks.positions < self._places)
        return _those(ranks.persons, places.view(np.uint8))

    def _places_of(self, ranks: RowRanks) -> NDArray[np.uint8]:
        """Return the places that rows take, once it is known how many their persons have."""
        assert self._totals is not None
        places = np.zeros(len(ranks.persons), dtype=np.uint8)
        rows = np.flatnonzero(ranks.persons >= 0)
        person, position = ranks.persons[rows], ranks.positions[rows].astype(np.int64)
        total = self._totals[person]
        if (position >= total).any():
            is_counted = position < total
            rows, person, position, total = (
                values[is_counted] for values in (rows, person, position, total)
            )
        base, extra = np.divmod(self._places, total) if self._even else (0, self._places)
        uneven = np.flatnonzero((extra > 0) & (extra < total))
        seed = self._seeds[person[uneven]]
        position[uneven] = shuffled(position[uneven], total[uneven], seed)
        places[rows] = base + (position < extra)
        return places

    def _digest(self) -> bytes:
        """Return a digest of whose rows were read."""
        return b"".join(digest.digest() for digest in self._digests)

    def _update_digests(self, cells: Cells, counted: NDArray[np.bool_]) -> None:
        """Update the digests with the ids of rows, and which of them count."""
        if isinstance(cells, Coded):
            high, low, has_id = person_keys(cells, self._secret)
            self._digests[0].update(np.stack([high * has_id, low * has_id], axis=1).data)
        else:
            self._digests[0].update(cell_bytes(cells))
        self._digests[1].update(counted.data)

    def _ranks(self, cells: Cells, counted: NDArray[np.bool_]) -> RowRanks:
        """Return the persons of the rows that count, and the rank of each row."""
        self._update_digests(cells, counted)
        high, low, has_id = person_keys(cells, self._secret, self._missing)
        rows = np.flatnonzero(has_id)
        numbers = self._names.numbers(high[rows], low[rows])
        if self._names.room > len(self._n_read):
            self._n_read = np.pad(self._n_read, (0, self._names.room - len(self._n_read)))
        rows, numbers = rows[counted[rows]], numbers[counted[rows]]
        packed = np.sort(numbers << 32 | rows)
        person, row = packed >> 32, packed & 2**32 - 1
        starts = np.flatnonzero(np.r_[True, person[1:] != person[:-1]][: len(numbers)])
        sizes = np.diff(np.append(starts, len(numbers)))
        persons, positions = np.full((2, len(cells)), -1, dtype=np.int64)
        persons[row] = person
        positions[row] = np.arange(len(numbers)) - np.repeat(starts, sizes) + self._n_read[person]
        self._n_read[person[starts]] += sizes
        return RowRanks(persons, positions)


def _those(persons: Array, places: NDArray[np.uint8]) -> PersonRows:
    """Leave out rows that take no place; sort the others by the places they take."""
    order = np.argsort(places, kind="stable")
    rows = order[np.count_nonzero(places == 0) :]
    return PersonRows(rows, persons[rows], places[rows])


def shuffled(position: Integers, total: Integers, seed: Words) -> Integers:
    """Return the new positions of 0, ..., total - 1 under a shuffle by a seed.

    For each total and seed it is a permutation: one of the next power of two,
    walked until it comes back below the total, then a rotation that makes all
    positions equally likely.
    """
    position_bits, end = position.astype(np.uint64), total.astype(np.uint64)
    bits = np.frexp(total - 1.0)[1].astype(np.uint64)
    _stir(position_bits, bits, seed)
    beyond = np.flatnonzero(position_bits >= end)
    while len(beyond):
        subset = position_bits[beyond]
        _stir(subset, bits[beyond], seed[beyond])
        position_bits[beyond] = subset
        beyond = beyond[subset >= end[beyond]]
    return ((position_bits + (seed >> np.uint64(16)) % end) % end).astype(np.int64)


def _stir(values: Words, bits: Words, seed: Words) -> None:
    """Permute numbers of so many bits in place: each step can be taken back."""
    mask, half = (np.uint64(1) << bits) - np.uint64(1), bits + np.uint64(1) >> np.uint64(1)
    for odd in _ODD:
        word = seed * np.uint64(odd)
        values *= word >> np.uint64(32) | np.uint64(1)
        values += word >> np.uint64(8)
        values &= mask
        values ^= values >> half


# Persons and places of rows, cached from the first reading for the later ones.

# A choice: tables of so many rows at most, in 8 bytes a row at the first reading, then in 5.
_MOST_ROWS: Final = 2**24


class RowRanks(NamedTuple):
    """Persons of n rows, -1 for none, and the rank of each row within its person."""

    persons: Array
    positions: Array


class PersonCache:
    """Persons and places by row, as long as the rows are few enough to be kept."""

    __slots__ = ("_at", "_persons", "_places", "_ranks", "_rows")

    def __init__(self) -> None:
        self._ranks: list[RowRanks] = []
        self._rows = 0
        self._at = 0
        self._persons: Integers = np.zeros(0, dtype=np.int32)
        self._places: NDArray[np.uint8] | None = None

    def add(self, ranks: RowRanks) -> None:
        """Take note of rows of the first reading."""
        self._rows += len(ranks.persons)
        if self._rows > _MOST_ROWS:
            self._ranks = []
        else:
            self._ranks.append(RowRanks(*(values.astype(np.int32) for values in ranks)))

    def again(self, draw: Callable[[RowRanks], NDArray[np.uint8]]) -> None:
        """Start at the first row; after the first reading the places of all are drawn."""
        if self._places is None and self._rows <= _MOST_ROWS:
            places = [draw(ranks) for ranks in self._ranks]
            self._places = np.concatenate([np.zeros(0, dtype=np.uint8), *places])
            self._persons = np.concatenate(
                [self._persons, *(ranks.persons for ranks in self._ranks)]
            )
            self._ranks = []
        self._at = 0

    def next(self, n_rows: int) -> tuple[Array, NDArray[np.uint8]] | None:
        """Return persons and places of the next rows, None where they are not kept.

        Rows that the first reading did not see have no person.
        """
        if self._places is None:
            return None
        block = slice(self._at, self._at + n_rows)
        self._at += n_rows
        persons, places = self._persons[block], self._places[block]
        n_missing = n_rows - len(places)
        if n_missing:
            persons = np.pad(persons, (0, n_missing), constant_values=-1)
            places = np.pad(places, (0, n_missing))
        return persons, places
