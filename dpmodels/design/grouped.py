"""Rows that a database groups: whether it does so, and rows that count as often as they occur."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.dates import Date
from dpmodels.frames import RowSource
from dpmodels.frames.groups import GroupedSource, groups_rows
from dpmodels.frames.protocol import Holds
from dpmodels.typing import Array, Integers
from dpmodels.variables import Categorical, Variable

# A choice: more combinations of declared values are read row by row.
MOST_GROUPS: Final = 2**20
# A choice: groups that are read at a time.
MANY_GROUPS: Final = 2**15


def grouping(
    source: RowSource, codebook: Codebook, undeclared: tuple[str, ...]
) -> GroupedSource | None:
    """Return the source if it groups rows by these columns, None if they are read one by one.

    That follows from the declared variables and the types of the columns alone: each column has a
    type that the source groups exactly, and the declared values have at most 2**20 combinations.
    Undeclared levels are always grouped.
    """
    if not groups_rows(source) or not all(map(source.repeats, (*codebook, *undeclared))):
        return None
    n_values = (
        _number_of_values(entry, source.kind(name).holds is Holds.WHOLE)
        for name, entry in codebook.items()
    )
    return source if math.prod(n_values) <= MOST_GROUPS else None


def _number_of_values(variable: Variable, whole: bool) -> float:
    """Return how many values a column of declared cells has, missing ones as one more."""
    match variable:
        case Categorical(levels=levels):
            size = float(len(levels))
        case Date(days=(first, last)):
            size = last - first + 1
        case _:
            step = variable.step or (1.0 if whole else 0.0)
            size = (variable.upper - variable.lower) / step + 1 if step else math.inf
    return size + len(variable.missing) + 1


def as_often(counts: Integers) -> tuple[NDArray[np.intp], Array]:
    """Return rows, each once for every binary digit of its count, and how often each counts then.

    So few blocks of rows count equally often, however many counts there are.

    >>> import numpy as np
    >>> [array.tolist() for array in as_often(np.array([1, 6, 0]))]
    [[0, 1, 1], [1, 2, 4]]
    """
    digits = range(int(counts.max(initial=0)).bit_length())
    rows = [np.flatnonzero(counts >> digit & 1) for digit in digits]
    times = np.repeat(2 ** np.arange(len(rows), dtype=np.int64), [len(part) for part in rows])
    return np.concatenate([np.zeros(0, dtype=np.intp), *rows]), times
