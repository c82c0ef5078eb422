"""Intervals of coefficients from released curvature and squared gradients.

At a released point θ the gradient of ``Σφ`` is ``g - b``: g is known, b noise of known variance. At
the minimum of ``Σφ + (Λ/2)|θ - c|² + ⟨b, θ⟩`` g is ``Λ(c - θ)``; if a noisy gradient was released,
g is that. With H the curvature, released as ``H + E``, the non-private estimate ``θ + δ`` solves
``Hδ = b - g`` to first order, and the population's value ``Hδ = b + S - g``, S the sum of the
gradients there, of covariance J. If H is far above E, ``θ - (H + E)⁻¹g`` corrects the known error,
with the covariance ``H⁻¹(J + var(b) I + var(Eδ))H⁻¹``, White's sandwich with added noise. Otherwise
these are normal equations with noise of known distribution on both sides, and are inverted like
those of least squares (:mod:`dpmodels.inference.least_squares`).

Change of the curvature along Newton's step, from the released matrices at and along it.

Let g be the known gradient at a released point θ, H the curvature there, H̄ its mean over a first
step w from θ, and v the step ``-H̄⁻¹g``. The curvature falls most along the step: ``H̄ - H`` is
taken for ``a H̄ + (c - a) ggᵀ/|gᵀv|``, with two numbers, of which noise takes little, as
``H̄v = -g``. Along a direction it is taken to fall as ``exp(-λs)`` at the part s of w, as it nearly
does for a logistic regression: ``H/H̄ = λ/(1 - exp(-λ))`` gives λ. Then

- ``H + H̄ - H`` estimates H̄ once more, with noise of its own: both are averaged;
- the gradient is undone at the part s with ``1 - exp(-λs) = p (1 - exp(-λ))``, p the part of w that
  a step of the mean curvature is;
- an error e of the gradient moves the estimate by the inverse of the curvature where the step ends,
  not of the mean one: by ``H̄⁻¹ K e``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw, ndtri

from dpmodels.inference.least_squares import LeastSquares
from dpmodels.postprocess import nearest_psd, normal_equations, unit_scores
from dpmodels.released import BoughtCurvature, CoefficientsRelease, Meat, MomentNoise
from dpmodels.typing import Floats

# How much faster the curvature falls along the step than on the whole, and how much of that the
# prior leaves open: measured on simulated rows, where it is 2.5 to 5 times.
ALONG, ALONG_SD, AT_LEAST = 3.5, 1.0, 0.02
# Choices by simulation: the fraction of all that a step without end would undo, up to which the
# curvature is known, and the length of a known gradient in those of its noise, below which the
# curvature hardly changes along the step.
UNDONE, FAINT = 0.8, 0.5
# Slower falls count as this: the curvature is constant then; and no fall is as steep as the other.
SLOWEST, STEEPEST = 1e-6, 1e9


@dataclass(frozen=True)
class NewtonPath:
    """A curvature that changes along the step, in two numbers, and the known gradient."""

    whole: float  # Relative fall of the mean curvature below that at the start, in all directions
    along: float  # The same along the step; both at most 0
    first: Floats  # The step along which the mean curvature was bought, shape (columns,)
    gradient: Floats

    def part(self, step: Floats) -> float:
        """Return the length of a step, in first steps, by what it undoes of the gradient."""
        return float(self.gradient @ step) / min(float(self.gradient @ self.first), -1e-300)

    def length(self, step: Floats) -> float:
        """Return the length of the step to the estimate, in steps of the mean curvature."""
        part, rate = max(self.part(step), 1e-300), _rate(self.along)
        undone = min(-part * math.expm1(-rate), UNDONE)
        return -math.log1p(-undone) / rate / part

    def spread(self, step: Floats) -> Floats:
        """Return K for the step to the estimate."""
        end, drop = self.part(step), -float(self.gradient @ step)
        rates = [_rate(change) * end for change in (self.whole, self.along)]
        whole, along = (math.expm1(rate) / rate for rate in rates)
        direction = np.outer(self.gradient, step) / max(drop, 1e-300)
        return np.asarray(whole * np.eye(len(step)) - (along - whole) * direction)

    def is_faint(self, noise: float) -> bool:
        """Whether the known gradient is far below its unknown part.

        `noise` is the standard deviation of each coordinate of that part.
        """
        size = noise * math.sqrt(len(self.gradient))
        return float(np.linalg.norm(self.gradient)) <= FAINT * size

    def is_short(self, step: Floats) -> bool:
        """Whether the curvature is known as far as a step of the mean curvature leads."""
        return -self.part(step) * math.expm1(-_rate(self.along)) <= UNDONE


def newton_path(release: CoefficientsRelease) -> NewtonPath | None:
    """Return the change of the curvature along a released step, or None."""
    bought, gradient = release.curvature, release.gradient
    if bought is None or bought.end is None or gradient is None:
        return None
    assert bought.first is not None
    assert bought.first_noise is not None
    first = bought.end - release.coefficients
    total, curved = float(np.trace(bought.bread)), float(first @ bought.bread @ first)
    if not (total > 0 and float(gradient @ first) < 0):
        return None
    whole = max(min(1 - float(np.trace(bought.first)) / total, 0.0), -STEEPEST)
    along, prior = ALONG * whole, ALONG_SD * abs(whole) + AT_LEAST
    if curved > 0:
        noise = math.hypot(bought.first_noise.diagonal, bought.bread_noise.diagonal)
        ratio = min(noise * float(first @ first) / curved / prior, STEEPEST)
        fallen = max(1 - float(first @ bought.first @ first) / curved, -STEEPEST)
        along += (fallen - along) / (1 + ratio**2)
    return NewtonPath(whole, min(along, 0.0), first, gradient)


def pooled(bought: BoughtCurvature, path: NewtonPath) -> BoughtCurvature:
    """Return the mean curvature estimated from both released ones."""
    assert bought.first is not None
    assert bought.first_noise is not None
    drop = -float(path.gradient @ path.first)
    fallen = bought.first / (1 - path.whole)
    fallen = fallen + (path.along - path.whole) * np.outer(path.gradient, path.gradient) / drop
    variance, first_variance = bought.bread_noise.off**2, bought.first_noise.off**2
    weight = variance / max(variance + first_variance, 1e-300)
    bread = bought.bread + weight * (fallen - bought.bread)
    quieter, noise = math.sqrt(1 - weight), bought.bread_noise
    diagonal, off = quieter * noise.diagonal, quieter * noise.off
    noise = MomentNoise(math.nan, math.nan, diagonal, off)
    return replace(bought, bread=bread, bread_noise=noise)


def _rate(change: float) -> float:
    """Return λ for a relative fall ``1 - λ/(1 - exp(-λ))``."""
    if change > -SLOWEST:
        return SLOWEST
    ratio = 1 - change
    return max(float(ratio + lambertw(-ratio * math.exp(-ratio)).real), SLOWEST)


# Noise sds above which a variance is distinguishable from 0: a choice.
DETECTION_SDS = 2.0


def normal_width(variance: Floats, sd: float, level: float) -> Floats:
    """Return half the length of intervals about the mean, which cover at least `level`.

    `variance` has normal noise of standard deviation `sd` about the true v. An interval of z times
    its root covers ``level - φ(z) z (z² + 1) sd²/4v²`` on average, to second order in the noise;
    ``v + (z² + 1) sd²/4v`` in place of v corrects for this. Noisy variances below
    :data:`DETECTION_SDS` sds are replaced by their upper limit, TOLD sds above them or 0. Coverage
    is at least `level`: equal to it from ``v = 5 sd`` on, 96.6 % for 95 % at 3 sds, nearly 100 %
    for still smaller v.
    """
    z = float(ndtri((1 + level) / 2))
    detected = np.where(variance >= DETECTION_SDS * sd, variance, np.nan)
    limit = np.maximum(variance, 0.0) + DETECTION_SDS * sd
    with np.errstate(invalid="ignore", divide="ignore"):
        allowed = detected + allowance(level) * sd**2 / detected
    return np.asarray(z * np.sqrt(np.where(np.isnan(detected), limit, allowed)))


def allowance(level: float) -> float:
    """Return the multiple (z² + 1)/4 of sd²/variance to add to a noisy variance."""
    return (float(ndtri((1 + level) / 2)) ** 2 + 1) / 4


# Most coefficients for which interval ends are searched; with more these intervals are infinite.
MANY = 24
# Choices: noise edges below which a direction of the curvature is lost; assumed size of
# coefficients along it, in units of the ball; and the fraction of a coefficient's squared length
# along lost directions above which it is lost.
LOST, SIZE, MOSTLY = 0.5, 2.0, 0.02
# Noise sds of an entry below which curvature may be noise alone, which exceeds it with probability
# 1/160 in one column: a choice between intervals for wide bounds and none for good ones.
MIN_CURVATURE_SDS = 2.5
# The same where the known gradient is not far below its noise: the step in a direction whose
# curvature noise has raised is too short then, and changes everything else.
MIN_PULLED_SDS = 3.0
# Root mean square error of the linear predictor beyond which its weights in the curvature are too
# far from those at the truth: a choice by simulation.
FAR = 0.6


@dataclass(frozen=True)
class Sandwich:
    """An estimate corrected for its known error, and its covariance in two parts.

    In units of the ball. `noise_root`, with one row per column, is a root ``R`` of the covariance
    ``R Rᵀ`` of the estimate about the non-private one: variances are sums of its squares, which
    rounding cannot make negative. `sampling_root`, shape (columns, columns), is a root of the
    covariance of the non-private estimate about the population's. `robust` is the fraction in [0,
    1] of the squared gradients in the sandwich's filling; the rest is the curvature, which they
    equal if the model is correct, or for persons its largest possible value then. `noise_law` and
    `full_law` are the distributions of Newton's step from `point` along `axes`, about the
    non-private and the population's value; `lost`, shape (columns, directions), are directions in
    which noise hides the curvature, and `lost_sizes`, shape (directions,), the assumed errors of
    the point along them; `swamped`, shape (columns,), marks columns affected by curvature that may
    be noise alone. `far` is the root mean square error of the linear predictor over the rows, as
    far as it is known; `is_short` is whether Newton's step is short enough for the curvature along
    it to be known.
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
    lost_sizes: Floats
    swamped: NDArray[np.bool_]
    far: float
    is_short: bool

    @property
    def noise(self) -> Floats:
        """Covariance of the estimate about the non-private one."""
        return np.asarray(self.noise_root @ self.noise_root.T)

    @property
    def sampling(self) -> Floats:
        """Covariance of the non-private estimate about the population's value."""
        return np.asarray(self.sampling_root @ self.sampling_root.T)

    def interval(self, direction: Floats, level: float, *, full: bool) -> tuple[float, float]:
        """Return the interval of ``direction · coefficients``, infinite if it is not identified.

        For the population's coefficients with `full`, else for the non-private estimate.
        """
        loadings = direction @ self.lost
        if float(loadings @ loadings) > MOSTLY * float(direction @ direction):
            return -math.inf, math.inf
        # Elsewhere the variance is that at each value tried: noise that raises the curvature
        # shortens the step and the standard error together, and a fit is reported if it does.
        if self.noise_law.clear and not self.noise_law.bends((direction @ self.axes)[None]):
            roots = [self.noise_root, self.sampling_root] if full else [self.noise_root]
            half = float(ndtri((1 + level) / 2) * np.linalg.norm(direction @ np.hstack(roots)))
            middle = float(direction @ self.estimate)
            return middle - half, middle + half
        if len(direction) > MANY and not self.noise_law.clear:
            return -math.inf, math.inf
        law, middle = self.full_law if full else self.noise_law, float(direction @ self.point)
        lower, upper = law.interval(direction @ self.axes, level)
        margin = float(ndtri((1 + level) / 2) * np.linalg.norm(loadings * self.lost_sizes))
        return middle + lower - margin, middle + upper + margin

    def statistic(self, direction: Floats, value: float = 0.0) -> float:
        """Return the distance of ``direction · coefficients`` from a value in standard errors."""
        off = float(direction @ self.estimate) - value
        distance = self.distance(direction[None, :], np.array([value]))
        return math.copysign(math.sqrt(max(distance, 0.0)), off)

    def distance(self, conditions: Floats, values: Floats) -> float:
        """Return the χ² statistic of ``conditions · coefficients = values``.

        nan if the conditions are not independent along identified directions.
        """
        if not self.noise_law.clear:
            projected = conditions @ self.axes
            if np.linalg.matrix_rank(projected) < len(projected):
                return math.nan
            return self.full_law.distance_to(projected, values - conditions @ self.point)
        if self.noise_law.bends(conditions @ self.axes):
            steps = values - conditions @ self.point
            return self.full_law.distance_to(conditions @ self.axes, steps)
        roots = conditions @ np.hstack([self.noise_root, self.sampling_root])
        sds = np.linalg.norm(roots, axis=1)
        away = np.linalg.pinv(roots / sds[:, None]) @ ((conditions @ self.estimate - values) / sds)
        return float(away @ away)


def sandwich(release: CoefficientsRelease, *, drop_faint: bool = False) -> Sandwich | None:
    """Return estimate, covariances and distributions; None if noise hides the curvature.

    To first order in all noises. The noise E of the released curvature enters through ``H⁻¹EH⁻¹g``;
    that of the squared gradients does not enter the estimate. H is the curvature at the point of
    its release, or the mean one along a released step, with the corrections of
    :mod:`dpmodels.inference.sandwich`. The noisier the squared gradients, the more of the
    filling is the curvature instead; for persons multiplied as if all rows of a person were
    identical, and for counts whose bound on residuals was bought by their released dispersion.

    Along directions in which noise hides H, such as those of empty levels, the released point is
    kept. Their error enters the other equations through E, assuming coefficients of ordinary size.
    With `drop_faint` these are all directions whose curvature may be noise alone, and the error
    along one is the step that the known gradient and its noise would take there.

    .. [1] White, H. (1982). "Maximum likelihood estimation of misspecified models." Econometrica
       50, 1-25.
    """
    if release.curvature is None or release.gradient is None:
        return None
    columns, start = len(release.coefficients), release.coefficients
    release, score_noise, path = _at_start(release)
    released = release.curvature
    assert released is not None
    values, vectors = np.linalg.eigh(released.bread)
    hidden = 2 * LOST * released.bread_noise.off * math.sqrt(columns)
    is_pulled = path is not None and not path.is_faint(release.gradient_sd)
    min_sds = MIN_PULLED_SDS if is_pulled else MIN_CURVATURE_SDS
    faint_below = max(min_sds * released.bread_noise.diagonal, hidden)
    faint, hidden = vectors[:, values <= faint_below], faint_below if drop_faint else hidden
    is_resolved = values > max(hidden, normal_equations.RESOLVED * float(values[-1]))
    if not is_resolved.any():
        return None
    lost, lost_sizes = vectors[:, ~is_resolved], np.full(int((~is_resolved).sum()), SIZE)
    if drop_faint:
        lost_sizes = _lost_sizes(lost, values[~is_resolved], release, start)
    resolved, values = vectors[:, is_resolved], values[is_resolved]
    filling, robust = _middle(release, released, float(values[0]), score_noise)
    axes = resolved @ np.linalg.eigh(resolved.T @ filling @ resolved)[1]
    unknown = released.bread_noise.off**2 * SIZE**2 * lost.shape[1]
    extra = np.full(len(values), unknown)
    if release.meat is not None:
        extra = extra + np.diagonal(axes.T @ score_noise @ axes)
    noise_law, is_short = _law(release, axes, extra), True
    step = axes @ normal_equations.least_squares(noise_law.equations)
    if path is not None:
        length, is_short = path.length(step), not is_pulled or path.is_short(step)
        step = length * step
        spread, values = path.spread(step), values / length
        filling = spread @ filling @ spread.T
        known, score_noise = score_noise, spread @ score_noise @ spread.T
        extra = extra + np.diagonal(axes.T @ (score_noise - known) @ axes)
        release = replace(release, curvature=replace(released, bread=released.bread / length))
        noise_law = _law(release, axes, extra)
    # The same ridge as in the step keeps weak directions small.
    lifted = values + noise_law.equations.lift(1.0)[0]
    inside = score_noise + unknown * np.eye(columns) + _times_vector(released.bread_noise, step)
    still = release.coefficient_sd * np.eye(columns)
    noise = np.hstack([_solved(lifted, resolved, inside), still, lost * lost_sizes])
    sampling = _solved(lifted, resolved, filling)
    error = resolved.T @ np.hstack([noise, sampling])
    if release.meat is not None:
        error = np.column_stack([error, resolved.T @ step])
    return Sandwich(
        estimate=np.asarray(release.coefficients + step),
        noise_root=noise,
        sampling_root=sampling,
        robust=robust,
        point=release.coefficients,
        axes=axes,
        noise_law=noise_law,
        full_law=_law(release, axes, np.maximum(np.diagonal(axes.T @ filling @ axes), 0.0) + extra),
        lost=lost,
        lost_sizes=lost_sizes,
        swamped=np.full(columns, not drop_faint) & ((faint**2).sum(axis=1) > MOSTLY),
        far=math.sqrt(float(values @ (error**2).sum(axis=1)) / float(values.sum())),
        is_short=is_short,
    )


def _lost_sizes(
    directions: Floats, values: Floats, release: CoefficientsRelease, start: Floats
) -> Floats:
    """Return the steps that the gradient and its noise would take, :data:`SIZE` at the least.

    Where scores were bought away from `start`, no less than the step that leads there.
    """
    assert release.gradient is not None
    assert release.curvature is not None
    likely = np.maximum(values, release.curvature.bread_noise.diagonal)
    pull = np.hypot(directions.T @ release.gradient, release.gradient_sd)
    away = np.abs(directions.T @ (release.coefficients - start))
    return np.maximum(np.maximum(pull / likely, SIZE), away)


def _at_start(
    release: CoefficientsRelease,
) -> tuple[CoefficientsRelease, Floats, NewtonPath | None]:
    """Return a release about the point where a step starts, noise of its gradient, and its path.

    Where scores were bought that is the point where they are.
    """
    noise = release.gradient_sd**2 * np.eye(len(release.coefficients))
    bought, scores = release.curvature, unit_scores.score_at_first(release)
    assert bought is not None
    gradient, sd = bought.score, bought.score_sd or 0.0
    if scores is not None:
        gradient, noise = -scores[0], scores[1] @ scores[1].T
    elif gradient is not None:
        noise = sd**2 * np.eye(len(gradient))
    if gradient is not None:
        release = replace(
            release,
            coefficients=unit_scores.first_point(release),
            gradient=gradient,
            gradient_sd=sd,
            coefficient_sd=0.0,
            curvature=replace(bought, end=None),
        )
    path = newton_path(release)
    if path is not None:
        assert release.curvature is not None
        release = replace(release, curvature=pooled(release.curvature, path))
    return release, noise, path


def dispersion(released: BoughtCurvature) -> float:
    """Return the mean squared residual of counts in units of their mean: 1 of a Poisson law.

    At least the noise in the sum of the squares.
    """
    noise = released.meat_noise.diagonal * math.sqrt(len(released.meat))
    return max(float(np.trace(released.meat)), noise) / float(np.trace(released.bread))


def _middle(
    release: CoefficientsRelease, released: BoughtCurvature, smallest: float, noise: Floats
) -> tuple[Floats, float]:
    """Return the sandwich's filling, and the fraction of squared gradients in it.

    `smallest` is the smallest eigenvalue of the resolved curvature, `noise` the covariance of the
    noise in the gradient.
    """
    if release.meat is not None:
        squares, correction = unit_scores.squares_of_units(release.meat, release)
        return correction * filling(squares, noise), 1.0
    edge = 2 * released.meat_noise.off * math.sqrt(len(released.meat))
    design_effect = release.adjacency.design_effect
    # Squares of persons' gradients include the dependence of their rows.
    rows = design_effect if released.person is None else 1
    dispersed = design_effect if release.clip is None else rows * dispersion(released)
    robust = max(0.0, 1 - rows * edge / (dispersed * smallest))
    meat = rows * release.sampling_correction * nearest_psd(released.meat)
    bread = dispersed * nearest_psd(released.bread)
    return robust * meat + (1 - robust) * bread, robust


def least_noise(release: CoefficientsRelease, max_curvature: float | None) -> Floats | None:
    """Return a root of a lower bound on the noise covariance of a minimum with a random tilt.

    The noise is ``(H + Λ)⁻¹b``; for H stands the curvature released there plus twice the
    edge of its noise, or the public bound `max_curvature`. None without either, or for another kind
    of point.
    """
    if release.gradient is None or not release.coefficient_sd > 0:
        return None
    identity, released = np.eye(len(release.coefficients)), release.curvature
    if released is not None:
        bread, noise = released.first, released.first_noise
        if bread is None or noise is None:
            bread, noise = released.bread, released.bread_noise
        edge = 4 * noise.off * math.sqrt(len(identity))
        curvature = nearest_psd(bread) + (edge + release.ridge) * identity
    elif max_curvature is not None:
        curvature = (max_curvature + release.ridge) * identity
    else:
        return None
    return np.asarray(release.gradient_sd * np.linalg.inv(curvature))


def _law(release: CoefficientsRelease, axes: Floats, extra_variance: Floats) -> LeastSquares:
    """Return the distribution of Newton's step along axes, shape (columns, directions).

    `extra_variance`, shape (directions,), is the gradient's variance along them beyond its noise.
    The noise of the curvature is rotated too: it stays the same if its variance on the diagonal is
    twice that off it, else the larger of the two is used.
    """
    released, size = release.curvature, axes.shape[1]
    assert released is not None
    assert release.gradient is not None
    moments = np.zeros((size + 1, size + 1))
    moments[:-1, :-1] = axes.T @ released.bread @ axes
    moments[-1, :-1] = moments[:-1, -1] = -axes.T @ release.gradient
    off = max(released.bread_noise.off, released.bread_noise.diagonal / math.sqrt(2))
    variance = np.full((size + 1, size + 1), off**2)
    np.fill_diagonal(variance, 2 * off**2)
    masked = release.coefficient_sd * np.linalg.norm(moments[:-1, :-1], axis=1)
    variance[-1, :-1] = release.gradient_sd**2 + masked**2 + extra_variance
    variance[:-1, -1], variance[-1, -1] = variance[-1, :-1], 0.0
    min_variance = (normal_equations.ROUNDING * max(float(np.abs(moments).max()), 1.0)) ** 2
    ones = np.eye(size + 1)
    equations = normal_equations.NormalEquations(
        moments, np.maximum(variance, min_variance), ones[:, :-1], ones[:, -1], intercept=False
    )
    return LeastSquares(equations)


def filling(meat: Meat, noise: Floats) -> Floats:
    """Return the covariance of the sum of scores from released squares, positive semidefinite.

    Shape (parameters, parameters); `noise` is the covariance of the noise in it. In the units of
    the squares every unit combination has a variance of about 1, noise included: the same amount is
    added in all directions to restore the coverage that a 95 % interval loses by the noise of the
    squares. For persons with independent rows the variance along an axis may be smaller, and more
    is added there.
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
    """Return ``H⁻¹ R``, R a root of the covariance, H by its eigenvalues and eigenvectors."""
    squares, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(squares, 0.0))
    return np.asarray((vectors / values) @ (vectors.T @ root))


def _times_vector(noise: MomentNoise, vector: Floats) -> Floats:
    off, diagonal = noise.off**2, noise.diagonal**2
    everywhere = float(vector @ vector) * np.eye(len(vector)) + np.outer(vector, vector)
    return np.asarray(off * everywhere + (diagonal - 2 * off) * np.diag(vector**2))


# Levels of a category with enough curvature for intervals of their coefficients.

# A choice by simulation of levels with 1 to 2,000 rows among 20,000: coverage of 95 % intervals is
# 93 % below 0.3, and falls above.
OFF = 0.3


def told_levels(fit: Sandwich, released: BoughtCurvature, levels: int) -> NDArray[np.bool_]:
    """Return for each level whether a Newton step identifies its coefficients, shape (levels,).

    The curvature of a rare level grows with its probability: a Newton step from a distant point
    misses the minimum, and curvature inflated by noise looks like that of more rows. A level is
    identified if the step changed the logarithm of its probability by, and its error is, at most
    :data:`OFF` in root mean square over its rows. Averages over all levels, such as
    :attr:`Sandwich.far`, do not show this.

    A level's rows of the curvature, times the change, are ``Σ p_k δ(log p_k) z``, for any constant
    added to the coefficients of all levels.
    """
    size = len(fit.point) // (levels - 1)
    turn = np.kron(normal_equations.contrasts(levels), np.eye(size))
    off = np.column_stack([fit.noise_root, fit.sampling_root, fit.estimate - fit.point])
    curvature, shifts = turn @ released.bread @ turn.T, turn @ released.bread @ off
    detected = []
    for rows in np.split(np.arange(levels * size), levels):
        values, axes = np.linalg.eigh(curvature[np.ix_(rows, rows)])
        square = ((axes.T @ shifts[rows]) ** 2).sum(axis=1) / np.maximum(values, 1e-300)
        detected.append(bool(values[0] > 0 and square.sum() <= OFF**2 * values.sum()))
    return np.array(detected)


# Coefficients that are normal about the population's.


@dataclass(frozen=True)
class NormalLaw:
    """Coefficients with a covariance, nan where they are not identified."""

    names: tuple[str, ...]
    params: Floats
    covariance_matrix: Floats

    def covariance(self) -> Floats:
        """Return the covariance, shape (coefficients, coefficients)."""
        return self.covariance_matrix

    def identifies(self, directions: Floats) -> NDArray[np.bool_]:
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
