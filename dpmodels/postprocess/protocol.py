"""What a release of cells in an order is read by, however its counts were made."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dpmodels.typing import Floats, Integers

NO_WEIGHT: Final[Floats] = np.zeros(())


class Spread(NamedTuple):
    """With what weights independent noise stands in sums of counts, an entry a sum.

    The variance of a sum is its entry of `squares` times that of one noise variable; `fourths`
    tell how far its law is from a normal one, and are read for Laplace noise alone.
    """

    squares: Floats  # sums of the squares of the weights
    fourths: Floats  # and of their fourth powers


class OrderedCounts(Protocol):
    """Counts of the cells of one table that stand in an order, by group."""

    @property
    def cells(self) -> Floats:
        """Best counts, shape (groups, cells), agreeing with each other and a public total."""

    @property
    def incomplete(self) -> float:
        """Number of incomplete rows."""

    @property
    def whole(self) -> Integers:
        """Whole counts, not negative: of each group in turn, the incomplete rows last."""

    @property
    def unlawful(self) -> str:
        """Why the noise of sums has no known law, as a sentence; empty where it has one."""

    def spread(self, weights: Floats, others: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in sums of the cells of one group with weights, shape (..., cells).

        All cells of all other groups have the weight `others`, shape (...,) or a number.
        """

    def along(
        self, before: Floats, own: Floats, after: Floats, others: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in as many sums of the cells of one group as there are cells.

        In the k-th sum the cells before the k-th have the weight ``before[k]``, the k-th has
        ``own[k]``, those after it ``after[k]``; each is a number or of shape (cells,).
        """


@runtime_checkable
class RangedCounts(Protocol):
    """Counts that need not go through all cells to tell the noise in a range of them."""

    def within(
        self,
        starts: Integers,
        stops: Integers,
        inside: Floats,
        outside: Floats,
        others: Floats = NO_WEIGHT,
    ) -> Spread:
        """Return the noise in sums of the cells of one group.

        The cells from `starts` up to `stops`, without these, have the weight `inside`, its other
        cells `outside`, those of other groups `others`; each is a number or of shape (ranges,). No
        range is empty.
        """
