"""Linear predictors: their rows in the unit ball, and losses with the constants of guarantees.

A row ``(z, y)`` with z in the unit ball and a label of +1 or -1 costs ``φ(m)`` at the parameter θ,
with the margin ``m = y⟨θ, z⟩``. Its gradient is ``-slope(m) y z``, of a fixed sign along z and no
longer than 1, and its curvature ``bend(m) z zᵀ``. Slopes and bends are the same bits for a number
wherever it stands (:func:`exp`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from dpmodels.arguments import between
from dpmodels.noise.lattice import MAX_BITS, Lattice, lengths
from dpmodels.statistics import double_double
from dpmodels.statistics.double_double import Pair
from dpmodels.statistics.passes import turn
from dpmodels.typing import Flags, Floats

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


# A convex loss of the margin that falls with slope at most 1.
Loss = Logistic | Huber


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


# Length of the constant beside terms of length 1: 12 % more noise in the slopes.
CONSTANT = 0.5


class LinearRows(NamedTuple):
    """Rows z of a block, and their linear predictors."""

    z: Floats  # Shape (columns, rows): each at most 1 long; zeros where incomplete
    linear: Floats  # Shape (lines, rows): its products with the lines of a parameter


class Placed(NamedTuple):
    """A block of rows about the centre of its predictors."""

    leading: Floats  # Shape (rows,): the lattice's radius, or 0 where a row is left out
    terms: Floats  # Shape (terms, rows): integers
    unit: Floats  # Shape (rows,): what they stand for in z
    turned: Floats | None = None  # Shape (terms, rows): that part of z, where it has other axes


@dataclass(frozen=True)
class Predictors:
    """Public facts that turn a joint row into ``z = (constant, x/radius) / length``."""

    terms: int  # Number of coded terms
    intercept: bool  # Whether a constant stands before them
    # Longest scaled row of the terms, as a share of the longest joint row; 0 where there are no
    # terms.
    radius: float
    middle: float  # The response is `middle` plus `reach` times its coordinate in the joint ball
    reach: float
    # Integers of the rows' lattice that terms are counted from, rows farther away than `radius`
    # being left out; empty where the ball's own centre is theirs and all rows are within.
    centre: tuple[float, ...] = ()
    # Columns of the response, the last of the joint rows: of a category of several levels one for
    # each but the first, which differ in nothing else.
    responses: int = 1
    # Of an offset, the column before those of the response: as `middle` and `reach` for these.
    known: tuple[float, float] | None = field(default=None, repr=False)
    # Lines that turn terms about the centre, in shares of the joint ball, into those whose length
    # `radius` is of; empty where they are the terms themselves.
    axes: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    bits: int = field(default=MAX_BITS, repr=False)  # Of the rows' lattice

    @property
    def columns(self) -> int:
        """Coordinates of z."""
        return self.terms + self.intercept

    @property
    def constant(self) -> float:
        """First coordinate of z where there is an intercept, else 0."""
        if not self.intercept:
            return 0.0
        return CONSTANT / math.hypot(1, CONSTANT) if self.terms else 1.0

    @property
    def share(self) -> float:
        """Longest part of z that belongs to the terms."""
        return math.sqrt(1 - self.constant**2)

    def within(self, centre: Floats, radius: float, axes: Floats | None = None) -> Predictors:
        """Return those of the rows that lie in another ball, given by released values.

        `centre`, shape (terms,), and `radius` are shares of the joint ball's radius. The ball is
        one of the terms times `axes`, shape (terms, terms), where these are given.
        """
        integers = np.rint(centre * self.lattice.steps)
        lines = () if axes is None else tuple(map(tuple, axes.tolist()))
        return replace(self, centre=tuple(integers.tolist()), radius=radius, axes=lines)

    @property
    def placed(self) -> Floats:
        """The centre in shares of the joint ball's radius, shape (terms,)."""
        return np.array(self.centre) / self.lattice.steps

    @property
    def lattice(self) -> Lattice:
        """Integers of the joint rows."""
        return Lattice(self.bits, self.terms + (self.known is not None) + self.responses)

    @property
    def largest_known(self) -> float:
        """How far an offset is from 0 at most."""
        return abs(self.known[0]) + abs(self.known[1]) if self.known is not None else 0.0

    def read(self, block: Floats, lattice: Lattice) -> Floats:
        """Return z, shape (columns, rows), each at most 1 long; zeros where incomplete."""
        return self._rows(self._placed(block, lattice), lattice)

    def linear_rows(self, block: Floats, lattice: Lattice, parameter: Floats) -> LinearRows:
        """Return z and its products with the lines of a parameter, offsets added.

        `block`, shape (1 + terms + responses, rows), are integer rows (1, x, y); the parameter,
        shape (lines, columns) or all lines in one, is finite and a function of released values and
        public facts. Terms of a line are rounded, each by at most ``2**(bits - 52)`` of its length
        (:func:`dpmodels.statistics.passes.turn`).

        Both are functions of the row and the parameter alone. The squared length of a row and its
        product with the rounded parameter are integers, exact in any order; all that is done to
        them are correctly rounded operations on each number by itself, the same in blocks of any
        size.
        """
        placed = self._placed(block, lattice)
        lines = parameter.reshape(-1, self.columns)
        slopes = lines[:, int(self.intercept) :]
        if self.axes:
            linear = turn(slopes @ self._turning(lattice), _wide(lattice)).times(placed.terms)
        else:
            linear = turn(slopes, lattice).times(placed.terms) * placed.unit
        if self.intercept:
            linear += placed.leading * (self.constant / lattice.radius * lines[:, :1])
        if self.known is not None:
            linear += self.offsets(block, lattice)
        return LinearRows(self._rows(placed, lattice), linear)

    def away(self, block: Floats) -> Floats:
        """Return the squared distance of each row's terms from the centre, in lattice steps."""
        terms = self.terms_of(block) - np.array(self.centre)[:, None]
        if self.axes:
            steps = self.lattice.steps * self.radius / self.share
            return np.square(lengths(self._turned(terms, self.lattice)) * steps)
        return np.asarray(reduce(add, np.square(terms), np.zeros(terms.shape[1])))

    def _placed(self, block: Floats, lattice: Lattice) -> Placed:
        """Return the rows' integers, zeros where a row is left out, and what they stand for.

        Where rows are counted from the ball's own centre, one that would be too long is shortened.
        Integers of a row beyond another ball are not read further; those within it are no longer
        than the lattice allows, and their sum of squares is exact.
        """
        leading, terms = block[0], self.terms_of(block)
        if not self.terms:
            return Placed(leading, terms, np.zeros(block.shape[1]))
        unit = self.share / (lattice.steps * self.radius)
        if self.axes:
            shifted = (terms - np.array(self.centre)[:, None]) * (leading > 0)
            turned = self._turned(shifted, lattice)
            is_inside = (leading > 0) & (lengths(turned) <= self.share)
            ones = np.ones(block.shape[1])
            return Placed(leading * is_inside, shifted * is_inside, ones, turned * is_inside)
        if not self.centre:
            units = unit / np.maximum(lengths(terms) * (unit / self.share), 1.0)
            return Placed(leading, terms, np.asarray(units))
        is_inside = (leading > 0) & (self.away(block) <= (lattice.steps * self.radius) ** 2)
        shifted = (terms - np.array(self.centre)[:, None]) * is_inside
        return Placed(leading * is_inside, shifted, np.full(block.shape[1], unit))

    def _rows(self, placed: Placed, lattice: Lattice) -> Floats:
        z = np.empty((self.columns, len(placed.leading)))
        if self.intercept:
            z[0] = placed.leading * (self.constant / lattice.radius)
        terms = placed.terms if placed.turned is None else placed.turned
        np.multiply(terms, placed.unit, out=z[int(self.intercept) :])
        return z

    def _turning(self, lattice: Lattice) -> Floats:
        """Return the matrix from integers about the centre to the terms' part of z."""
        return np.array(self.axes) * (self.share / (lattice.steps * self.radius))

    def _turned(self, shifted: Floats, lattice: Lattice) -> Floats:
        return turn(self._turning(lattice), _wide(lattice)).times(shifted)

    def terms_of(self, block: Floats) -> Floats:
        """Return the integers of the terms, shape (terms, rows)."""
        return block[1 : 1 + self.terms]

    def chosen(self, block: Floats) -> Floats:
        """Return 1 for each row's level, else 0, shape (responses + 1, rows).

        A row that was shrunk has the signs it had: one of the responses is above 0 at most.
        """
        indicators = np.where(block[-self.responses :] > 0, 1.0, 0.0)
        return np.vstack([1.0 - indicators.max(axis=0), indicators])

    def inside(self, block: Floats, lattice: Lattice) -> Flags:
        """Return which rows are complete and not left out, shape (rows,)."""
        return np.asarray(self._placed(block, lattice).leading > 0)

    def labels(self, block: Floats) -> Floats:
        """Return +1 for the second level, else -1; 0 where the row is incomplete."""
        return np.where(block[0] > 0, np.where(block[-1] > 0, 1.0, -1.0), 0.0)

    def response(self, block: Floats, lattice: Lattice) -> Floats:
        """Return the response in its own unit."""
        return np.asarray(self.middle + self.reach * block[-1] / lattice.steps)

    def offsets(self, block: Floats, lattice: Lattice) -> Floats:
        """Return what is added to each row's linear predictor, shape (rows,)."""
        if self.known is None:
            return np.zeros(block.shape[1])
        middle, reach = self.known
        return np.asarray(middle + reach * block[self.terms + 1] / lattice.steps)


def _wide(lattice: Lattice) -> Lattice:
    """Return the lattice that differences of two rows are on."""
    return Lattice(lattice.bits + 1, lattice.columns)
