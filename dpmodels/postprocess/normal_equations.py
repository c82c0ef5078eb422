"""Least squares from released moments of (1, x, y), and the noise in its equations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpmodels.postprocess.identities import BoundNoise, bind_identities
from dpmodels.postprocess.score_rounds import kept_whole, shrunk_gram
from dpmodels.postprocess.small_samples import DETECTION_SDS, Added, Layout, added
from dpmodels.released import Ball, MomentNoise, MomentsRelease
from dpmodels.typing import Floats

# Smallest eigenvalue that is divided by, in noise edges: a choice.
FLOOR = 1.0
# Relative rounding error of sums of products of 64-bit numbers, to the largest moment.
ROUNDING = 2.0**-44
# Fraction of the largest eigenvalue below which eigenvalues are taken as 0.
_NOTHING = 1e-15
# Largest number of parameters for which intervals are searched; more take too long.
MANY = 12
# Strength of X'X from which no ridge is added; the second where intervals are searched. A choice.
STRONG, SEARCHED = 1.0, 2.0
# Below this strength intervals that are bounded only at their own level cover too rarely. A choice.
WEAK = 0.5
# Stands for 0 in divisors; far below any other number.
_LEAST = 1e-300
# Slopes in scaled units beyond which a direction counts as unknown.
LARGEST = 1e3
# Choices: the mean square of slopes in sds of the response by sd of a term is taken to lie between
# these, and slopes along hidden directions to be up to so many of its roots.
SQUARED_SLOPE, HIDDEN_SLOPES = (0.02, 1.0), 2.0
# Noise edges to which weak eigenvalues are raised: a choice.
HELD = 2.0
# Fraction of the largest eigenvalue below which an eigenvalue may be rounding error.
RESOLVED = 1e-13


@dataclass(frozen=True)
class NormalEquations:
    """The normal equations of a linear model, from noisy moments of rows ``a = (1, z, v)``.

    A row is a constant, scaled terms and a scaled response; the regressors of the model are ``aᵀT``
    and its response ``aᵀt``, with public T and t.

    `moments` is the noisy sum ``M`` of ``a aᵀ``, not necessarily positive, `variance` that of the
    independent noise in each entry on and above the diagonal, both of shape (terms + 2, terms + 2);
    `regressors` is ``T``, shape (terms + 2, parameters), whose first column is the constant where
    `intercept`, and `response` is ``t``. `bound` is the noise of entries whose variance is 0 here,
    because public identities constrain them; `added_rows` are the moments of rows that were added
    to cells of too few. `near_zero` says that the moments are about a line near the estimate: noise
    in X'X then hardly moves it, and the delta form holds at any strength. `hidden`, shape
    (terms + 2, directions), are orthonormal directions of rows that the noise in X'X hides.
    `coefficients`, shape (parameters, parameters), makes those of the scaled terms of parameters
    that are others.
    """

    moments: Floats
    variance: Floats
    regressors: Floats
    response: Floats
    intercept: bool
    bound: BoundNoise | None = None
    added_rows: Added | None = None
    near_zero: bool = False
    hidden: Floats | None = None
    coefficients: Floats | None = None

    @cached_property
    def whole(self) -> Floats:
        """The moments including those of added rows."""
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
        """Covariance of the effect of added rows on the score, shape (parameters, parameters)."""
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
        """Return the noise covariance of the score at `theta`."""
        g = self.residual(theta)
        return np.asarray(self.regressors.T @ self.score_noise(g) @ self.regressors)

    def squares_left(self, theta: Floats) -> tuple[float, float]:
        """Return the bias-corrected residual sum of squares at an estimate, and its noise sd.

        Minimising the noisy sum lowers its mean by ``tr(G⁻¹N)``, G being X'X and N the noise
        covariance of the score, and adds ``2 tr((G⁻¹N)²)`` to its variance.
        """
        g = self.residual(theta)
        pulled = np.linalg.solve(self.gram + np.diag(self.lift(FLOOR)), self.noise_in_score(theta))
        extra_variance = 2 * max(float(np.trace(pulled @ pulled)), 0.0)
        value = float(g @ self.moments @ g) + float(np.trace(pulled))
        return value, math.hypot(self.form_sd(np.outer(g, g)), math.sqrt(extra_variance))

    def noise_slope(self, g: Floats, u: Floats) -> Floats:
        """Return the derivative of ``noise_of(g gᵀ) u`` in g, one column per entry of g."""
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
        """The centred terms, as combinations of a row's entries, by columns."""
        if not self.intercept:
            return self.regressors
        terms = self.regressors[:, 1:].copy()
        terms[0] -= self.whole[0] @ terms / max(self.whole[0, 0], 1.0)
        return terms

    @cached_property
    def scatter(self) -> Floats:
        """``X'X`` of the centred terms."""
        return np.asarray(self.centred.T @ self.whole @ self.centred)

    @cached_property
    def edge(self) -> float:
        """Edge of the noise in the eigenvalues of `scatter`.

        Twice the root of the largest eigenvalue of the mean squared noise: for equal noise the edge
        of Wigner's semicircle.
        """
        if not self.centred.shape[1]:
            return 0.0
        squared = self.centred.T @ self.noise_of(self.centred @ self.centred.T) @ self.centred
        return 2 * math.sqrt(max(float(np.linalg.eigvalsh(squared)[-1]), 0.0))

    @cached_property
    def strength(self) -> float:
        """Signal-to-noise ratio of X'X: 1 over the edge of ``G^{-½} E G^{-½}``, ``G = X'X``.

        For one parameter its sum of squares over the edge of its noise. 0 if noise left X'X
        without an inverse.
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
        """Whether intervals may be searched: few parameters, and no constrained moments."""
        return len(self.gram) <= MANY and self.bound is None

    @property
    def lifted(self) -> bool:
        """Whether X'X is so weak that a ridge is put on the directions that noise hides."""
        return not self.near_zero and self.strength < (STRONG if self.searched else WEAK)

    @property
    def shown(self) -> NormalEquations:
        """The equations of estimates and their law, with directions that noise hides restricted."""
        return self.held if self.lifted else self

    @cached_property
    def held(self) -> NormalEquations:
        """The same equations with pseudo-rows of slope 0 along the directions that noise hides.

        They are a ridge on these directions alone. Slopes there are unknown: they are taken to be
        :data:`HIDDEN_SLOPES` times as large as all slopes are on average, and their squares enter
        as a variance.
        """
        lacking, slopes = self.lacking
        if not slopes.shape[1]:
            return self
        # In entries of a row: directions that affect no other parameter.
        rows = np.linalg.pinv(self.regressors.T)[:, int(self.intercept) :] @ slopes
        moments = rows * lacking @ rows.T
        squares = np.minimum(self._squared_slopes(moments) @ slopes**2, LARGEST**2)
        pull = rows * (squares * lacking**2) @ rows.T + self.noise_of(rows * squares @ rows.T)
        if self.added_rows is not None:
            moments, pull = moments + self.added_rows.moments, pull + self.added_rows.pull
        return replace(self, added_rows=Added(moments, np.asarray(pull)))

    @cached_property
    def lacking(self) -> tuple[Floats, Floats]:
        """What :attr:`held` adds to weak eigenvalues of `scatter`, and their axes, by columns."""
        values, axes = np.linalg.eigh(self.scatter)
        lacking = np.maximum(HELD * self.edge - values, 0.0)
        return lacking[lacking > 0], axes[:, lacking > 0]

    def _squared_slopes(self, ridge: Floats) -> Floats:
        """Return squares of the largest slopes along hidden directions, by term, shape (terms,).

        `ridge` are the moments of pseudo-rows, shape (terms + 2, terms + 2). The sum of squares of
        a term is not taken for less than one sd of its noise.
        """
        first, response = int(self.intercept), self.response.copy()
        if first:
            response[0] -= self.whole[0] @ response / max(self.whole[0, 0], 1.0)
        form = np.outer(response, response)
        total = max(float((self.whole * form).sum()), 0.0) + self.form_sd(form)
        noise = np.array([self.form_sd(np.outer(term, term)) for term in self.centred.T])
        squares = np.maximum(np.diagonal(self.scatter), noise) / max(total, _LEAST)
        gram = self.gram + self.regressors.T @ ridge @ self.regressors
        slopes = np.linalg.lstsq(gram, self.cross, rcond=None)[0][first:]
        mean = float(np.clip((slopes**2 * squares).mean(), *SQUARED_SLOPE))
        return np.asarray(HIDDEN_SLOPES**2 * mean / np.maximum(squares, _LEAST))

    def lift(self, floor: float) -> Floats:
        """Return the smallest ridge that leaves X'X `floor` edges above 0, shape (parameters,).

        One number for all slopes, another for the constant; 0 where X'X is strong.
        """
        slopes = 0.0
        if self.near_zero:
            return np.zeros(len(self.gram))
        if floor > 0 and self.strength >= (SEARCHED if self.searched else STRONG):
            return np.zeros(len(self.gram))
        if self.centred.shape[1]:
            slopes = max(0.0, floor * self.edge - float(np.linalg.eigvalsh(self.scatter)[0]))
        ridge = np.full(len(self.gram), slopes)
        if self.intercept:
            count, edge = float(self.moments[0, 0]), 2 * math.sqrt(self.variance[0, 0])
            ridge[0] = max(0.0, floor * edge - count)
        return ridge


def equations_of_moments(
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
    """Build the equations for the regression of the last column of released moments on the others.

    `row_norm` scales the unit ball back. For a model without intercept `shift`, shape (terms + 1,),
    is the centre subtracted from the columns, in scaled units; None for a model with an intercept.
    `axes` are those of :class:`dpmodels.released.Ball`: the regressors are then the terms times
    :func:`even`, the response is divided by its length. Public identities between products of
    columns, `layout`, reduce the noise.

    The noise is at least the rounding error of floating point numbers.
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
        moments, variance, bound = bind_identities(moments, variance, layout.identities)
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
    release: MomentsRelease,
    *,
    row_norm: float,
    shift: Floats | None,
    layout: Layout | None,
    constant: bool = False,
) -> NormalEquations:
    """Build the equations of a regression from a release; see :func:`equations_of_moments`.

    For rows clipped to another ball the public identities do not hold. With `constant` a
    combination of the terms is 1 in every row: about a line the response then counts from its
    centre, as the noise of what this combination and the number of rows say differs.
    """
    assert release.total is not None
    ball = release.ball
    is_about_line = ball is not None and not math.isnan(ball.rows)
    if constant and is_about_line and shift is not None:
        shift = np.append(shift[:-1], 0.0)
    equations = equations_of_moments(
        *(release.count, release.total, release.second, release.noise),
        row_norm=row_norm,
        shift=shift,
        axes=None if ball is None else ball.axes,
        layout=layout if ball is None else None,
    )
    if ball is None or not is_about_line:
        return equations
    return about_line(equations, ball, row_norm)


def about_line(equations: NormalEquations, ball: Ball, row_norm: float) -> NormalEquations:
    """Shrink the moments of whitened terms towards those of `rows` rows of covariance I.

    Residuals were cut at ``row_norm / √2``: those of a score are made to answer a change of the
    coefficients as whole ones do. Along directions that noise hides the line stays as it is, and
    they are stated: nothing is known of combinations that depend on them.
    """
    terms, rows = slice(0, len(equations.moments) - 1), max(ball.rows, 1.0)
    spread = np.ones(terms.stop)
    if ball.spread is not None:
        spread[1:] = ball.spread[:-1]
    basis = None
    if not equations.intercept:
        equations, basis = _orthonormal(equations)
        spread = np.sqrt(basis.T**2 @ spread**2)
    used = slice(0, equations.regressors.shape[1])
    moments, variance = equations.moments.copy(), equations.variance.copy()
    gram, noise = moments[terms, terms], variance[terms, terms]  # Views, unless they are turned
    if basis is not None:
        gram, noise = _turned(gram, noise, basis)
    shrunk, remaining = shrunk_gram(
        gram[used, used] / rows, noise[used, used] / rows**2, spread[used]
    )
    values, axes = np.linalg.eigh(shrunk)
    hides = values < DETECTION_SDS / 2 * math.sqrt(float(remaining.max()))
    values = np.where(hides, 1.0, values)
    hidden = np.zeros((len(moments), int(hides.sum())))
    hidden[used] = axes[:, hides]
    gram[used, used], noise[used, used] = (axes * values) @ axes.T * rows, remaining * rows**2
    if basis is not None:
        hidden[terms] = basis @ hidden[terms]
        moments[terms, terms], variance[terms, terms] = _turned(gram, noise, basis.T)
    kept, cut = ball.kept, row_norm / math.sqrt(2)
    if math.isnan(kept):
        kept = kept_whole(max(float(moments[-1, -1]) / rows, 0.0), cut)
    scale = np.ones(len(moments))
    scale[-1] = 1 / kept
    unit = np.outer(scale, scale)
    pull = np.zeros_like(moments)
    if not math.isnan(ball.shift):
        score = moments[terms, -1] * scale[-1] * ball.kept_sd
        allowed = np.eye(terms.stop) * (rows * ball.shift) ** 2 + np.outer(score, score)
        if ball.skew is not None:
            allowed += rows**2 * np.outer(ball.skew, ball.skew)
        pull[terms, terms] = allowed * equations.response[-1] ** 2
    return replace(
        equations,
        added_rows=Added(np.zeros_like(moments), pull),
        moments=moments * unit,
        variance=variance * unit**2,
        near_zero=True,
        hidden=hidden,
    )


def _orthonormal(equations: NormalEquations) -> tuple[NormalEquations, Floats]:
    """Return equations in orthonormal combinations of the terms, and a basis that begins with them.

    Without an intercept terms may be far from 0, where they are nearly in proportion, and a
    constant may be among their combinations, of which nothing else is known.
    """
    basis, matrix = np.linalg.qr(equations.regressors[:-1], mode="complete")
    size = matrix.shape[1]
    regressors = np.zeros_like(equations.regressors)
    regressors[:-1] = basis[:, :size]
    coefficients = np.linalg.inv(matrix[:size])
    return replace(equations, regressors=regressors, coefficients=coefficients), basis


def _turned(moments: Floats, variance: Floats, basis: Floats) -> tuple[Floats, Floats]:
    """Return moments in another orthonormal basis, and the variances of their noise."""
    squares, diagonal = basis**2, np.diagonal(variance)
    # An entry is Σ (b_ki b_lj + b_li b_kj) E_kl over k < l, and Σ b_ki b_kj E_kk.
    turned = squares.T @ variance @ squares - (squares.T * diagonal) @ squares
    for column, line in zip(basis.T, turned, strict=True):
        products = column[:, None] * basis
        line += (products * (variance @ products)).sum(axis=0)
    return np.asarray(basis.T @ moments @ basis), np.asarray(turned)


def solved(equations: NormalEquations, release: MomentsRelease, row_norm: float) -> NormalEquations:
    """Return equations with what the mechanism adds to the moments, or else as they are shown."""
    if release.estimate is None:
        return equations.shown
    moments = equations.moments.copy()
    moments[1:, 1:] += (release.estimate - release.second) * row_norm**2
    return replace(equations, moments=moments)


def estimate(equations: NormalEquations, release: MomentsRelease, row_norm: float) -> Floats:
    """Solve equations with the mechanism's adjustment of the moments, if any."""
    return least_squares(solved(equations, release, row_norm))


def even(axes: Floats) -> Floats:
    """Return a transform that equalises the noise in moments along axes, shape (columns, columns).

    The columns are ``axes @ u``. The transformed columns except the last, and the last divided by
    its length, are combinations of u of length 1; the former are orthogonal.
    """
    left, values, _ = np.linalg.svd(axes[:-1], full_matrices=False)
    transform = np.zeros_like(axes)
    transform[:-1, :-1] = (left / values) @ left.T
    transform[-1, -1] = 1 / np.linalg.norm(axes[-1])
    return transform


def least_squares(equations: NormalEquations, floor: float = FLOOR) -> Floats:
    """Solve noisy normal equations, shape (parameters,).

    `floor` is the smallest eigenvalue of X'X, in edges of its noise: a ridge raises smaller ones,
    so that noise alone does not make coefficients large; ``-inf`` adds none.
    """
    values, axes = np.linalg.eigh(equations.gram + np.diag(equations.lift(floor)))
    is_nonzero = np.abs(values) > _NOTHING * np.abs(values).max()
    axes = axes[:, is_nonzero]
    return np.asarray((axes / values[is_nonzero]) @ (axes.T @ equations.cross))


# Orthonormal contrasts of levels: coordinates of vectors whose entries add to 0.


def contrasts(levels: int) -> Floats:
    """Return Helmert contrasts, shape (levels, levels - 1): unit columns with the sum 0.

    >>> contrasts(3).round(3).tolist()
    [[-0.707, -0.408], [0.707, -0.408], [0.0, 0.816]]
    """
    matrix = np.triu(-np.ones((levels, levels - 1)))
    steps = np.arange(1, levels)
    matrix[steps, steps - 1] = steps
    return np.asarray(matrix / np.sqrt(steps * (steps + 1.0)))


def against_first(levels: int) -> Floats:
    """Return the square matrix that turns contrasts into differences from the first level.

    >>> (against_first(3) @ contrasts(3).T @ [1.0, 3.0, 7.0]).round(9).tolist()
    [2.0, 6.0]
    """
    helmert = contrasts(levels)
    return np.asarray(helmert[1:] - helmert[0])
