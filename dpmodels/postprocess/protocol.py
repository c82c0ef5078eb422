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

    def spread(self, weights: Floats, other_groups: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in sums of the cells of one group with weights, shape (..., cells).

        All cells of all other groups have the weight `other_groups`, shape (...,) or a number.
        """

    def along(
        self, before: Floats, cell_weight: Floats, after: Floats, other_groups: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in as many sums of the cells of one group as there are cells.

        In the k-th sum the cells before the k-th have the weight ``before[k]``, the k-th has
        ``cell_weight[k]``, those after it ``after[k]``; each is a number or of shape (cells,).
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
        other_groups: Floats = NO_WEIGHT,
    ) -> Spread:
        """Return the noise in sums of the cells of one group.

        The cells from `starts` up to but excluding `stops` have the weight `inside`, the group's
        other cells `outside`, cells of other groups `other_groups`; each is a number or of shape
        (ranges,). No range is empty.
        """


# Noisy counts made to agree with their total: free of charge.


def balanced(values: Floats, total: float | None) -> Floats:
    """Return the nearest counts that have the total given; they may be negative.

    Noise of equal size loses the part along the sum: each count's variance falls by the factor
    ``1 - 1/parts`` and the sum's to 0.
    """
    return values if total is None else values + (total - values.sum()) / len(values)


def consistent(values: Floats, total: float | None = None) -> Floats:
    """Return the nearest counts that are not negative and have the total given.

    By default the total is what they add up to, or 0 if that is negative.

    .. [1] Duchi, J., Shalev-Shwartz, S., Singer, Y. and Chandra, T. (2008). "Efficient projections
       onto the l1-ball for learning in high dimensions." ICML.
    """
    target = max(float(values.sum() if total is None else total), 0.0)
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - target) / np.arange(1, len(values) + 1)
    positive = np.flatnonzero(falling > excess)
    # Rounding may leave none where the total is 0 or beyond the precision of a value.
    shift = excess[positive[-1]] if positive.size else falling[0]
    return np.asarray(np.maximum(values - shift, 0.0))


def whole(values: Floats, total: float | None = None) -> Integers:
    """Return whole counts that are not negative, have the total given and are near.

    The nearest counts that need not be whole, whose running sums are rounded: each count and the
    sum of any run of them, such as a line of a table, is less than 1 from what it was. Sums over
    any cells are what readers get who add up the printed ones.

    .. [1] Fellegi, I. P. (1975). "Controlled random rounding." Survey Methodology 1(2), 123-133.

    >>> whole(np.array([5.2, -1.0, 8.2])), whole(np.array([5.2, 2.9, 8.2]), 20)
    (array([5, 0, 7]), array([6, 5, 9]))
    """
    target = max(round(float(values.sum() if total is None else total)), 0)
    running = np.rint(np.cumsum(consistent(values, float(target))))
    return np.diff(running, prepend=0.0).astype(np.int64)


def rising(values: Floats) -> Floats:
    """Return the nearest running totals that are not negative and do not fall, along the last axis.

    True totals are such, so these are no farther from them than those given, all together.

    .. [1] Barlow, R. E., Bartholomew, D. J., Bremner, J. M. and Brunk, H. D. (1972). "Statistical
       inference under order restrictions." Wiley.

    >>> rising(np.array([-1.0, 4.0, 2.0, 9.0]))
    array([0., 3., 3., 9.])
    """
    from scipy.optimize import isotonic_regression

    fitted = np.apply_along_axis(lambda row: isotonic_regression(row).x, -1, values)
    return np.maximum(fitted, 0.0)


def whole_running(counts: Floats, n_others: float, total: float | None) -> Integers:
    """Return whole counts of groups, shape (groups, cells), in rows, that of others the last.

    Their running totals are the nearest that rise, rounded, and cut where a public total of all
    says less.
    """
    paths = rising(np.cumsum(counts, axis=1))
    totals = whole(np.append(paths[:, -1], n_others), total)
    paths = np.rint(np.minimum(paths, totals[:-1, None])).astype(np.int64)
    paths[:, -1] = totals[:-1]
    return np.append(np.diff(paths, axis=1, prepend=0).ravel(), totals[-1])
