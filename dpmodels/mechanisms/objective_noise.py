"""Noise in a linear term that tilts a sum of losses before it is minimised, and how much.

The minimiser θ of ``Σ φ(y_i⟨θ, z_i⟩) + (Λ/2)|θ|² + ⟨b, θ⟩`` stands in a one to one relation with
b: ``b(θ) = -Σ∇φ - Λθ``. The slope of φ is Lipschitz and Λ above 0, so the relation is Lipschitz
both ways, and the density of θ is almost everywhere that of b there times the determinant of
``Σ∇²φ + Λ``, also where the slope has kinks. Let a row z be added to rows of which
``A = Σ∇²φ + Λ ≥ Λ``. At the same θ the vector b moves by ``q`` times a unit vector e that is
fixed, ``q = slope |z|`` in [0, 1], and the determinant grows by a factor ``1 + bend |z|²/Λ`` at
most, ``1 + q (1 - q)/Λ`` for the logistic loss. All below follows from what a single q does to
both.

Two rows replaced are one taken off and one added: for pure noise the two losses add up; for
Gaussian noise each of the two steps is as private as a Gaussian release, and both together as one
of half the multiplier.

Notes
-----
Chaudhuri, Monteleoni and Sarwate (2011) bound the two parts apart, the second by twice the
logarithm of ``1 + c/Λ``, and Kifer, Smith and Thakurta (2012) and Iyengar et al. (2019) pay for
both in ε and δ. Together they cost less: where q is 1 the logistic loss does not bend.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from dpmodels.errors import BudgetError
from dpmodels.noise import Entropy
from dpmodels.noise.normals import normals, uniforms
from dpmodels.privacy.calibrate import hockey_stick
from dpmodels.statistics.protocol import Loss
from dpmodels.typing import Floats

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
        least = _least(loss, eps)
        raise BudgetError(
            f"ridge={ridge:.4g} is too small for eps={eps:.4g}: the curvature of a row's loss "
            f"would tell more than that whatever the noise; write more than {least:.3g}, or None"
        )
    found = math.exp(float(brentq(excess, low, high, xtol=1e-13))) * (1 + 1e-9)
    while row_loss(loss, found, ridge) + replaced / found > eps:
        found *= 1 + 1e-9
    return found


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
        raise BudgetError(
            "the budget asks for more noise than is meaningful; give a larger eps, delta or rho"
        )
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
    own = eps[bent, None]
    start = 2 * np.sqrt(excess * own) - 1 / ridge
    end = 1 / ridge - 1 / scale**2
    a = start + (end - start) * (_NODES + 1) / 2
    loss = (a + 1 / ridge) ** 2 / (4 * excess)
    density = np.exp(-((a * scale) ** 2) / 2) * (scale / math.sqrt(2 * math.pi))
    inside = (-np.expm1(own - loss) * density) @ _WEIGHTS * (end - start)[:, 0] / 2
    beyond = ndtr(-end * scale) - np.exp(own[:, 0]) * ndtr(-end * scale - 1 / scale)
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
    the quantiles of :mod:`dpmodels.noise.normals`.

    Source: Chaudhuri, K., Monteleoni, C. and Sarwate, A. D. (2011). "Differentially private
    empirical risk minimization." Journal of Machine Learning Research 12, 1069-1109. Section 3.
    """
    direction = normals(columns, entropy)
    length = -scale * float(np.log(uniforms(columns, entropy)).sum())
    return np.asarray(direction * (length / np.linalg.norm(direction)))


def spherical_sd(columns: int, scale: float) -> float:
    """Return the standard deviation of each coordinate."""
    return scale * math.sqrt(columns + 1)
