"""Points of numbers within the cells of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmodels.typing import Floats


@dataclass(frozen=True, eq=False)
class Nodes:
    """The points of the columns of a table, each of a cell; `operators` have an axis of the table.

    An operator, shape (points, levels), has the rows of each point by those of the levels.
    """

    operators: tuple[Floats, ...] = ()

    def spread(self, counts: Floats) -> Floats:
        """Return counts by point, from those by cell, shape (cells,)."""
        if not self.operators:
            return counts
        table = counts.reshape([operator.shape[1] for operator in self.operators])
        return _along(self.operators, table).ravel()

    def gathered(self, scores: Floats) -> Floats:
        """Return scores by cell from those by point, shape (points, k): sums are the same."""
        if not self.operators:
            return scores
        table = scores.reshape(*(operator.shape[0] for operator in self.operators), -1)
        summed = _along([operator.T for operator in self.operators], table)
        return summed.reshape(-1, scores.shape[1])


def _along(operators: Sequence[Floats], table: Floats) -> Floats:
    for axis, operator in enumerate(operators):
        table = np.moveaxis(np.tensordot(operator, table, (1, axis)), 0, axis)
    return table


# Cells are their own points.
CELLS = Nodes()
