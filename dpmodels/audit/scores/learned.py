"""What a score is: from released values to one number each, larger for the neighbour."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpmodels.typing import Floats

# From values of shape (m, k) to numbers of shape (m,).
Score = Callable[[Floats], Floats]
# From values of the rows and of the neighbour, shapes (m, k) each, to a score.
Learner = Callable[[Floats, Floats], Score]

_BITS = 20  # a choice: six digits of the spread, above what rounding leaves in a sum


def typical(rows: Floats, neighbour: Floats) -> tuple[Floats, Floats]:
    """Return the middle and the size above zero of each coordinate over both sides: shapes (k,)."""
    both = np.concatenate([rows, neighbour])
    middle = np.median(both, axis=0)
    size = np.mean(np.abs(both - middle), axis=0)
    return middle, np.where(size > 0, size, 1.0)


def coarsened(rows: Floats, neighbour: Floats) -> Callable[[Floats], Floats]:
    """Return a rounding of each coordinate, to a power of two below 2**-20 of its spread.

    What is left has the law of real numbers, without the traces that arithmetic
    leaves in the lowest bits; whole numbers stay what they are.

    Examples
    --------
    >>> rounded = coarsened(np.array([[0.0], [1.0]]), np.array([[2.0], [3.0]]))
    >>> float(rounded(np.array([[1 + 2.0**-40]]))[0, 0])
    1.0
    """
    _, size = typical(rows, neighbour)
    unit = np.exp2(np.floor(np.log2(size)) - _BITS)
    return lambda values: np.asarray(np.rint(values / unit) * unit)
