"""Means and variances by group from noisy power sums, and tests of equal means."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ndtri, stdtrit

from dpmodels.inference.independence import EXCESS
from dpmodels.inference.proportions import DETECTION_SDS, Noise, ratio_interval
from dpmodels.noise.sums import half_width, upper_tail
from dpmodels.typing import Floats

Interval = tuple[Floats, Floats]


@dataclass(frozen=True)
class GroupMoments:
    """Moments by group of a number between 0 and 1.

    From noisy Bernstein parts of the rows, shape (groups, degree + 1). Parts of persons who may be
    in several groups are `clustered`: five, those of degree 2 and two more, see
    :mod:`dpmodels.statistics.shares`. A group's mean is then a ratio of sums over persons, with
    their sampling variance, and a person counts by its share of the group.

    Results hidden by noise are nan: a group has a mean only if its count exceeds `DETECTION_SDS`
    noise sds.
    """

    parts: Floats
    noise: Noise
    clustered: bool = False
    joined: int = 1  # groups whose parts were added up

    @property
    def degree(self) -> int:
        """The highest power."""
        return 2 if self.clustered else int(self.parts.shape[1]) - 1

    @property
    def n_squares(self) -> int:
        """How many parts of a group are of squared shares, the first of them; 0 of rows."""
        return 3 if self.clustered else 0

    @property
    def counts(self) -> Floats:
        """Number of complete rows, shape (groups,); may be negative."""
        return np.asarray(self.parts.sum(axis=1))

    @property
    def sizes(self) -> Floats:
        """The same, or the sums of weights under a survey design."""
        return self.counts

    @property
    def shift_sd(self) -> Floats:
        """Errors of the means that are neither noise of their parts nor sampling."""
        return np.zeros(len(self.parts))

    @property
    def size_sd(self) -> float:
        """Noise standard deviation of each of `sizes`."""
        return self.count_sd

    @cached_property
    def together(self) -> GroupMoments:
        """The moments of all groups combined; persons may have been in several.

        The observations are those of the groups, so the variance is of the same numbers.
        """
        groups, size = self.parts.shape
        noise = self.noise._replace(added=tuple(range(size)) * groups)
        parts = self.parts.sum(axis=0, keepdims=True)
        return replace(self, parts=parts, noise=noise, joined=groups)

    @cached_property
    def count_sd(self) -> float:
        """Noise standard deviation of each count."""
        ones = np.ones((1, self.parts.shape[1]))
        return float(np.sqrt(self.noise.product(ones, ones)[0]))

    @cached_property
    def detected(self) -> NDArray[np.bool_]:
        """Whether a group's count is distinguishable from 0."""
        return np.asarray(self.counts > max(DETECTION_SDS * self.count_sd, 1.0))

    @cached_property
    def means(self) -> Floats:
        """Means, shape (groups,), within 0 and 1; nan for groups hidden by noise."""
        return np.clip(self._ratio(self._mean_weights), 0.0, 1.0)

    @cached_property
    def variances(self) -> Floats:
        """Variances about the mean with divisor n - 1; nan for hidden groups.

        Before that divisor they are moved into 0 to 1/4, within which all variances are.
        For persons in several groups the variances of their means, weighted by squared shares.
        """
        raw = np.clip(self._ratio(self._central(2)), 0.0, 0.25)
        return raw * self._correction * self._weight_ratio

    @cached_property
    def independent(self) -> Floats:
        """Effective numbers of rows, or of persons entirely in one group, for the mean."""
        return self.counts * self._weight_ratio

    @cached_property
    def mean_noise_sd(self) -> Floats:
        """Noise standard deviation of the means."""
        return self._ratio_noise(self._mean_weights, self.means)

    @cached_property
    def variance_noise_sd(self) -> Floats:
        """Noise standard deviation of the variances, to first order."""
        raw = np.nan_to_num(self.variances / self._correction)
        squares = np.arange(self.parts.shape[1]) <= self.degree
        weights = self._central(2) - raw[:, None] * squares
        sd = np.sqrt(self.noise.product(weights, weights))
        return np.asarray(sd / self._divisor * self._weight_ratio * self._correction)

    @cached_property
    def mean_sampling_sd(self) -> Floats:
        """Sampling standard deviation of the means; of joined groups as `joint_sampling_sd`."""
        sds = np.sqrt(self.variances / (self._divisor * self._weight_ratio))
        return np.asarray(sds if self.joined == 1 else self._bounded(sds, self.joined))

    @cached_property
    def joint_sampling_sd(self) -> Floats:
        """Sampling standard deviations that bound any sum of the groups' means.

        Treating groups as independent gives a variance of the sum that is not too small; for rows
        they are independent. For a person with shares C of the groups, ``Σ C <= 1``, and distances
        d from their means the square of ``Σ x C d`` is at most ``Σ x² C d²``, and at most k times
        ``Σ x² (C d)²`` for k groups. And ``C d²`` is at most ``(C d)²`` plus ``C (1 - C)`` times
        ``(1 - t) r² + t (1 - r)²``, as squares are convex; the last two parts give this if they
        count as the ends of the range.
        """
        sds = self.mean_sampling_sd
        return self._bounded(sds, len(sds)) if self.joined == 1 else sds

    def _bounded(self, sds: Floats, groups: int) -> Floats:
        """Return sds that hold for persons in several of the groups; see `joint_sampling_sd`."""
        if not self.clustered:
            return sds
        noise = self.noise._replace(added=())
        split = replace(self, parts=self._end_counted, noise=noise, clustered=False, joined=1)
        return np.asarray(np.fmin(split.mean_sampling_sd, sds * np.sqrt(groups)))

    @cached_property
    def variance_sampling_sd(self) -> Floats:
        """Sampling standard deviation of the variances, from fourth moments; degree 4."""
        return np.asarray(np.sqrt(self._square_spread / self._divisor))

    @cached_property
    def _square_spread(self) -> Floats:
        return np.maximum(self._ratio(self._central(4)) - self.variances**2, 0.0)

    def mean_interval(self, level: float, *, population: bool) -> Interval:
        """Return intervals of the population's means, or of those on these rows, within 0 and 1.

        An estimate outside the range is moved to its end together with the interval; otherwise the
        interval could be a single point.
        """
        spread = np.nan_to_num(self.variances / self._weight_ratio) * self.counts * population
        factor = student_factor(np.maximum(self.independent - 1, 1.0), (1 - level) / 2)
        lower, upper = self._invert(self._mean_weights, spread * factor**2, level)
        estimate = np.nan_to_num(self._ratio(self._mean_weights))
        shift = np.clip(estimate, 0.0, 1.0) - estimate
        return np.clip(lower + shift, 0.0, 1.0), np.clip(upper + shift, 0.0, 1.0)

    def variance_interval(self, level: float, *, population: bool) -> Interval:
        """Return intervals of the variances, within 0 and 1/4; degree 4 for the population's.

        An estimate outside the range is moved to its end, as for means.
        """
        spread = np.zeros(len(self.parts))
        if population:
            spread = np.nan_to_num(self._square_spread) * self.counts
        lower, upper = self._invert(self._central(2), spread, level)
        estimate = np.nan_to_num(self._ratio(self._central(2)))
        clipped = np.clip(estimate, 0.0, 0.25)
        # As in Wilson's interval, the sampling error is that at the interval's end.
        steeper = spread / np.maximum(clipped, 1e-200) / np.nan_to_num(self._divisor, nan=1.0) ** 2
        shift = ndtri((1 + level) / 2) ** 2 * steeper / 2
        factor = np.nan_to_num(self._correction, nan=1.0)
        lower = clipped + shift - np.hypot(estimate - lower, shift)
        upper = clipped + shift + np.hypot(upper - estimate, shift)
        return np.clip(lower, 0.0, 0.25) * factor, np.clip(upper, 0.0, 0.25) * factor

    # ---- sums -------------------------------------------------------------------------

    @property
    def _end_counted(self) -> Floats:
        """Parts of degree 2; the last two parts of persons count as the ends of the range."""
        if not self.clustered:
            return self.parts
        first, none = self.parts[:, :3], np.zeros(len(self.parts))
        return first + np.stack([self.parts[:, 3], none, self.parts[:, 4]], axis=1)

    @cached_property
    def _divisor(self) -> Floats:
        return np.where(self.detected, self.counts, np.nan)

    @cached_property
    def _correction(self) -> Floats:
        rows = self._divisor * self._weight_ratio
        return np.asarray(rows / np.maximum(rows - 1, 1.0))

    @cached_property
    def _weight_ratio(self) -> Floats:
        """Sum of shares over the sum of their squares, shape (groups,); 1 for rows."""
        if not self.n_squares:
            return np.ones(len(self.parts))
        squares = self.parts[:, : self.n_squares].sum(axis=1)
        floor = np.minimum(self.count_sd, np.maximum(self.counts, 1.0))
        ratio = np.maximum(self.counts, 1.0) / np.maximum(squares, floor)
        return np.asarray(np.maximum(ratio, 1.0))

    @cached_property
    def _mean_weights(self) -> Floats:
        return np.tile(self.weights, (len(self.parts), 1))

    @property
    def weights(self) -> Floats:
        """Weights with which a group's parts add up to the sum of its values, shape (parts,)."""
        base = power_weights(self.degree, 1)
        extra = power_weights(1, 1) if self.clustered else np.zeros(0)
        return np.concatenate([base, extra])

    def _central(self, power: int) -> Floats:
        weights = central_weights(self.degree, power, np.nan_to_num(self.means))
        none = np.zeros((len(weights), self.parts.shape[1] - weights.shape[1]))
        return np.hstack([weights, none])

    def _ratio(self, weights: Floats) -> Floats:
        return np.asarray((weights * self.parts).sum(axis=1) / self._divisor)

    def _ratio_noise(self, weights: Floats, ratio: Floats) -> Floats:
        scores = weights - np.nan_to_num(ratio)[:, None]
        return np.asarray(np.sqrt(self.noise.product(scores, scores)) / self._divisor)

    def _invert(self, weights: Floats, spread: Floats, level: float) -> Interval:
        variance = np.maximum(spread, 0.0)
        lower, upper = ratio_interval(self.parts, weights, self.noise, variance, level)
        return np.where(self.detected, lower, -np.inf), np.where(self.detected, upper, np.inf)


def student_factor(freedom: Floats, tail: float) -> Floats:
    """Return Student's quantile as a multiple of the normal one.

    A sampling error multiplied by it has the correct tail by itself, and a conservative one
    together with noise of known distribution. `freedom` is at least 1, `tail` the upper tail
    probability, in (0, 1/2).

    .. [1] Student (1908). "The probable error of a mean." Biometrika 6(1), 1-25.
    """
    return np.asarray(stdtrit(np.minimum(freedom, 1e300), tail) / ndtri(tail))


# Power sums from the Bernstein parts of rows.


def power_weights(degree: int, power: int) -> Floats:
    """Return the weights with which the parts add up to the sum of a power.

    ``C(i, power) / C(d, power)`` for the degree d, shape (d + 1,), since
    ``t**k = Σ_i C(i, k)/C(d, k) B_i(t)`` for the Bernstein polynomials
    ``B_i(t) = C(d, i) t**i (1 - t)**(d - i)``.

    .. [1] Farouki, R. T. (2012). "The Bernstein polynomial basis: a centennial retrospective."
       Computer Aided Geometric Design 29(6), 379-419.
    """
    return np.array([comb(i, power) for i in range(degree + 1)]) / comb(degree, power)


def central_weights(degree: int, power: int, centre: Floats) -> Floats:
    """Return the weights with which the parts add up to the sum of a central power.

    `centre`, shape (groups,), gives weights of shape (groups, degree + 1).
    """
    terms = [
        comb(power, k) * (-centre[:, None]) ** (power - k) * power_weights(degree, k)
        for k in range(power + 1)
    ]
    return np.asarray(sum(terms[1:], terms[0]))


# The difference of two means, and its test.

# Smallest p-value: the noise distribution is not known farther out. A choice.
SMALLEST = 1e-9


@dataclass(frozen=True)
class Difference:
    """A mean less another, or less a public number; on the range from 0 to 1.

    The estimate is nan if noise hides a mean; `freedom` are the estimated degrees of freedom of the
    sampling part; `weights` are those of the independent noise variables in the estimate, each of
    sd `part_sd`.
    """

    estimate: float
    noise_sd: float
    sampling_sd: float
    freedom: float
    law: str
    weights: Floats
    part_sd: float
    extra_sd: float = 0.0  # of an error that is neither, such as that of a cap

    @property
    def known(self) -> bool:
        """Whether there is an estimate."""
        return bool(np.isfinite(self.estimate))

    def interval(self, level: float, *, population: bool) -> tuple[float, float]:
        """Return an interval of the difference; infinite without an estimate."""
        if not self.known:
            return -np.inf, np.inf
        sampling = self._sampling((1 - level) / 2) if population else 0.0
        normal = math.hypot(sampling, self.extra_sd)
        width = half_width(self.law, self.weights, self.part_sd, normal, level)
        return self.estimate - width, self.estimate + width

    @property
    def pvalue(self) -> float:
        """Probability of an estimate at least as large if the population's difference is 0."""
        from scipy.optimize import brentq

        if not self.known:
            return float("nan")
        if self._excess(SMALLEST) <= 0:
            return SMALLEST
        return float(brentq(self._excess, SMALLEST, 1.0, xtol=SMALLEST))

    def _excess(self, pvalue: float) -> float:
        """Return the tail probability of the estimate, by the law at `pvalue`, less `pvalue`."""
        sampling = math.hypot(self._sampling(pvalue / 2), self.extra_sd)
        tail = upper_tail(self.law, self.weights, self.part_sd, sampling, abs(self.estimate))
        return 2 * tail - pvalue

    def _sampling(self, tail: float) -> float:
        short = min(tail, 0.5 - SMALLEST)
        return self.sampling_sd * float(student_factor(np.asarray(self.freedom), short))


def difference(
    moments: GroupMoments, less: float = 0.0, pair: tuple[int, int] = (0, 1)
) -> Difference:
    """Compare the means of a pair of groups, or the mean of one group with a number.

    `less` is subtracted from the mean of a single group; the degree is at least 2.

    The difference is to first order in the noise, which is accurate for groups whose counts are
    many times their noise, see `detected`; variances are not pooled, and their degrees of freedom
    are Welch's [1]_.

    .. [1] Welch, B. L. (1947). "The generalization of 'Student's' problem when several different
       population variances are involved." Biometrika 34, 28-35.
    """
    means = moments.means
    signs, compared = np.zeros(len(means)), list(pair[: len(means)])
    signs[compared] = [1.0, -1.0][: len(means)]
    score = moments.weights - np.nan_to_num(means)[:, None]
    divisor = np.where(moments.detected, moments.counts, 1.0)
    derivative = (signs[:, None] * score / divisor[:, None]).ravel()
    weights = moments.noise.weights(derivative)
    noise_sd = float(moments.noise.sd * np.sqrt((weights**2).sum()))
    extra_sd = float(np.sqrt((moments.shift_sd[compared] ** 2).sum()))
    variances = moments.joint_sampling_sd[compared] ** 2
    sampling = float(np.sqrt(variances.sum()))
    shares = (variances**2 / np.maximum(moments.independent[compared] - 1, 1.0)).sum()
    freedom = float(sampling**4 / shares) if shares > 0 else np.inf
    return Difference(
        estimate=float(signs[compared] @ means[compared]) - less,
        noise_sd=math.hypot(noise_sd, extra_sd),
        sampling_sd=sampling,
        freedom=freedom,
        law=moments.noise.law,
        weights=weights,
        part_sd=moments.noise.sd,
        extra_sd=extra_sd,
    )


# A test that several means are equal, accounting for the noise.

# Most groups: the test solves a system of this many equations. A choice.
MOST_GROUPS = 200


@dataclass(frozen=True)
class EqualMeans:
    """A test that the means of all groups with counts distinguishable from 0 are equal.

    ``t`` for two groups, ``F`` for more; `df_resid` are the degrees of freedom of the sampling part
    of ``t``, or of the denominator of ``F``. nan for the `reason` given.
    """

    statistic: float
    df: float
    df_resid: float
    pvalue: float
    groups: int
    reason: str = ""


def equal_means(moments: GroupMoments) -> EqualMeans:
    """Test whether groups have equal means, accounting for noise and unequal variances.

    Two groups use `difference`. For more, the squared length of the contrasts of the means in the
    metric of their covariance, sampling plus noise, has Welch's distribution [1]_: only sampling
    variances are estimated, so each enters his correction by its fraction of the variance of its
    mean. Laplace noise increases the variance of the statistic by its fourth cumulants, and the
    distribution is scaled accordingly [2]_. Without noise the test is Welch's.

    .. [1] Welch, B. L. (1951). "On the comparison of several mean values: an alternative approach."
       Biometrika 38, 330-336.
    .. [2] Satterthwaite, F. E. (1946). "An approximate distribution of estimates of variance
       components." Biometrics Bulletin 2(6), 110-114.
    """
    detected = np.flatnonzero(moments.detected)
    if len(detected) < 2:
        reason = "fewer than two groups have a count distinguishable from 0 at this budget."
        return EqualMeans(math.nan, math.nan, math.nan, math.nan, len(detected), reason)
    if len(detected) > MOST_GROUPS:
        reason = f"the test supports at most {MOST_GROUPS} groups."
        return EqualMeans(math.nan, math.nan, math.nan, math.nan, len(detected), reason)
    if len(moments.parts) == 2:
        two = difference(moments)
        error = math.hypot(two.noise_sd, two.sampling_sd)
        return EqualMeans(two.estimate / error, 1.0, two.freedom, two.pvalue, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        return _several(moments, detected)


def _several(moments: GroupMoments, detected: NDArray[np.intp]) -> EqualMeans:
    noise_root = _noise_root(moments)[detected]
    means, sampling = moments.means[detected], moments.joint_sampling_sd[detected] ** 2
    extra = moments.shift_sd[detected] ** 2
    covariance = np.diag(sampling + extra) + noise_root @ noise_root.T
    contrasts = np.column_stack([np.eye(len(detected) - 1), -np.ones(len(detected) - 1)])
    values, vectors = np.linalg.eigh(contrasts @ covariance @ contrasts.T)
    metric = (vectors / np.sqrt(np.maximum(values, 1e-300))).T @ contrasts
    df = len(detected) - 1
    statistic = float(((metric @ means) ** 2).sum()) / df
    squares = ((metric @ noise_root) ** 2).sum(axis=0)
    excess = EXCESS[moments.noise.law] * float((squares**2).sum())
    larger = 1 + excess / (2 * df)
    spread = np.diag(covariance)
    weights = 1 / np.maximum(spread, 1e-300)
    unsure = (1 - weights / weights.sum()) ** 2 * (sampling * weights) ** 2
    lacking = float((unsure / np.maximum(moments.independent[detected] - 1, 1.0)).sum())
    groups = len(detected)
    statistic /= 1 + 2 * (groups - 2) / (groups**2 - 1) * lacking
    freedom = (groups**2 - 1) / (3 * lacking) if lacking > 0 else 1e9
    pvalue = float(fdtrc(df / larger, freedom, statistic))
    return EqualMeans(statistic, float(df), freedom, max(pvalue, SMALLEST), groups)


def _noise_root(moments: GroupMoments) -> Floats:
    """Return the weights of independent noise variables in each mean, to first order, by row."""
    groups, size = moments.parts.shape
    divisor = np.where(moments.detected, moments.counts, 1.0)
    score = moments.weights - np.nan_to_num(moments.means)[:, None]
    derivative = np.zeros((groups, groups, size))
    derivative[range(groups), range(groups)] = score / divisor[:, None]
    return np.asarray(moments.noise.sd * moments.noise.weights(derivative.reshape(groups, -1)))
