"""A linear model read from released moments: estimates and laws in the columns' own units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri

from dpmodels.errors import NotAvailable
from dpmodels.formula.centring import ProductMap, centred_sides, product_map
from dpmodels.formula.coding import NONE, cells, constant_combination
from dpmodels.formula.response import TwoSided, two_sided
from dpmodels.inference.least_squares import LeastSquares
from dpmodels.inference.sandwich import DETECTION_SDS, filling
from dpmodels.postprocess import normal_equations
from dpmodels.postprocess.identities import Identities
from dpmodels.postprocess.small_samples import Layout
from dpmodels.postprocess.unit_scores import cap_shift, squares_of_units, stepped
from dpmodels.released import MomentsRelease
from dpmodels.results.call import INTERCEPT, MomentsCall
from dpmodels.typing import Floats
from dpmodels.variables import Numeric


@dataclass(frozen=True)
class LinearModel:
    """Options of a regression on moments, whose last column is the response."""

    intercept: bool
    weights: str | None = None
    fixed: tuple[str, ...] = ()  # the factors of fixed effects
    sampled: bool = False  # whether rows count by the weights of a survey design


@dataclass(frozen=True)
class LinearFit:
    """Least squares of the last column on the others."""

    call: MomentsCall
    release: MomentsRelease
    model: LinearModel

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (INTERCEPT,) * self.model.intercept + self.call.names[:-1]

    @property
    def response(self) -> str:
        """Name of the response."""
        return self.call.names[-1]

    @cached_property
    def equations(self) -> normal_equations.NormalEquations:
        """The equations as released, with their noise, subject to public facts of the columns."""
        release, call = self.release, self.call
        equations = normal_equations.released_equations(
            release,
            row_norm=call.row_norm,
            shift=None if self.model.intercept else call.origin / call.divisor,
            layout=None if release.ball is not None else layout(call, self.model.weights),
            constant=self._constant is not None,
        )
        return stepped(equations, release, call.row_norm)

    @cached_property
    def cap_shift(self) -> tuple[Floats, Floats]:
        """What the step to all weights took off the parameters, and its error."""
        return cap_shift(self.release, self.to_units[0], self.equations.gram)

    @cached_property
    def theta(self) -> Floats:
        """The estimate in scaled units."""
        return normal_equations.least_squares(self.solved)

    @cached_property
    def solved(self) -> normal_equations.NormalEquations:
        """The equations that the estimate solves, with what was added to the moments, if anything.

        What a mechanism adds, or else a ridge on the directions that noise hides.
        """
        return normal_equations.solved(self.equations, self.release, self.call.row_norm)

    @cached_property
    def to_units(self) -> tuple[Floats, Floats]:
        """Matrix and shift that bring scaled parameters to those of the columns as written."""
        divisor, origin, unit = self.call.divisor, self.call.origin, self.unit
        slopes = unit / divisor[:-1, None] * self._even[:-1, :-1]
        if self.equations.coefficients is not None:
            slopes = slopes @ self.equations.coefficients
        if not self.model.intercept:
            shift = np.zeros(len(slopes))
            if self._constant is not None and self.equations.near_zero:
                shift = self._as_written(origin[-1] * self._constant)
            return self._as_written(slopes), shift
        matrix = np.zeros((len(divisor), len(divisor)))
        matrix[0, 0], matrix[1:, 1:] = unit, slopes
        matrix[0, 1:] = -origin[:-1] @ slopes
        shift = np.zeros(len(divisor))
        shift[0] = origin[-1]
        return self._as_written(matrix), shift

    @cached_property
    def _constant(self) -> Floats | None:
        """Coefficients by which the terms add to 1 without an intercept, if any do."""
        if self.model.intercept:
            return None
        sides = centred_sides(sides_of(self.call, self.model.weights), self.call.centres or ())
        return constant_combination(sides.terms.blocks)

    def _as_written(self, matrix: Floats) -> Floats:
        """Bring coefficients of columns with centred products to those of the formula's."""
        if self.products is None:
            return matrix
        return self.products.of_coefficients(self.model.intercept) @ matrix

    @cached_property
    def products(self) -> ProductMap | None:
        """The map from the formula's columns to those with centred products, if any."""
        centres = self.call.centres or ()
        return product_map(sides_of(self.call, self.model.weights), centres) if centres else None

    @property
    def widths(self) -> Floats:
        """Lengths of the public ranges of the terms as written, shape (terms,)."""
        call = self.call
        if call.centres is None:
            return np.asarray((call.upper - call.lower)[:-1])
        terms = sides_of(call, self.model.weights).terms
        return np.asarray(terms.upper - terms.lower)

    @cached_property
    def _even(self) -> Floats:
        """What scaled columns are multiplied by in the equations."""
        ball = self.release.ball
        if ball is None or ball.axes is None:
            return np.eye(len(self.call.names))
        return normal_equations.even(ball.axes)

    @property
    def unit(self) -> float:
        """The unit of the equations' response."""
        return float(self.call.divisor[-1] / self._even[-1, -1])

    @property
    def params(self) -> Floats:
        """The estimate in own units, shape (parameters,)."""
        matrix, shift = self.to_units
        return np.asarray(matrix @ self.theta + shift)

    @property
    def term_means(self) -> Floats:
        """Means of the coded terms by the released moments, in their own units.

        Empty without a constant, and where noise hides the number of rows.
        """
        equations = self.equations
        sums = equations.regressors.T @ equations.moments[0]
        if not self.model.intercept or sums[0] <= DETECTION_SDS * self.release.noise.count:
            return np.empty(0)
        scaled = self.unit * sums[1:] / sums[0]
        slopes, origin = self.to_units[0][1:, 1:], self.call.origin[:-1]
        if self.products is not None:
            centred = origin - self.products.shift
            origin = np.asarray(np.linalg.solve(self.products.matrix, centred), dtype=np.float64)
        return np.asarray(origin + np.linalg.solve(slopes.T, scaled))

    @property
    def nobs(self) -> float:
        """Rows used: complete ones as released, or with weights the public number.

        Of a survey design that of its units.
        """
        n_public = math.inf if self.release.rows is None else float(self.release.rows)
        if self.model.weights is not None or self.model.sampled:
            return n_public if math.isfinite(n_public) else math.nan
        return max(min(self.weight, n_public), 1.0)

    @property
    def weight(self) -> float:
        """The noisy sum of the rows' weights: of a survey design in units of the cap."""
        ball = self.release.ball
        return self.release.count if ball is None or math.isnan(ball.rows) else ball.rows

    @property
    def is_reweighted(self) -> bool:
        """Whether the estimate is of rows that count less the longer their terms are."""
        ball = self.release.ball
        return ball is not None and not math.isnan(ball.rows)

    @property
    def residual_limit(self) -> float:
        """Up to which size residuals count, in the response's unit; nan where that is no one size.

        Of weighted rows it depends on the weight, and the step to all weights has no limit.
        """
        ball = self.release.ball
        if ball is None or ball.axes is None or not self.is_reweighted:
            return math.nan
        if self.model.weights or self.model.sampled:
            return math.nan
        return float(ball.axes[-1, -1] * ball.radius / math.sqrt(2) * self.call.divisor[-1])

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the residuals, at least 1; nan where rows cannot be counted.

        Rows whose terms were clipped count by their squared weight.
        """
        if math.isnan(self.nobs):
            return math.nan
        if self.model.sampled:
            return max(self.nobs - 1, 1.0)
        count = self.nobs if self.model.weights is not None else self.release.count
        return max(min(count, self.nobs) - len(self.names), 1.0)

    @cached_property
    def noise_law(self) -> LeastSquares:
        """The law about the non-private estimate on these rows."""
        return LeastSquares(self.equations.shown)

    @property
    def sampled(self) -> bool:
        """Whether the sampling covariance is known, from the number of rows or as bought.

        A common variance of the residuals needs the number of rows.
        """
        return self.release.meat is not None or not math.isnan(self.freedom)

    @cached_property
    def full_law(self) -> LeastSquares:
        """The law about the population's parameters."""
        if not self.sampled:
            raise NotAvailable(
                "with weights and a private number of rows the variance of the residuals has no "
                'estimate: noise_int() is available, conf_int() with vcov="HC" or '
                'adjacency="replace"'
            )
        effect = self.release.adjacency.design_effect
        if self.release.meat is None:
            return LeastSquares(self.equations.shown, self.freedom / effect)
        meat = self.release.meat
        correction = 1.0 if math.isnan(self.freedom) else self.nobs / self.freedom
        if self.model.sampled:
            meat, correction = squares_of_units(meat, self.release)
        equations = self.equations
        noise = equations.noise_in_score(self.theta) + equations.pull
        squares = filling(meat, noise)
        # Squares of persons' scores include the correlation of their rows.
        correction *= effect if meat.person is None else 1
        return LeastSquares(self.equations.shown, 1.0, correction * squares)

    @property
    def about_population(self) -> ParametersLaw:
        """The law about the population's parameters, of combinations in own units."""
        return ParametersLaw(self, full=True)

    @property
    def about_rows(self) -> ParametersLaw:
        """The law about the non-private estimate, of combinations in own units."""
        return ParametersLaw(self, full=False)

    @property
    def hidden_directions(self) -> int:
        """Along how many directions of X'X, hidden by noise, a ridge holds the slopes."""
        if self.equations.hidden is not None:
            return int(self.equations.hidden.shape[1])
        return len(self.equations.lacking[0]) if self.equations.lifted else 0

    def identifies(self, directions: Floats) -> NDArray[np.bool_]:
        """Return which combinations of the parameters, one a row, are identified."""
        law = self.full_law if self.sampled else self.noise_law
        return law.identifies(directions @ self.to_units[0])

    def noise_ends(self, level: float) -> Floats:
        """Return the noise interval of each parameter, shape (parameters, 2)."""
        if ("noise", level) not in self._interval_cache:
            ones = np.eye(len(self.names))
            self._interval_cache["noise", level] = self.about_rows.intervals(ones, level)
        return self._interval_cache["noise", level]

    def full_ends(self, level: float) -> Floats:
        """Return the confidence interval of each parameter, shape (parameters, 2).

        It contains the noise interval, and is infinite where that is.
        """
        if ("full", level) not in self._interval_cache:
            ends = self.noise_ends(level).copy()
            is_finite = np.isfinite(ends).all(axis=1)
            low, high = self.about_population.intervals(np.eye(len(ends))[is_finite], level).T
            ends[is_finite, 0] = np.minimum(low, ends[is_finite, 0])
            ends[is_finite, 1] = np.maximum(high, ends[is_finite, 1])
            self._interval_cache["full", level] = ends
        return self._interval_cache["full", level]

    @cached_property
    def _interval_cache(self) -> dict[tuple[str, float], Floats]:
        return {}

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """Which parameters have a finite 95 % noise interval, shape (parameters,)."""
        return np.asarray(np.isfinite(self.noise_ends(0.95)).all(axis=1))

    def slopes_test(self, slopes: Sequence[int] | None = None) -> tuple[float, float, float]:
        """Return χ², degrees of freedom and p-value of all identified slopes being 0.

        Of those at the positions `slopes` where these are given. nan where there are none, or no
        residuals' variance.
        """
        positions = range(self.model.intercept, len(self.names)) if slopes is None else slopes
        identified = [position for position in positions if self.identified[position]]
        n_slopes = len(identified)
        if not n_slopes or not self.sampled:
            return math.nan, float(n_slopes), math.nan
        conditions = np.eye(len(self.names))[identified]
        statistic = max(self.about_population.distance(conditions, np.zeros(n_slopes)), 0.0)
        return statistic, float(n_slopes), float(chdtrc(n_slopes, statistic))

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Variance of the residuals of weight 1 in the response's squared units, and its noise.

        Without bias: below 0 where noise makes it so.
        """
        freedom = max(self.weight, 1.0) if self.model.sampled else self.freedom
        # Rows are weighted by fractions of the largest declared weight.
        weights = self.model.weights and self.call.codebook[self.model.weights]
        heaviest = float(weights.upper) if isinstance(weights, Numeric) else 1.0
        unit = self.unit**2 * heaviest / freedom
        value, sd = self.equations.shown.squares_left(self.theta)
        return value * unit, sd * unit

    @cached_property
    def rsquared(self) -> tuple[float, float]:
        """Share of the response's variance that is explained, and its noise sd; nan if unknown.

        Unknown too where there are slopes and none of them is identified.
        """
        slopes = self.identified[self.model.intercept :]
        if len(slopes) and not slopes.any():
            return math.nan, math.nan
        equations, g = self.equations, self.equations.residual(self.theta)
        response = equations.response.copy()
        if self.model.intercept:
            response[0] -= (equations.moments[0] @ response) / max(equations.moments[0, 0], 1.0)
        residual_form, form = np.outer(g, g), np.outer(response, response)
        total = float((equations.moments * form).sum())
        rest = equations.shown.squares_left(self.theta)[0]
        # What the line that was released first adds along directions that noise hides.
        hidden = 0.0
        if equations.hidden is not None:
            visible = response - equations.hidden @ (equations.hidden.T @ response)
            hidden = total - float(visible @ equations.moments @ visible)
        if total <= DETECTION_SDS * math.hypot(equations.form_sd(form), hidden):
            return math.nan, math.nan
        value = min(max(1 - rest / total, 0.0), 1.0)
        left = 1 - value
        sd = math.hypot(equations.form_sd(residual_form - left * form), left * hidden) / total
        return (value, sd) if DETECTION_SDS * sd < 1 else (math.nan, math.nan)


@dataclass(frozen=True)
class ParametersLaw:
    """The law of a fit's parameters, about the population's or about those without noise."""

    fit: LinearFit
    full: bool

    @property
    def law(self) -> LeastSquares:
        """The law in scaled units; NotAvailable without one."""
        return self.fit.full_law if self.full else self.fit.noise_law

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.fit.names

    @property
    def params(self) -> Floats:
        """The estimate in own units."""
        return self.fit.params

    def covariance(self) -> Floats:
        """Return the delta form in own units, shape (parameters, parameters)."""
        root = self.fit.to_units[0] @ self.law.root
        return np.asarray(root @ root.T)

    def identifies(self, directions: Floats) -> NDArray[np.bool_]:
        """Return which combinations of the parameters, one a row, are identified."""
        return self.fit.identifies(directions)

    def intervals(self, directions: Floats, level: float) -> Floats:
        """Return intervals of combinations, shape (combinations, 2); infinite if not identified."""
        matrix, shift = self.fit.to_units
        ends = self.law.intervals(directions @ matrix, level, self.identifies(directions))
        return np.asarray(ends + (directions @ shift)[:, None])

    def roots(self, directions: Floats, values: Floats) -> Floats:
        """Return signed roots of the statistics of combinations that are `values`.

        nan where a combination is not identified.
        """
        matrix, shift = self.fit.to_units
        targets = values - directions @ shift
        return self.law.roots(directions @ matrix, targets, self.identifies(directions))

    def errors(self, directions: Floats) -> Floats:
        """Return standard errors of combinations; infinite where they are not identified.

        Where intervals are searched for, their half length over 1.96.
        """
        if self.law.clear:
            sds = self.law.sds(directions @ self.fit.to_units[0])
            return np.where(self.identifies(directions), sds, math.inf)
        low, high = self.intervals(directions, 0.95).T
        is_finite = np.isfinite(low)
        widths = high - np.where(is_finite, low, 0.0)
        return np.where(is_finite, widths / 2 / ndtri(0.975), math.inf)

    def distance(self, conditions: Floats, values: Floats) -> float:
        """Return how far ``conditions · params = values`` is from the data, to compare with χ²."""
        matrix, shift = self.fit.to_units
        return self.law.distance_to(conditions @ matrix, values - conditions @ shift)


def sides_of(call: MomentsCall, weights: str | None) -> TwoSided:
    """Code both sides of a fit's formula, as written."""
    extra = () if weights is None else (weights,)
    return two_sided(call.formula, call.codebook, excluded=extra, absorb=True)


# Public identities of the products of a regression's columns.


def layout(call: MomentsCall, weights: str | None) -> Layout | None:
    """Return what a formula makes public of the products of its columns; None if nothing.

    Shortened rows do not satisfy it.
    """
    if call.row_norm < call.worst_case:
        return None
    sides = centred_sides(sides_of(call, weights), call.centres or ())
    pattern = cells(sides.joint.blocks)
    if not (pattern.levels[:-1] != NONE).any():
        return None
    left, right = np.triu_indices(len(pattern.factor))
    functions = np.empty((len(pattern.factor),) * 2, dtype=np.int_)
    functions[left, right] = functions[right, left] = pattern.products(left, right)
    unit = np.concatenate([[1.0], call.divisor])
    origin = np.concatenate([[0.0], call.origin / call.divisor])
    identities = Identities(functions, pattern.factor / unit, origin)
    low, high = (np.concatenate([[1.0], end]) for end in call.box)
    return Layout(identities, pattern.levels, pattern.numbers, pattern.sizes, (low, high))
