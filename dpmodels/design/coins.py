"""Random splits of rows: a coin for each position in the source, or for each person.

A coin belongs to a position in the source, so a row must have the same position in every pass. A
source that can be read again sees to it: a file that was written or replaced since it was opened
is an error, and so is a table in memory whose number of rows changed; of persons, whose coins
follow their ids, and of partitions, a digest is compared. What can be read once is refused before
the charge.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import PrivacyError
from dpmodels.noise import Entropy, derived
from dpmodels.typing import Array

# A coin is one byte, so chances are multiples of 1/256.
FACES = 256
# Of the key from which the coins of partitions follow.
_KEY_WORDS: Final = 4


class Coins:
    """Coins of numbered positions, thrown when a position first occurs and then kept.

    Each shows its first side with a chance of exactly ``heads/256``, independently of the other
    coins and of the rows.
    """

    __slots__ = ("_entropy", "_heads", "_key", "_thrown")

    def __init__(self, heads: int, entropy: Entropy) -> None:
        self._heads = heads
        self._key = b""
        self._entropy = entropy
        self._thrown = np.zeros(0, dtype=np.uint8)

    def __repr__(self) -> str:
        return "<Coins, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("coins that split rows cannot be pickled or copied")

    def by_partition(self) -> Callable[[int], Coins]:
        """Return a function that gives the coins of a partition, on any worker the same."""
        self._key = self._key or self._entropy.words(_KEY_WORDS).tobytes()
        return partial(_coins_of_partition, self._heads, self._key)

    def of(self, places: Array) -> NDArray[np.bool_]:
        """Return whether the coins at positions, from 0, show their first side."""
        n_missing = int(places.max(initial=-1)) + 1 - len(self._thrown)
        if n_missing > 0:
            # As many again as there are, so that few throws are of few coins.
            words = self._entropy.words(max(n_missing, len(self._thrown)) // 8 + 1)
            self._thrown = np.concatenate([self._thrown, words.view(np.uint8)])
        return np.asarray(self._thrown[places] < self._heads)


def _coins_of_partition(heads: int, key: bytes, number: int) -> Coins:
    return Coins(heads, derived(key, number))


class Side(NamedTuple):
    """One part of rows that coins split; the rows of a person stay together."""

    coins: Coins
    first: bool  # Which of the two

    def on_workers(self) -> Callable[[int], Side]:
        """Return a function that gives the same part of a partition."""
        return partial(_side_of_partition, self.coins.by_partition(), self.first)

    def counted(
        self, at: int, n_rows: int, persons: Array | None, counted: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        """Return a mask of the counted rows of this part, from a position on."""
        # Rows without a person have the number -1 and do not count.
        places = np.arange(at, at + n_rows) if persons is None else np.maximum(persons, 0)
        on_side = self.coins.of(places) == self.first
        return on_side if counted is None else np.asarray(on_side & counted)


def _side_of_partition(coins: Callable[[int], Coins], first: bool, number: int) -> Side:
    return Side(coins(number), first)
