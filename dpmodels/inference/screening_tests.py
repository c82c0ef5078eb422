"""Tests of released columns, and p-values and levels adjusted for several tests."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.laguerre import laggauss
from scipy.special import erf, gammaln, ndtr, ndtri, xlogy

from dpmodels.inference.proportions import DETECTION_SDS
from dpmodels.noise.sums import half_width
from dpmodels.released import PValuesRelease, ScreenedRelease
from dpmodels.typing import Floats

METHODS: Final = {"bh": "fdr_bh", "by": "fdr_by"}
NAMES: Final = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli", "adapt": "AdaPT"}


def adjusted(p_values: Floats, hypotheses: int, method: str) -> Floats:
    """Return adjusted p-values, shape (tests,); those up to q are rejected at level q.

    `hypotheses` is the number of all hypotheses; untested ones have the p-value 1. A p-value of nan
    stays nan and counts as 1. `method` is "bh" or "by".
    """
    from statsmodels.stats.multitest import multipletests  # Slow to import

    padded = np.ones(hypotheses)
    padded[: len(p_values)] = np.where(np.isnan(p_values), 1.0, p_values)
    result = multipletests(padded, method=METHODS[method])[1][: len(p_values)]
    return np.where(np.isnan(p_values), np.nan, result)


def cut_offs(hypotheses: int, q: float, method: str) -> Floats:
    """Return the threshold for the p-value of each rank, shape (hypotheses,)."""
    ranks = np.arange(1, hypotheses + 1)
    among = float((1 / ranks).sum()) if method == "by" else 1.0
    return np.asarray(q * ranks / (hypotheses * among), dtype=np.float64)


# False discoveries among one-sided p-values, estimated from the reflected ones.


def mirrored(p_values: Floats) -> Floats:
    """Return the smallest level at which each hypothesis is rejected, shape (tests,); at most 1.

    The false discovery proportion up to t is estimated by ``(1 + #{p >= 1 - t})/#{p <= t}``; at
    level q the largest t with an estimate of at most q is used. Tied p-values have the same t; for
    p-values with few bits, for which 1 - p is exact, ties are exact.
    """
    sizes = np.minimum(p_values, 1 - p_values)
    small = p_values <= 0.5
    order = np.argsort(sizes, kind="stable")
    last = np.searchsorted(sizes[order], sizes[order], side="right") - 1
    n_small, opposite = (np.cumsum(indicator[order])[last] for indicator in (small, ~small))
    estimates = np.minimum((1 + opposite) / np.maximum(n_small, 1), 1.0)
    levels = np.empty(len(p_values))
    levels[order] = np.minimum.accumulate(estimates[::-1])[::-1]
    return np.where(small, levels, 1.0)


ADJUSTMENTS: Final = {
    "holm": "p-values by Holm's method, intervals by Bonferroni's",
    "bonferroni": "p-values and intervals by Bonferroni's method",
    "sidak": "p-values and intervals by Sidak's method",
    "none": "unadjusted p-values and intervals",
}


def adjusted_pvalues(p_values: Floats, method: str) -> Floats:
    """Return p-values that control the familywise error rate; nan stays nan.

    A test without a p-value counts as one.

    .. [1] Holm, S. (1979). "A simple sequentially rejective multiple test procedure."
       Scandinavian Journal of Statistics 6(2), 65-70.
    """
    tests = len(p_values)
    match method:
        case "none":
            return p_values
        case "sidak":
            return np.asarray(-np.expm1(tests * np.log1p(-p_values)))
        case "bonferroni":
            return np.minimum(tests * p_values, 1.0)
    order = np.argsort(p_values, kind="stable")
    steps = np.maximum.accumulate((tests - np.arange(tests)) * p_values[order])
    adjusted_values = np.empty(tests)
    adjusted_values[order] = np.minimum(steps, 1.0)
    return np.where(np.isnan(p_values), np.nan, adjusted_values)


def simultaneous(level: float, intervals: int, method: str) -> float:
    """Return the level of each interval at which all are covered jointly."""
    if method == "none" or intervals < 2:
        return level
    return float(level ** (1 / intervals)) if method == "sidak" else 1 - (1 - level) / intervals


def largest(sds: Floats, level: float) -> float:
    """Return a bound on the size of all normal variables at once, with at least this probability.

    For any correlation: no correlation lowers the probability below that of independence [1]_.

    .. [1] Sidak, Z. (1967). "Rectangular confidence regions for the means of multivariate normal
       distributions." Journal of the American Statistical Association 62, 626-633.
    """
    from scipy.optimize import brentq

    positive = sds[sds > 0]
    if not len(positive):
        return 0.0
    roots = math.sqrt(2) * positive / positive.max()
    ends = (float(ndtri((1 + coverage) / 2)) for coverage in (level, level ** (1 / len(positive))))
    low, high = next(ends) * (1 - 1e-9), next(ends) * (1 + 1e-9)
    within = brentq(lambda bound: float(np.prod(erf(bound / roots))) - level, low, high)
    return float(within * positive.max())


# Most Poisson jumps of a sum: with more it is normal, to a few hundredths of a tail of 1e-6.
JUMPS = 1e5
# Standard deviations of the jumps that are summed: less than any reported p-value lies beyond.
WIDTH = 12.0
# Smallest ratio of scales of Laplace terms; closer ones are widened to it, to avoid cancellation.
MIN_SCALE_RATIO = 1.002
# Reflected p-values are multiples of 1 over this.
FINEST = 2.0**40


# Scatters at which tails are computed, and sums at each; in between their logarithms are cubic.
SCATTERS, KNOTS = 8, 40
# A choice: by how much standard deviations grow with the noise of scatters. Of 4, 6, 8 and 12 it
# has the smallest p-values under both laws, for noise of 2 to 17 % of the scatter.
CAUTION = 12.0
TINY = 1e-12


def _nodes(law: str) -> tuple[Floats, Floats]:
    """Return places and weights by which functions of noise of sd 1 are averaged."""
    if law == "gaussian":
        places, weights = hermegauss(32)
        return places, weights / weights.sum()
    places, weights = laggauss(16)
    return np.append(-places, places) / math.sqrt(2), np.append(weights, weights) / 2


NOISE_NODES = {law: _nodes(law) for law in ("gaussian", "laplace")}


class Bounds(NamedTuple):
    """Bounds on sums of squares that fail with a stated probability, in squared half-ranges."""

    rows: float  # Upper bound on complete rows
    scatter_lower: Floats  # Of each chosen column, about its mean
    scatter: Floats  # The upper bounds
    variance: float  # Of the response


def bounds(release: ScreenedRelease, chance: float) -> Bounds:
    """Bound the exact sums; each column's bounds fail with half of the probability `chance`."""
    reach = _quantile(release.law, chance / 12) * release.response_sd
    rows = max(release.count + reach, 1.0)
    noisy, c = release, release.centre
    # The sum of squares about c is at least that about the mean.
    squares = noisy.squares - 2 * c * noisy.total + c**2 * noisy.count + reach * (1 + abs(c)) ** 2
    min_rows = max(release.count - reach, 1.0)
    scatter_reach = _quantile(release.law, chance / 4) * noisy.scatter_sd
    low, high = (np.clip(noisy.scatters + sign * scatter_reach, 0.0, rows) for sign in (-1, 1))
    return Bounds(rows, low, high, min(max(squares / min_rows, 0.0), 1.0))


def p_values(release: ScreenedRelease, alternative: str, chance: float) -> Floats:
    """Return p-values of no association of each chosen column, shape (chosen,).

    Under the null hypothesis column and response are independent, and so are rows; dependence of
    rows of one person is bounded by the design effect. Given both columns, the sum of products then
    has the variance scatter times response variance. Its distribution is approximated by noise plus
    a centred Poisson number of jumps of the largest size that a row can cause: to first order this
    has the heaviest tails with that variance and such jumps. The error of the response's mean in
    each sum is part of the noise.

    The sum is divided by its standard deviation at the *noisy* scatter. Noise of sums and scatters
    is independent, so that the tail of this ratio at a scatter V is that of the sum, averaged over
    the noise of the scatter. A p-value is the largest of these tails over the V within their
    bounds, plus the probability `chance` that these fail [1]_.

    .. [1] Berger, R. L. and Boos, D. D. (1994). "P values maximized over a confidence set for the
       nuisance parameter." Journal of the American Statistical Association 89, 1012-1016.
    """
    null = NullSums(release, bounds(release, chance), release.adjacency.design_effect)
    signs = {"two-sided": np.abs, "larger": np.positive, "smaller": np.negative}
    ratios = signs[alternative](release.products) / null.sd(release.scatters)
    scatters = null.scatters
    tails = np.stack([null.exceeding(ratios, scatter) for scatter in scatters.tolist()])
    first = np.searchsorted(scatters, null.limits.scatter_lower, side="right") - 1
    last = np.searchsorted(scatters, null.limits.scatter)
    order = np.arange(len(scatters))[:, None]
    largest = np.where((order >= first) & (order <= last), tails, 0.0).max(axis=0)
    sides = 1 + (alternative == "two-sided")
    return np.asarray(np.clip(sides * largest + chance, 0.0, 1.0))


class NullSums(NamedTuple):
    """Sums of products with a response that is independent of the columns, with their noise."""

    release: ScreenedRelease
    limits: Bounds
    effect: int

    @property
    def scatters(self) -> Floats:
        """Scatters that reach over all of their bounds, evenly by the logarithm of the variance."""
        low, high = float(self.limits.scatter_lower.min()), float(self.limits.scatter.max())
        grid = np.geomspace(low + self._noise, high + self._noise, SCATTERS) - self._noise
        grid[[0, -1]] = low, high
        return np.asarray(np.maximum.accumulate(grid))

    @property
    def _per_scatter(self) -> float:
        rows = max(self.limits.rows, 2.0)
        return max(self.effect * self.limits.variance * rows / (rows - 1), TINY)

    @property
    def _noise(self) -> float:
        """Variance of the noise in a sum, as a scatter that would have it."""
        return max(self.release.product_sd**2 / self._per_scatter, TINY)

    def sd(self, scatters: Floats) -> Floats:
        """Return standard deviations of sums of columns with these noisy scatters.

        Any increasing function is valid. Averaged over normal noise of sd s in the variance v, a
        tail at z is about that of the variance ``v + z² s²/(4 v)``, of which this is a smooth form
        that stays above 0.
        """
        noise = self._noise
        variances, sd = scatters + noise, CAUTION * self.release.scatter_sd
        smooth = (variances + np.hypot(variances, sd)) / 2
        feasible = np.clip(smooth, noise, self.limits.rows + noise)
        return np.asarray(np.sqrt(self._per_scatter * feasible))

    def exceeding(self, ratios: Floats, scatter: float) -> Floats:
        """Return the probabilities that the ratio of a column of some scatter exceeds these."""
        from scipy.interpolate import PchipInterpolator  # Slow to import

        release, c = self.release, abs(self.release.centre)
        places, weights = NOISE_NODES[release.law]
        sds = self.sd(scatter + release.scatter_sd * places)
        away = np.outer(ratios, sds)
        shared = float(_means(np.array(scatter), self.limits.rows)) * release.response_sd
        apart = 1e-6 * max(float(np.abs(away).max()), float(sds.max()))
        knots = np.linspace(away.min(), away.max() + apart, KNOTS)
        jump, variance = 2 * (1 + c) * self.effect, self._per_scatter * scatter
        tails = [_tail(release, knot, variance, jump, shared) for knot in knots.tolist()]
        logs = PchipInterpolator(knots, np.log(np.maximum(tails, np.finfo(float).tiny)))(away)
        return np.asarray(np.exp(logs) @ weights)


def mirrored_p_values(release: ScreenedRelease, alternative: str, chance: float) -> Floats:
    """Return one-sided p-values; those of a sum and of its negative add up to 1 exactly.

    They are rounded up to multiples of 2**-40, so that 1 - p is exact.
    """
    halves = np.ceil(p_values(release, "two-sided", chance) / 2 * FINEST) / FINEST
    signed = release.products * (1 if alternative == "larger" else -1)
    return np.where(signed > 0, halves, 1 - halves)


class Logarithms(NamedTuple):
    """Noisy logarithms of p-values, shape (chosen,)."""

    values: Floats
    scale: float  # Noise sd in units of the release's

    def sd(self, noise_sd: float) -> Floats:
        """Return the noise standard deviation of each."""
        return np.full(len(self.values), noise_sd * self.scale)

    def interval(self, noise_sd: float, law: str, level: float) -> tuple[Floats, Floats]:
        """Return intervals below 0."""
        width = self.sd(noise_sd) * _quantile(law, (1 - level) / 2)
        return np.minimum(self.values - width, 0.0), np.minimum(self.values + width, 0.0)


def noisy_p_values(release: PValuesRelease, q: float) -> Floats:
    """Return p-values from noisy logarithms, raised so that step-up at q is as published.

    The published thresholds are lower by ``2 λ log(6 m'/q)`` for every rank, λ the noise scale.
    """
    raised = math.sqrt(2) * release.log_sd * math.log(6 * len(release.logs) / q)
    return np.exp(np.minimum(release.logs + raised, 0.0))


def correlations(release: ScreenedRelease) -> Correlations:
    """Return correlations of the chosen columns; slopes are for noise of sd 1.

    ``r = C/√(V W)`` of noisy sums: C of products and V of squares of the column, and
    ``W = Q - 2 c T + c² n`` of the response's squares, sum and number of rows; C also contains
    ``m (T - c n)``, with the column's mean m within the bounds of `_means`. Slopes of T and n are
    upper bounds over both signs of m.
    """
    noisy, c = release, abs(release.centre)
    spread = noisy.squares - 2 * noisy.centre * noisy.total + c**2 * noisy.count
    min_spread = DETECTION_SDS * noisy.response_sd * math.sqrt(1 + 4 * c**2 + c**4)
    detected = (noisy.scatters > DETECTION_SDS * noisy.scatter_sd) & (spread > min_spread)
    scatter, spread = np.where(detected, noisy.scatters, 1.0), spread if detected.any() else 1.0
    root = np.sqrt(scatter * spread)
    values = np.where(detected, np.clip(noisy.products / root, -1.0, 1.0), math.nan)
    sizes, means = np.abs(values), _means(scatter, max(noisy.count, 1.0)) / root
    shared = sizes / (2 * spread)
    response = [shared, means + 2 * c * shared, c * means + c**2 * shared]
    parts = [noisy.product_sd / root, noisy.scatter_sd * sizes / (2 * scatter)]
    parts += [noisy.response_sd * part for part in response]
    return Correlations(values, np.stack(parts, axis=1))


def _means(scatter: Floats, rows: float) -> Floats:
    """Return bounds on the size of means, whose squares and variances add up to at most 1."""
    return np.sqrt(np.clip(1 - np.clip(scatter, 0.0, None) / rows, 0.0, 1.0))


def _tail(
    release: ScreenedRelease, away: float, variance: float, jump: float, shared: float
) -> float:
    """Return the probability that noise plus jumps of a given variance exceed `away`."""
    parts = np.array([release.product_sd, shared, shared * abs(release.centre)])
    if variance <= 0:
        return float(_noise_tail(release.law, parts, np.array([away]))[0])
    size = max(jump, math.sqrt(variance / JUMPS))
    mean = variance / size**2
    reach = WIDTH * math.sqrt(mean) + WIDTH
    numbers = np.arange(max(math.floor(mean - reach), 0), math.ceil(mean + reach) + 1)
    jumps = np.asarray(size * (numbers - mean), dtype=np.float64)
    tails = _noise_tail(release.law, parts, away - jumps)
    return float(np.exp(xlogy(numbers, mean) - mean - gammaln(numbers + 1)) @ tails)


def _noise_tail(law: str, sds: Floats, away: Floats) -> Floats:
    """Return the probability that a sum of independent noise with `sds` exceeds `away`."""
    if law == "gaussian":
        return np.asarray(ndtr(-away / math.sqrt(float(np.square(sds).sum()))))
    scales = np.sort(sds[sds > 1e-3 * sds.max()])[::-1] / math.sqrt(2)
    for k in range(len(scales) - 2, -1, -1):
        scales[k] = max(scales[k], MIN_SCALE_RATIO * scales[k + 1])
    squares = scales**2
    # By partial fractions of the product of 1/(1 + scale² t²).
    weights = [
        math.prod(square / (square - value) for value in squares if value != square)
        for square in squares
    ]
    below = np.exp(-np.abs(away)[:, None] / scales) @ np.array(weights) / 2
    return np.asarray(np.where(away >= 0, below, 1 - below))


def _quantile(law: str, chance: float) -> float:
    if law == "gaussian":
        return -float(ndtri(chance))
    return -math.log(2 * chance) / math.sqrt(2)


# Correlations and gains of columns with one response, from noisy sums of squares and products.


class Correlations(NamedTuple):
    """Correlations or gains, shape (columns,); nan if a scatter is not distinguishable from 0."""

    values: Floats
    # Derivatives by each noise: of the product, the column's scatter, the response's scatter.
    slopes: Floats  # shape (columns, 3)
    lower_bound: float = -1.0  # Of the exact values

    def sd(self, noise_sd: float) -> Floats:
        """Return the noise standard deviation of each."""
        return np.asarray(noise_sd * np.sqrt((self.slopes**2).sum(axis=1)))

    def own_variance(self, noise_sd: float) -> Floats:
        """Return the variance without the shared noise of the response's scatter."""
        return np.asarray(noise_sd**2 * (self.slopes[:, :2] ** 2).sum(axis=1))

    def interval(self, noise_sd: float, law: str, level: float) -> tuple[Floats, Floats]:
        """Return intervals within `lower_bound` and 1, to first order in the noise."""
        is_identified = np.isfinite(self.values)
        width = [
            half_width(law, slopes, noise_sd, 0.0, level) if identified else math.nan
            for slopes, identified in zip(self.slopes, is_identified.tolist(), strict=True)
        ]
        low, high = (
            np.clip(self.values + sign * np.array(width), self.lower_bound, 1.0) for sign in (-1, 1)
        )
        return np.where(is_identified, low, self.lower_bound), np.where(is_identified, high, 1.0)

    def summed_sd(self, noise_sd: float) -> Floats:
        """Return the noise standard deviations of the running sums."""
        separate = np.cumsum(self.slopes[:, :2] ** 2, axis=0).sum(axis=1)
        return np.asarray(noise_sd * np.sqrt(separate + np.cumsum(self.slopes[:, 2]) ** 2))


def associated_correlations(
    products: Floats, scatters: Floats, response: float, noise_sd: float
) -> Correlations:
    """Return ``r = C/√(V W)`` of C, V and W with independent noise of the same sd.

    To first order the noise of r is ``g_C/√(V W) - r g_V/(2 V) - r g_W/(2 W)``.
    """
    detected = (scatters > DETECTION_SDS * noise_sd) & (response > DETECTION_SDS * noise_sd)
    scatter = np.where(detected, scatters, 1.0)
    response_scatter = response if detected.any() else 1.0
    root = np.sqrt(scatter * response_scatter)
    values = np.where(detected, np.clip(products / root, -1.0, 1.0), np.nan)
    slopes = np.stack([1 / root, -values / (2 * scatter), -values / (2 * response_scatter)], axis=1)
    return Correlations(values, slopes)


def gains(
    products: Floats, scatters: Floats, response: float, coefficients: Floats, noise_sd: float
) -> Correlations:
    """Return the fractions of the response's scatter W explained by each coefficient b in turn.

    A residual with the product C with a column of scatter V loses ``2 b C - b² V`` once the column
    is in the fit. This is linear in the noise of C and V, and so unbiased by it; W divides.
    `products` are of residuals divided by 1 plus the sizes of all coefficients before.
    """
    sizes = np.abs(coefficients)
    stretch = 1 + np.cumsum(sizes) - sizes
    detected = response > DETECTION_SDS * noise_sd
    divisor = response if detected else math.nan
    lines = np.stack([2 * coefficients * stretch, -(coefficients**2)], axis=1) / divisor
    values = lines[:, 0] * products + lines[:, 1] * scatters
    slopes = np.concatenate([lines, -values[:, None] / divisor], axis=1)
    return Correlations(values, slopes, -math.inf)


# Certainty of an order of noisy values.


def above_next(values: Floats, variances: Floats, law: str) -> Floats:
    """Return the probability that each exact value is above the next, shape (values,).

    The probability that the difference of the two noises, "gaussian" or "laplace" (then of equal
    variance), is below the observed difference: 1 less the p-value of the test that the next is as
    large, and the posterior probability under a flat prior. The last is nan.
    """
    gaps = -np.diff(values)
    if law == "gaussian":
        probability = np.asarray(ndtr(gaps / np.sqrt(variances[1:] + variances[:-1])))
    else:
        # Of the difference of two Laplace variables of scale b the tail is (2 + t) exp(-t) / 4.
        steps = np.abs(gaps) / np.sqrt(variances[1:] / 2)
        tail = (2 + steps) * np.exp(-steps) / 4
        probability = np.where(gaps >= 0, 1 - tail, tail)
    return np.append(probability, np.nan)[: len(values)]
