"""Cells in a row, halved and halved again: the nodes that counts of runs of them are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Integers

# Halvings between levels that are counted, at most: children of a node are then eight. A choice.
AT_ONCE = 3


@dataclass(frozen=True)
class Halves:
    """A row of cells, which level by level is cut in halves.

    Level d has ``2**d`` nodes; those of the lowest hold one cell or none, and the cells are spread
    evenly over them.

    >>> Halves(5).lowest, Halves(5).widths[2].tolist(), Halves(4096).counted()
    (3, [2, 1, 1, 1], (0, 3, 6, 9, 12))
    """

    cells: int

    @property
    def lowest(self) -> int:
        """The number of the lowest level."""
        return (self.cells - 1).bit_length()

    @cached_property
    def places(self) -> Integers:
        """Where in the lowest level each cell is."""
        places: Integers = np.arange(self.cells, dtype=np.int64) * 2**self.lowest // self.cells
        return places

    @cached_property
    def widths(self) -> tuple[Integers, ...]:
        """Numbers of cells of all nodes, level by level."""
        return self.sums(np.ones(self.cells, dtype=np.int64))

    @cached_property
    def firsts(self) -> tuple[Integers, ...]:
        """The first cells of all nodes, level by level."""
        return tuple(np.cumsum(widths) - widths for widths in self.widths)

    def node(self, level: int, cells: Integers) -> Integers:
        """Return which node of a level holds each of some cells."""
        nodes: Integers = self.places[cells] >> (self.lowest - level)
        return nodes

    def sums(self, cells: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return the sums of all nodes, level by level, of cells on the last axis."""
        lowest = np.zeros((*cells.shape[:-1], 2**self.lowest), dtype=cells.dtype)
        lowest[..., self.places] = cells
        levels = [lowest]
        for _ in range(self.lowest):
            levels.append(levels[-1][..., ::2] + levels[-1][..., 1::2])
        return tuple(reversed(levels))

    def counted(self, *, whole_known: bool = False) -> tuple[int, ...]:
        """Return the levels that are counted: not that of all cells, where their sum is known."""
        steps = -(-self.lowest // AT_ONCE)
        levels = tuple(round(step * self.lowest / max(steps, 1)) for step in range(steps + 1))
        return (levels[1:] or levels) if whole_known else levels
