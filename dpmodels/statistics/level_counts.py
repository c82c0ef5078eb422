"""Exact numbers of rows by levels that nobody declared."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.design.levels import PrivateLevels
from dpmodels.statistics.statistic import Statistic, additive, fingerprint


@additive
def counted_levels(private: PrivateLevels, *, count_public: bool) -> Statistic:
    """Count the rows of each variable by the level that their cell names.

    One counter a variable, shape (variables,), which add as numbers do; a level that no row names
    is in none. A row adds 1 to at most one level of each variable: a row more or fewer changes one
    count of each by 1, a row replaced at most two. A level takes some 250 bytes of memory, and
    there are at most as many as rows.
    """
    total: NDArray[Any] = _columns([Counter() for _ in private.names])
    rows = 0

    def counted(columns: tuple[NDArray[Any], ...]) -> tuple[Counter[str], ...]:
        return tuple(Counter(name for name in own.tolist() if name is not None) for own in columns)

    for block, seen in private.blocks(counted, count_public=count_public):
        for own, more in zip(total, block, strict=True):
            own.update(more)
        rows += seen
    return Statistic("levels", total, rows, fingerprint(private.facts, count_public=count_public))


def _columns(counters: list[Counter[str]]) -> NDArray[Any]:
    found = np.empty(len(counters), dtype=object)
    found[:] = counters
    return found
