"""Coordinates in which the scores of least squares are short, learnt round by round.

A row (x, y) is written as ``z = W (x - c)``, whose covariance is about the identity, and
``e = (y - b₀ - b · x) / s``, the residual of a line in units of its standard deviation. Everything
here is a function of released values and public facts. Lengths are in scaled units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from dpmodels.postprocess.ellipsoid import Cells, tail
from dpmodels.typing import Floats

# A choice: rows are kept whole up to this length of (1, z), in units of √(1 + d) for d terms, and
# residuals up to this many of their standard deviations.
TERM_RADIUS, RESIDUAL_CUT = 1.0, 2.0
# A choice: what is kept grows until a coordinate of the noise in the score is this many standard
# errors of sampling, up to these multiples. Longer radii trade noise for less bias.
NOISE_PER_SAMPLING, WIDEST_TERMS, WIDEST_RESIDUALS = 1.1, 3.75, 2.5
# A choice: where the least noise that radii allow is below so many standard errors of sampling,
# less noise is worth having, by the root of that.
AMPLE = 0.5
# Choices: within which ends the variance of an entry of X'X/n about the identity is estimated, and
# the squared length of a step in residual standard deviations.
GRAM_VARIANCE, SQUARED_STEP = (0.003, 0.2), (0.05, 1.0)
# A choice: the variance of a diagonal entry of X'X/n about 1.
DIAGONAL = 0.3
# Choices: a variance of z is not taken for less, nor for less than so many noise sds of an entry.
LEAST_VARIANCE, LEAST_IN_NOISE, LARGEST_FLOOR = 0.02, 6.0, 0.35
# Of the response's variance: no residual's is taken for less after one step.
LEAST_RESIDUAL = 0.05
# Choices: of what is cut off long terms and residuals, the share that moves a coordinate of the
# score, the length of a step yet to come, and the lengths that rows are counted by.
ALIKE_TERMS, ALIKE_RESIDUALS, EXPECTED_STEP = 0.05, 0.25, 0.08
LENGTHS: Floats = 0.25 * 2.0 ** (np.arange(25) / 4)
SHORTEST_TERMS, SHORTEST_RESIDUALS = 0.8, 1.4
# A choice: a distance that so many rows are within is taken for a standard deviation.
MOST_ROWS = 0.75


@dataclass(frozen=True)
class ScoreCoordinates:
    """Centre, whitening, line and residual standard deviation, in scaled units.

    `centre` has the shape (terms,), `whitening` (terms, terms), `line` (terms + 1,), its constant
    first.
    """

    centre: Floats
    whitening: Floats
    line: Floats
    residual_sd: float

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


def chosen_radii(
    terms: Cells, residuals: Cells, rows: float, parameters: int, multiplier: float
) -> tuple[float, float]:
    """Return up to which length of (1, z) and which residual rows are kept whole at last.

    `terms` and `residuals` are noisy numbers of rows by the length of (1, z), in units of its root
    mean square, and of the residual in its sd; `multiplier` is that of the last release. The mean
    square error of a coordinate of the score is least: of its noise, and of what is cut off. Noise
    below a multiple of the error of sampling does not count: beyond, radii grow until nothing is
    cut off.
    """
    radius, cut = terms.radii[:, None], residuals.radii
    kept_fraction = erf(cut / math.sqrt(2))
    noise = 2 * multiplier * math.sqrt(parameters) * radius * cut / rows / kept_fraction
    noise = noise * np.sqrt(1 + (radius / cut * kept_fraction) ** 2 * parameters * EXPECTED_STEP**2)
    long = tail(terms)
    weights = np.minimum(1.0, terms.radii[:, None] / terms.radii) ** 2
    off_terms = ((1 - weights) * terms.radii) @ long / rows * ALIKE_TERMS
    excess = np.maximum(cut - cut[:, None], 0.0)
    off_residuals = excess @ tail(residuals) / rows * ALIKE_RESIDUALS
    allowed = (radius >= SHORTEST_TERMS) & (cut >= SHORTEST_RESIDUALS)
    smallest_noise = float(noise[allowed].min()) * math.sqrt(rows)
    enough = NOISE_PER_SAMPLING * math.sqrt(min(smallest_noise / AMPLE, 1.0))
    noise = np.maximum(noise, enough / math.sqrt(rows))
    error = noise**2 + off_terms[:, None] ** 2 + off_residuals**2
    best = np.unravel_index(np.argmin(np.where(allowed, error, math.inf)), error.shape)
    return float(terms.radii[best[0]]) * math.sqrt(parameters), float(cut[best[1]])


def radius_of_most(distances: Floats, within: Floats, sd: float) -> Floats:
    """Return by column a distance within which most rows are, infinite where noise hides it.

    `within` are noisy shares of the rows up to each distance, shape (columns, distances), sums of
    cells that have a noise of `sd` each.
    """
    noise = sd * np.sqrt(np.arange(1, len(distances) + 1))
    required = MOST_ROWS + noise
    reached = (within >= required) & (required < 1)
    first = np.argmax(reached, axis=1)
    return np.where(reached.any(axis=1), distances[first], math.inf)


def first_coordinates(mean: Floats, covariance: Floats) -> ScoreCoordinates:
    """Return coordinates from released means and a rough covariance, the response last.

    `covariance` is positive definite, and 0 between the response and the terms.
    """
    line = np.zeros(len(mean))
    line[0] = mean[-1]
    values, axes = np.linalg.eigh(covariance[:-1, :-1])
    whitening = (axes / np.sqrt(values)) @ axes.T
    return ScoreCoordinates(mean[:-1], whitening, line, math.sqrt(float(covariance[-1, -1])))


def rough_coordinates(now: ScoreCoordinates, moments: ScoreMoments) -> ScoreCoordinates:
    """Return coordinates after a first release of moments: correlations and a rough line.

    Correlations are shrunk towards 0 by what of them may be noise, and so is the line.
    """
    shift, scatter = _centred(moments.gram)
    floor = min(0.25, LEAST_VARIANCE + LEAST_IN_NOISE * moments.gram_sd)
    np.fill_diagonal(scatter, np.maximum(np.diagonal(scatter), floor))
    covariance, remaining = shrunk_gram(scatter, moments.gram_variances[1:, 1:])
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
    gram, remaining = shrunk_gram(moments.gram, moments.gram_variances)
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
    line = now.line + now.coefficients(step)
    return ScoreCoordinates(centre, whitening, line, now.residual_sd * math.sqrt(left))


def shrunk_gram(gram: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Shrink a noisy mean of (1, z)(1, z)ᵀ towards the identity; return what noise is left, too.

    `noise` are the variances of its entries. Correlations are taken to have a variance about 0 that
    they show beyond their noise, diagonal entries one of :data:`DIAGONAL` about 1; an entry keeps
    the variance that it has, given its noise.
    """
    size = len(gram)
    diagonal_keep = DIAGONAL / (DIAGONAL + np.diagonal(noise))
    diagonal = 1 + (np.diagonal(gram) - 1) * diagonal_keep
    spread = np.maximum(diagonal, LEAST_VARIANCE)
    unit = np.outer(spread, spread)
    upper = np.triu_indices(size, 1)
    square = float(((gram**2 - noise) / unit)[upper].mean()) if size > 1 else 0.0
    prior = float(np.clip(square, *GRAM_VARIANCE)) * unit
    keep = prior / (prior + noise)
    np.fill_diagonal(keep, diagonal_keep)
    shrunk = gram * keep
    np.fill_diagonal(shrunk, diagonal)
    return shrunk, keep * noise


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
    square = float(
        np.clip(moments.score @ moments.score - size * moments.score_sd**2, *SQUARED_STEP)
    )
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
    """Return the mean and the covariance of z from the moments of (1, z)."""
    weight = max(float(gram[0, 0]), 0.5)
    shift = gram[0, 1:] / weight
    return shift, gram[1:, 1:] / weight - np.outer(shift, shift)
