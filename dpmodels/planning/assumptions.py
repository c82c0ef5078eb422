"""Calls on assumed rows: no data are read, no budget is spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype

from dpmodels.codebook import Codebook
from dpmodels.models.assumed_rows import AssumedRows
from dpmodels.models.predictor import simulated_fits
from dpmodels.privacy import Adjacency, Guarantee
from dpmodels.sessions.call import Call, Priced, Terms
from dpmodels.sites import Parties

Bound = TypeVar("Bound")
PLAN_SEED: Final = 20_130_325  # Arbitrary: every plan has the same noise
BLOCK: Final = 16_384  # A choice: simulated rows, repeated up to the table's size
MOST_ROWS: Final = 10**8
MOST_PERSONS: Final = 10**6  # Each is simulated


@dataclass(frozen=True, repr=False)
class Standing(Parties):
    """A table in which each row is repeated."""

    times: int = 1

    def bind(self, binding: Callable[[object], Bound]) -> tuple[Bound, ...]:
        """Bind a formula to the repeated rows."""
        bound: tuple[Any, ...] = super().bind(binding)
        return bound if self.times == 1 else tuple(rows.standing(self.times) for rows in bound)


@dataclass(frozen=True)
class World:
    """Assumed rows, and the settings that all calls share."""

    assumed: AssumedRows
    codebook: Codebook
    adjacency: Adjacency
    n_rows: int
    subset: str | None

    @property
    def _times(self) -> int:
        """How often each simulated row is repeated."""
        if self.adjacency.person is not None:
            return 1
        n_invented = BLOCK if self.assumed.frame is None else min(BLOCK, len(self.assumed.frame))
        return -(-self.n_rows // n_invented)

    def terms(self, draw: int | None = None) -> Terms:
        """Return a session's terms with evenly spread rows, or with a random draw."""
        times = self._times
        count = -(-self.n_rows // times)
        frame = self.assumed.block(count) if draw is None else self.assumed.rows(count, draw)
        if self.adjacency.person is not None:
            persons = np.arange(count) // self.adjacency.places
            frame = frame.assign(**{self.adjacency.person: persons})
        parties = Standing(("",), (_encoded(frame),), times=times)
        return Terms(parties, self.codebook, self.adjacency, self.subset)

    @property
    def thinner(self) -> float:
        """Ratio of the sd over draws of simulated rows to that over tables."""
        return math.sqrt(self._times)


def _encoded(frame: pd.DataFrame) -> pd.DataFrame:
    """Store levels as codes, which are faster to read."""
    texts = [name for name, kind in frame.dtypes.items() if is_string_dtype(kind)]
    return frame.astype(dict.fromkeys(texts, "category"))


def released(
    call: Call, terms: Terms, guarantee: Guarantee, times: int, *, seed: int = PLAN_SEED
) -> list[object]:
    """Run a call `times` times with independent noise, the same in every plan."""
    planned_call = priced(call, terms, guarantee)
    (private,) = planned_call.private
    return list(simulated_fits(planned_call.spec, planned_call.choice, private, times, seed))


def priced(call: Call, terms: Terms, guarantee: Guarantee) -> Priced:
    """Return the charge of a call, and its mechanism."""
    return terms.price(call, {"budget": guarantee})
