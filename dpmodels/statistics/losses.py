"""Losses of linear predictors, with the constants that guarantees rest on.

A row ``(z, y)`` with z in the unit ball and a label of +1 or -1 costs ``φ(m)`` at the parameter θ,
with the margin ``m = y⟨θ, z⟩``. Its gradient is ``-slope(m) y z``, of a fixed sign along z and no
longer than 1, and its curvature ``bend(m) z zᵀ``. Slopes and bends are the same bits for a number
wherever it stands (:func:`exp`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmodels.arguments import between
from dpmodels.statistics import double_double
from dpmodels.statistics.double_double import Pair
from dpmodels.statistics.statistic import Loss
from dpmodels.typing import Floats

# Beyond it in :func:`exp` powers of two leave the normal range of float64.
LARGEST = 700.0
# log 2 in two parts; products of the first with whole numbers up to 2**11 are exact.
_HIGH, _LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
# Up to half of log 2 the next is below 2**-57.
_COEFFICIENTS = [1 / math.factorial(power) for power in range(13, -1, -1)]
# Of float64, by IEEE 754.
_BIAS, _MANTISSA = 1023, 52
# Widths of the round part of Huber's loss; a choice: 4 bends every row of the ball at first.
NARROWEST, WIDEST = 0.1, 4.0


@dataclass(frozen=True)
class Logistic:
    """The logistic loss ``log(1 + exp(-m))``.

    Its slope is ``q = 1/(1 + exp(m))``, its curvature ``q (1 - q)``: where a row pulls with all
    its weight it does not bend. A row of length r < 1 pulls with ``t = q r`` and bends by
    ``q (1 - q) r² = t (r - t) ≤ t (1 - t)``.
    """

    name = "logistic"
    length = 1.0
    smoothness = 0.25
    bell = True
    score = "Brier score"

    @property
    def path(self) -> tuple[Loss, ...]:
        """The loss alone."""
        return (self,)

    def value(self, margins: Floats) -> Floats:
        """Return the negative log-likelihood."""
        return np.asarray(np.logaddexp(0.0, -margins))

    def slope(self, margins: Floats) -> Floats:
        """Return the probability of the other label."""
        return np.asarray(1 / (1 + exp(margins)))

    def precise_slope(self, margins: Pair) -> Pair:
        """Return the same with an error below 2**-77; margins beyond 600 count as that."""
        within = np.abs(margins.high) < double_double.LARGEST
        high = np.clip(margins.high, -double_double.LARGEST, double_double.LARGEST)
        odds = double_double.exp(Pair(high, margins.low * within))
        ones = np.ones_like(high)
        total, lost = double_double.two_sum(ones, odds.high)
        return double_double.divided(Pair(ones, 0 * ones), Pair(total, lost + odds.low))

    def bend(self, margins: Floats) -> Floats:
        """Return the variance of the label."""
        odds = exp(-np.abs(margins))
        return np.asarray(odds / (1 + odds) ** 2)

    def miss(self, margins: Floats) -> Floats:
        """Return the squared probability of the other label: what is proper and bounded."""
        return np.asarray(self.slope(margins) ** 2)

    def largest_difference(self, spread: float) -> float:
        """Return 8/27 of it, or 1: q² changes by ``2 q² (1 - q)``, most at q = 2/3."""
        return min(8 / 27 * spread, 1.0)


@dataclass(frozen=True)
class Huber:
    """The hinge loss rounded off within a public distance of margin 1.

    ``φ(m)`` is 0 from ``1 + h`` on, ``1 - m`` up to ``1 - h``, and ``(1 + h - m)²/(4h)`` between,
    where it bends by ``1/(2h)``.

    Source: Chaudhuri, K., Monteleoni, C. and Sarwate, A. D. (2011). "Differentially private
    empirical risk minimization." Journal of Machine Learning Research 12, 1069-1109. Section
    3.4.2.

    ArgumentError if the width is not a number from 0.1 to 4.
    """

    width: float = 0.5  # Half the length of the round part, from 0.1 to 4

    name = "Huber"
    length = 1.0
    bell = False
    score = "share of wrong labels"

    def __post_init__(self) -> None:
        meaning = ", half the length of the round part of the loss; write width=0.5"
        between("width", self.width, NARROWEST, 2 * WIDEST, meaning)

    @property
    def smoothness(self) -> float:
        """Curvature of the round part."""
        return 0.5 / self.width

    @property
    def path(self) -> tuple[Loss, ...]:
        """Round parts from :data:`WIDEST`, where every row bends at first, halved down to it."""
        halvings = math.ceil(math.log2(WIDEST / self.width))
        return (*(Huber(self.width * 2.0**halving) for halving in range(halvings, 0, -1)), self)

    def value(self, margins: Floats) -> Floats:
        """Return the loss, quadratic in the round part."""
        slope = self.slope(margins)
        return np.where(slope < 1, self.width * slope**2, 1 - margins)

    def slope(self, margins: Floats) -> Floats:
        """Return how steeply the loss falls, linear in the round part."""
        return np.asarray(np.clip((1 + self.width - margins) / (2 * self.width), 0.0, 1.0))

    def precise_slope(self, margins: Pair) -> Pair:
        """Return the same with an error below 2**-77."""
        ones = np.ones_like(margins.high)
        edge, lost = double_double.two_sum(ones, self.width * ones)
        rest, edge_error = double_double.two_sum(edge, -margins.high)
        width = Pair(2 * self.width * ones, 0 * ones)
        high, low = double_double.divided(Pair(rest, lost + edge_error - margins.low), width)
        above = (high > 1) | ((high == 1) & (low > 0))
        inside = ~above & (high > 0)
        return Pair(np.where(above, 1.0, high * inside), low * inside)

    def bend(self, margins: Floats) -> Floats:
        """Return the curvature: one value inside the round part, 0 outside."""
        return np.where(np.abs(margins - 1) < self.width, self.smoothness, 0.0)

    def miss(self, margins: Floats) -> Floats:
        """Return 1 where the margin is not above 0, else 0."""
        return np.where(margins > 0, 0.0, 1.0)

    def largest_difference(self, spread: float) -> float:
        """Return 1: a label turns at any distance."""
        return 1.0


@dataclass(frozen=True)
class Poisson:
    """Residuals of a Poisson regression with log link, clipped to a public bound.

    Its gradients are unbounded, so only clipped gradients can be released;
    ``residual/clip`` times z is one in the unit ball.
    """

    upper: float  # Declared largest response
    clip: float  # Bound on the size of a residual ``y - exp(⟨θ, z⟩)``

    name = "Poisson"

    @property
    def length(self) -> float:
        """Longest gradient of a row, in units of the log-likelihood's."""
        return self.clip

    @property
    def smoothness(self) -> float:
        """Curvature of a row whose expected response is the largest."""
        return self.upper / self.clip

    def pull(self, linear: Floats, response: Floats) -> Floats:
        """Return clipped residuals as shares of the bound, in [-1, 1]."""
        return np.asarray(np.clip((response - self.expected(linear)) / self.clip, -1.0, 1.0))

    def bend(self, linear: Floats, response: Floats) -> Floats:
        """Return how fast :meth:`pull` falls: 0 where it is clipped, at most smoothness."""
        expected = self.expected(linear)
        is_clipped = np.abs(response - expected) >= self.clip
        return np.where(is_clipped, 0.0, np.minimum(expected, self.upper) / self.clip)

    def expected(self, linear: Floats) -> Floats:
        """Return the expected response, e times the largest at most."""
        return exp(np.minimum(linear, math.log(self.upper) + 1.0))


def exp(exponents: Floats) -> Floats:
    """Return ``exp(x)``, the same bits for a number wherever it stands.

    Beyond 700 either way numbers count as that; the error is below 2⁻⁵² of the value.

    Libraries evaluate a whole register of numbers by other code than the few that are left over,
    and arrays with gaps by a third: the last bit then depends on a number's place. Here every step
    is one correctly rounded sum or product of each number by itself, ``x = k log 2 + r``, a
    polynomial in r, and k added to the exponent's bits; nothing is left to choose.
    """
    clipped = np.clip(exponents, -LARGEST, LARGEST)
    multiples = np.rint(clipped / math.log(2))
    rest = clipped - multiples * _HIGH
    rest -= multiples * _LOW
    value = np.full_like(rest, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        value *= rest
        value += coefficient
    bits = (multiples.astype(np.int64) + _BIAS) << _MANTISSA
    return np.asarray(value * bits.view(np.float64))


# Margins closer than this have the curvature at their middle for their mean one: its error is
# below 1e-7, and that of the difference of slopes below 2**-40.
CLOSE = 2.0**-8


def mean_bend(loss: Loss, first: Floats, last: Floats) -> Floats:
    """Return the mean curvature over margins from `first` to `last`: how fast the slope falls."""
    first, last = np.clip(first, -LARGEST, LARGEST), np.clip(last, -LARGEST, LARGEST)
    distance = last - first
    is_close = np.abs(distance) < CLOSE
    fall = (loss.slope(first) - loss.slope(last)) / np.where(is_close, 1.0, distance)
    return np.where(is_close, loss.bend((first + last) / 2), fall)


# The loss of a linear predictor for each level of a category, with its constants.
#
# A row ``(z, y)`` with z in the unit ball and a level y of K costs ``-log p_y`` at the parameters
# ``θ_1 .. θ_K``, where p is proportional to ``exp⟨θ_k, z⟩``: those that differ by one vector for
# all levels are the same model. Its gradient is ``(p - e_y) ⊗ z``, whose coordinates add to 0 over
# the levels, and its curvature ``(diag p - p pᵀ) ⊗ z zᵀ``.


@dataclass(frozen=True)
class Multinomial:
    """The negative log-likelihood of a multinomial logit.

    A gradient is at most ``|p - e_y| |z| ≤ √2`` long, as ``|p - e_y|² = (1 - p_y)² + Σ p_k²`` over
    the other levels, which is at most ``2 (1 - p_y)²``. Two are at most twice that apart, which
    rows come near whose levels are both all but excluded at a parameter. The curvature has the
    Frobenius norm ``√(s - 2 Σ p_k³ + s²)`` at most, ``s = Σ p_k²``, and ``s² ≤ Σ p_k³``: at most
    ``√(s (1 - s)) ≤ 1/2``.
    """

    levels: int  # K, the reference first

    name = "multinomial"
    length = math.sqrt(2)
    smoothness = 0.5 / math.sqrt(2)

    def chances(self, linear: Floats) -> Floats:
        """Return the probability of each level, shape (levels, rows), as `linear`.

        The same bits for a row wherever it stands: levels are added one after the other.
        """
        weights = exp(linear - linear.max(axis=0))
        total = np.zeros(linear.shape[1])
        for weight in weights:
            total += weight
        return np.asarray(weights / total)

    def pull(self, linear: Floats, chosen: Floats) -> Floats:
        """Return ``e_y - p`` in units of its largest length; `chosen` are the lines of e_y."""
        return np.asarray((chosen - self.chances(linear)) / self.length)
