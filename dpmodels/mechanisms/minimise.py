"""The minimum of a tilted, ridged sum of losses to a declared gradient, and noise for the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from dpmodels.errors import BudgetError, FrameError
from dpmodels.frames.protocol import unfinished
from dpmodels.mechanisms.add_noise import LAPLACE, ROUND_UP, TOO_MUCH_NOISE, Law, add_noise
from dpmodels.noise import Entropy
from dpmodels.noise.uniform import normals, uniforms
from dpmodels.privacy.calibrate import hockey_stick
from dpmodels.statistics.double_double import Pair, two_product, two_sum
from dpmodels.statistics.gradient import Gradients, Slopes
from dpmodels.statistics.losses import Loss
from dpmodels.typing import Floats, Scalars

# Scale in steps before rounding is allowed for: far above 2^20, where the discrete laws are as
# private as the continuous ones, and far below what the samplers take.
FINE = 2.0**40
# Half of what the Laplace sampler takes.
LARGEST_SCALE = 2.0**55
# A choice: the noise that hides it is far less than the other noise.
SHORTEST = 2.0**-27
# Up to so many rows, in up to some hundred columns, rounding is below a half of it.
MOST_ROWS = 2**40
# Rounding leaves far less of a vector that is added to a gradient: a choice.
ROUNDED = 2.0**-45
# Eight times what the hardest rows tried have taken.
MOST_PASSES = 500
# A choice: from here on a step of the gradient method goes further.
SHORTEST_STEP = 2.0**-20
# Of a sum of losses: smaller differences say nothing.
ROUNDING = 2.0**-40
# Of the number of rows: what a gradient in float64 may come to by rounding alone, as a rule.
FLOOR = 2.0**-50
# How much longer a gradient may be at the minimum of an easier loss: a choice.
ROUGH = 2.0**10


def tolerance(scale: float, released_tilt: float = 0.0) -> float:
    """Return the length of the gradient at which to stop, in units of one row's largest.

    `scale` is of the tilt, `released_tilt` the most that released values add to it: the gradient is
    exposed to the rounding of both.
    """
    return SHORTEST * (1 + scale) + ROUNDED * released_tilt


def furthest(scale: float, ridge: float, released_tilt: float = 0.0) -> float:
    """Return how far a computed minimum may be from the true one.

    The sum is as strongly convex as `ridge`, the weight of ``|θ|²/2``, at least.

    A gradient of length t is at most ``t/ridge`` from the minimum, and the computed gradient is
    closer to the true one than half the tolerance, for as many rows as :func:`provable_rows` says:
    twice the tolerance covers both.
    """
    return 2 * tolerance(scale, released_tilt) / ridge


def provable_rows(
    columns: int,
    smoothness: float,
    scale: float,
    ridge: float,
    released_tilt: float = 0.0,
    largest_offset: float = 0.0,
) -> int:
    """Return up to how many rows rounding in a gradient is below half of the tolerance.

    A public number: `smoothness` is the loss's, the others are as for :func:`tolerance`.

    *Proof.* The minimised sum is at most that at 0, so n losses of at most c there, 2.6 or with
    offsets of at most o their ``0.7 + o``, none below 0 elsewhere, give ``Λ|θ|²/2 - |b||θ| <= c n``
    at the minimum and ``|θ| <= 2|b|/Λ + √(2 c n/Λ)``, and ``t/Λ`` more where the gradient is t
    long. An offset adds at most ``u² (2 o + 4 |θ|)`` to the error of a margin, where
    ``8 d² u² (|θ| + o)`` more is allowed for. A tilt is longer than ``(2d + 2000)
    scale``, beside what is known, with a probability below ``exp(-900)``. Then the bound of
    :meth:`dpmodels.statistics.gradient.Gradients.precise_slopes` is at most half of the tolerance
    if each of its two parts is at most a quarter, ``2**-29`` or more.
    """
    tilt, shortest = (2 * columns + 2000) * scale + released_tilt, tolerance(scale, released_tilt)
    rounding = 2.0 ** (-102 if largest_offset else -103)
    n_rows, at_zero = MOST_ROWS, max(2.6, 0.7 + largest_offset)
    while n_rows > 1:
        size = 2 * (tilt + shortest) / ridge + math.sqrt(2 * at_zero * n_rows / ridge)
        size += largest_offset
        if n_rows * rounding * smoothness * columns**2 * size <= shortest / 4:
            break
        n_rows //= 2
    return n_rows


def minimise(
    rows: Gradients,
    loss: Loss,
    ridge: float,
    tilt: Floats,
    shortest: float,
    max_rows: int = MOST_ROWS,
) -> Pair:
    """Return a point where the gradient is at most as long as declared, as an exact sum of two.

    `ridge` is the weight of ``|θ|²/2``, `tilt`, shape (columns,), the vector b of the linear term
    ``⟨b, θ⟩``, `shortest` the length of the gradient at which to stop, `max_rows` the public number
    of rows up to which that is proved.

    Newton's method along the loss's path of easier losses; a step is halved until the sum has
    fallen by a thousandth of what its slope promises, or, where that is lost in rounding, until
    its gradient has become shorter. Where no step down to 2⁻²⁰ does that, a step ``1/L`` of the
    gradient method. Rows of one class, separated, constant or few take 5 to 60 passes.

    Gradients in float64 say where to begin, and no more: what is returned has a gradient of the
    declared length by sums of 100 bits (:mod:`dpmodels.statistics.double_double`), one pass over
    the rows as a rule. Rows for which :data:`MOST_PASSES` of these are not enough, of which none
    are known, go on with accelerated gradients, which reach the declared length after at most
    ``√(L/Λ) log(18 (L/Λ)² (g/t)²) + 2`` passes from one of length g in exact arithmetic, and about
    a nearer point where rounding keeps them from it. Nothing is returned before.

    FrameError if there are more rows than `max_rows`.

    Source: Nesterov, Y. (2018). "Lectures on Convex Optimization." 2nd edition, Springer. Section
    2.2.
    """
    point = np.zeros(len(tilt))
    for stage in loss.path:
        target = shortest if stage is loss else ROUGH * shortest
        at = partial(_at, rows, stage, ridge, tilt)
        point, _ = _newton(at, stage.smoothness, ridge, point, target, FLOOR)
    while True:
        at = partial(_precisely, rows, loss, ridge, tilt, max_rows, point)
        offset, current = _newton(at, loss.smoothness, ridge, 0 * point, shortest)
        if np.linalg.norm(current.gradient) > shortest:
            steepest = loss.smoothness * current.energy + ridge
            offset, current = _accelerated(at, steepest, ridge, offset, shortest)
        if np.linalg.norm(current.gradient) <= shortest:
            return two_sum(point, offset)
        point = point + offset


def _newton(
    at: Callable[[Floats], Slopes],
    smoothness: float,
    ridge: float,
    point: Floats,
    shortest: float,
    floor: float = 0.0,
) -> tuple[Floats, Slopes]:
    current, passes = at(point), 1
    target = max(shortest, floor * current.energy)
    while np.linalg.norm(current.gradient) > target and passes < MOST_PASSES:
        step, share = np.asarray(-np.linalg.solve(current.curvature, current.gradient)), 1.0
        trial = at(point + step)
        passes += 1
        while not _better(trial, current, share, step):
            share /= 2
            if share < SHORTEST_STEP:
                step, share = -current.gradient / (smoothness * current.energy + ridge), 1.0
                trial = at(point + step)
                break
            trial = at(point + share * step)
            passes += 1
        point, current = point + share * step, trial
    return point, current


def _accelerated(
    at: Callable[[Floats], Slopes], steepest: float, ridge: float, point: Floats, shortest: float
) -> tuple[Floats, Slopes]:
    current = at(point)
    condition, length = steepest / ridge, float(np.linalg.norm(current.gradient))
    passes = math.sqrt(condition) * 2 * math.log(math.sqrt(18) * condition * length / shortest + 1)
    root = math.sqrt(1 / condition)
    ahead = point
    for _ in range(math.ceil(passes) + 2):
        if np.linalg.norm(current.gradient) <= shortest:
            break
        following = ahead - current.gradient / steepest
        ahead = following + (1 - root) / (1 + root) * (following - point)
        point, current = following, at(ahead)
    return ahead, current


def _better(trial: Slopes, current: Slopes, share: float, step: Floats) -> bool:
    promised = -share * float(current.gradient @ step)
    if promised > ROUNDING * (1 + abs(current.value)):
        return trial.value <= current.value - 1e-3 * promised
    size = float(np.linalg.norm(current.gradient))
    return float(np.linalg.norm(trial.gradient)) <= (1 - share / 4) * size


def _at(rows: Gradients, loss: Loss, ridge: float, tilt: Floats, point: Floats) -> Slopes:
    slopes = rows.slopes(point, loss)
    value = slopes.value + float(ridge * point @ point / 2 + tilt @ point)
    gradient = slopes.gradient + ridge * point + tilt
    return Slopes(value, gradient, slopes.curvature + ridge * np.eye(len(point)), slopes.energy)


def _precisely(
    rows: Gradients,
    loss: Loss,
    ridge: float,
    tilt: Floats,
    max_rows: int,
    point: Floats,
    offset: Floats,
) -> Slopes:
    """Return the slopes at an exact sum, gradient and all linear terms rounded once."""
    parameter = two_sum(point, offset)
    weight = np.full_like(point, ridge)
    pulls = (*two_product(weight, parameter.high), *two_product(weight, parameter.low))
    slopes, count = rows.precise_slopes(parameter, loss, (tilt, *pulls))
    if count > max_rows:
        raise FrameError(
            unfinished(
                f"the table has more rows than the {max_rows:,} for which the rounding error of "
                'the gradient is proved to be covered; write mechanism="gradients", whose sums '
                "are exact integers, or a larger ridge, or give fewer rows"
            )
        )
    curvature = slopes.curvature + ridge * np.eye(len(point))
    return slopes._replace(curvature=curvature)


class Mask(NamedTuple):
    """Integer noise on a lattice of coefficients."""

    step: float  # Between the points of the lattice, in units of the coefficients
    scale: float  # Of the noise, in steps


def mask(distance: float, columns: int, multiplier: float, law: Law) -> Mask:
    """Plan noise for a point that is known to lie within a distance of another.

    `distance` is Euclidean, in units of the coefficients; `multiplier` is the noise scale over the
    sensitivity, L1 for Laplace noise, else L2.

    Given the true minimum, the error of the computed one is a function of the rows with values in
    a ball: neighbours' differ by twice its radius, and by up to a step in each coordinate after
    rounding. BudgetError if the noise is beyond what is meaningful.
    """
    spread = math.sqrt(columns) if law is LAPLACE else 1.0
    step = 2 * distance * spread * multiplier / FINE
    rounding = columns if law is LAPLACE else math.sqrt(columns)
    scale = multiplier * (2 * distance / step * spread + rounding) * ROUND_UP
    if not scale <= LARGEST_SCALE:
        raise BudgetError(TOO_MUCH_NOISE)
    return Mask(step, scale)


def masked(point: Pair, noise: Mask, entropy: Entropy, law: Law) -> Floats:
    """Round an exact point to the nearest of the mask's lattice and add its noise."""
    exact = (Fraction(high) + Fraction(low) for high, low in np.transpose(point).tolist())
    multiples: Scalars = np.array([round(x / Fraction(noise.step)) for x in exact], dtype=object)
    return add_noise(multiples, noise.scale, entropy, law) * noise.step


# Noise in a linear term that tilts a sum of losses before it is minimised, and how much.
#
# The minimiser θ of ``Σ φ(y_i⟨θ, z_i⟩) + (Λ/2)|θ|² + ⟨b, θ⟩`` stands in a one to one relation with
# b: ``b(θ) = -Σ∇φ - Λθ``. The slope of φ is Lipschitz and Λ above 0, so the relation is Lipschitz
# both ways, and the density of θ is almost everywhere that of b there times the determinant of
# ``Σ∇²φ + Λ``, also where the slope has kinks. Let a row z be added to rows of which
# ``A = Σ∇²φ + Λ ≥ Λ``. At the same θ the vector b moves by ``q`` times a unit vector e that is
# fixed, ``q = slope |z|`` in [0, 1], and the determinant grows by a factor ``1 + bend |z|²/Λ`` at
# most, ``1 + q (1 - q)/Λ`` for the logistic loss. All below follows from what a single q does to
# both.
#
# Two rows replaced are one taken off and one added: for pure noise the two losses add up; for
# Gaussian noise each of the two steps is as private as a Gaussian release, and both together as one
# of half the multiplier.
#
# Notes
# -----
# Chaudhuri, Monteleoni and Sarwate (2011) bound the two parts apart, the second by twice the
# logarithm of ``1 + c/Λ``, and Kifer, Smith and Thakurta (2012) and Iyengar et al. (2019) pay for
# both in ε and δ. Together they cost less: where q is 1 the logistic loss does not bend.

# Of eps, what the curvature of a loss without a bell may take: a choice.
BENT_SHARE = 0.2
# Ridge in units of the Gaussian scale: 16 % more noise than without curvature. On simulated
# rows and on Adult the log-loss is least about there, and for pure noise about the larger of
# PURE_RIDGE scales (2 % more noise) and a quarter of a coordinate's standard deviation.
RIDGE = 1.0
PURE_RIDGE = 0.7
# A row's largest gradient of 1 bends the sum a millionth as much: no minimiser needs less.
LEAST_RIDGE = 1e-6
# Curves further out differ by less than float64 can tell: noise of so many rows is no use anyway.
LARGEST_MULTIPLIER = 1e9
# Covers the rounding of a curve.
_ROUND_UP = 1 + 1e-10
# Of an integral of a smooth function: a choice.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
# Of the comparison of two curves, which holds for any number: with more the noise is less.
_STEPS = 400


def row_loss(loss: Loss, scale: float, ridge: float) -> float:
    """Return the largest privacy loss of a row taken off, for noise ``exp(-|b|/scale)``.

    It is the largest value over q in [0, 1] of ``q/scale + log(1 + q (1 - q)/Λ)`` for the logistic
    loss, a concave function with its maximum ``1/scale`` at q = 1 where ``Λ ≥ scale``. Other
    losses are given their largest curvature everywhere. A row added moves b alone: ``1/scale``.
    """
    if not loss.bell:
        return (1 / scale + math.log1p(loss.smoothness / ridge)) * _ROUND_UP
    half = scale - 0.5
    q = min(math.sqrt(half * half + ridge + scale) - half, 1.0)
    return (q / scale + math.log1p(q * (1 - q) / ridge)) * _ROUND_UP


def pure_scale(loss: Loss, eps: float, ridge: float, *, replaced: bool) -> float:
    """Return the least scale of ``exp(-|b|/scale)`` noise for a ridge and an eps.

    BudgetError if no noise is enough: the ridge is too small.
    """
    from scipy.optimize import brentq

    def excess(log_scale: float) -> float:
        scale = math.exp(log_scale)
        return row_loss(loss, scale, ridge) + replaced / scale - eps

    low, high = math.log(0.5 / eps), math.log(1e12 / eps)
    if excess(high) > 0:
        smallest_ridge = _least(loss, eps)
        raise BudgetError(
            f"ridge={ridge:.4g} is too small for eps={eps:.4g}: the curvature of a row's loss "
            f"costs more than eps at any noise; write ridge= above {smallest_ridge:.3g}, or None"
        )
    smallest_scale = math.exp(float(brentq(excess, low, high, xtol=1e-13))) * (1 + 1e-9)
    while row_loss(loss, smallest_scale, ridge) + replaced / smallest_scale > eps:
        smallest_scale *= 1 + 1e-9
    return smallest_scale


def pure_ridge(loss: Loss, eps: float, columns: int, *, replaced: bool) -> float:
    """Return a ridge at which the curvature costs next to nothing, or a public share of eps."""
    scale = (1 + replaced) / eps
    suits = max(PURE_RIDGE * scale, spherical_sd(columns, scale) / 4, LEAST_RIDGE)
    if loss.bell:
        return suits
    return max(suits, _least(loss, BENT_SHARE * eps))


def _least(loss: Loss, eps: float) -> float:
    """Return the ridge at which the curvature of a row takes all of eps."""
    return loss.smoothness * math.exp(-eps) / -math.expm1(-eps)


def gaussian_scale(multiplier: float, ridge: float | None) -> float:
    """Return a scale of Gaussian noise as private as a Gaussian release, logistic loss.

    `multiplier` is of the Gaussian release that the minimiser shall be no worse than, at every ε,
    for a row more or fewer; `ridge` is :data:`RIDGE` times the scale by default.

    With ``n = ⟨e, b⟩`` of variance σ² the privacy loss of a row added is at most that of a
    Gaussian shift by 1, or 0. Of a row taken off it is at most
    ``m(a) = max_q qa + q²/2σ² + q(1 - q)/Λ`` with a of law ``N(0, 1/σ²)``. The maximum is the
    Gaussian's own at q = 1 where ``a ≥ 1/Λ - 1/σ²``, so that the two agree for every ε above
    ``1/Λ - 1/2σ²``. Below, the curve ``E(1 - exp(ε - m(a)))₊`` is compared with that of the
    multiplier step by step; both fall, so a step's left end on the one and right end on the other
    decide it. For large σ and ``Λ = kσ`` the scale is close to ``1 + 1/(6k²)`` times the
    multiplier. BudgetError if the ridge is too small.
    """
    if multiplier > LARGEST_MULTIPLIER:
        raise BudgetError(TOO_MUCH_NOISE)
    low, high = multiplier, 2 * multiplier
    if not _dominated(high, ridge or RIDGE * high, multiplier):
        raise BudgetError(
            f"ridge={ridge:.4g} is too small for Gaussian noise at this budget; write at least "
            f"{multiplier:.3g}, or None"
        )
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        fits = _dominated(middle, ridge or RIDGE * middle, multiplier)
        low, high = (low, middle) if fits else (middle, high)
    return high


def tilted_curve(eps: Floats, scale: float, ridge: float) -> Floats:
    """Return a bound on the delta of a row taken off at every eps from 0, logistic loss."""
    excess = 1 / ridge - 0.5 / scale**2
    delta = hockey_stick(eps, scale)
    bent = eps < excess
    if not bent.any():
        return delta
    bent_eps = eps[bent, None]
    start = 2 * np.sqrt(excess * bent_eps) - 1 / ridge
    end = 1 / ridge - 1 / scale**2
    a = start + (end - start) * (_NODES + 1) / 2
    loss = (a + 1 / ridge) ** 2 / (4 * excess)
    density = np.exp(-((a * scale) ** 2) / 2) * (scale / math.sqrt(2 * math.pi))
    inside = (-np.expm1(bent_eps - loss) * density) @ _WEIGHTS * (end - start)[:, 0] / 2
    beyond = ndtr(-end * scale) - np.exp(bent_eps[:, 0]) * ndtr(-end * scale - 1 / scale)
    delta[bent] = inside + beyond
    return delta


def _dominated(scale: float, ridge: float, multiplier: float) -> bool:
    """Compare the curves where the curvature enters; beyond, the scale decides."""
    excess = 1 / ridge - 0.5 / scale**2
    if excess <= 0:
        return True
    eps = np.linspace(0.0, excess, _STEPS + 1)
    above = tilted_curve(eps[:-1], scale, ridge) * _ROUND_UP
    return bool((above <= hockey_stick(eps[1:], multiplier)).all())


def spherical(columns: int, scale: float, entropy: Entropy) -> Floats:
    """Draw a vector of density proportional to ``exp(-|b|/scale)``.

    Idealised: its direction and its length, of density ``r^(d-1) exp(-r/scale)``, are floats from
    the quantiles of :mod:`dpmodels.noise.uniform`.

    Source: Chaudhuri, K., Monteleoni, C. and Sarwate, A. D. (2011). "Differentially private
    empirical risk minimization." Journal of Machine Learning Research 12, 1069-1109. Section 3.
    """
    direction = normals(columns, entropy)
    length = -scale * float(np.log(uniforms(columns, entropy)).sum())
    return np.asarray(direction * (length / np.linalg.norm(direction)))


def spherical_sd(columns: int, scale: float) -> float:
    """Return the standard deviation of each coordinate."""
    return scale * math.sqrt(columns + 1)
