"""Means and variances under a survey design: Hájek estimates with linearised errors.

The parts are those of :mod:`dpmodels.statistics.sampled`. Sampling units are treated as drawn with
replacement: the variance of ``Σ u`` over n units is ``n/(n - 1) Σ (u - ū)²``, by strata where they
are declared, times ``1 - n/N`` where the population has N units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from scipy.special import ndtri

from dpmodels.inference.means import (
    GroupMoments,
    Interval,
    central_weights,
    power_weights,
    student_factor,
)
from dpmodels.noise.sums import half_width
from dpmodels.typing import Floats

# Choices: strata are used where the noise of what they take off is below this fraction of the
# squared sums, and where a stratum has so many times the noise of its number of units.
CLEAR: Final = 0.1
DETECTED: Final = 4.0


@dataclass(frozen=True)
class StratumSums:
    """The parts by stratum, of shape (strata, groups, parts), and their noise sd."""

    parts: Floats
    rest: Floats  # of the units of each stratum, shape (strata,)
    noise_sd: float
    population: Floats  # units in the population, shape (strata,); infinite where not declared

    @property
    def units(self) -> Floats:
        """Numbers of units in the sample, shape (strata,); at least 2."""
        return np.asarray(np.maximum(self.parts.sum(axis=(1, 2)) + self.rest, 2.0))

    @property
    def units_sd(self) -> float:
        """Noise sd of each number of units."""
        return self.noise_sd * float(np.sqrt(self.parts[0].size + 1))


@dataclass(frozen=True, kw_only=True)
class SampledMoments(GroupMoments):
    """Moments by group of weighted rows or sampling units.

    Attributes
    ----------
    degree_of_mean : int
        1 for means, 2 for variances.
    n_units : float
        Number of units in the sample.
    n_strata : int
        Number of strata, 1 without.
    capped, capped_positions : array, shape (groups,)
        Sums of shares of capped units, and of these times positions, with noise of sd `side_sd`.
    excess, excess_sd : float
        Mean excess of a capped unit over the cap, in caps, and its error.
    fpc : float
        Share of the population that was not sampled.
    several : bool
        Whether a unit may be in several groups.
    strata : StratumSums or None
    """

    degree_of_mean: int
    n_units: float
    n_strata: int
    capped: Floats
    capped_positions: Floats
    side_sd: float
    excess: float
    excess_sd: float
    fpc: float = 1.0
    several: bool = False
    strata: StratumSums | None = None

    @property
    def degree(self) -> int:
        """The highest power of the mean's parts."""
        return 2 * self.degree_of_mean

    @property
    def weights(self) -> Floats:
        """Weights with which the parts of a group add up to its sum of positions."""
        return np.concatenate([power_weights(self.degree, 1), power_weights(2, 1)])

    @cached_property
    def _weight_ratio(self) -> Floats:
        """Sum of shares over the sum of their squares."""
        squares = self.parts[:, : self.degree + 1].sum(axis=1)
        floor = np.minimum(self.count_sd, np.maximum(self.counts, 1.0))
        ratio = np.maximum(self.counts, 1.0) / np.maximum(squares, floor)
        return np.asarray(np.maximum(ratio, 1.0))

    @cached_property
    def independent(self) -> Floats:
        """Kish's effective numbers of units, and at most one more than degrees of freedom."""
        return np.minimum(self.counts * self._weight_ratio, self.n_units - self.n_strata + 1)

    @property
    def _sample_correction(self) -> float:
        return self.n_units / max(self.n_units - 1, 1.0)

    @cached_property
    def variances(self) -> Floats:
        """Weighted variances; of units of several rows those of their means."""
        raw = self._ratio(self._both_central(np.nan_to_num(self.means)))
        return np.asarray(np.maximum(raw, 0.0) * self._sample_correction)

    def _both_central(self, centre: Floats) -> Floats:
        """Return the weights of squared distances from a centre, in both blocks of parts."""
        blocks = (central_weights(degree, 2, centre) for degree in (self.degree, 2))
        return np.asarray(np.hstack(list(blocks)))

    def meat(self, centre: Floats, spread: Floats | None = None) -> Floats:
        """Return the variance of ``Σ C (t - centre)`` over units, not below 0, shape (groups,).

        With `spread` it is that of ``Σ C ((t - centre)² - spread)``.
        """
        weights = central_weights(self.degree, 2, centre)
        if spread is not None:
            ones = np.ones(self.degree + 1)
            squares = central_weights(self.degree, 4, centre)
            weights = squares - 2 * spread[:, None] * weights + spread[:, None] ** 2 * ones
        squared = np.maximum((self.parts[:, : self.degree + 1] * weights).sum(axis=1), 0.0)
        scores = self.weights - centre[:, None]
        sums, noise = (self.parts * scores).sum(axis=1), self.noise.product(scores, scores)
        mean = np.maximum(sums**2 - noise, 0.0) / self.n_units if spread is None else 0.0
        simple = np.maximum(squared - mean, 0.0) * self._sample_correction
        if spread is None and self.strata is not None:
            simple = self._by_stratum(centre, squared, simple)
        return np.asarray(simple * self.fpc)

    def _by_stratum(self, centre: Floats, squared: Floats, simple: Floats) -> Floats:
        """Take the squared sums of strata off, where noise does not hide them."""
        strata = self.strata
        assert strata is not None
        weights = self.weights - centre[:, None]
        sums = (strata.parts * weights).sum(axis=2)
        noise = strata.noise_sd**2 * (weights**2).sum(axis=1)
        squares = central_weights(self.degree, 2, centre)
        by_stratum = (strata.parts[:, :, : self.degree + 1] * squares).sum(axis=2)
        n_units = strata.units[:, None]
        left = 1 - n_units / strata.population[:, None]
        factor = n_units / (n_units - 1) * np.where(left > 0, left, 1.0)
        mean_factor = float((factor * n_units).sum() / n_units.sum())
        taken = (factor * (sums**2 - noise) / n_units).sum(axis=0)
        error = np.sqrt(((4 * sums**2 * noise + 2 * noise**2) / n_units**2).sum(axis=0))
        within = mean_factor * squared + ((factor - mean_factor) * by_stratum).sum(axis=0) - taken
        is_clear = float(strata.units.min()) > DETECTED * strata.units_sd
        return np.where(
            is_clear & (error < CLEAR * squared),
            np.maximum(within, 0.0),
            simple,
        )

    @cached_property
    def mean_sampling_sd(self) -> Floats:
        """Sampling standard deviation of the means, by linearisation."""
        return np.asarray(np.sqrt(self.meat(np.nan_to_num(self.means))) / self._divisor)

    @cached_property
    def joint_sampling_sd(self) -> Floats:
        """Sampling standard deviations that bound any sum of the groups' means."""
        factor = np.sqrt(len(self.parts)) if self.several and self.joined == 1 else 1.0
        return self.mean_sampling_sd * factor

    @cached_property
    def excess_counts(self) -> Floats:
        """By group what was cut off the weights, in caps; noise sd `excess` times `side_sd`."""
        return self.excess * self.capped

    @cached_property
    def shift(self) -> Floats:
        """What the cap moved the means by, shape (groups,)."""
        means = np.nan_to_num(self.means)
        moved = self.excess * (self.capped_positions - means * self.capped)
        return np.asarray(-moved / (self._divisor + np.maximum(self.excess_counts, 0.0)))

    @cached_property
    def shift_sd(self) -> Floats:
        """The error of `shift`: noise, and the error of the mean excess."""
        means = np.nan_to_num(self.means)
        relative = self.excess_sd / self.excess if self.excess > 0 else 0.0
        noise = self.excess * self.side_sd * np.sqrt((1 - means) ** 2 + means**2) / self._divisor
        return np.asarray(np.hypot(noise, self.shift * relative))

    @cached_property
    def cap_sd(self) -> Floats:
        """What errors allow for the cap: the larger of the shift and of its error."""
        return np.maximum(np.abs(self.shift), self.shift_sd)

    @cached_property
    def mean_noise_sd(self) -> Floats:
        """Standard deviation of noise and cap in the means."""
        return np.hypot(self._ratio_noise(self._mean_weights, self.means), self.cap_sd)

    def mean_interval(self, level: float, *, population: bool) -> Interval:
        """Return intervals of the population's means, or of those on these rows."""
        tail = (1 - level) / 2
        factor = student_factor(np.maximum(self.independent - 1, 1.0), tail)
        sampled = self.meat(np.nan_to_num(self.means)) * factor**2 * population
        cut = (np.nan_to_num(self.cap_sd) * np.nan_to_num(self._divisor)) ** 2
        lower, upper = self._invert(self._mean_weights, sampled + cut, level)
        estimate = np.nan_to_num(self._ratio(self._mean_weights))
        moved = np.clip(estimate, 0.0, 1.0) - estimate
        return np.clip(lower + moved, 0.0, 1.0), np.clip(upper + moved, 0.0, 1.0)

    @cached_property
    def variance_noise_sd(self) -> Floats:
        """Noise standard deviation of the variances, to first order."""
        means = np.nan_to_num(self.means)
        raw = np.nan_to_num(self.variances) / self._sample_correction
        weights = self._both_central(means) - raw[:, None]
        sd = np.sqrt(self.noise.product(weights, weights)) / self._divisor
        shifted = np.abs(self.excess * self.side_sd / self._divisor) + np.abs(self.shift)
        return np.asarray(np.hypot(sd * self._sample_correction, shifted / 4))

    @cached_property
    def variance_sampling_sd(self) -> Floats:
        """Sampling standard deviation of the variances, by linearisation."""
        raw = np.nan_to_num(self.variances) / self._sample_correction
        spread = self.meat(np.nan_to_num(self.means), raw)
        return np.asarray(np.sqrt(spread) / self._divisor) * self._sample_correction

    def variance_interval(self, level: float, *, population: bool) -> Interval:
        """Return intervals of the variances, within 0 and 1/4."""
        factor = student_factor(np.maximum(self.independent - 1, 1.0), (1 - level) / 2)
        sampling = self.variance_sampling_sd * factor * population
        width = ndtri((1 + level) / 2) * np.hypot(self.variance_noise_sd, sampling)
        width = np.where(self.detected, width, np.inf)
        estimate = np.nan_to_num(self.variances)
        return np.clip(estimate - width, 0.0, 0.25), np.clip(estimate + width, 0.0, 0.25)

    @cached_property
    def design_effect(self) -> Floats:
        """Variance of the means over that of as many rows drawn at random; nan for units."""
        n_rows = self.n_units * self.counts / max(float(self.counts.sum()), 1.0)
        if self.several:
            return np.full(len(self.parts), np.nan)
        simple = self.variances / np.maximum(n_rows, 1.0)
        return np.asarray(self.mean_sampling_sd**2 / np.where(simple > 0, simple, np.nan))

    @cached_property
    def effective(self) -> Floats:
        """The number of rows drawn at random that would have the same sampling error."""
        if self.several:
            return np.asarray(self.independent)
        variance = self.mean_sampling_sd**2
        return np.asarray(self.variances / np.where(variance > 0, variance, np.nan))


@dataclass(frozen=True)
class Totals:
    """Totals by group of a number or of a constant, from the parts of rows or of sampled units.

    `values` are what a part of each position counts for, shape (parts,): ``lower + width t``.
    """

    moments: GroupMoments
    lower: float
    width: float
    scale: float  # the weight of one unit of the parts: the cap, or 1 for rows

    @cached_property
    def _values(self) -> Floats:
        row = self.lower + self.width * self.moments.weights
        return np.tile(row, (len(self.moments.parts), 1))

    @cached_property
    def estimates(self) -> Floats:
        """The totals, shape (groups,)."""
        return np.asarray(self.scale * (self._values * self.moments.parts).sum(axis=1))

    @cached_property
    def shift(self) -> Floats:
        """What the cap moved the totals by."""
        moments = self.moments
        if not isinstance(moments, SampledMoments):
            return np.zeros(len(moments.parts))
        cut = self.lower * moments.capped + self.width * moments.capped_positions
        return np.asarray(-self.scale * moments.excess * cut)

    @cached_property
    def shift_sd(self) -> Floats:
        """The error of `shift`."""
        moments = self.moments
        if not isinstance(moments, SampledMoments):
            return np.zeros(len(moments.parts))
        ends = float(np.hypot(self.lower, self.lower + self.width))
        relative = moments.excess_sd / moments.excess if moments.excess > 0 else 0.0
        noise = self.scale * moments.excess * moments.side_sd * ends
        return np.asarray(np.hypot(noise, self.shift * relative))

    @cached_property
    def cap_sd(self) -> Floats:
        """What errors allow for the cap: the larger of the shift and of its error."""
        return np.maximum(np.abs(self.shift), self.shift_sd)

    @cached_property
    def noise_sd(self) -> Floats:
        """Standard deviation of noise and cap."""
        product = self.moments.noise.product(self._values, self._values)
        return np.asarray(np.hypot(self.scale * np.sqrt(product), self.cap_sd))

    @cached_property
    def sampling_sd(self) -> Floats:
        """Standard error by sampling alone."""
        moments, centre = self.moments, -self.lower / self.width
        origin = np.full(len(moments.parts), centre)
        if isinstance(moments, SampledMoments):
            variance = moments.meat(origin)
        else:
            squares = (moments.parts[:, :3] * central_weights(2, 2, origin)).sum(axis=1)
            variance = np.maximum(squares, 0.0)
        return np.asarray(self.scale * self.width * np.sqrt(variance))

    def interval(self, level: float, *, population: bool) -> Interval:
        """Return intervals of the totals."""
        noise = self.moments.noise
        extra = self.sampling_sd * population
        if population and isinstance(self.moments, SampledMoments):
            freedom = np.maximum(self.moments.independent - 1, 1.0)
            extra = extra * student_factor(freedom, (1 - level) / 2)
        spreads = np.hypot(extra, self.cap_sd)
        widths = [
            half_width(noise.law, row, self.scale * noise.sd, float(spread), level)
            for row, spread in zip(noise.weights(self._values), spreads, strict=True)
        ]
        return self.estimates - widths, self.estimates + widths
