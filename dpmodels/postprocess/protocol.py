"""The interface to released counts of ordered cells, for every kind of release."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dpmodels.typing import Floats, Integers, Numbers

NO_WEIGHT: Final[Floats] = np.zeros(())


class Spread(NamedTuple):
    """Sums of powers of the weights of independent noise variables, one entry per sum of counts.

    The variance of a sum is its entry of `squares` times that of one noise variable; `fourths`
    measure how far its distribution is from normal, and are used for Laplace noise only.
    """

    squares: Floats  # sums of the squares of the weights
    fourths: Floats  # sums of their fourth powers

    def plus(self, squares: Floats, fourths: Floats) -> Spread:
        """Return the sums with those of further, independent noise variables."""
        return Spread(self.squares + squares, self.fourths + fourths)


class OrderedCounts(Protocol):
    """Counts of the ordered cells of one table, by group."""

    @property
    def cells(self) -> Floats:
        """Best estimates, shape (groups, cells), consistent with each other and a public total."""

    @property
    def incomplete(self) -> float:
        """Number of incomplete rows."""

    @property
    def whole(self) -> Numbers:
        """Nonnegative counts by group, the incomplete rows last; integers but for weights."""

    @property
    def unlawful(self) -> str:
        """Why the noise distribution of sums is unknown, as a sentence; empty if it is known."""

    def spread(self, weights: Floats, other_groups: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in weighted sums of the cells of one group; weights (..., cells).

        Every cell of every other group has the weight `other_groups`, shape (...,) or a number.
        """

    def along(
        self, before: Floats, cell_weight: Floats, after: Floats, other_groups: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in one sum of the cells of one group for each cell.

        In the k-th sum the cells before the k-th have the weight ``before[k]``, the k-th has
        ``cell_weight[k]``, those after it ``after[k]``; each is a number or of shape (cells,).
        """


class CellRanges(NamedTuple):
    """Sums of the cells of one group in which a range of them has another weight than the rest.

    The cells from `starts` up to but excluding `stops` have the weight `inside`, the group's other
    cells `outside`, cells of other groups `other_groups`; each is a number or of shape (ranges,).
    """

    starts: Integers
    stops: Integers
    inside: Floats
    outside: Floats
    other_groups: Floats = NO_WEIGHT


@runtime_checkable
class RangedCounts(Protocol):
    """Counts that compute the noise in a range without visiting every cell."""

    def within(self, ranges: CellRanges) -> Spread:
        """Return the noise in sums of the cells of one group; no range is empty."""


# Noisy counts made consistent with their total, at no privacy cost.


def balanced(values: Floats, total: float | None) -> Floats:
    """Return the nearest counts with the given total; they may be negative.

    Noise of equal variance loses its component along the sum: the variance of each count falls by
    the factor ``1 - 1/parts``, that of the sum to 0.
    """
    return values if total is None else values + (total - values.sum()) / len(values)


def consistent(values: Floats, total: float | None = None) -> Floats:
    """Return the nearest nonnegative counts with the given total.

    By default the total is their sum, or 0 if that is negative.

    .. [1] Duchi, J., Shalev-Shwartz, S., Singer, Y. and Chandra, T. (2008). "Efficient projections
       onto the l1-ball for learning in high dimensions." ICML.
    """
    target = max(float(values.sum() if total is None else total), 0.0)
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - target) / np.arange(1, len(values) + 1)
    positive = np.flatnonzero(falling > excess)
    # Rounding may leave no positive count where the total is 0 or below the precision of a value.
    shift = excess[positive[-1]] if positive.size else falling[0]
    return np.asarray(np.maximum(values - shift, 0.0))


def whole(values: Floats, total: float | None = None) -> Integers:
    """Return nonnegative integer counts near `values`, with the given total.

    The nearest nonnegative counts, with rounded running sums: rounding changes each count and the
    sum of any run of counts, such as a row of a table, by less than 1, and printed sums equal the
    sums of printed counts.

    .. [1] Fellegi, I. P. (1975). "Controlled random rounding." Survey Methodology 1(2), 123-133.

    >>> whole(np.array([5.2, -1.0, 8.2])), whole(np.array([5.2, 2.9, 8.2]), 20)
    (array([5, 0, 7]), array([6, 5, 9]))
    """
    target = max(round(float(values.sum() if total is None else total)), 0)
    running = np.rint(np.cumsum(consistent(values, float(target))))
    return np.diff(running, prepend=0.0).astype(np.int64)


def rising(values: Floats) -> Floats:
    """Return the nearest nonnegative, nondecreasing running totals, along the last axis.

    True totals satisfy both constraints, so the projection does not increase the total error.

    .. [1] Barlow, R. E., Bartholomew, D. J., Bremner, J. M. and Brunk, H. D. (1972). "Statistical
       inference under order restrictions." Wiley.

    >>> rising(np.array([-1.0, 4.0, 2.0, 9.0]))
    array([0., 3., 3., 9.])
    """
    from scipy.optimize import isotonic_regression

    fitted = np.apply_along_axis(lambda row: isotonic_regression(row).x, -1, values)
    return np.maximum(fitted, 0.0)


def whole_running(counts: Floats, n_others: float, total: float | None) -> Integers:
    """Return integer counts of groups, shape (groups, cells), flattened, with `n_others` last.

    Their running totals are the nearest nondecreasing ones, rounded, and capped by a public total.
    """
    paths = rising(np.cumsum(counts, axis=1))
    totals = whole(np.append(paths[:, -1], n_others), total)
    paths = np.rint(np.minimum(paths, totals[:-1, None])).astype(np.int64)
    paths[:, -1] = totals[:-1]
    return np.append(np.diff(paths, axis=1, prepend=0).ravel(), totals[-1])
