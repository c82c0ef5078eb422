"""Coordinates in which the scores of least squares are short, learnt round by round.

A row (x, y) is written as ``z = W (x - c)``, whose covariance is about the identity, and
``e = (y - b₀ - b · x) / s``, the residual of a line in units of its standard deviation. Everything
here is a function of released values and public facts. Lengths are in scaled units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import erf, ndtr, ndtri

from dpmodels.postprocess.ellipsoid import Cells
from dpmodels.typing import Floats

# A choice: rows are kept whole up to this length of (1, z), in units of √(1 + d) for d terms, and
# residuals up to this many of their standard deviations.
TERM_RADIUS, RESIDUAL_CUT = 1.0, 2.0
# A choice: what is kept grows until a coordinate of the noise in the score is this many standard
# errors of sampling, up to these multiples. Longer radii trade noise for less bias.
NOISE_PER_SAMPLING, WIDEST_TERMS, WIDEST_RESIDUALS = 1.1, 3.75, 2.5
# Choices: within which ends the variance of an entry of X'X/n about the identity is estimated, and
# the squared length of a step in residual standard deviations.
GRAM_VARIANCE, SQUARED_STEP = (0.003, 0.2), (0.05, 1.0)
# Choices: the variance of a diagonal entry of X'X/n about their mean, and the least mean.
DIAGONAL, LEAST_MEAN = 0.3, 0.3
# A choice: entries farther from their mean than so many sds of their noise show a larger variance.
SURE = 2.0
# Choices: a variance of z is not taken for less, nor for less than so many noise sds of an entry.
LEAST_VARIANCE, LEAST_IN_NOISE, LARGEST_FLOOR = 0.02, 6.0, 0.35
# Of the response's variance: no residual's is taken for less after one step.
LEAST_RESIDUAL = 0.05
# What clipping moves a coordinate of the mean score by, as measured where a line is bent: so many
# times the mean of what is cut off the cubed lengths of (1, z), in root mean squares.
BEND = 0.025
# The more so, where residuals are skewed and uneven as those of a multiplicative relation are, by
# what cutting them at RESIDUAL_CUT would move the mean score by, up to a choice.
MOST_BEND = 0.1
# Choices: the fraction of what is cut off residuals that moves a coordinate of the score, and the
# fraction of residuals of a normal law below half a standard deviation.
ALIKE_RESIDUALS, NEAR_ZERO = 0.1, 0.38
# Choices: by how much more than noise such a shift counts in choosing radii, and of it the fraction
# that standard errors allow for; the sd of a fraction of residuals about that of a normal law, and
# by how much more it may differ along a direction of the terms.
CAUTION, ALLOWED, NORMAL_SD, UNEVEN = 4.0, 0.8, 0.07, 3.0
# Choices: a squared difference between the sides of a line counts beyond this many variances of its
# noise, and likewise one between residuals along a term; residuals are taken to be skewed this many
# times more than they are seen to be, as a lognormal law.
RESOLVED_SKEW, UNSEEN = 1.5, 1.25
# Choices: its logarithm has an sd between the first two, and at least the third where the variance
# of residuals is hidden.
LEAST_SKEWED, MOST_SKEWED, HIDDEN_SKEW = 0.1, 1.2, 0.7
# A choice: rows that are long are so along few of the terms, so that X'X along these grows by a
# power of the mean square of all.
ALONG = 2.5
# A choice: noise in these counts, per row, times this takes off that caution.
NOISY = 350.0
# Choices: the length of a step yet to come; that of a level's rows in units of the radius, which is
# not taken for more than so many √(1 + d) there.
EXPECTED_STEP, REACH, LONGEST = 0.08, 0.8, 1.6
# A choice: lengths are in units of their root mean square, so that a cell whose rows alone have
# this mean square is noise.
MOST_SQUARE = 2.0
# Choices: lengths that rows are counted by, and the least up to which they are kept whole.
LENGTHS: Floats = 0.25 * 2.0 ** (np.arange(25) / 4)
RESIDUALS: Floats = 0.5 * 2.0 ** (np.arange(29) / 4)
SHORTEST_TERMS, SHORTEST_RESIDUALS = 0.8, 1.4
# Choices: a variance that axes lack is taken to be of rows at so many of its roots, towards which
# an axis keeps a variance of so many sds of its noise.
FAR_ROWS, LEAST_KEPT = 5.0, 25.0
# A choice: the least variance of a shortened axis.
THINNEST = 1e-3
# A choice: the largest noise sd of a mean square of 1 for which rows are kept longer than LONGEST.
MOST_NOISE = 0.25

# Columns of factors, and what they are at each level.
Levels = list[tuple[slice, Floats]]


class FarRows(NamedTuple):
    """What is known of rows far from the others, in scaled units.

    `variances`, shape (terms,), are those that numbers have at least in their whole ranges.
    `noise` is the sd of that in a mean square of rows which are kept up to :data:`LONGEST`.
    """

    levels: Levels
    variances: Floats
    noise: float


@dataclass(frozen=True)
class ScoreCoordinates:
    """Centre, whitening, line and residual standard deviation, in scaled units.

    `centre` has the shape (terms,), `whitening` (terms, terms), `line` (terms + 1,), its constant
    first. `spread`, shape (terms,), are likely standard deviations of the coordinates z.
    """

    centre: Floats
    whitening: Floats
    line: Floats
    residual_sd: float
    spread: Floats

    @property
    def parameters(self) -> int:
        """Number of coordinates of (1, z)."""
        return len(self.line)

    def transform(self, radius: float, cut: float) -> Floats:
        """Return what takes (1, x, y) to ``(1, z) / (R√2)`` and ``e / (c√2)``, square."""
        size = self.parameters
        matrix = np.zeros((size + 1, size + 1))
        matrix[0, 0] = 1.0
        matrix[1:size, 0] = -self.whitening @ self.centre
        matrix[1:size, 1:size] = self.whitening
        matrix[:size] /= radius * math.sqrt(2)
        matrix[size, :size] = -self.line
        matrix[size, size] = 1.0
        matrix[size] /= self.residual_sd * cut * math.sqrt(2)
        return matrix

    def coefficients(self, step: Floats) -> Floats:
        """Return a change of the coefficients of (1, z), in residual sds, as one of (1, x)."""
        slopes = self.whitening.T @ step[1:]
        constant = step[0] - slopes @ self.centre
        return self.residual_sd * np.append(constant, slopes)

    def axes(self, radius: float, cut: float) -> Floats:
        """Return what takes (z, e R / c) to the scaled row (x, y) about the centre, square."""
        size = self.parameters
        back = np.linalg.inv(self.whitening)
        matrix = np.zeros((size, size))
        matrix[:-1, :-1] = back
        matrix[-1, :-1] = self.line[1:] @ back
        matrix[-1, -1] = self.residual_sd * cut / radius
        return matrix


@dataclass(frozen=True)
class ScoreMoments:
    """Released means over rows of the moments of (w, w z) and w e, and their noise.

    `gram` has the shape (parameters, parameters), `score` (parameters,). `gram_sd` is the noise of
    an entry of `gram` off the diagonal, which has √2 times that, `score_sd` that of one of `score`,
    `square_sd` that of `square`.
    """

    gram: Floats
    score: Floats
    square: float
    gram_sd: float
    score_sd: float
    square_sd: float

    @property
    def gram_variances(self) -> Floats:
        """Variances of the noise in the entries of `gram`."""
        return np.asarray(self.gram_sd**2 * (1 + np.eye(len(self.gram))))


def radii(parameters: int, multiplier: float, rows: float) -> tuple[float, float]:
    """Return up to which length of (1, z) and which residual rows are kept whole.

    `multiplier` is that of the whole budget.
    """
    scale = 2 * multiplier * math.sqrt(parameters) * TERM_RADIUS * RESIDUAL_CUT
    wider = math.sqrt(max(NOISE_PER_SAMPLING * math.sqrt(rows) / scale, 1.0))
    radius = TERM_RADIUS * math.sqrt(parameters) * min(wider, WIDEST_TERMS)
    return radius, RESIDUAL_CUT * min(wider, WIDEST_RESIDUALS)


class Limits(NamedTuple):
    """Up to which length of (1, z) and which residual rows are kept whole, and what it costs."""

    radius: float
    cut: float
    kept: float  # Noisy fraction of residuals below the cut
    kept_sd: float  # Its noise
    shift: float  # Allowed for what clipping moves a coordinate of the mean score
    skew: Floats  # The same for what is cut on one side, shape (parameters,), the constant first
    one_sided: float  # Noisy fraction of rows below the line less that above


class SignedCells(NamedTuple):
    """Noisy numbers of rows by residual, in its standard deviation, above and below the line."""

    above: Cells
    below: Cells
    largest: float  # Public: no residual is longer
    variance: float = math.nan  # Of all residuals, none of them cut; nan if it is not known

    @property
    def total(self) -> Cells:
        """Numbers of rows by the absolute residual."""
        above, below = self.above, self.below
        return replace(above, counts=above.counts + below.counts, sd=above.sd * math.sqrt(2))

    @property
    def lengths(self) -> Floats:
        """The length of the residuals in each cell."""
        return np.minimum(self.above.radii, self.largest)

    @property
    def excess(self) -> Floats:
        """What a cut takes off the residuals in each cell, shape (cuts, cells)."""
        return np.maximum(self.lengths - self.above.radii[:, None], 0.0)


def chosen_limits(
    terms: Cells,
    signed: SignedCells,
    uneven: Floats,
    rows: float,
    multiplier: float,
    noisy: float = NOISY,
) -> Limits:
    """Return up to which length of (1, z) and which residual rows are kept whole at last.

    `terms` and `signed` are noisy numbers of rows by the length of (1, z), in units of its root
    mean square, and by the residual in its sd; `multiplier` is that of the last release. The noise
    in a coordinate of the score, and :data:`CAUTION` times what clipping may move it by, or less
    where counts are noisy, are least in mean square. A line that is bent misses a row of length L
    by about L², and moves by L³.
    """
    residuals, parameters = signed.total, 1 + len(uneven)
    radius, cut = terms.radii[:, None], residuals.radii
    is_noise = terms.counts * terms.radii**2 > MOST_SQUARE * rows
    likely_terms = replace(terms, counts=np.where(is_noise, 0.0, terms.counts))
    long, far = (_with_tail(cells) / rows for cells in (likely_terms, residuals))
    counted = 1 - (np.cumsum(far[::-1])[::-1] - far)
    counted_sd = residuals.sd / rows * np.sqrt(np.arange(len(far))[::-1])
    kept, _ = kept_fraction(erf(cut / math.sqrt(2)), counted, counted_sd)
    # Where no length is detected, rows are of the root mean square length.
    likely = long if long.any() else np.where(terms.radii == 1.0, 1.0, 0.0)
    within = np.minimum(terms.radii, radius) ** 2 @ likely
    size = (within / within[-1])[:, None] ** ALONG
    noise = 2 * multiplier * math.sqrt(parameters) * radius * cut / rows / kept / size
    noise = noise * np.sqrt(1 + (radius / cut * kept) ** 2 * parameters * EXPECTED_STEP**2)
    weights = np.minimum(1.0, radius / terms.radii) ** 2
    skew = _skew(signed, uneven, rows)
    bend = BEND + min(float(np.linalg.norm(skew[cut == RESIDUAL_CUT, 1:])), MOST_BEND)
    bent = ((1 - weights) * terms.radii**3) @ long * bend
    odd = signed.excess @ far * _alike(residuals, rows)
    shift = np.hypot(bent[:, None], odd)
    squares_sd = math.sqrt(8) * multiplier * parameters * radius**2 / rows
    allowed = (radius >= SHORTEST_TERMS) & (cut >= SHORTEST_RESIDUALS)
    allowed &= (radius <= LONGEST) | (squares_sd <= MOST_NOISE)
    caution = CAUTION / (1 + noisy * terms.sd / rows)
    slopes = shift**2 + (skew[:, 1:] ** 2).sum(axis=1) / parameters
    error = noise**2 + caution**2 * slopes + skew[:, 0] ** 2 / parameters
    error = np.where(allowed, error, math.inf)
    at, to = np.unravel_index(np.argmin(error), error.shape)
    return Limits(
        float(terms.radii[at]) * math.sqrt(parameters),
        float(cut[to]),
        float(counted[to]),
        float(counted_sd[to]),
        float(ALLOWED * shift[at, to]),
        ALLOWED * skew[to],
        one_sided(signed, rows)[0],
    )


def _alike(residuals: Cells, rows: float) -> float:
    """Return the share of what is cut off residuals that moves a coordinate of the score.

    Residuals that are seldom near 0 are those of a response of few values: which are cut depends on
    the terms.
    """
    near = max(float(residuals.counts[residuals.radii <= 0.5].sum()) / rows, 0.02)
    return float(np.clip(ALIKE_RESIDUALS * (NEAR_ZERO / near) ** 2, ALIKE_RESIDUALS, 1.0))


def _with_tail(cells: Cells) -> Floats:
    """Return detected counts by length, and likely ones beyond the last detected cell.

    These fall off exponentially as detected counts do beyond their median, times a factor with the
    mean ½ and sd ½ before the noisy counts say more.
    """
    counts, falling = cells.detected, cells.falling
    if falling is None:
        return counts
    median, last, longer = falling
    if last == median:
        return counts
    rate = math.log(longer[median] / longer[last]) / (cells.radii[last] - cells.radii[median])
    beyond = np.exp(-rate * (cells.radii[last:] - cells.radii[last]))
    ahead = -longer[last] * np.diff(beyond)
    noise = 4 * cells.sd**2
    factor = (float(cells.counts[last + 1 :] @ ahead) + noise / 2) / (float(ahead @ ahead) + noise)
    counts[last + 1 :] = min(max(factor, 0.0), 1.0) * ahead
    return counts


def _skew(signed: SignedCells, uneven: Floats, rows: float) -> Floats:
    """Return by cut what residuals cut on one side move the mean score by.

    Shape (cuts, parameters), the constant first. Where residuals are a scale times others, the
    mean of what is cut off grows, per unit of the logarithm of the scale, by that of the residuals
    which are cut.
    """
    masses, excess = _skewness(signed, rows), signed.excess
    growth = np.where(excess > 0, signed.lengths, 0.0) @ masses
    return np.column_stack([excess @ masses, np.outer(growth, uneven)])


def _skewness(signed: SignedCells, rows: float) -> Floats:
    """Return by length the share of rows that far on the side with the longer residuals.

    Noise hides tails that move means, but not that most residuals are on one side. Residuals are
    taken to be like those of a lognormal law with a larger share on that side, no larger than noise
    allows, all numbers of rows together and each by itself with an sd of half of it, before noisy
    counts beyond :data:`RESIDUAL_CUT`, less those on the other side, say more.
    """
    above, below = signed.above, signed.below
    body = above.radii <= RESIDUAL_CUT
    excess, noise = one_sided(signed, rows)
    share = math.sqrt(max(excess**2 - RESOLVED_SKEW * noise**2, 0.0))
    share = min(UNSEEN * share, 0.9)
    sigma = 2 * float(ndtri((1 + share) / 2))
    if sigma < LEAST_SKEWED:
        return np.zeros(len(above.radii))
    limit = min(UNSEEN * (abs(excess) + 2 * noise), 0.9)
    implied = min(HIDDEN_SKEW, 2 * float(ndtri((1 + limit) / 2)))
    if not math.isnan(signed.variance):
        implied = float(np.interp(signed.variance, *_lognormal_variances()))
    sigma = min(max(sigma, implied), MOST_SKEWED)
    tail = rows * lognormal_tail(sigma, above.radii[:-1])
    masses = -np.diff(tail, prepend=rows, append=0.0)
    longer, shorter = (above, below) if excess > 0 else (below, above)
    difference, noise_variance = longer.counts - shorter.counts, 2 * above.sd**2
    ahead, prior = np.where(body, 0.0, masses), 4 * noise_variance
    factor = (float(ahead @ difference) + prior) / (float(ahead @ ahead) + prior)
    masses *= min(max(factor, 0.0), 2.0)
    trust = np.where(body, 0.0, masses**2 / (masses**2 + prior))
    masses = np.maximum(masses + trust * (difference - masses), 0.0)
    return masses / rows


def one_sided(signed: SignedCells, rows: float) -> tuple[float, float]:
    """Return the fraction of rows below the line less that above, of those near, and its noise."""
    above, below = signed.above, signed.below
    body = above.radii <= RESIDUAL_CUT
    excess = float((below.counts - above.counts)[body].sum()) / rows
    return excess, above.sd * math.sqrt(2 * body.sum()) / rows


@cache
def _lognormal_variances() -> tuple[Floats, Floats]:
    """Return variances of lognormal laws, and the sds of their logarithms.

    In units in which the mean square is 1 of what is cut at :data:`RESIDUAL_CUT`.
    """
    sigmas = np.linspace(LEAST_SKEWED, MOST_SKEWED, 12)
    units = np.array([_lognormal_unit(sigma) for sigma in sigmas])
    return units**2 * np.expm1(sigmas**2) * np.exp(sigmas**2), sigmas


def lognormal_tail(sigma: float, lengths: Floats) -> Floats:
    """Return the shares of a centred lognormal law beyond lengths, in the same units."""
    beyond = math.exp(sigma**2 / 2) + lengths / _lognormal_unit(sigma)
    return np.asarray(ndtr(-np.log(beyond) / sigma))


def _lognormal_unit(sigma: float) -> float:
    """Return by what to multiply a lognormal law of median 1 for the unit of cut residuals."""
    from scipy.optimize import brentq

    normal = ndtri((np.arange(2000) + 0.5) / 2000)
    deviations = np.abs(np.exp(sigma * normal) - math.exp(sigma**2 / 2))

    def excess(log_unit: float) -> float:
        cut = np.minimum(deviations * math.exp(log_unit), RESIDUAL_CUT)
        return float((cut**2).mean()) - 1

    return math.exp(float(brentq(excess, -15.0, 15.0)))


def kept_fraction(normal: Floats, counted: Floats, sd: Floats) -> tuple[Floats, Floats]:
    """Return fractions of residuals below a cut, and an sd of them.

    Those of normal residuals are moved towards noisy counts as far as these tell.
    """
    trust = NORMAL_SD**2 / (NORMAL_SD**2 + sd**2)
    return np.clip(normal + trust * (counted - normal), 0.5, 1.0), np.sqrt(trust) * sd


def first_coordinates(mean: Floats, covariance: Floats) -> ScoreCoordinates:
    """Return coordinates from released means and a rough covariance, the response last.

    `covariance` is positive definite, and 0 between the response and the terms.
    """
    line = np.zeros(len(mean))
    line[0] = mean[-1]
    values, axes = np.linalg.eigh(covariance[:-1, :-1])
    whitening = (axes / np.sqrt(values)) @ axes.T
    sd = math.sqrt(float(covariance[-1, -1]))
    return ScoreCoordinates(mean[:-1], whitening, line, sd, np.ones(len(values)))


def explained_variance(now: ScoreCoordinates, covariance: Floats) -> float:
    """Return the variance of a line by a rough covariance of the terms and the response."""
    slopes = now.line[1:]
    return float(slopes @ covariance[:-1, :-1] @ slopes)


def within_reach(now: ScoreCoordinates, rows: FarRows, radius: float) -> ScoreCoordinates:
    """Shorten axes towards rare levels and far rows, so that these are kept whole up to a radius.

    A level whose rows would be cut to a length has the noise of a level at that length, times what
    it was longer. What the axes lack of the variance of a number is taken to be of few rows. Other
    columns depend on a level or a number there as those of all rows do.
    """
    longest = REACH * min(radius, LONGEST * math.sqrt(now.parameters))
    shorten = np.eye(len(now.spread))
    along = np.linalg.inv(now.whitening).T * now.spread[:, None]
    variances = np.square(along).sum(axis=0)
    sds = FAR_ROWS * np.sqrt(np.maximum(rows.variances - variances, 0.0))
    numbers = now.spread[:, None] * along * (sds / variances)
    lengths = np.linalg.norm(numbers, axis=0) * min(math.sqrt(LEAST_KEPT * rows.noise), 1.0)
    numbers *= np.minimum(longest / np.maximum(lengths, longest), 1.0)
    levels = []
    for at, points in rows.levels:
        columns = along[:, at]
        away = np.linalg.solve(columns.T @ columns, (points - now.centre[at]).T)
        levels.append(now.spread[:, None] * (columns @ away))
    for away in (*levels, numbers):
        for far in away.T:
            far = shorten @ far
            length = float(np.linalg.norm(far))
            if length > longest:
                shorten -= (1 - longest / length) / length**2 * np.outer(far, far @ shorten)
    variance, axes = np.linalg.eigh((shorten * now.spread**2) @ shorten.T)
    spread = np.sqrt(np.maximum(variance, THINNEST))
    return replace(now, whitening=axes.T @ shorten @ now.whitening, spread=spread)


def rough_coordinates(now: ScoreCoordinates, moments: ScoreMoments) -> ScoreCoordinates:
    """Return coordinates after a first release of moments: correlations and a rough line.

    Correlations are shrunk towards 0 by what of them may be noise, and so is the line.
    """
    shift, scatter = _centred(moments.gram)
    covariance, remaining = shrunk_covariance(scatter, moments.gram_sd, now.spread)
    spread = np.sqrt(np.diagonal(covariance))
    values, axes = np.linalg.eigh(covariance / np.outer(spread, spread))
    edge = moments.gram_sd * math.sqrt(len(spread)) / 2
    values = np.maximum(values, max(0.05, min(edge, 0.6)))
    gain = values / (values**2 + _penalty(moments, remaining))
    slope = np.clip(axes @ (gain * (axes.T @ (moments.score[1:] / spread))), -1, 1) / spread
    explained = float(2 * slope @ moments.score[1:] - slope @ covariance @ slope)
    left = _residual_variance(moments, slope, explained, float(gain.sum()))
    step = np.append(moments.score[0] - shift @ slope, slope)
    whitening = (axes / np.sqrt(values)) @ axes.T @ (now.whitening / spread[:, None])
    return _moved(now, moments, shift, step, whitening, left)


def better_coordinates(now: ScoreCoordinates, moments: ScoreMoments) -> ScoreCoordinates:
    """Return coordinates after one more release: a better line, whitening and residual sd.

    The mean of (1, z)(1, z)ᵀ is shrunk towards the identity and the step towards 0, each by the
    noise in it.
    """
    gram, remaining = shrunk_gram(moments.gram, moments.gram_variances, np.append(1.0, now.spread))
    values, axes = np.linalg.eigh(gram)
    floor = min(LARGEST_FLOOR, LEAST_VARIANCE + LEAST_IN_NOISE * moments.gram_sd)
    values = np.maximum(values, floor)
    gram = (axes * values) @ axes.T
    gain = values / (values**2 + _penalty(moments, remaining))
    step = axes @ ((axes.T @ moments.score) * gain)
    explained = float(2 * step @ moments.score - step @ gram @ step)
    left = _residual_variance(moments, step, explained, float(gain.sum()))
    shift, scatter = _centred(gram)
    values, axes = np.linalg.eigh(scatter)
    whitening = (axes / np.sqrt(np.maximum(values, floor))) @ axes.T @ now.whitening
    return _moved(now, moments, shift, step, whitening, left)


def _moved(
    now: ScoreCoordinates,
    moments: ScoreMoments,
    shift: Floats,
    step: Floats,
    whitening: Floats,
    left: float,
) -> ScoreCoordinates:
    """Return coordinates about the mean of z and the line after a step.

    `shift` is the mean, followed as far as it is not noise; `left` is the residual variance in the
    old unit.
    """
    trust = 1 / (1 + moments.gram_sd**2 * len(shift))
    centre = now.centre + np.linalg.solve(now.whitening, shift) * trust
    line, sd = now.line + now.coefficients(step), now.residual_sd * math.sqrt(left)
    return ScoreCoordinates(centre, whitening, line, sd, np.ones(len(shift)))


def shrunk_covariance(scatter: Floats, sd: float, spread: Floats) -> tuple[Floats, Floats]:
    """Shrink a covariance whose entries have noise `sd` as :func:`shrunk_gram` does."""
    floor = min(0.25, LEAST_VARIANCE + LEAST_IN_NOISE * sd)
    np.fill_diagonal(scatter, np.maximum(np.diagonal(scatter), floor))
    return shrunk_gram(scatter, sd**2 * (1 + np.eye(len(scatter))), spread)


def shrunk_gram(gram: Floats, noise: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Shrink a noisy mean of (1, z)(1, z)ᵀ towards a diagonal; return what noise is left, too.

    `noise` are the variances of its entries. Correlations are taken to have a variance about 0 that
    they show beyond their noise, diagonal entries one of :data:`DIAGONAL` about 1; an entry keeps
    the variance that it has, given its noise.
    """
    size, scale = len(gram), np.outer(spread, spread)
    gram, noise = gram / scale, noise / scale**2
    diagonal_keep = DIAGONAL / (DIAGONAL + np.diagonal(noise))
    middle = float(np.average(np.diagonal(gram), weights=diagonal_keep))
    middle = min(max(middle, LEAST_MEAN), 1.0)
    deviation = np.diagonal(gram) - middle
    prior = np.maximum(deviation**2 - SURE**2 * np.diagonal(noise), DIAGONAL)
    diagonal_keep = prior / (prior + np.diagonal(noise))
    diagonal = middle + deviation * diagonal_keep
    spread = np.maximum(diagonal, LEAST_VARIANCE)
    unit = np.outer(spread, spread)
    upper = np.triu_indices(size, 1)
    square = float(((gram**2 - noise) / unit)[upper].mean()) if size > 1 else 0.0
    prior = float(np.clip(square, *GRAM_VARIANCE)) * unit
    keep = prior / (prior + noise)
    np.fill_diagonal(keep, diagonal_keep)
    shrunk = gram * keep
    np.fill_diagonal(shrunk, diagonal)
    return shrunk * scale, keep * noise * scale**2


def kept_whole(square: float, cut: float) -> float:
    """Return the share of normal residuals below a cut whose mean square, cut off there, is given.

    A score of cut residuals answers a change of the coefficients by this share only.
    """
    from scipy.optimize import brentq

    def excess(sd: float) -> float:
        t = cut / sd
        inside = math.erf(t / math.sqrt(2))
        density = math.sqrt(2 / math.pi) * t * math.exp(-(t**2) / 2)
        return sd**2 * (inside - density) + cut**2 * (1 - inside) - square

    low, high = cut / 10, 3 * cut
    if excess(low) >= 0:
        return 1.0
    sd = high if excess(high) <= 0 else float(brentq(excess, low, high))
    return max(math.erf(cut / sd / math.sqrt(2)), 0.5)


def _penalty(moments: ScoreMoments, remaining: Floats) -> float:
    """Return the ridge of a step, in units of X'X/n, by the noise in the score and in X'X.

    The step is taken to be as long as the score is beyond its noise. Noise in X'X counts as far as
    it remains, times the step.
    """
    size = len(moments.gram)
    excess = moments.score @ moments.score - size * moments.score_sd**2
    square = float(np.clip(excess, *SQUARED_STEP))
    return size * (moments.score_sd**2 / square + float(remaining.mean()))


def _residual_variance(moments: ScoreMoments, step: Floats, explained: float, gain: float) -> float:
    """Return the variance that a step leaves, with one sd of its noise, in the old unit.

    A step that follows the noise in the score explains ``2 gain score_sd²`` too much.
    """
    weight = max(float(moments.gram[0, 0]), 0.5)
    noise = math.hypot(moments.square_sd, 2 * moments.score_sd * float(np.linalg.norm(step)))
    left = moments.square - explained + 2 * gain * moments.score_sd**2 + noise
    return float(np.clip(left / weight, LEAST_RESIDUAL, 1.5))


def _centred(gram: Floats) -> tuple[Floats, Floats]:
    weight = max(float(gram[0, 0]), 0.5)
    shift = gram[0, 1:] / weight
    return shift, gram[1:, 1:] / weight - np.outer(shift, shift)
