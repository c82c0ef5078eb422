"""Rows that take several places of a table: each counted as often as it takes one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Answer = TypeVar("Answer")


# A choice: sums of a block, below 2**53, are below 2**59 as often as they count.
FOLDS: Final = 64


def placed(
    places: NDArray[Any] | None, rows: int, block: int, folds: int = 1
) -> Iterator[tuple[slice, int, int]]:
    """Return rows by blocks, how many there are in each, and how often they count.

    `places`, shape (rows,), are whole numbers from 0. A block is of rows that stand together and
    take as many, each of them in one block, and in none where that is 0. It has at most `block`
    rows, which are at most ``folds * block`` as often as they count. Where one row stands for more
    places, it comes again and again.
    """
    if places is None:
        for at in range(0, rows, block):
            yield slice(at, at + block), min(block, rows - at), 1
        return
    if rows == 0:
        return
    ends = [*(np.flatnonzero(np.diff(places)) + 1).tolist(), rows]
    for start, end in pairwise([0, *ends]):
        rounds, left = divmod(int(places[start]), folds * block)
        for times in [folds * block] * rounds + [left] * (left > 0):
            size = min(block, folds * block // times)
            for at in range(start, end, size):
                own = slice(at, min(at + size, end))
                yield own, own.stop - at, times


def multiplied(answer: Answer, times: int) -> Answer:
    """Return an answer that adds over rows as often as they count."""
    if times == 1 or answer is None:
        return answer
    found: Any = answer
    if isinstance(found, dict):
        found = {key: multiplied(own, times) for key, own in found.items()}
    elif isinstance(found, tuple):
        own = (multiplied(one, times) for one in found)
        found = type(found)(*own) if hasattr(found, "_fields") else tuple(own)
    else:
        found = found * times
    return cast("Answer", found)
