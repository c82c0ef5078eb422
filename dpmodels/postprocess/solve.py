"""Least squares from released moments of (1, x, y), and the noise in its equations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.released import MomentNoise
from dpmodels.typing import Floats

# A choice: the least eigenvalue that is divided by, in edges of its noise.
FLOOR = 1.0
# Of the largest moment: sums of products of 64-bit numbers are known no closer.
ROUNDING = 2.0**-44
# Of the largest eigenvalue: a smaller one is taken for 0.
_NOTHING = 1e-15
# Of the largest eigenvalue: a smaller one may be the rounding of that.
RESOLVED = 1e-13


@dataclass(frozen=True)
class NormalEquations:
    """A linear model asked of the noisy moments of rows ``a = (1, z, v)``.

    A row is a constant, scaled terms and a scaled response; the regressors of the model are ``aᵀT``
    and its response ``aᵀt``, with public T and t.

    `moments` is the noisy sum ``M`` of ``a aᵀ``, not necessarily positive, `variance` that of the
    independent noise in each entry on and above the diagonal, both of shape (terms + 2, terms + 2);
    `regressors` is ``T``, shape (terms + 2, parameters), whose first column is the constant where
    `intercept`, and `response` is ``t``.
    """

    moments: Floats
    variance: Floats
    regressors: Floats
    response: Floats
    intercept: bool

    @cached_property
    def gram(self) -> Floats:
        """``X'X``, shape (parameters, parameters)."""
        return np.asarray(self.regressors.T @ self.moments @ self.regressors)

    @cached_property
    def cross(self) -> Floats:
        """``X'y``, shape (parameters,)."""
        return np.asarray(self.regressors.T @ self.moments @ self.response)

    def residual(self, theta: Floats) -> Floats:
        """Return the residual of a row as a combination of its entries: ``t - Tθ``."""
        return np.asarray(self.response - self.regressors @ theta)

    def noise_of(self, weights: Floats) -> Floats:
        """Return the mean of ``E W E`` over the noise ``E``, for a symmetric ``W``."""
        mean = self.variance * weights
        np.fill_diagonal(mean, self.variance @ np.diagonal(weights))
        return np.asarray(mean)

    def form_sd(self, weights: Floats) -> float:
        """Return the sd of the noise in ``Σ W_ij M_ij``, for a symmetric ``W``."""
        twice = np.sum(self.variance * weights**2) * 2
        own = np.sum(np.diagonal(self.variance) * np.diagonal(weights) ** 2)
        return math.sqrt(float(twice - own))

    def noise_in_score(self, theta: Floats) -> Floats:
        """Return the covariance of the noise in the score at some parameters."""
        g = self.residual(theta)
        return np.asarray(self.regressors.T @ self.noise_of(np.outer(g, g)) @ self.regressors)

    def squares_left(self, theta: Floats) -> tuple[float, float]:
        """Return the residuals' sum of squares about an estimate, without its bias, and its noise.

        The estimate is where the noisy sum is least, which takes ``tr(G⁻¹N)`` off its mean, G being
        X'X and N the noise of the score there, and adds ``2 tr((G⁻¹N)²)`` to its variance.
        """
        g = self.residual(theta)
        pulled = np.linalg.solve(self.gram + np.diag(self.lift(FLOOR)), self.noise_in_score(theta))
        more = 2 * max(float(np.trace(pulled @ pulled)), 0.0)
        value = float(g @ self.moments @ g) + float(np.trace(pulled))
        return value, math.hypot(self.form_sd(np.outer(g, g)), math.sqrt(more))

    def noise_slope(self, g: Floats, u: Floats) -> Floats:
        """Return the derivative of ``noise_of(g gᵀ) u`` in g, one column an entry of it."""
        slope = self.variance * np.outer(g, u)
        own = np.diagonal(slope)
        across = self.variance @ (g * u) - own
        np.fill_diagonal(slope, across)
        return np.asarray(slope + 2 * u[:, None] * self.variance * g)

    @cached_property
    def centred(self) -> Floats:
        """The terms less their means, as combinations of a row's entries, by columns."""
        if not self.intercept:
            return self.regressors
        terms = self.regressors[:, 1:].copy()
        terms[0] -= self.moments[0] @ terms / max(self.moments[0, 0], 1.0)
        return terms

    @cached_property
    def scatter(self) -> Floats:
        """``X'X`` of the centred terms, whose inverse is what slopes need."""
        return np.asarray(self.centred.T @ self.moments @ self.centred)

    @cached_property
    def edge(self) -> float:
        """Where the noise in the eigenvalues of `scatter` ends.

        Twice the root of the largest eigenvalue of the mean squared noise: for equal noise the edge
        of Wigner's semicircle.
        """
        if not self.centred.shape[1]:
            return 0.0
        squared = self.centred.T @ self.noise_of(self.centred @ self.centred.T) @ self.centred
        return 2 * math.sqrt(max(float(np.linalg.eigvalsh(squared)[-1]), 0.0))

    @cached_property
    def strength(self) -> float:
        """How far X'X stands above its noise: least eigenvalue over edge.

        Of `scatter`, or of the number of rows where that is the weaker.
        """
        rows = self._count / self._count_edge if self.intercept else math.inf
        if not self.centred.shape[1]:
            return rows
        return min(float(np.linalg.eigvalsh(self.scatter)[0]) / self.edge, rows)

    @property
    def _count(self) -> float:
        return float(self.moments[0, 0])

    @property
    def _count_edge(self) -> float:
        return 2 * math.sqrt(self.variance[0, 0])

    def lift(self, floor: float) -> Floats:
        """Return the least ridge that leaves X'X `floor` edges above 0, shape (parameters,).

        One number for all slopes, another for the constant.
        """
        slopes = 0.0
        if self.centred.shape[1]:
            slopes = max(0.0, floor * self.edge - float(np.linalg.eigvalsh(self.scatter)[0]))
        ridge = np.full(len(self.gram), slopes)
        if self.intercept:
            ridge[0] = max(0.0, floor * self._count_edge - self._count)
        return ridge


def normal_equations(
    count: float,
    total: Floats,
    second: Floats,
    noise: MomentNoise,
    *,
    row_norm: float,
    shift: Floats | None,
    axes: Floats | None = None,
) -> NormalEquations:
    """Ask released moments for the regression of their last column on the others.

    `row_norm` scales the unit ball back. `shift`, shape (terms + 1,), tells of a model without
    intercept where the columns' origin lies from their own, in scaled units; None stands for a
    model with one. `axes` are those of :class:`dpmodels.released.Ball`: the regressors are then the
    terms times :func:`even`, the response is divided by its length.

    However quiet the noise, a moment is known to the rounding of floating point numbers at best:
    that is the least noise that is reckoned with.
    """
    size = len(second) + 1
    moments, variance = np.empty((size, size)), np.empty((size, size))
    moments[0, 0], variance[0, 0] = count, noise.count**2
    moments[0, 1:] = moments[1:, 0] = total * row_norm
    variance[0, 1:] = variance[1:, 0] = (noise.mean * row_norm) ** 2
    moments[1:, 1:] = second * row_norm**2
    variance[1:, 1:] = (noise.off * row_norm**2) ** 2
    np.fill_diagonal(variance[1:, 1:], (noise.diagonal * row_norm**2) ** 2)
    unit = np.concatenate([[1.0], np.full(size - 1, row_norm)])
    units = np.outer(unit, unit)
    largest = max(float(np.abs(moments / units).max()), 1.0)
    variance = np.maximum(variance, (ROUNDING * largest * units) ** 2)
    columns = np.eye(size)
    if axes is not None:
        columns[1:, 1:] = axes.T @ even(axes)
    if shift is None:
        return NormalEquations(moments, variance, columns[:, :-1], columns[:, -1], True)
    columns[0, 1:] = shift if axes is None else shift @ even(axes)
    return NormalEquations(moments, variance, columns[:, 1:-1], columns[:, -1], False)


def even(axes: Floats) -> Floats:
    """Return what makes the noise in moments along axes even, shape (columns, columns).

    Of columns ``axes @ u``, the last for itself: of the others so transformed, and of the last over
    its length, each is a combination of u of length 1, and the former are orthogonal.
    """
    left, values, _ = np.linalg.svd(axes[:-1], full_matrices=False)
    whole = np.zeros_like(axes)
    whole[:-1, :-1] = (left / values) @ left.T
    whole[-1, -1] = 1 / np.linalg.norm(axes[-1])
    return whole


def least_squares(equations: NormalEquations, floor: float = FLOOR) -> Floats:
    """Solve noisy normal equations, shape (parameters,).

    `floor` is the least eigenvalue of X'X, in edges of its noise: below it a ridge is added, so
    that what noise alone would make large is kept small; ``-inf`` for the equations as they are.
    """
    values, axes = np.linalg.eigh(equations.gram + np.diag(equations.lift(floor)))
    kept = np.abs(values) > _NOTHING * np.abs(values).max()
    axes = axes[:, kept]
    return np.asarray((axes / values[kept]) @ (axes.T @ equations.cross))
