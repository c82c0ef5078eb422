"""Running totals released through the square root of their matrix, with exact variances.

Cells are ordered, and running totals are ``A x`` for the lower triangular matrix A of ones. With
``A = R R``, ``R x`` is released with independent noise z of variance 1; ``R`` times the release
gives the totals with the noise ``R z``. All matrices here are lower triangular Toeplitz, that is
power series: A is ``1/(1 - s)`` and R its root, with the coefficients ``C(2k, k)/4**k``. These are
rounded to multiples of ``1/UNIT``, so ``UNIT R x`` are integers; totals are solved from the rounded
R, without bias.

*Theorem.* Let h be the series ``1/((1 - s) R(s))``. The noise of the total of the first t cells is
``sum_{k<t} h_k z_{t-k}``, and the totals of t and of t + m cells have the noise covariance
``sum_{k<t} h_k h_{k+m}``: the variances of sums over ranges take one running sum of products for
each length. A public number of rows is a noiseless observation of the sum of the last totals and
the incomplete rows: the best estimate subtracts the covariance with it, and variances fall by the
squared covariance over its variance.

.. [1] Henzinger, M., Upadhyay, J. and Upadhyay, S. (2023). "Almost tight error bounds on
   differentially private continual counting." SODA.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from dpmodels.postprocess.protocol import NO_WEIGHT, CellRanges, Spread, whole_running
from dpmodels.released import SumsRelease
from dpmodels.typing import Floats, Integers, Numbers

# The first coefficient as an integer: sums of squares of the coefficients stay below 2**53.
UNIT: Final = 2**20


def coefficients(cells: int) -> Integers:
    """Return the first coefficients of the root, in multiples of ``1/UNIT``.

    >>> coefficients(4) / UNIT
    array([1.    , 0.5   , 0.375 , 0.3125])
    """
    k = np.arange(1, cells)
    exact = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
    rounded: Integers = np.rint(UNIT * exact).astype(np.int64)
    return rounded


def product(left: Floats, right: Floats) -> Floats:
    """Multiply two series on the last axis, up to the length of the first."""
    size = left.shape[-1]
    length = 2 ** (2 * size - 1).bit_length()
    transform = np.fft.rfft(left, length) * np.fft.rfft(right, length)
    return np.asarray(np.fft.irfft(transform, length)[..., :size])


def inverse(series: Floats) -> Floats:
    """Return the inverse of a power series, by Newton's method."""
    reciprocal = 1 / series[:1]
    while len(reciprocal) < len(series):
        size = min(2 * len(reciprocal), len(series))
        padded = np.pad(reciprocal, (0, size - len(reciprocal)))
        reciprocal = 2 * padded - product(padded, product(padded, series[:size]))
    return reciprocal


@dataclass(frozen=True, eq=False)
class SquareRoot:
    """The estimator of counts from released sums, for a number of cells by group."""

    cells: int

    @cached_property
    def back(self) -> Floats:
        """The series that turns released sums into counts of cells."""
        return inverse(coefficients(self.cells) / UNIT)

    @cached_property
    def weights(self) -> Floats:
        """Weights of the noise in a running total, that of the last cell first."""
        return np.cumsum(self.back)

    @cached_property
    def prefix_variances(self) -> Floats:
        """Noise variances of the running totals, without a public number of rows."""
        return np.cumsum(self.weights**2)

    @cached_property
    def with_last(self) -> Floats:
        """Covariance of each running total with the last one."""
        return product(self.weights, self.weights[::-1])

    @cached_property
    def mean_variances(self) -> tuple[float, float]:
        """Mean variances of ranges and of cells, without a public number of rows.

        Over all ranges between n + 1 edges, ``sum_{i<j} (P_j - P_i)² = (n + 1) sum P² - (sum P)²``.
        """
        n_edges, n_ranges = self.cells + 1, self.cells * (self.cells + 1) / 2
        of_sum = float((np.cumsum(self.weights) ** 2).sum())
        mean_range = (n_edges * float(self.prefix_variances.sum()) - of_sum) / n_ranges
        return mean_range, float(np.cumsum(self.back**2).mean())

    def sums(self, cells: Numbers) -> Integers:
        """Return ``UNIT R x`` for exact counts x, shape (groups, cells)."""
        series = coefficients(self.cells)
        rows = [np.convolve(row, series)[: self.cells] for row in cells.astype(np.int64)]
        return np.array(rows)

    def consistent_counts(
        self, noisy: Floats, incomplete: float, total: float | None
    ) -> tuple[Floats, float]:
        """Return counts of cells, shape (groups, cells), and of the incomplete rows.

        They are consistent with a public total of all rows. `noisy` are the released sums in rows,
        shape (groups, cells).
        """
        cells = product(noisy, self.back)
        if total is None:
            return cells, incomplete
        gap = total - float(cells.sum()) - incomplete
        adjustment = gap / self.whole_variance(len(noisy))
        return cells + adjustment * np.diff(self.with_last, prepend=0.0), incomplete + adjustment

    def whole_variance(self, groups: int) -> float:
        """Return the noise variance of the number of all rows, before the public total is used."""
        return groups * float(self.prefix_variances[-1]) + 1

    def noise(self, weights: Floats) -> Floats:
        """Return the noise weights of weighted sums of cells of a group, last cell first.

        `weights` of the cells have the shape (..., cells).
        """
        return product(weights[..., ::-1], self.back)

    def range_variances(self, starts: Integers, stops: Integers) -> Floats:
        """Return the noise variances of sums from `starts` up to but excluding `stops`."""
        prefix_variances = np.append(0.0, self.prefix_variances)
        variances = prefix_variances[starts] + prefix_variances[stops]
        inner, lengths = starts > 0, stops - starts
        for length in np.unique(lengths[inner]).tolist():
            products = self.weights[: self.cells - length] * self.weights[length:]
            covariances = np.append(0.0, np.cumsum(products))
            at = inner & (lengths == length)
            variances[at] -= 2 * covariances[starts[at]]
        return np.asarray(variances)


# Counts of ordered cells, from noisy sums by the square root of running totals.


@dataclass(frozen=True, eq=False)
class RootCounts:
    """Counts solved from noisy sums, with the exact noise distribution of any sum of them.

    Noise is normal: fourth powers are not needed, and set to 0.
    """

    release: SumsRelease

    unlawful = ""

    @cached_property
    def _root(self) -> SquareRoot:
        return SquareRoot(self.release.shape[1])

    @cached_property
    def _consistent(self) -> tuple[Floats, float]:
        values, n_rows = self.release.values, self.release.rows
        noisy = values[:-1].reshape(self.release.shape)
        return self._root.consistent_counts(noisy, float(values[-1]), n_rows)

    @property
    def cells(self) -> Floats:
        """Shape (groups, cells)."""
        return self._consistent[0]

    @property
    def incomplete(self) -> float:
        """Number of incomplete rows."""
        return self._consistent[1]

    @cached_property
    def whole(self) -> Integers:
        """Integer counts by group, the incomplete rows last; running totals are nondecreasing."""
        return whole_running(self.cells, self.incomplete, self.release.rows)

    def spread(self, weights: Floats, other_groups: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in sums of the cells of one group."""
        root = self._root
        noise = root.noise(np.asarray(weights, dtype=float))
        return self._with_totals((noise**2).sum(axis=-1), noise @ root.weights, other_groups)

    def along(
        self, before: Floats, cell_weight: Floats, after: Floats, other_groups: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in one sum per cell, as sums of three running totals."""
        root = self._root
        first, second, third = before - cell_weight, cell_weight - after, after
        prefix_variances, with_last = (
            np.append(0.0, v) for v in (root.prefix_variances, root.with_last)
        )
        next_to = np.append(0.0, np.cumsum(root.weights[:-1] * root.weights[1:]))
        squares = (
            first**2 * prefix_variances[:-1]
            + second**2 * prefix_variances[1:]
            + third**2 * prefix_variances[-1]
        )
        with_all = first * with_last[:-1] + second * with_last[1:]
        squares = squares + 2 * first * second * next_to + 2 * third * with_all
        return self._with_totals(squares, with_all + third * prefix_variances[-1], other_groups)

    def within(self, ranges: CellRanges) -> Spread:
        """Return the noise in sums with one weight inside a range of cells and one outside."""
        starts, stops, inside, outside, other_groups = ranges
        root, difference = self._root, inside - outside
        last = np.append(0.0, root.with_last)
        with_last = difference * (last[stops] - last[starts])
        squares, beyond = difference**2 * root.range_variances(starts, stops), outside * last[-1]
        squares = squares + outside * (2 * with_last + beyond)
        return self._with_totals(squares, with_last + beyond, other_groups)

    def _with_totals(self, squares: Floats, with_all: Floats, other_groups: Floats) -> Spread:
        """Add the totals of other groups, and subtract the reduction by a public total.

        `with_all` is the covariance of the sums with the total of their group.
        """
        n_others, variance = self.release.shape[0] - 1, float(self._root.prefix_variances[-1])
        variances = squares + n_others * other_groups**2 * variance
        if self.release.rows is not None:
            with_total = with_all + n_others * other_groups * variance
            variances = variances - with_total**2 / self._root.whole_variance(n_others + 1)
        # A sum that the public total determines has variance 0 up to rounding.
        return Spread(np.maximum(variances, 0.0), np.zeros_like(variances))
