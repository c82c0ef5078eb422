"""Whose rows are: how many places each row takes of those that its person has.

A person has a public number of places. Where they are shared evenly, each of its rows takes as many
as whole numbers allow; else each of its rows takes one while there are any. Which of its rows get
more than the others is drawn by a secret and the person's key, all with the same chance. So what
the rows of a person take follows from the secret, its key, how many rows it has and where each
stands among them, and from no other person; a row of nobody takes none and changes nothing.

It is never more than the places: rows that stand where the first reading had none take nothing, and
the ranks of the others differ. Where a digest shows that a later reading was of other persons,
nothing is released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FrameError
from dpmodels.frames.identity import Numbering, Words, cell_bytes, person_keys
from dpmodels.frames.protocol import unfinished
from dpmodels.typing import Integers

# Bytes of the secret: 16 name persons, 8 draw among their rows.
SECRET_BYTES: Final = 24
# Odd numbers of no meaning, one a round of shuffling.
_ODD: Final = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7, 0xF1357AEA2E62A9C5)


class Taken(NamedTuple):
    """Rows of persons that count, shapes (n,)."""

    rows: NDArray[np.intp]  # Which of those that were read, by how many places they take
    persons: NDArray[Any]  # Their numbers, from 0
    places: NDArray[np.uint8]  # How many each takes


class Persons:
    """Numbers of rows by person, in memory as long as the rows are read."""

    __slots__ = (
        "_digests",
        "_even",
        "_first",
        "_kept",
        "_missing",
        "_names",
        "_places",
        "_rows",
        "_secret",
        "_seeds",
        "_seen",
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
        self._seen = np.zeros(0, dtype=np.int64)
        self._rows: Integers | None = None  # As many as the first reading saw
        self._seeds: Words = np.zeros(0, dtype=np.uint64)
        self._kept = Kept()
        self._digests = sha256(), sha256()
        self._first = b""

    def __repr__(self) -> str:
        return "<Persons, not shown>"

    @property
    def number(self) -> int:
        """How many persons there are."""
        return self._names.size

    def count(self, cells: NDArray[Any], counted: NDArray[np.bool_]) -> None:
        """Count rows, those that are counted, of each person; a person of none is known too."""
        self._kept.add(self._standing(cells, counted))

    def again(self) -> None:
        """Start at the first row, after all were counted."""
        if self._rows is None:
            self._rows, self._first = self._seen.copy(), self._read()
            self._seeds = self._names.salted()
        self._seen[:] = 0
        self._digests = sha256(), sha256()
        self._kept.again(self._drawn)

    def taken(self, cells: NDArray[Any], counted: NDArray[np.bool_]) -> Taken:
        """Return whose rows are and how many places they take, after all were counted."""
        kept = self._kept.next(len(cells))
        if kept is None:
            own = self._standing(cells, counted)
            kept = own.persons, self._drawn(own)
        else:
            self._told(cells, counted)
        return _those(*kept)

    def require_same(self) -> None:
        """Refuse rows that are, at the end of a reading, not those of the first: a FrameError."""
        if self._read() != self._first:
            raise FrameError(
                unfinished("the rows changed between two readings: give data that stay as they are")
            )

    def first(self, cells: NDArray[Any], counted: NDArray[np.bool_]) -> Taken:
        """Return the same of rows that are read once: a person's first rows take one place each."""
        own = self._standing(cells, counted)
        places = (own.persons >= 0) & (own.positions < self._places)
        return _those(own.persons, places.view(np.uint8))

    def _drawn(self, own: Standing) -> NDArray[np.uint8]:
        """Return the places that rows take, once it is known how many their persons have."""
        assert self._rows is not None
        places = np.zeros(len(own.persons), dtype=np.uint8)
        rows = np.flatnonzero(own.persons >= 0)
        person, position = own.persons[rows], own.positions[rows].astype(np.int64)
        total = self._rows[person]
        if (position >= total).any():
            there = position < total
            rows, person, position, total = (
                each[there] for each in (rows, person, position, total)
            )
        each, more = np.divmod(self._places, total) if self._even else (0, self._places)
        drawn = np.flatnonzero((more > 0) & (more < total))
        seed = self._seeds[person[drawn]]
        position[drawn] = shuffled(position[drawn], total[drawn], seed)
        places[rows] = each + (position < more)
        return places

    def _read(self) -> bytes:
        """Return a digest of whose rows were read."""
        return b"".join(own.digest() for own in self._digests)

    def _told(self, cells: NDArray[Any], counted: NDArray[np.bool_]) -> None:
        """Take down whose rows are, and which of them count."""
        self._digests[0].update(cell_bytes(cells))
        self._digests[1].update(counted.data)

    def _standing(self, cells: NDArray[Any], counted: NDArray[np.bool_]) -> Standing:
        """Return whose rows are that count, and where each stands among those."""
        self._told(cells, counted)
        high, low, known = person_keys(cells, self._secret, self._missing)
        rows = np.flatnonzero(known)
        own = self._names.numbers(high[rows], low[rows])
        if self._names.room > len(self._seen):
            self._seen = np.pad(self._seen, (0, self._names.room - len(self._seen)))
        rows, own = rows[counted[rows]], own[counted[rows]]
        together = np.sort(own << 32 | rows)
        person, row = together >> 32, together & 2**32 - 1
        starts = np.flatnonzero(np.r_[True, person[1:] != person[:-1]][: len(own)])
        sizes = np.diff(np.append(starts, len(own)))
        persons, positions = np.full((2, len(cells)), -1, dtype=np.int64)
        persons[row] = person
        positions[row] = np.arange(len(own)) - np.repeat(starts, sizes) + self._seen[person]
        self._seen[person[starts]] += sizes
        return Standing(persons, positions)


def _those(persons: NDArray[Any], places: NDArray[np.uint8]) -> Taken:
    """Leave out rows that take no place; those that take as many come together."""
    order = np.argsort(places, kind="stable")
    rows = order[np.count_nonzero(places == 0) :]
    return Taken(rows, persons[rows], places[rows])


def shuffled(position: Integers, total: Integers, seed: Words) -> Integers:
    """Return where places of 0, ..., total - 1 come to stand when they are shuffled by a seed.

    For each total and seed it is a permutation: one of the next power of two, walked until it comes
    back below the total, then a turn that makes all places equally likely for each.
    """
    found, end = position.astype(np.uint64), total.astype(np.uint64)
    bits = np.frexp(total - 1.0)[1].astype(np.uint64)
    _stir(found, bits, seed)
    beyond = np.flatnonzero(found >= end)
    while len(beyond):
        own = found[beyond]
        _stir(own, bits[beyond], seed[beyond])
        found[beyond] = own
        beyond = beyond[own >= end[beyond]]
    return ((found + (seed >> np.uint64(16)) % end) % end).astype(np.int64)


def _stir(found: Words, bits: Words, seed: Words) -> None:
    """Permute numbers of so many bits in place: each step can be taken back."""
    mask, half = (np.uint64(1) << bits) - np.uint64(1), bits + np.uint64(1) >> np.uint64(1)
    for odd in _ODD:
        word = seed * np.uint64(odd)
        found *= word >> np.uint64(32) | np.uint64(1)
        found += word >> np.uint64(8)
        found &= mask
        found ^= found >> half


# Whose rows are and the places they take, kept from the first reading to the later ones.

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
