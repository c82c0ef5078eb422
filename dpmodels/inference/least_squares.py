"""The distribution of least squares from noisy moments: delta method and score inversion.

At parameters θ the score ``r(θ) = X'(y - Xθ)`` is released with noise ``T'E g``, ``g = t - Tθ``, of
the known covariance ``N(θ) = T' C(g gᵀ) T``, in which the noise of X'X, of X'y and of the number of
rows enter together. At the non-private estimate the exact score is 0; at the population's
parameters it has the covariance ``σ² X'X`` of sampling. So

    ``Q(θ) = r(θ)ᵀ Ω(θ)⁻¹ r(θ)``, ``Ω = N`` or ``N + σ² X'X``,

is a distance between parameters and data: for ``Ω = N`` and Gaussian noise it is twice the log of a
likelihood ratio. A set of parameters is rejected if the smallest Q on it exceeds the quantile of a
χ² with as many degrees of freedom as the set has conditions: score inversion. The smallest Q has
that distribution if the free parameters are well identified, and is smaller otherwise;
:func:`as_chi_squared` corrects for this. If noise hides X'X, intervals are unbounded. If X'X is far
above its noise, the delta method ``G⁻¹ Ω G⁻¹``, ``G = X'X``, agrees.

Laplace noise enters through its variances, as if sums of it were normal.

Anderson, T. W. and Rubin, H. (1949). "Estimation of the parameters of a single equation in a
complete system of stochastic equations." Annals of Mathematical Statistics 20, 46-63. Fieller, E.
C. (1954). "Some problems in interval estimation." Journal of the Royal Statistical Society B 16,
175-185.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri, xlogy

from dpmodels.postprocess.normal_equations import (
    LARGEST,
    ROUNDING,
    SEARCHED,
    WEAK,
    NormalEquations,
    least_squares,
)
from dpmodels.postprocess.small_samples import DETECTION_SDS
from dpmodels.typing import Floats


class CoefficientsLaw(Protocol):
    """The distribution of estimated coefficients about the population's, from noise and sampling.

    Methods take combinations ``directions · params``, `directions` of shape (combinations,
    coefficients), in the units of the coded columns.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""

    @property
    def params(self) -> Floats:
        """The estimate, shape (coefficients,)."""

    def covariance(self) -> Floats:
        """Return the covariance in the delta form, shape (coefficients, coefficients)."""

    def identifies(self, directions: Floats) -> NDArray[np.bool_]:
        """Return which combinations are identified."""

    def errors(self, directions: Floats) -> Floats:
        """Return standard errors, infinite or nan where a combination is not identified."""

    def intervals(self, directions: Floats, level: float) -> Floats:
        """Return intervals, shape (combinations, 2), infinite or nan where not identified."""

    def roots(self, directions: Floats, values: Floats) -> Floats:
        """Return signed roots of the test statistics of ``directions · params = values``."""

    def distance(self, conditions: Floats, values: Floats) -> float:
        """Return the χ² statistic of ``conditions · params = values``."""


# Where X'X is weaker than `WEAK`, extreme slopes have to be rejected at 0.1 %.
FIRM = 3.29
# Strength of X'X, see `NormalEquations.strength`, from which no search is needed; the second where
# a search would take too long, and below it there are no intervals.
CLEAR, CLEAR_OF_MANY = SEARCHED, WEAK
# Noise sds of a parameter's sum of squares from which it has the delta method's variance.
FAR = 10.0
# Largest fraction of a parameter's sum of squares from added rows, and of its variance from the
# assumption about them; the latter for a parameter that hardly depends on them, which is one with
# at most the third fraction of its sum of squares.
ASSUMED, COUNTED, HARDLY = 0.25, 0.9, 0.05
# A choice: the squared cosine with directions that noise hides up to which nothing is lost.
HIDDEN_LOADING = 0.02
# Floor under X'X, in edges of its noise, for conservative starting values.
SOBER = 4.0
# Fraction of a covariance's largest eigenvalue below which eigenvalues count as 0.
_SINGULAR = 1e-15
# Stands for 0 in divisors; far below any other number.
_LEAST = 1e-300
# Choices: most steps of a search, and the gain, relative to Q + 1, that ends it.
_TURNS = 50
_SETTLED = 1e-7


class Distance(NamedTuple):
    """Q at some parameters, with half its gradient, and half its Hessian in residuals g."""

    value: float
    slope: Floats
    bends: Floats


@dataclass(frozen=True)
class LeastSquares:
    """The distribution of the parameters of one model.

    `freedom` are the residual degrees of freedom; 0 for noise without sampling. `filling`, shape
    (parameters, parameters), is the covariance of the exact score at the population's parameters,
    if it was released; without it residuals are assumed homoscedastic.
    """

    equations: NormalEquations
    freedom: float = 0.0
    filling: Floats | None = None

    @cached_property
    def _gram(self) -> Floats:
        """The matrix Γ of the sampling covariance ``(gᵀSg) Γ`` of the score of residuals g.

        X'X without negative eigenvalues, or the filling.
        """
        if self.filling is not None:
            return self.filling
        values, vectors = np.linalg.eigh(self.equations.gram)
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)

    @cached_property
    def _squares(self) -> Floats:
        """The matrix S: ``gᵀSg`` is σ², or 1 with a filling, as the response has weight 1 in g."""
        if self.filling is None:
            return self.equations.moments / max(self.freedom, 1.0)
        last = np.zeros_like(self.equations.moments)
        last[-1, -1] = 1 / self.equations.response[-1] ** 2
        return last

    def residual_variance(self, theta: Floats) -> float:
        """Return ``gᵀSg`` at `theta`, not below 0; 0 without sampling."""
        g = self.equations.residual(theta)
        return max(float(g @ self._squares @ g), 0.0) if self.freedom > 0 else 0.0

    def score_covariance(self, theta: Floats) -> Floats:
        """Return ``Ω(θ)``, shape (parameters, parameters)."""
        equations = self.equations
        noise = equations.noise_in_score(theta) + equations.pull
        return np.asarray(noise + self.residual_variance(theta) * self._gram)

    def distance(self, theta: Floats) -> Distance:
        """Return ``Q(θ)`` and its derivatives."""
        equations = self.equations
        g = equations.residual(theta)
        score = equations.regressors.T @ (equations.whole @ g)
        inverse = _inverse(self.score_covariance(theta))
        w = inverse @ score
        u = equations.regressors @ w
        back = equations.score_noise(u)
        slope = equations.whole @ u - back @ g
        turn = equations.regressors.T @ (equations.whole - equations.noise_slope(g, u))
        if self.residual_variance(theta) > 0:
            spread = self._gram @ w
            share = float(w @ spread)
            slope -= share * (self._squares @ g)
            turn -= np.outer(spread, self._squares @ g) * 2
            back += share * self._squares
        bends = turn.T @ inverse @ turn - back
        return Distance(float(score @ w), -equations.regressors.T @ slope, bends)

    def nearest(self, directions: Floats, start: Floats) -> tuple[Floats, float]:
        """Minimise Q over ``start + directions · γ``; return the minimiser, and Q there.

        By Newton's method with Levenberg's damping, downhill from `start`.
        """
        theta, current = start, self.distance(start)
        if not directions.shape[1]:
            return theta, current.value
        steps = self.equations.regressors @ directions
        damping = 1e-4
        for _ in range(_TURNS):
            bends, axes = np.linalg.eigh(steps.T @ current.bends @ steps)
            # Along axes on which Q is concave a step of the same length, downhill too.
            length = np.abs(bends) + damping * np.abs(bends).max() + 1e-300
            axes = directions @ axes
            step = axes @ ((current.slope @ axes) / length)
            candidate = self.distance(theta - step)
            if candidate.value > current.value:
                damping *= 10
                if damping > 1e8:
                    break
                continue
            gained = current.value - candidate.value
            theta, current, damping = theta - step, candidate, damping / 10
            if gained < _SETTLED * (1 + current.value):
                break
        return theta, current.value

    def _gaps(self, theta: Floats, directions: Floats) -> Floats:
        """Return the gaps of the other roots above Q at its minimum over `directions`.

        Eigenvalues of the Hessian in the attainable residuals g, in the metric of
        ``tr(Ω⁻¹ Ω(g, g))``, along directions that do not merely rescale g.
        """
        from scipy.linalg import null_space

        equations, g = self.equations, self.equations.residual(theta)
        inverse = _inverse(self.score_covariance(theta))
        metric = equations.noise_of(equations.regressors @ inverse @ equations.regressors.T)
        if self.freedom > 0:
            values, vectors = np.linalg.eigh(self._squares)
            squares = (vectors * np.maximum(values, 0.0)) @ vectors.T
            metric += squares * float((inverse * self._gram).sum())
        lengths, axes = np.linalg.eigh(metric)
        root = np.sqrt(np.maximum(lengths, _SINGULAR * lengths[-1]))[:, None] * axes.T
        # The part of g that no choice of the free parameters removes.
        steps = np.linalg.qr(root @ equations.regressors @ directions)[0]
        rest = root @ g - steps @ (steps.T @ (root @ g))
        basis = np.column_stack([rest / max(float(np.linalg.norm(rest)), _LEAST), steps])
        position = basis.T @ (root @ g)
        across = np.linalg.solve(root, basis @ null_space(position[None, :]))
        roots = np.linalg.eigvalsh(across.T @ self.distance(theta).bends @ across)
        return np.asarray(roots * float(position @ position))

    def _least(self, directions: Floats, starts: Iterable[Floats]) -> tuple[Floats, float]:
        """Return the minimiser of Q over `directions` from all starts, and Q on the χ² scale."""
        solutions = (self.nearest(directions, start) for start in starts)
        theta, value = min(solutions, key=lambda solution: solution[1])
        free = directions.shape[1]
        if free:
            value = as_chi_squared(value, self._gaps(theta, directions), len(theta) - free)
        return theta, value

    @cached_property
    def root(self) -> Floats:
        """A root ``G⁻¹ √Ω`` of the delta method's ``G⁻¹ Ω G⁻¹``, shape (parameters, parameters).

        Variances are sums of its squares, which rounding cannot make negative. Eigenvalues of G and
        Ω within rounding of 0 are replaced by their largest possible value.
        """
        values, vectors = np.linalg.eigh(self.score_covariance(self._starts[1]))
        score = vectors * np.sqrt(np.maximum(values, _SINGULAR * values[-1]))
        return np.asarray(self._factors[0] @ (self._factors[1] @ score))

    def sds(self, directions: Floats) -> Floats:
        """Return the delta method's sds of ``directions · θ``, at least their rounding error."""
        rounding = ROUNDING * (np.abs(directions) @ np.abs(self._starts[1]))
        return np.asarray(np.hypot(np.linalg.norm(directions @ self.root, axis=1), rounding))

    @property
    def clear(self) -> bool:
        """Whether X'X is far enough above its noise for intervals without a search."""
        equations = self.equations
        least = CLEAR if equations.searched else CLEAR_OF_MANY
        return equations.near_zero or equations.strength >= least

    def bends(self, conditions: Floats) -> bool:
        """Whether the noise of X'X changes the variance of combinations of ``conditions · θ``.

        Of those that it changes most: with G = X'X the noise of ``c' G⁻¹ E G⁻¹ c`` is nearly in
        proportion to ``|G⁻¹ c|²``.
        """
        if len(conditions) > 1:
            h = self._factors[0] @ (self._factors[1] @ conditions.T)
            values, axes = np.linalg.eigh(conditions @ h)
            axes = axes / np.sqrt(np.maximum(values, ROUNDING * float(values[-1])))
            conditions = (axes @ np.linalg.eigh(axes.T @ h.T @ h @ axes)[1]).T @ conditions
        return bool((self._combined(conditions).bend > 0).any())

    def _distance_at(self, conditions: Floats, off: Floats) -> float:
        """Return the distance of conditions that the estimate misses by `off`: Theorem 95.

        By the covariance of the score where they hold, the other parameters solved for, not where
        the estimate is.
        """
        equations, middle = self.equations, self._starts[0]
        h = self._factors[0] @ (self._factors[1] @ conditions.T)
        theta = middle - h @ (np.linalg.pinv(conditions @ h) @ off)
        noise = equations.noise_in_score(theta) + equations.pull
        score = noise + self.residual_variance(middle) * self._gram
        covariance = h.T @ score @ h
        sds = np.sqrt(np.maximum(np.diagonal(covariance), _LEAST))
        scaled = covariance / np.outer(sds, sds)
        return float((off / sds) @ np.linalg.pinv(scaled, hermitian=True) @ (off / sds))

    @cached_property
    def _laws(self) -> dict[bytes, Combinations]:
        return {}

    @cached_property
    def _factors(self) -> tuple[Floats, Floats]:
        values, axes = np.linalg.eigh(self.equations.gram)
        floor = ROUNDING * float(np.abs(values).max()) + _LEAST
        clipped = np.copysign(np.maximum(np.abs(values), floor), values)
        return np.asarray(axes / clipped), np.asarray(axes.T)

    def _combined(self, directions: Floats) -> Combinations:
        key = directions.tobytes()
        if key not in self._laws:
            self._laws[key] = self._law(directions)
        return self._laws[key]

    def _law(self, directions: Floats) -> Combinations:
        """Return the distribution of ``directions · θ`` with the other parameters solved for.

        If ``c · θ`` is b, ``φ = cᵀ(G⁻¹ X'y) - b`` is ``uᵀ`` times the noisy moments times the
        residuals ``g(b) = ĝ - u s``, ``u = T G⁻¹ c``, ``s = (b - c · θ̂) / cᵀG⁻¹c``.
        """
        equations, middle = self.equations, self._starts[0]
        # The inverse as a matrix would lose its small entries to rounding.
        h = self._factors[0] @ (self._factors[1] @ directions.T)
        u = equations.regressors @ h
        g = np.repeat(equations.residual(middle)[:, None], u.shape[1], axis=1)
        spread = self.residual_variance(middle) * (h * (self._gram @ h)).sum(axis=0)
        pull = (h * (equations.pull @ h)).sum(axis=0)
        steps = (directions * h.T).sum(axis=1)
        noise = [equations.shared(u, *pair) for pair in ((g, g), (g, u), (u, u))]
        rounding = (ROUNDING * (np.abs(directions) @ np.abs(middle))) ** 2
        fixed = np.maximum(noise[0], 0.0) + spread + pull + rounding
        step_sds = np.sqrt(np.maximum(noise[2], _LEAST))
        is_far = np.abs(steps) >= FAR * step_sds
        bend = [
            np.where(is_far, 0.0, term / np.where(is_far, 1.0, steps) ** k)
            for k, term in ((1, noise[1]), (2, noise[2]))
        ]
        is_identified = steps >= DETECTION_SDS * step_sds
        if equations.added_rows is not None:
            from_added = (u * (equations.added_rows.moments @ u)).sum(axis=0)
            largest = np.where(from_added <= HARDLY * steps, COUNTED, ASSUMED)
            is_assumed = (pull > largest * fixed) & (not equations.near_zero)
            is_identified &= (from_added <= ASSUMED * steps) & ~is_assumed
        if equations.hidden is not None:
            combined = equations.regressors @ directions.T
            loading = np.square(equations.hidden.T @ combined).sum(axis=0)
            is_identified &= loading <= HIDDEN_LOADING * np.square(combined).sum(axis=0)
        return Combinations(directions @ middle, fixed, bend[0], bend[1], is_identified)

    def identifies(self, directions: Floats) -> NDArray[np.bool_]:
        """Return which of ``directions · θ`` are identified."""
        has_intervals = self.clear or self.equations.searched
        return self._combined(directions).is_identified & has_intervals

    def intervals(
        self, directions: Floats, level: float, is_identified: NDArray[np.bool_]
    ) -> Floats:
        """Return the intervals of ``directions · θ``, shape (directions, 2).

        Both ends are infinite unless `is_identified`.
        """
        ends = np.repeat([[-math.inf, math.inf]], len(directions), axis=0)
        if self.clear:
            all_ends = self._combined(directions).ends(float(ndtri((1 + level) / 2)))
            ends[is_identified] = all_ends[is_identified]
        else:
            for k in np.flatnonzero(is_identified):
                ends[k] = self.interval(directions[k], level)
        return ends

    def roots(self, directions: Floats, values: Floats, is_identified: NDArray[np.bool_]) -> Floats:
        """Return the signed roots of the statistics of ``directions · θ = values``.

        nan unless `is_identified`.
        """
        if self.clear:
            return np.where(is_identified, self._combined(directions).root(values), math.nan)
        roots = np.full(len(directions), math.nan)
        for k in np.flatnonzero(is_identified):
            distance = max(self.distance_to(directions[k][None], values[k : k + 1]), 0.0)
            off = float(directions[k] @ self._starts[0]) - values[k]
            roots[k] = math.copysign(math.sqrt(distance), off)
        return roots

    def distance_to(self, conditions: Floats, values: Floats) -> float:
        """Return the smallest Q with ``conditions · θ = values``, on the scale of its χ².

        `conditions`, shape (conditions, parameters), are linearly independent.
        """
        from scipy.linalg import null_space

        lengths = np.linalg.norm(conditions, axis=1)
        conditions, values = conditions / lengths[:, None], values / lengths
        if self.clear:
            off = conditions @ self._starts[0] - values
            if self.bends(conditions):
                return self._distance_at(conditions, off)
            sds = self.sds(conditions)
            away = np.linalg.pinv(conditions @ self.root / sds[:, None]) @ (off / sds)
            return float(away @ away)
        free, lift = null_space(conditions), np.linalg.pinv(conditions)
        starts = (start - lift @ (conditions @ start - values) for start in self._starts)
        return self._least(free, starts)[1]

    @cached_property
    def _starts(self) -> tuple[Floats, ...]:
        """Starting values for minimising Q: its zero, and two ridge solutions.

        If X'X is weak Q has several local minima.
        """
        return tuple(least_squares(self.equations, floor) for floor in (-math.inf, 1.0, SOBER))

    def interval(self, direction: Floats, level: float) -> tuple[float, float]:
        """Return the interval of ``direction · θ``.

        The accepted values around the equations' solution; both ends are infinite if one side is
        unbounded. `direction`, shape (parameters,), is not 0.
        """
        width = float(ndtri((1 + level) / 2))
        if self.clear:
            low, high = self._combined(direction[None]).ends(width)[0]
            return float(low), float(high)
        key = direction.tobytes(), level
        if key not in self._searched:
            self._searched[key] = self._search(direction, width)
        return self._searched[key]

    @cached_property
    def _searched(self) -> dict[tuple[bytes, float], tuple[float, float]]:
        return {}

    def _search(self, direction: Floats, width: float) -> tuple[float, float]:
        length = float(np.linalg.norm(direction))
        unit = direction / length
        sd = float(self.sds(unit[None])[0])
        lower, upper = (length * self._end(sign * unit, width, sd) for sign in (-1, 1))
        return (-lower, upper) if math.isfinite(lower + upper) else (-math.inf, math.inf)

    def _end(self, direction: Floats, width: float, step: float) -> float:
        """Return the upper end of the accepted values of ``direction · θ``.

        The direction has length 1.
        """
        from scipy.linalg import null_space
        from scipy.optimize import brentq

        free = null_space(direction[None, :])
        solutions: dict[float, tuple[Floats, float]] = {}

        def excess(value: float, *, among: bool = False) -> float:
            if value not in solutions:
                closest, *farther = sorted(solutions, key=lambda at: abs(at - value))
                starts = [solutions[closest][0], self._starts[-1]]
                if among:
                    # Between two constrained minimisers the next is near their connecting line.
                    fraction = (value - closest) / (farther[0] - closest)
                    starts = [starts[0] + fraction * (solutions[farther[0]][0] - starts[0])]
                shifted = (
                    start + direction * (value - float(direction @ start)) for start in starts
                )
                theta, distance = self._least(free, shifted)
                solutions[value] = theta, math.sqrt(max(distance, 0.0)) - width
            return solutions[value][1]

        zero = float(direction @ self._starts[0])
        solutions[zero] = self._starts[0], -width
        begins = (float(direction @ start) for start in self._starts)
        begin = inside = max(value for value in begins if excess(value) < 0)
        limit = begin + LARGEST * float(np.abs(direction).sum())
        firm = FIRM - width if self.equations.strength < WEAK else 0.0
        if excess(limit) < max(firm, 0.0):
            return math.inf
        # A step below the rounding error would never move.
        step = max(step, ROUNDING * abs(begin))
        value = begin + width * step / 2
        while excess(value) < 0:
            inside, value = value, begin + 1.6 * (value - begin)
            if value > limit:
                return math.inf
        between = partial(excess, among=True)
        return float(brentq(between, inside, value, xtol=1e-3 * step, rtol=1e-5))


def _inverse(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors / np.maximum(values, _SINGULAR * values[-1])) @ vectors.T)


# The distribution of combinations of parameters with the other parameters solved for.
#
# At the value b of a combination the score's variance is that of residuals linear in b: an interval
# is where the squared distance is below that variance times a squared quantile.
#
# Fieller, E. C. (1954). "Some problems in interval estimation." Journal of the Royal Statistical
# Society B 16, 175-185.


@dataclass(frozen=True)
class Combinations:
    """The distribution of combinations of parameters; fields have the shape (combinations,).

    At ``b = middle + t`` the variance is ``fixed - 2 t across + t² bend``. `is_identified` marks
    the combinations that the release identifies.
    """

    middle: Floats
    fixed: Floats
    across: Floats
    bend: Floats
    is_identified: NDArray[np.bool_]

    def ends(self, width: float) -> Floats:
        """Return where t² is `width` squared times the variance, shape (combinations, 2)."""
        a = 1 - width**2 * self.bend
        bounded = a > 0
        half = width**2 * self.across
        root = np.sqrt(np.where(bounded, half**2 + a * width**2 * self.fixed, 0.0))
        divisor = np.where(bounded, a, 1.0)
        low = np.where(bounded, self.middle - (half + root) / divisor, -np.inf)
        high = np.where(bounded, self.middle + (root - half) / divisor, np.inf)
        return np.column_stack([low, high])

    def root(self, values: Floats) -> Floats:
        """Return the signed root of the statistic at `values`."""
        t = values - self.middle
        variance = self.fixed - 2 * t * self.across + t**2 * self.bend
        return np.asarray(-t / np.sqrt(np.maximum(variance, _LEAST)))


# The distribution of a quadratic distance that was minimised over free parameters.
#
# Let ``Q(g) = |Ω(g)^{-½} M g|²`` be minimised over a linear family of vectors g. If the noise
# ``Ω(g)`` grows equally with g in all directions, Q is a ratio of quadratic forms, its minimum is
# the smallest root of ``M'M`` in the metric of the noise, and M g has mean zero for one g of the
# family. With k free parameters of p the roots then have the density of a noncentral Wishart
# matrix. If the k noncentral ones are large, the smallest root y, given the others κ, is
# distributed as
#
#     ``y^{(p-k)/2 - 1} e^{-y/2} Π √(κ_i - y)``, ``0 < y < min κ``,
#
# the χ² with ``p - k`` degrees of freedom for large κ, and stochastically smaller otherwise: the χ²
# test is conservative if the free parameters are weakly identified. Symmetric noise, or noise of
# several parts, does not grow quite equally in all directions; then this is an approximation.
#
# Guggenberger, P., Kleibergen, F. and Mavroeidis, S. (2019). "A more powerful subvector Anderson
# Rubin test in linear instrumental variables regression." Quantitative Economics 10, 487-526.
# Muirhead, R. J. (1982). "Aspects of Multivariate Statistical Theory." Wiley, section 9.5.

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
# Distance in the root of y over which the density falls by a factor of 10¹⁷.
_BEYOND = 9.0
# A root this far from the smallest changes its distribution by less than a thousandth.
_FAR = 1e4
# Distances from here on count as infinite.
_REFUSED = 500.0


def as_chi_squared(value: float, gaps: Floats, conditions: int) -> float:
    """Return the χ² quantile with the tail probability of a minimised distance.

    `gaps`, shape (free parameters,), are the distances of the other roots from the minimised
    distance `value`, positive at a minimum. The result is at least `value`, and close to it for
    large gaps.
    """
    close_gaps = gaps[gaps < _FAR]
    # A gap is positive at a minimum.
    if not len(close_gaps) or close_gaps.min() <= 0 or not 0 < value < _REFUSED:
        return value
    roots = value + close_gaps
    middle = math.sqrt(value)
    top = min(math.sqrt(float(roots.min())), math.hypot(middle, _BEYOND))
    edges = np.concatenate([np.linspace(0.0, middle, 3), np.linspace(middle, top, 4)[1:]])
    half = np.diff(edges)[:, None] / 2
    z = edges[:-1, None] + half * (1 + _NODES)
    mass = (half * _WEIGHTS * _density(z, value, roots, conditions)).sum(axis=1)
    tail = float(mass[2:].sum() / mass.sum())
    return max(value, float(chdtri(conditions, tail))) if tail > 0 else _REFUSED


def _density(z: Floats, value: float, roots: Floats, conditions: int) -> Floats:
    """Return the density of the root of y, relative to its maximum."""
    shape = np.log1p(-np.minimum(z[..., None] ** 2 / roots, 1 - 1e-15)).sum(axis=-1) / 2
    power = xlogy(conditions - 1.0, z) + shape - (z**2 - value) / 2
    return np.asarray(np.exp(power - power.max()))
