"""Means and variances by group, from noisy power sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from dpmodels.inference.ratios import TOLD, Noise, ratio_interval
from dpmodels.postprocess.power_sums import central_weights, power_weights
from dpmodels.typing import Floats

Interval = tuple[Floats, Floats]
# Where each of five parts of persons counts among the three of rows.
_WHERE = (0, 1, 2, 0, 2)


@dataclass(frozen=True)
class GroupMoments:
    """Moments by group of a number that lies between 0 and 1.

    Of noisy Bernstein parts of the rows, shape (groups, degree + 1). Those of persons who may be in
    several groups are `clustered`: five, those of degree 2 and two more, see
    :mod:`dpmodels.statistics.person_parts`. A group's mean is then the ratio of sums of persons,
    with the sampling variance that persons give it, and a person counts by its share of the group.

    Whatever is lost in its noise is nan: no group of fewer rows than `TOLD` times the noise of
    their number has a mean.
    """

    parts: Floats
    noise: Noise
    clustered: bool = False

    @property
    def degree(self) -> int:
        """The highest power."""
        return 2 if self.clustered else int(self.parts.shape[1]) - 1

    @property
    def counts(self) -> Floats:
        """Number of complete rows, shape (groups,); may be negative."""
        return np.asarray(self.parts.sum(axis=1))

    @cached_property
    def together(self) -> GroupMoments:
        """The moments of all groups as one, of which persons may have been in several.

        Their sampling error is as for :attr:`joint_sampling_sd`.
        """
        summed = self._apart.sum(axis=0, keepdims=True)
        own = _WHERE if self.clustered else range(self.parts.shape[1])
        noise = self.noise._replace(added=tuple(own) * len(self.parts))
        return replace(self, parts=summed, noise=noise, clustered=False)

    @cached_property
    def count_sd(self) -> float:
        """Noise standard deviation of each of them."""
        ones = np.ones((1, self.parts.shape[1]))
        return float(np.sqrt(self.noise.product(ones, ones)[0]))

    @cached_property
    def told(self) -> NDArray[np.bool_]:
        """Whether a group's rows can be told from none."""
        return np.asarray(self.counts > max(TOLD * self.count_sd, 1.0))

    @cached_property
    def means(self) -> Floats:
        """Means, shape (groups,), within 0 and 1; nan where not told."""
        return np.clip(self._ratio(self._mean_weights), 0.0, 1.0)

    @cached_property
    def variances(self) -> Floats:
        """Variances about the mean with divisor n - 1, not below 0; nan where not told.

        Of persons in several groups those of their means, by squares of their shares.
        """
        return np.maximum(self._ratio(self._central(2)), 0.0) * self._correction * self._alone

    @cached_property
    def independent(self) -> Floats:
        """Numbers of rows, or of persons whole in one group, that tell as much of the mean."""
        return self.counts * self._alone

    @cached_property
    def mean_noise_sd(self) -> Floats:
        """Noise standard deviation of the means."""
        return self._ratio_noise(self._mean_weights, self.means)

    @cached_property
    def variance_noise_sd(self) -> Floats:
        """Noise standard deviation of the variances, to first order."""
        raw = np.nan_to_num(self.variances / self._correction)
        squares = np.arange(self.parts.shape[1]) <= self.degree
        own = self._central(2) - raw[:, None] * squares
        sd = np.sqrt(self.noise.product(own, own))
        return np.asarray(sd / self._divisor * self._alone * self._correction)

    @cached_property
    def mean_sampling_sd(self) -> Floats:
        """Sampling standard deviation of the means."""
        return np.asarray(np.sqrt(self.variances / (self._divisor * self._alone)))

    @cached_property
    def joint_sampling_sd(self) -> Floats:
        """Sampling standard deviations that hold of any sum of the groups' means.

        As if groups were independent, the sum varies no more: of rows they are. Of a person with
        shares C of the groups, ``Σ C <= 1``, and distances d from their means the square of ``Σ x C
        d`` is at most ``Σ x² C d²``, and at most k times ``Σ x² (C d)²`` for k groups. And ``C d²``
        is at most ``(C d)²`` and ``C (1 - C)`` times ``(1 - t) r² + t (1 - r)²``, as squares are
        convex, which is what its last two parts make if they count as the ends of the range.
        """
        own = self.mean_sampling_sd
        if not self.clustered:
            return own
        apart = replace(self, parts=self._apart, clustered=False).mean_sampling_sd
        return np.asarray(np.fmin(apart, own * np.sqrt(len(own))))

    @cached_property
    def variance_sampling_sd(self) -> Floats:
        """Sampling standard deviation of the variances, from fourth moments; degree 4."""
        return np.asarray(np.sqrt(self._square_spread / self._divisor))

    @cached_property
    def _square_spread(self) -> Floats:
        """Variance of the squared distances from the mean, not below 0; nan where not told."""
        return np.maximum(self._ratio(self._central(4)) - self.variances**2, 0.0)

    def mean_interval(self, level: float, *, population: bool) -> Interval:
        """Return intervals of the population's means, or of those on these rows, within 0 and 1.

        An estimate outside is moved to the end, and its interval with it, which holds all that the
        other held: else some would hold nothing but the end.
        """
        spread = np.nan_to_num(self.variances / self._alone) * self.counts * population
        factor = student_factor(np.maximum(self.independent - 1, 1.0), (1 - level) / 2)
        lower, upper = self._invert(self._mean_weights, spread * factor**2, level)
        estimate = np.nan_to_num(self._ratio(self._mean_weights))
        moved = np.clip(estimate, 0.0, 1.0) - estimate
        return np.clip(lower + moved, 0.0, 1.0), np.clip(upper + moved, 0.0, 1.0)

    def variance_interval(self, level: float, *, population: bool) -> Interval:
        """Return intervals of the variances, within 0 and 1/4; degree 4 for the population's.

        An estimate outside is moved to the end, as that of a mean.
        """
        spread = np.zeros(len(self.parts))
        if population:
            spread = np.nan_to_num(self._square_spread) * self.counts
        lower, upper = self._invert(self._central(2), spread, level)
        estimate = np.nan_to_num(self._ratio(self._central(2)))
        held = np.clip(estimate, 0.0, 0.25)
        # As Wilson's: the sampling error is that of the variance at the end, not at the estimate.
        steeper = spread / np.maximum(held, 1e-200) / np.nan_to_num(self._divisor, nan=1.0) ** 2
        moved = ndtri((1 + level) / 2) ** 2 * steeper / 2
        factor = np.nan_to_num(self._correction, nan=1.0)
        lower = held + moved - np.hypot(estimate - lower, moved)
        upper = held + moved + np.hypot(upper - estimate, moved)
        return np.clip(lower, 0.0, 0.25) * factor, np.clip(upper, 0.0, 0.25) * factor

    # ---- sums -------------------------------------------------------------------------

    @property
    def _apart(self) -> Floats:
        """Parts of degree 2, the last two of persons counted as the ends of the range."""
        if not self.clustered:
            return self.parts
        first, none = self.parts[:, :3], np.zeros(len(self.parts))
        return first + np.stack([self.parts[:, 3], none, self.parts[:, 4]], axis=1)

    @cached_property
    def _divisor(self) -> Floats:
        return np.where(self.told, self.counts, np.nan)

    @cached_property
    def _correction(self) -> Floats:
        rows = self._divisor * self._alone
        return np.asarray(rows / np.maximum(rows - 1, 1.0))

    @cached_property
    def _alone(self) -> Floats:
        """Sum of persons' shares over that of their squares, shape (groups,); 1 of rows."""
        if not self.clustered:
            return np.ones(len(self.parts))
        squares = self.parts[:, :3].sum(axis=1)
        least = np.minimum(self.count_sd, np.maximum(self.counts, 1.0))
        shares = np.maximum(self.counts, 1.0) / np.maximum(squares, least)
        return np.asarray(np.maximum(shares, 1.0))

    @cached_property
    def _mean_weights(self) -> Floats:
        return np.tile(self.weights, (len(self.parts), 1))

    @property
    def weights(self) -> Floats:
        """Weights of the parts of a group that make the sum of its numbers, shape (parts,)."""
        own = power_weights(self.degree, 1)
        more = power_weights(1, 1) if self.clustered else np.zeros(0)
        return np.concatenate([own, more])

    def _central(self, power: int) -> Floats:
        own = central_weights(self.degree, power, np.nan_to_num(self.means))
        none = np.zeros((len(own), self.parts.shape[1] - own.shape[1]))
        return np.hstack([own, none])

    def _ratio(self, weights: Floats) -> Floats:
        return np.asarray((weights * self.parts).sum(axis=1) / self._divisor)

    def _ratio_noise(self, weights: Floats, ratio: Floats) -> Floats:
        own = weights - np.nan_to_num(ratio)[:, None]
        return np.asarray(np.sqrt(self.noise.product(own, own)) / self._divisor)

    def _invert(self, weights: Floats, spread: Floats, level: float) -> Interval:
        held = np.maximum(spread, 0.0)
        lower, upper = ratio_interval(self.parts, weights, self.noise, held, level)
        return np.where(self.told, lower, -np.inf), np.where(self.told, upper, np.inf)


def student_factor(freedom: Floats, tail: float) -> Floats:
    """Return Student's quantile as a multiple of the normal one.

    A sampling error multiplied by it has the right tail by itself, and one that is no shorter
    together with noise of known law. `freedom` is 1 or more, `tail` that of the upper tail, in (0,
    1/2).

    .. [1] Student (1908). "The probable error of a mean." Biometrika 6(1), 1-25.
    """
    return np.asarray(stdtrit(np.minimum(freedom, 1e300), tail) / ndtri(tail))
