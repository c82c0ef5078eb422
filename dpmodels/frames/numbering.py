"""Keys numbered in the order in which they come, in a few arrays."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpmodels.frames.identity import Words
from dpmodels.typing import Integers

_LEAST: Final = 2**10  # A choice: slots of an empty table


def mixed(words: Words) -> Words:
    """Return 64 bits that all bits of a word have a part in: the end of SplitMix64."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


class Numbering:
    """A hash table with open addressing, asked for a block of keys at a time.

    It has at least two slots for each key: 16 bytes for the key, 8 to 16 for its slots.
    """

    __slots__ = ("_high", "_low", "_salt", "_slots", "size")

    def __init__(self, salt: int) -> None:
        self.size = 0
        self._salt = np.uint64(salt)
        self._slots = np.full(_LEAST, -1, dtype=np.int32)
        self._high = np.zeros(_LEAST // 2, dtype=np.uint64)
        self._low = np.zeros(_LEAST // 2, dtype=np.uint64)

    @property
    def high(self) -> Words:
        """The first words of the keys, by their numbers."""
        return self._high[: self.size]

    @property
    def room(self) -> int:
        """How many keys there is room for."""
        return len(self._high)

    def salted(self) -> Words:
        """Return a word for each of the keys, by their numbers, made of the key and the salt."""
        return mixed(mixed(self.high ^ self._salt) ^ self._low[: self.size])

    def numbers(self, high: Words, low: Words) -> Integers:
        """Return the numbers of keys, shape (n,); new ones get the next."""
        self._make_room(len(high))
        at = self._first(high, low)
        found = self._there(at, high, low)
        waiting = np.flatnonzero(found < 0)
        while len(waiting):
            self._settle(at[waiting], high[waiting], low[waiting])
            found[waiting] = self._there(at[waiting], high[waiting], low[waiting])
            waiting = waiting[found[waiting] < 0]
            at[waiting] = at[waiting] + 1 & len(self._slots) - 1
        return found

    def _there(self, at: Integers, high: Words, low: Words) -> Integers:
        """Return the numbers of keys that are at their slots, else -1."""
        found = self._slots[at].astype(np.int64)
        known = np.maximum(found, 0)
        found[(self._high[known] != high) | (self._low[known] != low)] = -1
        return found

    def _settle(self, at: Integers, high: Words, low: Words) -> None:
        """Give empty slots, and the next numbers, each to one of the keys that are there."""
        won = self._won(at)
        new = self.size + np.arange(len(won))
        self._slots[at[won]] = new
        self._high[new], self._low[new] = high[won], low[won]
        self.size += len(won)

    def _first(self, high: Words, low: Words) -> Integers:
        """Return the slots at which keys are looked for first: leading bits of keyed hashes."""
        slots = (high ^ low) >> np.uint64(65 - len(self._slots).bit_length())
        return slots.view(np.int64)

    def _won(self, at: Integers) -> Integers:
        """Let one of those at each empty slot have it."""
        claiming = np.flatnonzero(self._slots[at] < 0)
        claims = -2 - np.arange(len(claiming), dtype=np.int32)
        self._slots[at[claiming]] = claims
        return np.asarray(claiming[self._slots[at[claiming]] == claims])

    def _make_room(self, more: int) -> None:
        """Double the table until it has room for so many more keys."""
        if self.size + more <= self.room:
            return
        slots = len(self._slots)
        while slots < 2 * (self.size + more):
            slots *= 2
        for name in ("_high", "_low"):
            grown = np.zeros(slots // 2, dtype=np.uint64)
            grown[: self.size] = getattr(self, name)[: self.size]
            setattr(self, name, grown)
        self._slots = np.full(slots, -1, dtype=np.int32)
        at = self._first(self._high[: self.size], self._low[: self.size])
        waiting = np.arange(self.size)
        while len(waiting):
            won = self._won(at[waiting])
            self._slots[at[waiting[won]]] = waiting[won]
            waiting = np.delete(waiting, won)
            at[waiting] = at[waiting] + 1 & slots - 1
