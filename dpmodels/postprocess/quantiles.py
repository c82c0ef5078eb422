"""Quantiles and their intervals from noisy counts of the cells that divide a range.

With S the rows counted below an end of a cell and N all of them, ``S - p N`` is a sum of counts of
weights ``1 - p`` below and ``-p`` above, the same whether N is known or not. It is below 0 where
the end lies under the quantile p, but for noise of known law and sampling of variance
``N p (1 - p)`` of rows that are no kin. No density enters: what is said holds on
atoms and gaps alike.

.. [1] Woodruff, R. S. (1952). "Confidence intervals for medians and other position measures."
   Journal of the American Statistical Association 47(260), 635-646.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.noise.sums import half_width
from dpmodels.postprocess.hierarchy import Hierarchy, prefix_variances
from dpmodels.typing import Floats


def rising(values: Floats) -> Floats:
    """Return what rises nearest to values that should: halfway between two that enclose them."""
    above, below = np.maximum.accumulate(values), np.minimum.accumulate(values[::-1])[::-1]
    return np.asarray((above + below) / 2)


@dataclass(frozen=True)
class NoisyCells:
    """Counts of cells side by side, made of noisy ones with independent noise of one law."""

    counts: Floats  # shape (cells,)
    law: str  # "laplace" or "gaussian"
    noise_sd: float
    rows: float  # How many there may be at most
    effect: int = 1  # Rows that sampling takes for one, as they may be one person's
    # Of whose nodes' noisy counts least squares made them; None if each is a noisy count itself.
    hierarchy: Hierarchy | None = None

    @cached_property
    def _nodes(self) -> Hierarchy:
        return self.hierarchy or Hierarchy(len(self.counts))

    @cached_property
    def _prefixes(self) -> tuple[Floats, Floats]:
        """Of the sums below each end, what :func:`prefix_variances` says."""
        whole, added = prefix_variances(self._nodes)
        return np.append(0.0, whole), np.append(0.0, added)

    @property
    def total(self) -> float:
        """Estimated number of rows."""
        return min(max(float(self.counts.sum()), 0.0), self.rows)

    @property
    def total_sd(self) -> float:
        """Standard deviation of the noise in their sum."""
        return self.noise_sd * math.sqrt(self._nodes.whole_variance)

    def excess(self, prob: float) -> Floats:
        """Return the rows below each end above those that a quantile wants, shape (cells + 1,)."""
        below = np.concatenate([[0.0], np.cumsum(self.counts)])
        return np.asarray(below - prob * below[-1])

    def excess_sd(self, prob: float) -> Floats:
        """Return the standard deviation of the noise in each of them."""
        whole, added = self._prefixes
        variance = (whole - prob) ** 2 * self._nodes.whole_variance + added
        # What the last end has at a share of 1 is none, but for rounding.
        return np.asarray(self.noise_sd * np.sqrt(np.maximum(variance, 0.0)))

    def rank_sd(self, prob: float) -> float:
        """Return that of the noise in the rank of a quantile, in rows."""
        return float(self.excess_sd(prob)[self._under(prob)])

    def _under(self, prob: float) -> int:
        """Return how many cells lie below a quantile, about."""
        return min(max(round(prob * len(self.counts)), 1), len(self.counts) - 1)

    def quantile(self, prob: float) -> tuple[int, float]:
        """Return the cell of a quantile, and which share of the cell lies below it."""
        excess = rising(self.excess(prob))
        cell = int(np.searchsorted(excess[1:-1], 0.0))
        low, high = excess[cell : cell + 2]
        return cell, float(np.clip(-low / (high - low), 0.0, 1.0)) if high > low else 0.5

    def interval(self, prob: float, level: float) -> tuple[int, int]:
        """Return the first and the last cell that may hold the population's quantile.

        A cell is left out on the lower side where every end up to its upper one has too few rows
        below, on the upper side where every end from its lower one on has too many. The quantile is
        missed only if the end next to it is, so no more often than stated wherever cells were cut.
        """
        excess, noise = self.excess(prob), self.excess_sd(prob)
        sampling = math.sqrt(self.effect * self.total * prob * (1 - prob))
        under = self._under(prob)
        weights = self._nodes.noise_weights(
            np.where(np.arange(len(self.counts)) < under, 1 - prob, -prob)
        )
        reach = half_width(self.law, weights, self.noise_sd, sampling, level)
        spread = np.hypot(noise, sampling)
        away = reach / spread[under] * spread
        maybe_below = np.flatnonzero(excess[1:] + away[1:] >= 0)
        maybe_above = np.flatnonzero(excess[:-1] - away[:-1] <= 0)
        first = int(maybe_below[0]) if len(maybe_below) else len(self.counts) - 1
        last = int(maybe_above[-1]) if len(maybe_above) else 0
        return min(first, last), max(first, last)
