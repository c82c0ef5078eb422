"""Rows that take several places of a table: each counted as often as it takes one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Integers

Answer = TypeVar("Answer")
Where = slice | NDArray[np.intp]


def placed(places: Integers | None, rows: int, block: int) -> Iterator[tuple[Where, int, int]]:
    """Return rows by blocks, how many there are in each, and how often they count.

    `places`, shape (rows,), are whole numbers from 0; each row is in one block for every power of
    two that its number is the sum of, and in none where that is 0. A block of rows that count
    2**k times has at most ``block / 2**k`` of them: what is exact of `block` rows stays so.
    Where one row stands for more places than a block has rows, it comes again and again.
    """
    if places is None:
        for at in range(0, rows, block):
            yield slice(at, at + block), min(block, rows - at), 1
        return
    for power in range(int(places.max(initial=0)).bit_length()):
        own = np.flatnonzero(places >> power & 1)
        times = 2 ** min(power, block.bit_length() - 1)
        for _ in range(2**power // times):
            for at in range(0, len(own), block // times):
                here = own[at : at + block // times]
                yield here, len(here), times


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
