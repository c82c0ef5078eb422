"""Running totals from the square root of their matrix: what is made of it, with exact variances.

Cells stand in an order, and running totals are ``A x`` for the lower triangular matrix A of ones.
With ``A = R R`` released are ``R x`` with independent noise z of variance 1, so that ``R`` times
that are the totals, with the noise ``R z``. All matrices here are lower triangular and the same
along diagonals: they are power series, A is ``1/(1 - s)`` and R its root, of coefficients
``C(2k, k)/4**k``. Those are rounded to multiples of ``1/UNIT``, so that ``UNIT R x`` are integers;
of the rounded R the totals are solved as of any other, and nothing is biased by it.

*Theorem.* Let h be the series ``1/((1 - s) R(s))``. The noise of the total of the first t cells is
``sum_{k<t} h_k z_{t-k}``, so that of two totals, t cells and m more, has the covariance ``sum_{k<t}
h_k h_{k+m}``: the variance of a sum over a range takes one running sum of products for each
length. A public number of all rows is one more observation, without noise, of the last totals and
the incomplete rows: a best estimate takes off its covariance with them, and variances fall by that
covariance's square over their variance.

.. [1] Henzinger, M., Upadhyay, J. and Upadhyay, S. (2023). "Almost tight error bounds on
   differentially private continual counting." SODA.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.postprocess.protocol import NO_WEIGHT, Spread, whole_running
from dpmodels.released import SumsRelease
from dpmodels.typing import Floats, Integers

# The first coefficient as an integer: sums of squares of the others stay below 2**53.
UNIT: Final = 2**20


def coefficients(cells: int) -> Integers:
    """Return the first coefficients of the root, in units of which a row has `UNIT` in the first.

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
    """Return the series that a series has to be multiplied with for 1, by Newton's steps."""
    reciprocal = 1 / series[:1]
    while len(reciprocal) < len(series):
        size = min(2 * len(reciprocal), len(series))
        padded = np.pad(reciprocal, (0, size - len(reciprocal)))
        reciprocal = 2 * padded - product(padded, product(padded, series[:size]))
    return reciprocal


@dataclass(frozen=True, eq=False)
class SquareRoot:
    """The estimates that released sums of so many cells by group are turned into."""

    cells: int

    @cached_property
    def back(self) -> Floats:
        """Series that released sums are multiplied with for the counts of cells."""
        return inverse(coefficients(self.cells) / UNIT)

    @cached_property
    def weights(self) -> Floats:
        """Weights of the noise in a running total, that of the last cell first."""
        return np.cumsum(self.back)

    @cached_property
    def prefix_variances(self) -> Floats:
        """Of the running totals, without a public number of rows."""
        return np.cumsum(self.weights**2)

    @cached_property
    def with_last(self) -> Floats:
        """Covariance of each running total with the last one."""
        return product(self.weights, self.weights[::-1])

    @cached_property
    def mean_variances(self) -> tuple[float, float]:
        """Of the mean range and of the mean cell, without a public number of rows.

        Of all ranges between n + 1 ends, ``sum_{i<j} (P_j - P_i)² = (n + 1) sum P² - (sum P)²``.
        """
        n_edges, n_ranges = self.cells + 1, self.cells * (self.cells + 1) / 2
        of_sum = float((np.cumsum(self.weights) ** 2).sum())
        mean_range = (n_edges * float(self.prefix_variances.sum()) - of_sum) / n_ranges
        return mean_range, float(np.cumsum(self.back**2).mean())

    def sums(self, cells: NDArray[Any]) -> Integers:
        """Return what is released of exact counts, shape (groups, cells), in units of `UNIT`."""
        series = coefficients(self.cells)
        rows = [np.convolve(row, series)[: self.cells] for row in cells.astype(np.int64)]
        return np.array(rows)

    def agreeing(
        self, noisy: Floats, incomplete: float, total: float | None
    ) -> tuple[Floats, float]:
        """Return counts of cells, shape (groups, cells), and of the incomplete rows.

        They are made to agree with a public total of all rows. `noisy` has the shape (groups,
        cells), in rows.
        """
        cells = product(noisy, self.back)
        if total is None:
            return cells, incomplete
        gap = total - float(cells.sum()) - incomplete
        adjustment = gap / self.whole_variance(len(noisy))
        return cells + adjustment * np.diff(self.with_last, prepend=0.0), incomplete + adjustment

    def whole_variance(self, groups: int) -> float:
        """Return the variance of the number of all rows of so many groups, as released."""
        return groups * float(self.prefix_variances[-1]) + 1

    def noise(self, weights: Floats) -> Floats:
        """Return the weights of the noise in sums of cells of a group, the last cell's first.

        `weights`, shape (..., cells), are those of the cells.
        """
        return product(weights[..., ::-1], self.back)

    def range_variances(self, starts: Integers, stops: Integers) -> Floats:
        """Return those of sums over cells from `starts` up to `stops`, without these."""
        prefix_variances = np.append(0.0, self.prefix_variances)
        variances = prefix_variances[starts] + prefix_variances[stops]
        inner, lengths = starts > 0, stops - starts
        for length in np.unique(lengths[inner]).tolist():
            products = self.weights[: self.cells - length] * self.weights[length:]
            covariances = np.append(0.0, np.cumsum(products))
            at = inner & (lengths == length)
            variances[at] -= 2 * covariances[starts[at]]
        return np.asarray(variances)


# Counts of cells in an order, made of their noisy sums by the square root of running totals.


@dataclass(frozen=True, eq=False)
class RootCounts:
    """Counts that are solved for, with the exact law of the noise in any sum of them.

    Noise is normal: its fourth powers are not needed, and 0.
    """

    release: SumsRelease

    unlawful = ""

    @cached_property
    def _root(self) -> SquareRoot:
        return SquareRoot(self.release.shape[1])

    @cached_property
    def _agreed(self) -> tuple[Floats, float]:
        noisy = self.release.values[:-1].reshape(self.release.shape)
        return self._root.agreeing(noisy, float(self.release.values[-1]), self.release.rows)

    @property
    def cells(self) -> Floats:
        """Shape (groups, cells)."""
        return self._agreed[0]

    @property
    def incomplete(self) -> float:
        """Number of incomplete rows."""
        return self._agreed[1]

    @cached_property
    def whole(self) -> Integers:
        """Of each group in turn, the incomplete rows last: running totals made to rise."""
        return whole_running(self.cells, self.incomplete, self.release.rows)

    def spread(self, weights: Floats, other_groups: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in sums of the cells of one group."""
        root = self._root
        noise = root.noise(np.asarray(weights, dtype=float))
        return self._with_totals((noise**2).sum(axis=-1), noise @ root.weights, other_groups)

    def along(
        self, before: Floats, cell_weight: Floats, after: Floats, other_groups: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in a sum a cell: of the totals up to it, with it, and of all cells."""
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
        total_squares = squares + 2 * first * second * next_to + 2 * third * with_all
        return self._with_totals(
            total_squares, with_all + third * prefix_variances[-1], other_groups
        )

    def within(
        self,
        starts: Integers,
        stops: Integers,
        inside: Floats,
        outside: Floats,
        other_groups: Floats = NO_WEIGHT,
    ) -> Spread:
        """Return the noise in ranges of cells, and what is outside them."""
        root, difference = self._root, inside - outside
        last = np.append(0.0, root.with_last)
        with_last = difference * (last[stops] - last[starts])
        range_squares, beyond = (
            difference**2 * root.range_variances(starts, stops),
            outside * last[-1],
        )
        return self._with_totals(
            range_squares + outside * (2 * with_last + beyond), with_last + beyond, other_groups
        )

    def _with_totals(self, squares: Floats, with_all: Floats, other_groups: Floats) -> Spread:
        """Add the totals of other groups, and take off what a public total tells.

        `with_all` is the covariance of the sums with the total of their own group.
        """
        n_others, variance = self.release.shape[0] - 1, float(self._root.prefix_variances[-1])
        variances = squares + n_others * other_groups**2 * variance
        if self.release.rows is not None:
            with_total = with_all + n_others * other_groups * variance
            variances = variances - with_total**2 / self._root.whole_variance(n_others + 1)
        # What a public total tells in full is left with the rounding of products.
        return Spread(np.maximum(variances, 0.0), np.zeros_like(variances))
