"""Least squares from released moments of (1, x, y), and the noise in its equations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpmodels.postprocess.bound import BoundNoise, bind
from dpmodels.postprocess.few_rows import Added, Layout, added
from dpmodels.released import MomentNoise, MomentsRelease
from dpmodels.typing import Floats

# A choice: the least eigenvalue that is divided by, in edges of its noise.
FLOOR = 1.0
# Of the largest moment: sums of products of 64-bit numbers are known no closer.
ROUNDING = 2.0**-44
# Of the largest eigenvalue: a smaller one is taken for 0.
_NOTHING = 1e-15
# Beyond so many parameters, and of categories, searches over all of them take long.
MANY = 12
# A choice: from this strength on nothing is put on X'X; where there are searches, from the other.
STRONG, SEARCHED = 1.0, 2.0
# Not 0, and not a number that anything else comes near.
_LEAST = 1e-300
# Slopes in scaled units that are as good as none at all.
LARGEST = 1e3
# A choice: what is weak is held until it is so many edges of the noise.
HELD = 2.0
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
    `intercept`, and `response` is ``t``. `bound` is the noise of entries whose variance is 0 here,
    because public identities constrain them; `added_rows` are the moments of rows that were added
    to cells of too few.
    """

    moments: Floats
    variance: Floats
    regressors: Floats
    response: Floats
    intercept: bool
    bound: BoundNoise | None = None
    added_rows: Added | None = None

    @cached_property
    def whole(self) -> Floats:
        """The moments that are solved, those of added rows among them."""
        return self.moments if self.added_rows is None else self.moments + self.added_rows.moments

    @cached_property
    def gram(self) -> Floats:
        """``X'X``, shape (parameters, parameters)."""
        return np.asarray(self.regressors.T @ self.whole @ self.regressors)

    @cached_property
    def cross(self) -> Floats:
        """``X'y``, shape (parameters,)."""
        return np.asarray(self.regressors.T @ self.whole @ self.response)

    @cached_property
    def pull(self) -> Floats:
        """Covariance of what added rows do to the score, shape (parameters, parameters)."""
        if self.added_rows is None:
            return np.zeros_like(self.gram)
        return np.asarray(self.regressors.T @ self.added_rows.pull @ self.regressors)

    def residual(self, theta: Floats) -> Floats:
        """Return the residual of a row as a combination of its entries: ``t - Tθ``."""
        return np.asarray(self.response - self.regressors @ theta)

    def noise_of(self, weights: Floats) -> Floats:
        """Return the mean of ``E W E`` over the noise ``E``, for a symmetric ``W``."""
        mean = self.variance * weights
        np.fill_diagonal(mean, self.variance @ np.diagonal(weights))
        return np.asarray(mean if self.bound is None else mean + self.bound.mean(weights))

    def score_noise(self, g: Floats) -> Floats:
        """Return the covariance of ``E g``, shape (terms + 2, terms + 2)."""
        free = self.variance * np.outer(g, g)
        np.fill_diagonal(free, self.variance @ g**2)
        if self.bound is None:
            return np.asarray(free)
        slope = self.bound.slope(g)
        return np.asarray(free + slope @ self.bound.covariance @ slope.T)

    def shared(self, u: Floats, g: Floats, w: Floats) -> Floats:
        """Return the noise covariance of ``uᵀ E g`` and ``uᵀ E w``, column by column."""
        free = (u**2 * (self.variance @ (g * w))).sum(axis=0)
        free += (u * g * (self.variance @ (u * w))).sum(axis=0)
        free -= np.diagonal(self.variance) @ (u**2 * g * w)
        if self.bound is None:
            return np.asarray(free)
        left, right = self.bound.sums(u, g), self.bound.sums(u, w)
        return np.asarray(free + (left * (self.bound.covariance @ right)).sum(axis=0))

    def form_sd(self, weights: Floats) -> float:
        """Return the sd of the noise in ``Σ W_ij M_ij``, for a symmetric ``W``."""
        twice = np.sum(self.variance * weights**2) * 2
        diagonal = np.sum(np.diagonal(self.variance) * np.diagonal(weights) ** 2)
        free = float(twice - diagonal)
        if self.bound is not None:
            sums = self.bound.weighted(weights)
            free += float(sums @ self.bound.covariance @ sums)
        return math.sqrt(free)

    def noise_in_score(self, theta: Floats) -> Floats:
        """Return the covariance of the noise in the score at some parameters."""
        g = self.residual(theta)
        return np.asarray(self.regressors.T @ self.score_noise(g) @ self.regressors)

    def squares_left(self, theta: Floats) -> tuple[float, float]:
        """Return the residuals' sum of squares about an estimate, without its bias, and its noise.

        The estimate is where the noisy sum is least, which takes ``tr(G⁻¹N)`` off its mean, G being
        X'X and N the noise of the score there, and adds ``2 tr((G⁻¹N)²)`` to its variance.
        """
        g = self.residual(theta)
        pulled = np.linalg.solve(self.gram + np.diag(self.lift(FLOOR)), self.noise_in_score(theta))
        extra_variance = 2 * max(float(np.trace(pulled @ pulled)), 0.0)
        value = float(g @ self.moments @ g) + float(np.trace(pulled))
        return value, math.hypot(self.form_sd(np.outer(g, g)), math.sqrt(extra_variance))

    def noise_slope(self, g: Floats, u: Floats) -> Floats:
        """Return the derivative of ``noise_of(g gᵀ) u`` in g, one column an entry of it."""
        slope = self.variance * np.outer(g, u)
        diagonal = np.diagonal(slope)
        across = self.variance @ (g * u) - diagonal
        np.fill_diagonal(slope, across)
        slope += 2 * u[:, None] * self.variance * g
        if self.bound is None:
            return np.asarray(slope)
        slope_g, slope_u = self.bound.slope(g), self.bound.slope(u)
        weighted = slope_g @ self.bound.covariance
        return np.asarray(slope + self.bound.matrix(weighted.T @ u) + weighted @ slope_u.T)

    @cached_property
    def centred(self) -> Floats:
        """The terms less their means, as combinations of a row's entries, by columns."""
        if not self.intercept:
            return self.regressors
        terms = self.regressors[:, 1:].copy()
        terms[0] -= self.whole[0] @ terms / max(self.whole[0, 0], 1.0)
        return terms

    @cached_property
    def scatter(self) -> Floats:
        """``X'X`` of the centred terms, whose inverse is what slopes need."""
        return np.asarray(self.centred.T @ self.whole @ self.centred)

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
        """How far X'X stands above its noise: 1 over the edge of ``G^{-½} E G^{-½}``, ``G = X'X``.

        Of one parameter its own sum of squares over the edge of the noise in that. 0 where noise
        left X'X without an inverse.
        """
        if not len(self.gram):
            return math.inf
        unit = np.sqrt(np.maximum(np.diagonal(self.gram), 0.0))
        if not unit.all():
            return 0.0
        values, axes = np.linalg.eigh(self.gram / np.outer(unit, unit))
        if values[0] <= RESOLVED:
            return 0.0
        directions = self.regressors @ (axes / unit[:, None] / np.sqrt(values))
        squared = directions.T @ self.noise_of(directions @ directions.T) @ directions
        return 1 / (2 * math.sqrt(max(float(np.linalg.eigvalsh(squared)[-1]), _LEAST)))

    @property
    def searched(self) -> bool:
        """Whether intervals may be searched for: of few parameters, and no bound moments."""
        return len(self.gram) <= MANY and self.bound is None

    @cached_property
    def held(self) -> NormalEquations:
        """The same with slopes of no length added along the directions that noise hides.

        Slopes there are as good as unknown: up to :data:`LARGEST`, squared, they are a variance
        that goes along. What it leaves of other parameters does not depend on them.
        """
        values, axes = np.linalg.eigh(self.scatter)
        lacking = np.maximum(HELD * self.edge - values, 0.0)
        slopes = axes[:, lacking > 0]
        if not slopes.shape[1]:
            return self
        # In entries of a row: what no other parameter sees.
        rows = np.linalg.pinv(self.regressors.T)[:, int(self.intercept) :] @ slopes
        weights = lacking[lacking > 0]
        hidden = self.noise_of(rows @ rows.T)
        pull = LARGEST**2 * (rows * weights**2 @ rows.T + hidden)
        moments = rows * weights @ rows.T
        if self.added_rows is not None:
            moments, pull = moments + self.added_rows.moments, pull + self.added_rows.pull
        return replace(self, added_rows=Added(moments, np.asarray(pull)))

    @property
    def _count(self) -> float:
        return float(self.moments[0, 0])

    @property
    def _count_edge(self) -> float:
        return 2 * math.sqrt(self.variance[0, 0])

    def lift(self, floor: float) -> Floats:
        """Return the least ridge that leaves X'X `floor` edges above 0, shape (parameters,).

        One number for all slopes, another for the constant; none where X'X is strong.
        """
        slopes = 0.0
        if floor > 0 and self.strength >= (SEARCHED if self.searched else STRONG):
            return np.zeros(len(self.gram))
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
    layout: Layout | None = None,
) -> NormalEquations:
    """Ask released moments for the regression of their last column on the others.

    `row_norm` scales the unit ball back. `shift`, shape (terms + 1,), tells of a model without
    intercept where the columns' origin lies from their own, in scaled units; None stands for a
    model with one. `axes` are those of :class:`dpmodels.released.Ball`: the regressors are then the
    terms times :func:`even`, the response is divided by its length. What is public of the products
    of columns, `layout`, takes off noise.

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
    bound, added_rows = None, None
    if layout is not None:
        moments, variance, bound = bind(moments, variance, layout.identities)
    columns, first = np.eye(size), 0
    if axes is not None:
        columns[1:, 1:] = axes.T @ even(axes)
    if shift is not None:
        columns[0, 1:] = shift if axes is None else shift @ even(axes)
        first = 1
    equations = NormalEquations(
        moments, variance, columns[:, first:-1], columns[:, -1], shift is None, bound
    )
    if layout is not None:
        about = np.eye(size)
        about[0] += layout.identities.shift
        squares = np.sqrt(np.maximum(equations.shared(about, about, about), 0.0))
        added_rows = added(moments, equations.score_noise(np.eye(size)[0]), squares, layout)
    return replace(equations, added_rows=added_rows)


def released_equations(
    release: MomentsRelease, *, row_norm: float, shift: Floats | None, layout: Layout | None
) -> NormalEquations:
    """Ask released moments for a regression; words are those of :func:`normal_equations`.

    Rows that were held in another ball keep to nothing that is public of their products.
    """
    assert release.total is not None
    ball = release.ball
    return normal_equations(
        *(release.count, release.total, release.second, release.noise),
        row_norm=row_norm,
        shift=shift,
        axes=None if ball is None else ball.axes,
        layout=layout if ball is None else None,
    )


def solved(equations: NormalEquations, release: MomentsRelease, row_norm: float) -> NormalEquations:
    """Return equations with what the mechanism put on the moments, if anything."""
    if release.estimate is None:
        return equations
    moments = equations.moments.copy()
    moments[1:, 1:] += (release.estimate - release.second) * row_norm**2
    return replace(equations, moments=moments)


def estimate(equations: NormalEquations, release: MomentsRelease, row_norm: float) -> Floats:
    """Solve equations with what the mechanism put on the moments, if anything."""
    return least_squares(solved(equations, release, row_norm))


def even(axes: Floats) -> Floats:
    """Return what makes the noise in moments along axes even, shape (columns, columns).

    Of columns ``axes @ u``, the last for itself: of the others so transformed, and of the last over
    its length, each is a combination of u of length 1, and the former are orthogonal.
    """
    left, values, _ = np.linalg.svd(axes[:-1], full_matrices=False)
    transform = np.zeros_like(axes)
    transform[:-1, :-1] = (left / values) @ left.T
    transform[-1, -1] = 1 / np.linalg.norm(axes[-1])
    return transform


def least_squares(equations: NormalEquations, floor: float = FLOOR) -> Floats:
    """Solve noisy normal equations, shape (parameters,).

    `floor` is the least eigenvalue of X'X, in edges of its noise: below it a ridge is added, so
    that what noise alone would make large is kept small; ``-inf`` for the equations as they are.
    """
    values, axes = np.linalg.eigh(equations.gram + np.diag(equations.lift(floor)))
    is_nonzero = np.abs(values) > _NOTHING * np.abs(values).max()
    axes = axes[:, is_nonzero]
    return np.asarray((axes / values[is_nonzero]) @ (axes.T @ equations.cross))


# Orthonormal contrasts of levels: coordinates of vectors whose entries add to 0.


def contrasts(levels: int) -> Floats:
    """Return Helmert's contrasts, shape (levels, levels - 1), columns of length 1 that add to 0.

    >>> contrasts(3).round(3).tolist()
    [[-0.707, -0.408], [0.707, -0.408], [0.0, 0.816]]
    """
    matrix = np.triu(-np.ones((levels, levels - 1)))
    steps = np.arange(1, levels)
    matrix[steps, steps - 1] = steps
    return np.asarray(matrix / np.sqrt(steps * (steps + 1.0)))


def against_first(levels: int) -> Floats:
    """Return what turns contrasts into differences from the first level, square.

    >>> (against_first(3) @ contrasts(3).T @ [1.0, 3.0, 7.0]).round(9).tolist()
    [2.0, 6.0]
    """
    helmert = contrasts(levels)
    return np.asarray(helmert[1:] - helmert[0])
