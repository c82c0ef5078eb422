"""How often a state of a Markov chain occurs, given the state at one time: exact laws.

*Recursion.* Let ``f_t(x, c)`` be the probability that ``X_t = x`` and c of the times to t had the
counted state, ``g_t(x, c)`` that c of the later ones have it given ``X_t = x``. Both follow from
their neighbours in ``O(T k**2)``; given ``X_t = x`` the count is a sum of the two, independent.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Floats

# Counts and their probabilities.
CountLaw = tuple[range, tuple[Fraction, ...]]
# A choice: integers grow with the length, and beyond exact laws take minutes.
MOST_EXACT: Final = 100
_WHOLE: Final = 2**53


def count_laws(
    own: Floats, start: Floats, steps: int, state: int
) -> dict[tuple[int, int], CountLaw]:
    """Return the laws of the count of a state by time, from 1, and the state at that time.

    A state at a time has a law where its probability is positive.
    """
    moves, first = np.array([integers(row) for row in own]), integers(start)
    counted = np.arange(len(own)) == state
    forward = [_shifted(np.outer(first, [1] + [0] * steps), counted)]
    for _ in range(steps - 1):
        forward.append(_shifted(moves.T @ forward[-1], counted))
    later: NDArray[Any] = np.zeros_like(forward[0])
    later[:, 0] = 1
    backward = [later]
    for _ in range(steps - 1):
        backward.append(moves @ _shifted(backward[-1], counted))
    laws = {}
    for time, (before, after) in enumerate(zip(forward, backward[::-1], strict=True), start=1):
        for x in range(len(own)):
            both = np.convolve(before[x], after[x])[: steps + 1]
            total = sum(both.tolist())
            if total:
                laws[time, x] = range(steps + 1), tuple(Fraction(one, total) for one in both)
    return laws


def integers(law: Floats) -> NDArray[Any]:
    """Return probabilities as integers that add up to ``2**53``, the largest one making up.

    What can happen still can: a distance of laws is that of their farthest values, however rare.
    """
    held = [max(round(one * _WHOLE), int(one > 0)) for one in law.tolist()]
    own = np.array(held, dtype=object)
    own[int(np.argmax(law))] += _WHOLE - sum(own.tolist())
    return own


def _shifted(table: NDArray[Any], counted: NDArray[np.bool_]) -> NDArray[Any]:
    """Count one more in the rows of the counted state; no count exceeds the length."""
    found = table.copy()
    found[counted, 1:] = table[counted, :-1]
    found[counted, 0] = 0
    return found
