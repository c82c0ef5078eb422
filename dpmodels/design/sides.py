"""Which rows stand on one side and which on the other: a coin for each place, or each person.

A coin belongs to a position in the source, so a row must have the same position in every pass. A
source that can be read again sees to it: a file that was written or replaced since it was opened is
an error, and so is a table in memory whose number of rows changed; of persons, whose coins follow
their ids, a digest is compared. What can be read once is refused before the charge.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import PrivacyError
from dpmodels.noise import Entropy

# A byte decides: shares are whole numbers of them.
FACES = 256


class Coins:
    """Coins of numbered places, thrown when a place first comes and kept from then on.

    Each falls on its first side with a chance of ``heads/256``, exactly, by itself and whatever the
    rows are.
    """

    __slots__ = ("_entropy", "_heads", "_thrown")

    def __init__(self, heads: int, entropy: Entropy) -> None:
        self._heads = heads
        self._entropy = entropy
        self._thrown = np.zeros(0, dtype=np.uint8)

    def __repr__(self) -> str:
        return "<Coins, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("coins that part rows cannot be pickled or copied")

    def of(self, places: NDArray[Any]) -> NDArray[np.bool_]:
        """Return how the coins of places, numbers from 0, fell."""
        more = int(places.max(initial=-1)) + 1 - len(self._thrown)
        if more > 0:
            # As many again as there are, so that few throws are of few coins.
            words = self._entropy.words(max(more, len(self._thrown)) // 8 + 1)
            self._thrown = np.concatenate([self._thrown, words.view(np.uint8)])
        return np.asarray(self._thrown[places] < self._heads)


class Side(NamedTuple):
    """One side of rows that coins part; those of a person fall together."""

    coins: Coins
    first: bool  # Which of the two

    def counted(
        self, at: int, rows: int, persons: NDArray[Any] | None, counted: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        """Return which of so many rows from a place on stand here, of those that count."""
        # Nobody has the number -1, and does not count.
        places = np.arange(at, at + rows) if persons is None else np.maximum(persons, 0)
        here = self.coins.of(places) == self.first
        return here if counted is None else np.asarray(here & counted)
