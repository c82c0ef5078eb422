"""Means and variances of the rows of sampling units, whose rows have mean squares of positions.

Of a unit let b be the means of the Bernstein polynomials of degree 2 of its rows. A function of a
row with the Bernstein coefficients v has the mean ``v·b`` in a unit, with the square
``Σ v_i v_j b_i b_j``: both are weighted sums of the parts of Theorem 82.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.inference.means import central_weights, power_weights
from dpmodels.inference.sampled import SampledMoments
from dpmodels.typing import Floats

# The Bernstein polynomials in each product: 00, 01, 02, 11, 12, 22.
_LEFT, _RIGHT = np.triu_indices(3)


@dataclass(frozen=True, kw_only=True)
class UnitMoments(SampledMoments):
    """Moments by group of the rows of sampling units: six products, then three means."""

    @property
    def n_squares(self) -> int:
        """How many parts of a group are of squared shares."""
        return len(_LEFT)

    @property
    def weights(self) -> Floats:
        """Weights with which the parts of a group add up to its sum of positions."""
        return np.asarray(_sums_of(power_weights(2, 1)))

    @property
    def _row_correction(self) -> float:
        """1: the number of rows of a table of units is not public."""
        return 1.0

    def meat(self, centre: Floats) -> Floats:
        """Return the variance of ``Σ C (t - centre)`` over units, not below 0, shape (groups,)."""
        return self._variance_of(power_weights(2, 1) - centre[:, None])

    def _both_central(self, centre: Floats) -> Floats:
        """Return the weights of squared distances of rows from a centre."""
        return _sums_of(central_weights(2, 2, centre))

    @cached_property
    def variance_sampling_sd(self) -> Floats:
        """Sampling standard deviation of the variances, by linearisation."""
        spread = np.nan_to_num(self.variances)[:, None]
        scores = central_weights(2, 2, self._centre) - spread
        bound = self.joined if self.several else 1
        return np.asarray(np.sqrt(bound * self._variance_of(scores)) / self._whole)

    def _variance_of(self, scores: Floats) -> Floats:
        """Return the variance over units of sums of a score of rows, by its coefficients.

        Of capped units squared means are a fraction of the mean squares: that of all units.
        """
        squares = _squares_of(scores)
        squared = (self.parts[:, : self.n_squares] * squares).sum(axis=1) * self._weight_ratio
        of_rows = (self.parts * _sums_of(scores**2)).sum(axis=1)
        fraction = np.clip(squared / np.maximum(of_rows, 1e-300), 0.0, 1.0)
        more = self.cut.squares(scores**2) * fraction
        return self._variance(_sums_of(scores), squares, scores, more)


def _sums_of(coefficients: Floats) -> Floats:
    """Return the weights of the parts in sums of a function, shape (..., parts)."""
    pairs = (coefficients[..., _LEFT] + coefficients[..., _RIGHT]) / 2
    return np.concatenate([pairs, coefficients], axis=-1)


def _squares_of(coefficients: Floats) -> Floats:
    """Return the weights of the products in squares of a function's means."""
    return np.asarray(coefficients[..., _LEFT] * coefficients[..., _RIGHT])
