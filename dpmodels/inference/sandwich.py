"""Intervals of coefficients from bought curvature and squared gradients.

At a released point θ the gradient of ``Σφ`` is ``g - b``: g is known, b noise of known variance. At
the minimum of ``Σφ + (Λ/2)|θ - c|² + ⟨b, θ⟩`` g is ``Λ(c - θ)``; where a noisy gradient was
released, g is that. With H the curvature, of which ``H + E`` was released, the rows' own estimate
``θ + δ`` solves ``Hδ = b - g`` to first order, and the population's ``Hδ = b + S - g``, S the sum
of the gradients there, of covariance J. Where H stands far above E, ``θ - (H + E)⁻¹g`` is free of
what is known to be off it, and its covariance is ``H⁻¹(J + var(b) I + var(Eδ))H⁻¹``, White's
sandwich with the noise inside. Elsewhere these are normal equations with noise of known law on both
sides, and are inverted as those of least squares are (:mod:`dpmodels.inference.least_squares`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmodels.inference.least_squares import LeastSquares
from dpmodels.inference.noisy_variance import allowance
from dpmodels.postprocess import nearest_psd
from dpmodels.postprocess.solve import RESOLVED, ROUNDING, NormalEquations, contrasts, least_squares
from dpmodels.released import BoughtCurvature, CoefficientsRelease, Meat, MomentNoise
from dpmodels.typing import Floats

# Beyond so many coefficients a search for ends takes long: there are none where it is needed.
MANY = 24
# Choices: curvature of less than so many edges of its noise is lost, along a way of which no
# coefficients are known but that they are about as large as that, in units of the ball; and the
# share of its squared length along such ways from which on a coefficient is lost.
LOST, SIZE, MOSTLY = 0.5, 2.0, 0.02
# A choice, between intervals in wide bounds and none in good ones: curvature of less than so many
# sds of an entry's noise may be noise alone, which exceeds it once in 160 in one column.
MIN_CURVATURE_SDS = 2.5
# A choice by simulation: root mean square error of the linear predictor beyond which its weights
# in the curvature are too far from those at the truth.
FAR = 0.6


@dataclass(frozen=True)
class Sandwich:
    """An estimate without what is known to be off it, and its covariance in two parts.

    In units of the ball. `noise_root`, with a line a column, is a root ``R`` of the covariance ``R
    Rᵀ`` of what separates the estimate from the rows' own: sums of its squares are variances, which
    no rounding makes negative. `sampling_root`, shape (columns, columns), is that of what separates
    the rows' own from the population's. `robust` is the share in [0, 1] of the squared gradients in
    the sandwich's filling; the rest is the curvature, which they equal where the model is right, or
    for persons what they are at most then. `noise_law` and `full_law` are of Newton's step from
    `point` along `axes`, for the rows' own and for the population's; `lost`, shape (columns, ways),
    are ways along which noise swamps the curvature; `swamped`, shape (columns,), are those that
    curvature which noise alone may make has a part in. `far` is the root mean square error of the
    linear predictor over the rows, as far as it is known.
    """

    estimate: Floats
    noise_root: Floats
    sampling_root: Floats
    robust: float
    point: Floats
    axes: Floats
    noise_law: LeastSquares
    full_law: LeastSquares
    lost: Floats
    swamped: NDArray[np.bool_]
    far: float

    @property
    def noise(self) -> Floats:
        """Covariance of what separates the estimate from the rows' own."""
        return np.asarray(self.noise_root @ self.noise_root.T)

    @property
    def sampling(self) -> Floats:
        """Covariance of what separates the rows' own estimate from the population's."""
        return np.asarray(self.sampling_root @ self.sampling_root.T)

    def interval(self, direction: Floats, level: float, *, full: bool) -> tuple[float, float]:
        """Return what is not refused of ``direction · coefficients``, infinite where nothing is.

        For the population's coefficients with `full`, else for the rows' own.
        """
        along = float(np.linalg.norm(direction @ self.lost))
        if along**2 > MOSTLY * float(direction @ direction):
            return -math.inf, math.inf
        if self.noise_law.clear:
            roots = [self.noise_root, self.sampling_root] if full else [self.noise_root]
            half = float(ndtri((1 + level) / 2) * np.linalg.norm(direction @ np.hstack(roots)))
            middle = float(direction @ self.estimate)
            return middle - half, middle + half
        if len(direction) > MANY:
            return -math.inf, math.inf
        law, middle = self.full_law if full else self.noise_law, float(direction @ self.point)
        lower, upper = law.interval(direction @ self.axes, level)
        margin = float(ndtri((1 + level) / 2)) * SIZE * along
        return middle + lower - margin, middle + upper + margin

    def statistic(self, direction: Floats, value: float = 0.0) -> float:
        """Return how many standard errors ``direction · coefficients`` is from a value."""
        off = float(direction @ self.estimate) - value
        distance = self.distance(direction[None, :], np.array([value]))
        return math.copysign(math.sqrt(max(distance, 0.0)), off)

    def distance(self, conditions: Floats, values: Floats) -> float:
        """Return how far ``conditions · coefficients = values`` is, to hold against χ².

        nan where the conditions are not independent along ways that are known.
        """
        if not self.noise_law.clear:
            projected = conditions @ self.axes
            if np.linalg.matrix_rank(projected) < len(projected):
                return math.nan
            return self.full_law.distance_to(projected, values - conditions @ self.point)
        roots = conditions @ np.hstack([self.noise_root, self.sampling_root])
        sds = np.linalg.norm(roots, axis=1)
        away = np.linalg.pinv(roots / sds[:, None]) @ ((conditions @ self.estimate - values) / sds)
        return float(away @ away)


def sandwich(release: CoefficientsRelease) -> Sandwich | None:
    """Return estimate, covariances and laws; None where the noise swamps the curvature.

    To first order in all noises. The noise E of the bought curvature enters through ``H⁻¹EH⁻¹g``;
    that of the squared gradients does not enter the estimate. H stands for the curvature where it
    was bought. The noisier the squared gradients, the more of the filling is the curvature instead;
    of persons as much of it as there would be if all their rows were alike.

    Ways along which H is lost in its noise, as those of levels without rows, are left where the
    release has them. What is open along them enters the other equations by E, as far as it is of
    ordinary size.

    .. [1] White, H. (1982). "Maximum likelihood estimation of misspecified models." Econometrica
       50, 1-25.
    """
    bought = release.curvature
    if bought is None or release.gradient is None:
        return None
    columns = len(release.coefficients)
    values, vectors = np.linalg.eigh(bought.bread)
    edge = 2 * bought.bread_noise.off * math.sqrt(columns)
    is_resolved = values > max(LOST * edge, RESOLVED * float(values[-1]))
    if not is_resolved.any():
        return None
    threshold = max(MIN_CURVATURE_SDS * bought.bread_noise.diagonal, LOST * edge)
    faint = vectors[:, values <= threshold]
    lost, resolved, values = vectors[:, ~is_resolved], vectors[:, is_resolved], values[is_resolved]
    edge = 2 * bought.meat_noise.off * math.sqrt(columns)
    alike = release.adjacency.design_effect
    # Squares of persons' gradients have in them how alike their rows are.
    rows = alike if bought.person is None else 1
    robust = max(0.0, 1 - rows * edge / (alike * float(values[0])))
    meat, bread = rows * nearest_psd(bought.meat), alike * nearest_psd(bought.bread)
    filling = robust * meat + (1 - robust) * bread
    spread, rotation = np.linalg.eigh(resolved.T @ filling @ resolved)
    axes = resolved @ rotation
    unknown = bought.bread_noise.off**2 * SIZE**2 * lost.shape[1]
    noise_law = _law(release, axes, np.full(len(values), unknown))
    step = axes @ least_squares(noise_law.equations)
    # What hardly any noise makes large is kept small, as in the step.
    lifted = values + noise_law.equations.lift(1.0)[0]
    inside = (release.gradient_sd**2 + unknown) * np.eye(columns) + _times_vector(
        bought.bread_noise, step
    )
    still = release.coefficient_sd * np.eye(columns)
    noise = np.hstack([_solved(lifted, resolved, inside), still, SIZE * lost])
    sampling = _solved(lifted, resolved, filling)
    error = resolved.T @ np.hstack([noise, sampling])
    return Sandwich(
        estimate=np.asarray(release.coefficients + step),
        noise_root=noise,
        sampling_root=sampling,
        robust=robust,
        point=release.coefficients,
        axes=axes,
        noise_law=noise_law,
        full_law=_law(release, axes, np.maximum(spread, 0.0) + unknown),
        lost=lost,
        swamped=(faint**2).sum(axis=1) > MOSTLY,
        far=math.sqrt(float(values @ (error**2).sum(axis=1)) / float(values.sum())),
    )


def least_noise(release: CoefficientsRelease, max_curvature: float | None) -> Floats | None:
    """Return a root of a lower bound on the noise covariance of a minimum with a random tilt.

    The noise is ``(H + Λ)⁻¹b``; for H stands the released curvature plus twice the edge of its
    noise, or the public bound `max_curvature`. None without either, or for another kind of point.
    """
    if release.gradient is None or not release.coefficient_sd > 0:
        return None
    identity, bought = np.eye(len(release.coefficients)), release.curvature
    if bought is not None:
        edge = 4 * bought.bread_noise.off * math.sqrt(len(identity))
        curvature = nearest_psd(bought.bread) + (edge + release.ridge) * identity
    elif max_curvature is not None:
        curvature = (max_curvature + release.ridge) * identity
    else:
        return None
    return np.asarray(release.gradient_sd * np.linalg.inv(curvature))


def _law(release: CoefficientsRelease, axes: Floats, extra_variance: Floats) -> LeastSquares:
    """Return the law of Newton's step along axes, shape (columns, ways).

    `extra_variance`, shape (ways,), is the gradient's variance along the axes beyond its noise.
    The noise of the curvature is rotated too: it stays the same if its variance on the diagonal is
    twice that off it, else the larger of the two is used.
    """
    bought, size = release.curvature, axes.shape[1]
    assert bought is not None
    assert release.gradient is not None
    moments = np.zeros((size + 1, size + 1))
    moments[:-1, :-1] = axes.T @ bought.bread @ axes
    moments[-1, :-1] = moments[:-1, -1] = -axes.T @ release.gradient
    off = max(bought.bread_noise.off, bought.bread_noise.diagonal / math.sqrt(2))
    variance = np.full((size + 1, size + 1), off**2)
    np.fill_diagonal(variance, 2 * off**2)
    masked = release.coefficient_sd * np.linalg.norm(moments[:-1, :-1], axis=1)
    variance[-1, :-1] = release.gradient_sd**2 + masked**2 + extra_variance
    variance[:-1, -1], variance[-1, -1] = variance[-1, :-1], 0.0
    min_variance = (ROUNDING * max(float(np.abs(moments).max()), 1.0)) ** 2
    ones = np.eye(size + 1)
    equations = NormalEquations(
        moments, np.maximum(variance, min_variance), ones[:, :-1], ones[:, -1], intercept=False
    )
    return LeastSquares(equations)


def filling(meat: Meat, noise: Floats) -> Floats:
    """Return the covariance of the sum of scores from bought squares, never negative.

    Shape (parameters, parameters); `noise` is that of the noise in it. In the units of the squares
    the variance of any combination, noise included, is about 1 for each of its lengths: what the
    noise of the squares takes from a 95 % interval of it is made up for by adding that much in all
    directions alike. Of persons it may be less, as rows that have nothing in common add less: along
    an axis on which it is, as much more is added.
    """
    allowed = allowance(0.95) * meat.sd**2
    values, axes = np.linalg.eigh(meat.squares)
    values, ratio = np.maximum(values, 0.0), 1.0
    if meat.person is not None:
        rotated = np.linalg.solve(meat.root @ axes, np.linalg.solve(meat.root @ axes, noise).T)
        ratio = np.clip(values + np.diagonal(rotated), meat.sd, 1.0)
    root = meat.root @ axes * np.sqrt(values + allowed / ratio)
    return np.asarray(root @ root.T)


def _solved(values: Floats, vectors: Floats, covariance: Floats) -> Floats:
    """Return ``H⁻¹ R``, R a root of the covariance, H of the eigenvalues and eigenvectors given."""
    squares, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(squares, 0.0))
    return np.asarray((vectors / values) @ (vectors.T @ root))


def _times_vector(noise: MomentNoise, vector: Floats) -> Floats:
    """Return the covariance of a symmetric noise matrix times a vector."""
    off, diagonal = noise.off**2, noise.diagonal**2
    square = float(vector @ vector)
    return np.asarray(
        off * (square * np.eye(len(vector)) + np.outer(vector, vector))
        + (diagonal - 2 * off) * np.diag(vector**2)
    )


# Levels of a category whose own curvature tells enough for intervals of their coefficients.

# A choice by simulation of levels with 1 to 2,000 rows among 20,000: from 0.3 on fewer and fewer
# intervals cover, and of those with less 93 % of 95.
OFF = 0.3


def told_levels(fit: Sandwich, bought: BoughtCurvature, levels: int) -> NDArray[np.bool_]:
    """Return for each level whether a step of Newton's tells where it is, shape (levels,).

    The curvature of a level that few rows have grows as its probability does: a step from a point
    that is off by much ends elsewhere than at the minimum, and curvature that noise made large
    looks like that of more rows. A level is told where the logarithm of its probability moved by,
    and is off by, at most :data:`OFF` in the root mean square over its rows. Averages over all
    levels, as :attr:`Sandwich.far`, do not show that.

    A level's lines of the curvature, times what moved, are ``Σ p_k δ(log p_k) z``, whatever is
    added to the coefficients of all levels.
    """
    size = len(fit.point) // (levels - 1)
    turn = np.kron(contrasts(levels), np.eye(size))
    off = np.column_stack([fit.noise_root, fit.sampling_root, fit.estimate - fit.point])
    curvature, shifts = turn @ bought.bread @ turn.T, turn @ bought.bread @ off
    detected = []
    for rows in np.split(np.arange(levels * size), levels):
        values, axes = np.linalg.eigh(curvature[np.ix_(rows, rows)])
        square = ((axes.T @ shifts[rows]) ** 2).sum(axis=1) / np.maximum(values, 1e-300)
        detected.append(bool(values[0] > 0 and square.sum() <= OFF**2 * values.sum()))
    return np.array(detected)


# The law of coefficients that are normal about the population's.


@dataclass(frozen=True)
class NormalLaw:
    """Coefficients with a covariance, nan where they are not identified."""

    names: tuple[str, ...]
    params: Floats
    covariance_matrix: Floats

    def covariance(self) -> Floats:
        """Return the covariance, shape (coefficients, coefficients)."""
        return self.covariance_matrix

    def told(self, directions: Floats) -> NDArray[np.bool_]:
        """Return which combinations have a variance."""
        return np.isfinite(self.errors(directions))

    def errors(self, directions: Floats) -> Floats:
        """Return the standard errors of combinations."""
        variances = ((directions @ self.covariance_matrix) * directions).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))

    def intervals(self, directions: Floats, level: float) -> Floats:
        """Return normal intervals, shape (combinations, 2)."""
        half = float(ndtri((1 + level) / 2)) * self.errors(directions)
        middle = directions @ self.params
        return np.column_stack([middle - half, middle + half])

    def roots(self, directions: Floats, values: Floats) -> Floats:
        """Return distances from `values` in standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((directions @ self.params - values) / self.errors(directions))

    def distance(self, conditions: Floats, values: Floats) -> float:
        """Return Wald's statistic."""
        sds = self.errors(conditions)
        off = (conditions @ self.params - values) / sds
        spread = conditions @ self.covariance_matrix @ conditions.T / np.outer(sds, sds)
        return float(off @ np.linalg.pinv(spread, hermitian=True) @ off)
