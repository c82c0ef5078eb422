"""Whose rows are: how many places each row takes of those that its person has.

A person has a public number of places. Where they are shared evenly, each of its rows takes as many
as whole numbers allow; else each of its rows takes one while there are any. Which of its rows get
more than the others is drawn by a secret key and the person's name. So what the rows of a person
take follows from the key, its name, how many rows it has and where each stands among them, and from
no other person. It is never more than the places, whatever rows are read a second time.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.typing import Integers


class Persons:
    """Numbers of rows by person, in memory as long as the rows are read."""

    __slots__ = ("_even", "_key", "_names", "_offsets", "_places", "_rows", "_seen")

    def __init__(self, places: int, *, even: bool) -> None:
        self._places = places
        self._even = even
        self._key = secrets.token_hex(8)
        self._names: pd.Index[Any] = pd.Index([], dtype=object)
        self._offsets = np.zeros(0, dtype=np.uint64)
        self._rows = np.zeros(0, dtype=np.int64)
        self._seen = np.zeros(0, dtype=np.int64)

    def __repr__(self) -> str:
        return "<Persons, not shown>"

    @property
    def number(self) -> int:
        """How many persons there are."""
        return len(self._names)

    def count(self, cells: NDArray[Any], counted: NDArray[np.bool_]) -> None:
        """Count rows, those that are counted, of each person; a person of none is known too."""
        persons = self.numbers(cells)
        own = persons[counted & (persons >= 0)]
        self._rows += np.bincount(own, minlength=len(self._rows))

    def again(self) -> None:
        """Start at the first row."""
        self._seen[:] = 0

    def taken(self, cells: NDArray[Any], counted: NDArray[np.bool_]) -> Integers:
        """Return how many places rows take that were all counted before.

        None where a row has no person or is not counted.
        """
        rows, own, position = self._positions(cells, counted)
        total = np.maximum(self._rows[own], 1)
        offset = (self._offsets[own] % total.astype(np.uint64)).astype(np.int64)
        turned = (position + offset) % total
        each, more = np.divmod(self._places, total)
        share = each + (turned < more) if self._even else (turned < self._places).astype(np.int64)
        share[position >= self._rows[own]] = 0
        return _spread(rows, share, len(cells))

    def first(self, cells: NDArray[Any], counted: NDArray[np.bool_]) -> Integers:
        """Return the places of rows that are read once: a person's first rows take one each."""
        rows, _, position = self._positions(cells, counted)
        return _spread(rows, (position < self._places).astype(np.int64), len(cells))

    def _positions(
        self, cells: NDArray[Any], counted: NDArray[np.bool_]
    ) -> tuple[Integers, Integers, Integers]:
        """Return the rows that can take places, their persons, and where they stand among them."""
        persons = self.numbers(cells)
        rows = np.flatnonzero(counted & (persons >= 0))
        own = persons[rows]
        position = self._seen[own] + _earlier(own)
        self._seen += np.bincount(own, minlength=len(self._seen))
        return rows, own, position

    def numbers(self, cells: NDArray[Any]) -> Integers:
        """Return the number of each row's person, -1 where it is missing."""
        codes, found = pd.factorize(np.asarray(cells, dtype=object))
        names = pd.Index(found, dtype=object)
        at = self._names.get_indexer(names)
        new = at < 0
        if new.any():
            at[new] = len(self._names) + np.arange(new.sum())
            self._names = self._names.append(names[new])
            drawn = pd.util.hash_array(np.asarray(found, dtype=object)[new], hash_key=self._key)
            grown = np.zeros(len(drawn), dtype=np.int64)
            self._offsets = np.concatenate([self._offsets, drawn])
            self._rows = np.concatenate([self._rows, grown])
            self._seen = np.concatenate([self._seen, grown])
        return np.where(codes < 0, -1, at[codes]) if len(at) else np.asarray(codes)


def _spread(rows: Integers, share: Integers, size: int) -> Integers:
    taken = np.zeros(size, dtype=np.int64)
    taken[rows] = share
    return taken


def _earlier(persons: Integers) -> Integers:
    """Return how many rows of the same person stand before each."""
    order = np.argsort(persons, kind="stable")
    sorted_ = persons[order]
    first = np.r_[True, sorted_[1:] != sorted_[:-1]] if len(persons) else np.zeros(0, bool)
    starts = np.flatnonzero(first)
    inside = np.arange(len(persons)) - np.repeat(starts, np.diff(np.r_[starts, len(persons)]))
    earlier = np.empty_like(inside)
    earlier[order] = inside
    return earlier
