"""Means and variances under a survey design: Hájek estimates with linearised errors.

The parts are those of :mod:`dpmodels.statistics.sampled`. Sampling units are treated as drawn with
replacement: the variance of ``Σ u`` over n units is ``n/(n - 1) Σ (u - ū)²``, by strata where they
are declared, times ``1 - n/N`` where the population has N units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

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
from dpmodels.postprocess.weight_caps import CLEAR, DETECTED, UNLIKE, noise_of_squares, unit_factors
from dpmodels.typing import Floats


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

    def within(
        self, sums: Floats, noise: Floats, squares: Floats, squared: Floats, simple: Floats
    ) -> Floats:
        """Take the squared sums of strata off squared scores, where noise does not hide them.

        `sums` and `squares` are those of scores and of squared scores by stratum, shape (strata,
        groups), `noise` the noise variance of each of the sums; `squared` are the squares over all
        strata, and `simple` the variances that ignore strata, shape (groups,).
        """
        n_units = self.units[:, None]
        factor = unit_factors(n_units, n_units / self.population[:, None])
        mean_factor = float((factor * n_units).sum() / n_units.sum())
        between = (factor * (sums**2 - noise) / n_units).sum(axis=0)
        error = noise_of_squares(sums, noise, n_units)
        within = mean_factor * squared + ((factor - mean_factor) * squares).sum(axis=0) - between
        units_sd = self.noise_sd * math.sqrt(self.parts[0].size + 1)
        is_clear = float(self.units.min()) > DETECTED * units_sd
        clear = is_clear & (error < CLEAR * squared)
        return np.asarray(np.where(clear, np.maximum(within, 0.0), simple))


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The units of a sample, as variances of sums over them need them."""

    n_units: float
    n_strata: int  # 1 without strata
    fpc: float = 1.0  # fraction of the population that was not sampled
    several: bool = False  # whether a unit may be in several groups or cells
    strata: StratumSums | None = None

    def about_mean(self, squares: Floats, sums: Floats, noise: Floats) -> Floats:
        """Return variances of sums that ignore strata, from squares and sums of scores.

        `noise` is the noise variance of the sums.
        """
        mean = np.maximum(sums**2 - noise, 0.0) / self.n_units
        return np.maximum(squares - mean, 0.0) * (self.n_units / max(self.n_units - 1, 1.0))


@dataclass(frozen=True)
class Cut:
    """What a cap cut off the weights: parts of capped units, and how far they exceed the cap.

    Estimates put it back: what capped units have above the cap counts as their positions do, so
    that their mean has to be about that of their excess.
    """

    parts: Floats  # shape (groups, 3): of degree 2
    noise_sd: float  # of each part
    mean: float  # excess of a capped unit, in caps
    mean_sd: float
    square: float  # mean squared excess

    def error(self, weights: Floats, shift: Floats, divisor: Floats | float = 1.0) -> Floats:
        """Return the error of a shift, a weighted sum of what was put back over a divisor.

        Its noise, and its relative error: of its size, and of its positions (a choice).
        """
        relative = math.hypot(self.mean_sd / self.mean, UNLIKE) if self.mean > 0 else 0.0
        return np.hypot(self.sums_sd(weights) / divisor, shift * relative)

    def sums(self, weights: Floats) -> Floats:
        """Return weighted sums of what was cut off, shape (groups,)."""
        return np.asarray(self.mean * (self.parts * weights).sum(axis=-1))

    def sums_sd(self, weights: Floats) -> Floats:
        """Return the noise sd of these sums."""
        return np.asarray(self.mean * self.noise_sd * np.sqrt((weights**2).sum(axis=-1)))

    def squares(self, weights: Floats) -> Floats:
        """Return by how much weighted sums of squared weights exceed those of capped ones."""
        excess = (2 * self.mean + self.square) * (self.parts * weights).sum(axis=-1)
        return np.asarray(np.maximum(excess, 0.0))


@dataclass(frozen=True, kw_only=True)
class SampledMoments(Sample, GroupMoments):
    """Moments by group of weighted rows or sampling units."""

    degree_of_mean: int  # 1 for means, 2 for variances
    cut: Cut

    @property
    def degree(self) -> int:
        """The highest power of the mean's parts."""
        return 2 * self.degree_of_mean

    @property
    def n_squares(self) -> int:
        """How many parts of a group are of squared shares, the first of them."""
        return self.degree + 1

    @property
    def weights(self) -> Floats:
        """Weights with which the parts of a group add up to its sum of positions."""
        return np.concatenate([power_weights(self.degree, 1), power_weights(2, 1)])

    @cached_property
    def sizes(self) -> Floats:
        """Sums of weights by group in caps, with what was cut off."""
        return self.counts + self.cut.sums(np.ones(self.cut.parts.shape[1]))

    @cached_property
    def size_sd(self) -> float:
        """Noise standard deviation of each of these."""
        return math.hypot(self.count_sd, float(self.cut.sums_sd(np.ones(self.cut.parts.shape[1]))))

    @property
    def _whole(self) -> Floats:
        return np.asarray(np.where(self.detected, np.maximum(self.sizes, 1.0), np.nan))

    @cached_property
    def together(self) -> SampledMoments:
        """The moments of all groups combined; of units of several rows with bounds on errors."""
        groups, cut, strata = len(self.parts), self.cut, self.strata
        added = math.sqrt(groups)
        noise = self.noise._replace(added=tuple(range(self.parts.shape[1])) * groups)
        if strata is not None:
            parts, sd = strata.parts.sum(axis=1, keepdims=True), strata.noise_sd * added
            strata = replace(strata, parts=parts, noise_sd=sd)
        cut = replace(
            cut, parts=cut.parts.sum(axis=0, keepdims=True), noise_sd=cut.noise_sd * added
        )
        parts = self.parts.sum(axis=0, keepdims=True)
        return replace(self, parts=parts, noise=noise, joined=groups, strata=strata, cut=cut)

    @cached_property
    def independent(self) -> Floats:
        """Kish's effective numbers of units, and at most one more than degrees of freedom."""
        return np.minimum(self.counts * self._weight_ratio, self.n_units - self.n_strata + 1)

    @property
    def _sample_correction(self) -> float:
        return self.n_units / max(self.n_units - 1, 1.0)

    @property
    def _row_correction(self) -> float:
        return self._sample_correction

    # ---- means -------------------------------------------------------------------------

    @cached_property
    def _uncut(self) -> Floats:
        sums = (self.weights * self.parts).sum(axis=1) + self.cut.sums(power_weights(2, 1))
        return np.asarray(sums / self._whole)

    @cached_property
    def means(self) -> Floats:
        """Means, shape (groups,), within 0 and 1; nan for groups hidden by noise."""
        return np.clip(self._uncut, 0.0, 1.0)

    @cached_property
    def _centre(self) -> Floats:
        return np.nan_to_num(self.means)

    @cached_property
    def shift(self) -> Floats:
        """What the cap had moved the means by, shape (groups,)."""
        return np.asarray(self._ratio(self._mean_weights) - self._uncut)

    @cached_property
    def shift_sd(self) -> Floats:
        """The error of `shift`."""
        weights = power_weights(2, 1) - self._centre[:, None]
        return self.cut.error(weights, self.shift, self._whole)

    @cached_property
    def cut_share(self) -> Floats:
        """The share of the weight of each group that was cut off."""
        return np.asarray((self.sizes - self.counts) / self._whole)

    @cached_property
    def cut_share_sd(self) -> Floats:
        """The error of that share."""
        return self.cut.error(np.ones(self.cut.parts.shape[1]), self.cut_share, self._whole)

    @cached_property
    def mean_noise_sd(self) -> Floats:
        """Standard deviation of noise, that of what was put back included."""
        return np.hypot(self._ratio_noise(self._mean_weights, self.means), self.shift_sd)

    @cached_property
    def mean_sampling_sd(self) -> Floats:
        """Sampling standard deviation of the means, by linearisation.

        Squares of sums over k groups are at most k times the sum of squares: a bound for units in
        several of the groups that were joined.
        """
        bound = self.joined if self.several else 1
        return np.asarray(np.sqrt(bound * self.meat(self._centre)) / self._whole)

    @cached_property
    def joint_sampling_sd(self) -> Floats:
        """Sampling standard deviations that bound any sum of the groups' means."""
        factor = math.sqrt(len(self.parts)) if self.several and self.joined == 1 else 1.0
        return self.mean_sampling_sd * factor

    def mean_interval(self, level: float, *, population: bool) -> Interval:
        """Return intervals of the population's means, or of those on these rows."""
        factor = student_factor(np.maximum(self.independent - 1, 1.0), (1 - level) / 2)
        extra = np.nan_to_num(np.hypot(self.mean_sampling_sd * factor * population, self.shift_sd))
        spread = (extra * np.nan_to_num(self._divisor)) ** 2
        lower, upper = self._invert(self._mean_weights, spread, level)
        shift = np.nan_to_num(self.means) - np.nan_to_num(self._ratio(self._mean_weights))
        return np.clip(lower + shift, 0.0, 1.0), np.clip(upper + shift, 0.0, 1.0)

    # ---- squares -----------------------------------------------------------------------

    def meat(self, centre: Floats) -> Floats:
        """Return the variance of ``Σ C (t - centre)`` over units, not below 0, shape (groups,)."""
        squares = central_weights(self.degree, 2, centre)
        beyond = self.cut.squares(central_weights(2, 2, centre))
        cut = power_weights(2, 1) - centre[:, None]
        return self._variance(self.weights - centre[:, None], squares, cut, beyond)

    def _variance(self, scores: Floats, squares: Floats, cut: Floats, beyond: Floats) -> Floats:
        """Return the variance of a sum over units, from the weights of the parts.

        Of the sum, of its squares, and of the sum over what was cut off; `beyond` is what that adds
        to the squares.
        """
        squared = np.maximum((self.parts[:, : self.n_squares] * squares).sum(axis=1), 0.0) + beyond
        sums, noise = (self.parts * scores).sum(axis=1), self.noise.product(scores, scores)
        sums = sums + self.cut.sums(cut)
        simple = self.about_mean(squared, sums, noise)
        if self.strata is not None:
            strata, parts = self.strata, self.strata.parts
            sums, noise = (parts * scores).sum(axis=2), (scores**2).sum(axis=1)
            by_stratum = (parts[:, :, : self.n_squares] * squares).sum(axis=2)
            simple = strata.within(sums, strata.noise_sd**2 * noise, by_stratum, squared, simple)
        return np.asarray(simple * self.fpc)

    def _both_central(self, centre: Floats) -> Floats:
        return np.hstack([central_weights(degree, 2, centre) for degree in (self.degree, 2)])

    @cached_property
    def variances(self) -> Floats:
        """Weighted variances; of units of several rows those of their means."""
        sums = (self._both_central(self._centre) * self.parts).sum(axis=1)
        sums = sums + self.cut.sums(central_weights(2, 2, self._centre))
        return np.asarray(np.clip(sums / self._whole, 0.0, 0.25) * self._row_correction)

    @cached_property
    def variance_shift(self) -> Floats:
        """What the cap had moved the variances by."""
        raw = self._ratio(self._both_central(np.nan_to_num(self._ratio(self._mean_weights))))
        return np.asarray(np.clip(raw, 0.0, 0.25) * self._row_correction - self.variances)

    @cached_property
    def variance_shift_sd(self) -> Floats:
        """The error of that."""
        scores = central_weights(2, 2, self._centre) - np.nan_to_num(self.variances)[:, None]
        return self.cut.error(scores, self.variance_shift, self._whole)

    @cached_property
    def variance_noise_sd(self) -> Floats:
        """Noise standard deviation of the variances, to first order."""
        weights = self._both_central(self._centre) - np.nan_to_num(self.variances)[:, None]
        noise = np.sqrt(self.noise.product(weights, weights)) / self._whole
        return np.hypot(noise * self._row_correction, self.variance_shift_sd)

    @cached_property
    def variance_sampling_sd(self) -> Floats:
        """Sampling standard deviation of the variances, by linearisation; degree 4."""
        spread = np.nan_to_num(self.variances)[:, None] / self._sample_correction
        second = central_weights(self.degree, 2, self._centre)
        squares = central_weights(self.degree, 4, self._centre) - 2 * spread * second + spread**2
        # Of capped units the squares are those of the end of the range that is farther.
        largest = np.maximum(self._centre, 1 - self._centre)[:, None] ** 4
        scores = self._both_central(self._centre) - spread
        cut = central_weights(2, 2, self._centre) - spread
        variance = self._variance(scores, squares, cut, self.cut.squares(largest))
        return np.asarray(np.sqrt(variance) / self._whole * self._sample_correction)

    def variance_interval(self, level: float, *, population: bool) -> Interval:
        """Return intervals of the variances, before the divisor n - 1 within 0 and 1/4."""
        factor = student_factor(np.maximum(self.independent - 1, 1.0), (1 - level) / 2)
        sampling = self.variance_sampling_sd * factor * population
        width = ndtri((1 + level) / 2) * np.hypot(self.variance_noise_sd, sampling)
        width = np.where(self.detected, width, np.inf)
        estimate = np.nan_to_num(self.variances)
        most = 0.25 * self._row_correction
        return np.clip(estimate - width, 0.0, most), np.clip(estimate + width, 0.0, most)

    # ---- the design ----------------------------------------------------------------------

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
    """Totals by group of a number, from the parts of rows or of sampled units."""

    moments: GroupMoments
    lower: float  # of the number's range
    width: float
    scale: float  # the weight of one unit of the parts: the cap, or 1 for rows

    def _values(self, weights: Floats) -> Floats:
        return self.scale * (self.lower + self.width * weights)

    @property
    def _cut(self) -> Cut:
        if isinstance(self.moments, SampledMoments):
            return self.moments.cut
        return Cut(np.zeros((len(self.moments.parts), 3)), 0.0, 0.0, 0.0, 0.0)

    @cached_property
    def estimates(self) -> Floats:
        """The totals, shape (groups,)."""
        kept = (self._values(self.moments.weights) * self.moments.parts).sum(axis=1)
        return np.asarray(kept - self.shift)

    @cached_property
    def shift(self) -> Floats:
        """What the cap had moved the totals by."""
        return 0.0 - self._cut.sums(self._values(power_weights(2, 1)))

    @cached_property
    def shift_sd(self) -> Floats:
        """The error of `shift`."""
        return self._cut.error(self._values(power_weights(2, 1)), self.shift)

    @cached_property
    def noise_sd(self) -> Floats:
        """Standard deviation of noise, that of what was put back included."""
        values = self._values(self.moments.weights)
        product = self.moments.noise.product(values, values)
        return np.hypot(np.sqrt(product), self.shift_sd)

    @cached_property
    def sampling_sd(self) -> Floats:
        """Standard error by sampling alone."""
        moments = self.moments
        centre = np.full(len(moments.parts), -self.lower / self.width)
        if isinstance(moments, SampledMoments):
            variance = moments.meat(centre)
        else:
            scores = moments.weights - centre[0]
            squares = (moments.parts[:, :3] * central_weights(2, 2, centre)).sum(axis=1)
            n_rows = max(float(moments.counts.sum()), 1.0)
            variance = np.maximum(squares - (moments.parts * scores).sum(axis=1) ** 2 / n_rows, 0.0)
        return np.asarray(self.scale * self.width * np.sqrt(variance))

    def interval(self, level: float, *, population: bool) -> Interval:
        """Return intervals of the totals."""
        moments, noise = self.moments, self.moments.noise
        factor = student_factor(np.maximum(moments.independent - 1, 1.0), (1 - level) / 2)
        extra = np.hypot(self.sampling_sd * factor * population, self.shift_sd)
        weights = noise.weights(self._values(moments.weights))
        widths = [half_width(noise.law, weights, noise.sd, float(sd), level) for sd in extra]
        return self.estimates - widths, self.estimates + widths
