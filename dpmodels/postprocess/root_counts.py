"""Counts of cells in an order, made of their noisy sums by the square root of running totals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.postprocess.protocol import NO_WEIGHT, Spread
from dpmodels.postprocess.square_root import SquareRoot
from dpmodels.postprocess.totals import whole_running
from dpmodels.released import SumsRelease
from dpmodels.typing import Floats, Integers


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

    def spread(self, weights: Floats, others: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in sums of the cells of one group."""
        root = self._root
        noise = root.noise(np.asarray(weights, dtype=float))
        return self._known((noise**2).sum(axis=-1), noise @ root.weights, others)

    def along(
        self, before: Floats, own: Floats, after: Floats, others: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in a sum a cell: of the totals up to it, with it, and of all cells."""
        root = self._root
        first, second, third = before - own, own - after, after
        one, with_last = (np.append(0.0, v) for v in (root.prefix_variances, root.with_last))
        next_to = np.append(0.0, np.cumsum(root.weights[:-1] * root.weights[1:]))
        squares = first**2 * one[:-1] + second**2 * one[1:] + third**2 * one[-1]
        shared = first * with_last[:-1] + second * with_last[1:]
        found = squares + 2 * first * second * next_to + 2 * third * shared
        return self._known(found, shared + third * one[-1], others)

    def within(
        self,
        starts: Integers,
        stops: Integers,
        inside: Floats,
        outside: Floats,
        others: Floats = NO_WEIGHT,
    ) -> Spread:
        """Return the noise in ranges of cells, and what is outside them."""
        root, more = self._root, inside - outside
        last = np.append(0.0, root.with_last)
        shared = more * (last[stops] - last[starts])
        own, beyond = more**2 * root.range_variances(starts, stops), outside * last[-1]
        return self._known(own + outside * (2 * shared + beyond), shared + beyond, others)

    def _known(self, squares: Floats, with_all: Floats, others: Floats) -> Spread:
        """Add the totals of other groups, and take off what a public total tells.

        `with_all` is the covariance of the sums with the total of their own group.
        """
        beside, variance = self.release.shape[0] - 1, float(self._root.prefix_variances[-1])
        found = squares + beside * others**2 * variance
        if self.release.rows is not None:
            shared = with_all + beside * others * variance
            found = found - shared**2 / self._root.whole_variance(beside + 1)
        # What a public total tells in full is left with the rounding of products.
        return Spread(np.maximum(found, 0.0), np.zeros_like(found))
