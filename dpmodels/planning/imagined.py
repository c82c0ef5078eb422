"""Calls made on rows that are guessed: nothing is read, nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype

from dpmodels.codebook import Codebook
from dpmodels.frames.progress import as_one_of_many
from dpmodels.noise import simulation
from dpmodels.planning.guess import Guess
from dpmodels.privacy import Adjacency, Guarantee, Ledger
from dpmodels.sessions.call import Call
from dpmodels.sessions.terms import Priced, Terms
from dpmodels.sites import Parties

Bound = TypeVar("Bound")
SEED: Final = 20_130_325  # A choice: any number gives every plan the same noise
BLOCK: Final = 16_384  # A choice: rows that are invented, and stand as often as a table has rows
MOST_ROWS: Final = 10**8
MOST_PERSONS: Final = 10**6  # Each of whom is invented


@dataclass(frozen=True, repr=False)
class Standing(Parties):
    """A table of which each row stands several times."""

    times: int = 1

    def bind(self, binding: Callable[[object], Bound]) -> tuple[Bound, ...]:
        """Bind a formula to the rows, each as often as it stands."""
        bound: tuple[Any, ...] = super().bind(binding)
        return bound if self.times == 1 else tuple(one.standing(self.times) for one in bound)


@dataclass(frozen=True)
class World:
    """What a table will be like, as it is guessed, and what is said once of all calls."""

    guess: Guess
    codebook: Codebook
    adjacency: Adjacency
    rows: int
    subset: str | None

    @property
    def _times(self) -> int:
        """How often each invented row stands."""
        if self.adjacency.person is not None:
            return 1
        known = BLOCK if self.guess.frame is None else min(BLOCK, len(self.guess.frame))
        return -(-self.rows // known)

    def terms(self, draw: int | None = None) -> Terms:
        """Return a session's terms with rows that stand for all, or a random draw of them."""
        times = self._times
        count = -(-self.rows // times)
        frame = self.guess.block(count) if draw is None else self.guess.rows(count, draw)
        if self.adjacency.person is not None:
            persons = np.arange(count) // self.adjacency.places
            frame = frame.assign(**{self.adjacency.person: persons})
        held = Standing(("",), (_encoded(frame),), times=times)
        return Terms(held, self.codebook, self.adjacency, self.subset)

    @property
    def thinner(self) -> float:
        """By what the sd over draws of invented rows is larger than over tables."""
        return math.sqrt(self._times)


def _encoded(frame: pd.DataFrame) -> pd.DataFrame:
    """Hold levels as codes, which are read quickly."""
    texts = [name for name, kind in frame.dtypes.items() if is_string_dtype(kind)]
    return frame.astype(dict.fromkeys(texts, "category"))


def released(
    call: Call, terms: Terms, guarantee: Guarantee, times: int, *, seed: int = SEED
) -> list[Any]:
    """Make a call so many times; its releases differ, and are the same at every plan."""
    with as_one_of_many(), simulation(seed=seed):
        return [_made(call, terms, guarantee) for _ in range(times)]


def priced(call: Call, terms: Terms, guarantee: Guarantee) -> Priced:
    """Return what a call would be charged, and the mechanism it would take."""
    return terms.price(call, {"budget": guarantee})


def _made(call: Call, terms: Terms, guarantee: Guarantee) -> Any:
    ledger = Ledger(budget=guarantee, adjacency=terms.adjacency)
    return terms.make(call, {"budget": guarantee}, ledger)
