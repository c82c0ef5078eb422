"""The result of a private generalised linear model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from dpmodels.errors import NotAvailable, shorten
from dpmodels.inference.links import LOGIT, OF_FAMILY, RARE, Link, lengthened
from dpmodels.inference.sandwich import (
    DETECTION_SDS,
    FAR,
    MIN_PULLED_SDS,
    Sandwich,
    dispersion,
    least_noise,
    sandwich,
    told_levels,
)
from dpmodels.postprocess.normal_equations import against_first
from dpmodels.postprocess.unit_scores import cap_shift
from dpmodels.released import CoefficientsRelease
from dpmodels.results.base import NO_LLF, NO_SCORE, Refused, interval_method, per_row
from dpmodels.results.call import INTERCEPT, CoefficientsCall
from dpmodels.results.coefficient_model import CoefficientModel
from dpmodels.results.derived_table import Estimates
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.public_rows import PublicRows, public_rows
from dpmodels.typing import Axes, Coder, Floats
from dpmodels.verbs import documented

# Weights of levels in combinations that are rounding.
TINY = 1e-9

Labelled = TypeVar("Labelled", "pd.Series[float]", pd.DataFrame)


class LinearPredictors(Generic[Labelled]):
    """What fits with one linear predictor, or one a level, have in common."""

    call: CoefficientsCall
    release: CoefficientsRelease

    @cached_property
    def linear(self) -> CoefficientsFit:
        """The coefficients, level by level, and the laws of their combinations."""
        return CoefficientsFit(self.call, self.release)

    @property
    def sandwich(self) -> Sandwich | None:
        """Estimate and covariances in units of the ball, None if not available."""
        return self.linear.sandwich

    @property
    def why_not(self) -> str:
        """The reason why there are no standard errors; empty where there are."""
        return self.linear.why_not

    if TYPE_CHECKING:

        @property
        def params(self) -> Labelled:
            """Coefficients."""

        @property
        def _index(self) -> pd.Index:
            """The levels and terms of all coefficients."""

        def _labelled(self, values: NDArray[np.generic], name: str) -> Labelled:
            """Return a number for each coefficient under its term, and its level."""

    @property
    def bse_noise(self) -> Labelled:
        """Standard deviations of the privacy noise alone."""
        return self._sds(self._law("bse_noise").ball_law.noise_root, "bse_noise")

    @property
    def bse_sampling(self) -> Labelled:
        """Standard errors without privacy noise."""
        return self._sds(self._law("bse_sampling").ball_law.sampling_root, "bse_sampling")

    @property
    def tvalues(self) -> Labelled:
        """Distances from 0 in standard errors, normally distributed about the truth."""
        return self._labelled(self._roots, "tvalues")

    @property
    def pvalues(self) -> Labelled:
        """Two-sided p-values for a coefficient of 0."""
        return self._labelled(2 * ndtr(-np.abs(self._roots)), "pvalues")

    @property
    def _roots(self) -> Floats:
        law = self._law("tvalues")
        ones = np.eye(len(law.matrix))
        return law.roots(ones, 0 * ones[0])

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        law = self._law(interval_method(population))
        ends = law.ends(np.eye(len(law.matrix)), level, full=population)
        return pd.DataFrame(ends, index=self._index, columns=["lower", "upper"])

    def _law(self, method: str) -> CoefficientsFit:
        return self.linear.require_law(method)

    def _sds(self, root: Floats, name: str) -> Labelled:
        sds = np.linalg.norm(self.linear.matrix @ root, axis=1)
        return self._labelled(np.where(self.linear.identified, sds, np.nan), name)

    scores, fittedvalues, resid = per_row("predict(newdata)")
    score = Refused(NO_SCORE)
    llf = Refused(NO_LLF)


@dataclass(frozen=True, repr=False)
class GLMResult(LinearPredictors["pd.Series[float]"], CoefficientModel):
    """A private logistic or Poisson regression: released values and public facts only.

    Notes
    -----
    Where curvature was bought and exceeds its noise in some direction, known parts of the gradient,
    such as the ridge's pull, are removed from the coefficients, and identified ones have standard
    errors: where the curvature is less than ten times its noise, intervals and tests invert the
    score, and are not coefficient ± 1.96 standard errors. Errors and intervals of other
    coefficients are nan; where none is identified the coefficients are as released, and methods
    that need more raise ``NotAvailable`` with the reason.
    """

    call: CoefficientsCall
    release: CoefficientsRelease
    coder: Coder | None = field(default=None, repr=False)

    @property
    def identified(self) -> pd.Series[bool]:
        """Which coefficients have finite 95 % intervals."""
        return pd.Series(self.linear.identified, self._index, name="identified")

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients of the coded columns in their own units."""
        return self._labelled(self.linear.params, "params")

    @property
    def params_released(self) -> pd.Series[float]:
        """Coefficients as released, shrunk by the ridge towards the constant-only model."""
        matrix = self.linear.scaled_call.matrix
        return self._labelled(matrix @ self.release.coefficients, "params_released")

    @property
    def _cap_shift(self) -> tuple[Floats, Floats]:
        release = self.release
        if release.curvature is None or release.meat is None:
            raise NotAvailable(
                "coefficients are those of capped weights: a step to all weights needs "
                "inference=True and one linear predictor"
            )
        return cap_shift(release, self.linear.scaled_call.matrix, release.curvature.bread)

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors for the population: sampling and privacy noise."""
        return self._labelled(np.hypot(self.bse_noise, self.bse_sampling), "bse")

    @property
    def dispersion(self) -> float:
        """Squared residuals of counts over their means: quasi-Poisson's, 1 of a Poisson law.

        nan where no bound on residuals was bought. Standard errors count it: they hold where counts
        vary more than Poisson's, as negative-binomial ones do.
        """
        if self.call.family != "poisson":
            return math.nan
        released = self.release.curvature
        if released is None or self.release.clip is None:
            return math.nan
        return dispersion(released)

    @property
    def noise_least(self) -> pd.Series[float]:
        """Lower bounds on the noise standard deviations of the released coefficients.

        From the bought curvature and its noise, or the public number of rows; nan without either.
        """
        n_public, sds = self.release.rows, np.full(len(self.call.names), np.nan)
        is_bounded = n_public is not None and self.call.family == "binomial"
        root = least_noise(self.release, (n_public or 0) / 4 if is_bounded else None)
        if root is not None:
            sds = np.linalg.norm(self.linear.scaled_call.matrix @ root, axis=1)
        return self._labelled(sds, "noise_least")

    @property
    def classes(self) -> tuple[str, ...]:
        """The two levels of the response, the modelled one last; empty where it is a number."""
        return self.call.levels

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients about the population's, if there is one."""
        mask = np.where(self.identified, 1.0, np.nan)
        covariance = self._law("cov_params()").covariance() * np.outer(mask, mask)
        return pd.DataFrame(covariance, index=self._index, columns=list(self.call.names))

    def _estimates(self) -> EstimateTable:
        return table_of_estimates(self, self._index, labels=self.call.names)

    @documented
    def ratios(self, level: float = 0.95) -> Estimates:
        """Return odds ratios, or rate ratios, with their intervals: coefficients exponentiated.

        Raises
        ------
        NotAvailable
            Where there are no standard errors.
        """
        return self._ratios(level)

    def _line(self) -> dict[str, object]:
        sizes = {"nobs": self.nobs, "nterms": len(self.call.names), "family": self.call.family}
        return {**sizes, "ridge": self.release.ridge}

    def plot(
        self,
        level: float = 0.95,
        ax: Axes | None = None,
        *,
        standardize: Literal["range"] | None = None,
        exponentiate: bool = False,
        caption: bool = True,
    ) -> Axes:
        """Draw the coefficients, or odds or rate ratios: parameters as in :func:`dp.coefplot`."""
        from dpmodels.results.coefficient_plot import coefplot

        self._law("plot()")
        return coefplot(
            self,
            standardize=standardize,
            exponentiate=exponentiate,
            level=level,
            ax=ax,
            caption=caption,
        )

    def _size(self) -> str:
        return self.call.family

    @documented
    def decision_function(self, newdata: object, *, clip: bool = False) -> Floats:
        """Return the linear predictor of new, public rows: log odds, or the logarithm of a mean.

        Returns
        -------
        ndarray, shape (rows,)
            nan for incomplete rows.

        Raises
        ------
        NotAvailable
            Where the formula has no terms.
        """
        return public_rows(self.coder, newdata, clip=clip).linear(self.linear.params)

    def _response(self, rows: PublicRows) -> Floats:
        return self._link.mean(rows.linear(self.linear.params))

    @property
    def _link(self) -> Link:
        return OF_FAMILY[self.call.family]

    @property
    def _expected(self) -> str:
        levels, response = self.call.levels, self.call.response
        if levels == ("False", "True"):
            return f"P({response.removesuffix('[T.True]')})"
        return f"P({levels[1]})" if levels else response

    @property
    def _index(self) -> pd.Index:
        return pd.Index(self.call.names, name="term")

    def _labelled(self, values: NDArray[np.generic], name: str) -> pd.Series[float]:
        return pd.Series(values, index=self._index, name=name)


# A generalised linear model read from a release: estimates and laws in the columns' own units.

# Mechanisms that can buy the curvature that intervals need.
BUYERS = ("objective", "gradients", "scores")


@dataclass(frozen=True)
class CoefficientsFit:
    """Coefficients with the errors that bought curvature gives them; nan without."""

    call: CoefficientsCall
    release: CoefficientsRelease

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients, the same for each level of several."""
        return self.call.names

    @cached_property
    def scaled_call(self) -> CoefficientsCall:
        """The call in the units of the ball that the rows were clipped to."""
        return self.call.held_in(self.release.ball)

    @cached_property
    def matrix(self) -> Floats:
        """Matrix from released coefficients to those of the coded columns in their own units.

        For several levels, from released contrasts to those with the reference, level by level.
        """
        matrix = self.scaled_call.matrix
        if self.call.blocks == 1:
            return matrix
        return np.asarray(np.kron(against_first(len(self.call.levels)), matrix), dtype=np.float64)

    @cached_property
    def _levelled(self) -> NDArray[np.bool_]:
        """Which coefficients have detected levels, of the response or of a factor."""
        fit, curvature, blocks = self.sandwich, self.release.curvature, self.call.blocks
        if blocks == 1 or fit is None or curvature is None:
            return ~np.isin(np.arange(len(self.matrix)), self._hidden_levels())
        reference, *rest = told_levels(fit, curvature, blocks + 1).tolist()
        return np.repeat([reference and identified for identified in rest], len(self.names))

    @cached_property
    def sandwich(self) -> Sandwich | None:
        """Estimate and covariances in units of the ball, None if not available.

        In released axes numbers whose spread is clear have coefficients of ordinary size. Only
        combinations along which curvature may be noise alone are not identified there.
        """
        fit, ball, bought = sandwich(self.release), self.release.ball, self.release.curvature
        if fit is None or bought is None or ball is None or ball.axes is None:
            return fit
        # At the end of a long step that of a level without cases is hidden too.
        is_long = bought.score is not None and fit.swamped.any()
        if not (is_long or self._numbers_of(fit.swamped)) or not self._spreads_are_clear():
            return fit
        return sandwich(self.release, drop_faint=True)

    def _spreads_are_clear(self) -> bool:
        """Whether the curvature of each number alone, beside the constant, exceeds its noise.

        Else a number may lie anywhere in its axis, and what goes with it has part of its effect.
        Where a long step ends curvature is low by strong effects: that of its start is read.
        """
        bought, is_term = self.release.curvature, np.array([x != INTERCEPT for x in self.names])
        assert bought is not None
        # Unit vectors of the ball along which each term alone lies.
        try:
            places = np.linalg.inv(self.matrix[np.ix_(is_term, is_term)])
        except np.linalg.LinAlgError:
            return False
        bread, noise = bought.bread, bought.bread_noise
        if bought.score is not None and bought.first is not None and bought.first_noise is not None:
            bread, noise = bought.first, bought.first_noise
        lengths = np.linalg.norm(places, axis=0)
        if not np.isfinite(lengths).all() or not lengths.all():
            return False
        places = places / lengths
        curvature, spreads = bread[np.ix_(is_term, is_term)], np.zeros(len(is_term))
        with np.errstate(all="ignore"):
            for constant in np.flatnonzero(~is_term):
                shared = bread[is_term, constant]
                curvature = curvature - np.outer(shared, shared) / bread[constant, constant]
            spreads[is_term] = ((curvature @ places) * places).sum(axis=0)
        return not self._numbers_of(~(spreads > MIN_PULLED_SDS * noise.diagonal))

    @cached_property
    def _searched(self) -> dict[tuple[bytes, float, bool], tuple[float, float]]:
        return {}

    @cached_property
    def _open(self) -> list[str]:
        """Numeric terms whose curvature may be noise alone.

        An unidentified coefficient of a level has ordinary size. That of a number can be as large
        as its declared range is wide, and then affects all others.
        """
        return [] if self.sandwich is None else self._numbers_of(self.sandwich.swamped)

    def _numbers_of(self, marked: NDArray[np.bool_]) -> list[str]:
        """Return the names of numeric terms among marked columns of the ball."""
        by_name = zip(self.names, marked.reshape(self.call.blocks, -1).T, strict=True)
        names = [name for name, is_marked in by_name if is_marked.any() and name != INTERCEPT]
        return [name for name in names if any("[" not in part for part in name.split(":"))]

    def ends(self, directions: Floats, level: float, *, full: bool = True) -> Floats:
        """Return intervals for the population or for these rows, shape (combinations, 2).

        nan where the population's are infinite, since they contain those of the rows.
        """
        ends = np.full((len(directions), 2), math.nan)
        fit = self.sandwich
        if fit is not None and fit.far <= FAR and fit.is_short and not self._open:
            has_levels = ~(directions[:, ~self._levelled] != 0).any(axis=1)
            for at in np.flatnonzero(has_levels):
                direction = directions[at] @ self.matrix
                if full or math.isfinite(self._end(direction, level, full=True)[0]):
                    plain = self._end(direction, level, full=full)
                    ends[at] = self._of_rare_levels(directions[at], plain, level, full=full)
        if not full:
            wide = self.ends(directions, level)
            ends = np.clip(np.where(np.isnan(ends), wide, ends), wide[:, :1], wide[:, 1:])
        return ends

    @cached_property
    def _level_odds(self) -> dict[int, tuple[float, float, float]]:
        """Of each level's coefficient: its value near the estimate, and the level's log odds.

        Those of the reference come last; both at the released centre of the other terms.
        """
        fit, curvature = self.sandwich, self.release.curvature
        if self.call.family != "binomial" or self.names[0] != INTERCEPT or fit is None:
            return {}
        point = fit.point if curvature is None or curvature.end is None else curvature.end
        params, odds = self.matrix @ point, {}
        for at, name in enumerate(self.names):
            factor, is_level, _ = name.partition("[T.")
            if is_level and ":" not in name:
                reference = float(self._reference_row(factor) @ params)
                odds[at] = (float(params[at]), reference + float(params[at]), reference)
        return odds

    def _hidden_levels(self) -> list[int]:
        """Return levels that rare answers leave next to no curvature where a long step ends.

        It falls from the start as ``p(1 - p)``; that released at the end may be noise alone.
        """
        hidden: list[int] = []
        bought = self.release.curvature
        if bought is None or bought.score is None or bought.first is None or bought.end is None:
            return hidden
        inverse, away = np.linalg.inv(self.matrix), self.release.coefficients - bought.end
        back = self.matrix @ away
        for at, (_, odds, _) in self._level_odds.items():
            row, along = self._reference_row(self.names[at].partition("[T.")[0]), inverse[:, at]
            slope, before = LOGIT.slope(odds + np.array([0.0, back[at] + row @ back]))
            least = DETECTION_SDS * bought.bread_noise.diagonal * before * (along @ along)
            if abs(math.tanh(odds / 2)) >= RARE and along @ bought.first @ along * slope <= least:
                hidden.append(at)
        return hidden

    def _reference_row(self, factor: str) -> Floats:
        """Return the combination for a factor's reference, at the centre of the other terms."""
        is_other = [not term.startswith(f"{factor}[T.") for term in self.names]
        return np.where(is_other, self._centre, 0.0)

    @cached_property
    def _centre(self) -> Floats:
        """The released centre of the terms, 1 of the constant."""
        centre = np.linalg.inv(self.matrix)[0]
        return np.asarray(centre / centre[0])

    def _of_rare_levels(
        self, direction: Floats, ends: tuple[float, float], level: float, *, full: bool
    ) -> tuple[float, float]:
        """Lengthen an interval of a combination towards rarer answers of the levels in it.

        Of a level's coefficient the rarer answers, those of the level or of the reference, decide;
        more extreme ones of the reference are opposite. Of other combinations each level, and the
        reference of each factor, has its weight, and the factor that lengthens most counts.
        """
        used = np.flatnonzero(direction).tolist()
        if len(used) == 1 and used[0] in self._level_odds and abs(direction[used[0]]) == 1:
            (at,) = used
            start, *odds = self._level_odds[at]
            is_reference, sign = abs(odds[1]) > abs(odds[0]), int(direction[at])
            rate = -math.tanh(odds[1] / 2) if is_reference else math.tanh(odds[0] / 2)
            return lengthened(sign * start, sign * rate, ends)
        (low, high), units, extension = ends, np.eye(len(direction)), np.zeros(2)
        for factor in {self.names[at].partition("[T.")[0] for at in self._level_odds}:
            places = [at for at in self._level_odds if self.names[at].startswith(f"{factor}[T.")]
            rows = [*units[places], self._reference_row(factor)]
            weights = [*direction[places], direction[0] - direction[places].sum()]
            odds = [*(self._level_odds[at][1] for at in places), self._level_odds[places[0]][2]]
            starts = [*(self._level_odds[at][0] for at in places), odds[-1]]
            added = np.zeros(2)
            for row, weight, odd, start in zip(rows, weights, odds, starts, strict=True):
                rate = math.tanh(odd / 2)
                if abs(weight) > TINY and abs(rate) >= RARE:
                    symmetric = self._end(row @ self.matrix, level, full=full)
                    excess = np.abs(np.subtract(lengthened(start, rate, symmetric), symmetric))
                    added += abs(weight) * (excess if weight > 0 else excess[::-1])
            extension = np.maximum(extension, added)
        return low - float(extension[0]), high + float(extension[1])

    def _end(self, direction: Floats, level: float, *, full: bool) -> tuple[float, float]:
        key = direction.tobytes(), level, full
        if key not in self._searched:
            assert self.sandwich is not None
            low, high = self.sandwich.interval(direction, level, full=full)
            self._searched[key] = (low, high) if math.isfinite(high - low) else (math.nan, math.nan)
        return self._searched[key]

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """Which coefficients have finite 95 % intervals, shape (coefficients,)."""
        return self.identifies(np.eye(len(self.matrix)))

    @cached_property
    def params(self) -> Floats:
        """The estimate in own units; as released where no coefficient is identified."""
        fit = self.sandwich
        is_identified = fit is not None and self.identified.any()
        ball = fit.estimate if fit is not None and is_identified else self.release.coefficients
        return np.asarray(self.matrix @ ball)

    @property
    def ball_law(self) -> Sandwich:
        """The sandwich in units of the ball, of a fit that has one."""
        assert self.sandwich is not None
        return self.sandwich

    @property
    def root(self) -> Floats:
        """A root of the covariance about the population's, in own units."""
        root = np.hstack([self.ball_law.noise_root, self.ball_law.sampling_root])
        return np.asarray(self.matrix @ root)

    def covariance(self) -> Floats:
        """Return the covariance in the delta form."""
        return np.asarray(self.root @ self.root.T)

    def identifies(self, directions: Floats) -> NDArray[np.bool_]:
        """Return which combinations have finite 95 % intervals."""
        return np.asarray(np.isfinite(self.ends(directions, 0.95)).all(axis=1))

    def intervals(self, directions: Floats, level: float) -> Floats:
        """Return intervals for the population, shape (combinations, 2)."""
        return self.ends(directions, level)

    def errors(self, directions: Floats) -> Floats:
        """Return standard errors of combinations, sampling and noise."""
        sds = np.linalg.norm(directions @ self.root, axis=1)
        return np.where(self.identifies(directions), sds, math.nan)

    def roots(self, directions: Floats, values: Floats) -> Floats:
        """Return signed roots of the statistics of combinations that are `values`."""
        scaled, identified = directions @ self.matrix, self.identifies(directions)
        roots = [
            self.ball_law.statistic(spec, value) if is_identified else math.nan
            for spec, value, is_identified in zip(scaled, values.tolist(), identified, strict=True)
        ]
        return np.array(roots)

    def distance(self, conditions: Floats, values: Floats) -> float:
        """Return the Wald distance of conditions, to compare with χ²."""
        return self.ball_law.distance(conditions @ self.matrix, values)

    def require_law(self, method: str) -> CoefficientsFit:
        """Return the fit, or raise NotAvailable without standard errors."""
        if not self.identified.any():
            raise NotAvailable(f"{method} is not available: {self.why_not}")
        return self

    @property
    def why_not(self) -> str:
        """The reason why there are no standard errors; empty where there are."""
        if self.identified.any():
            return ""
        if self.sandwich is not None and not self.sandwich.is_short:
            return (
                "not identified at this budget: the curvature changes too much on the way back "
                "from the ridge; use a larger budget, more rows, fewer terms or narrower bounds"
            )
        if self.sandwich is not None and self.sandwich.far > FAR:
            return (
                "not identified at this budget: the noise in the linear predictor is too large "
                "for standard errors; use a larger budget, more rows or fewer terms"
            )
        if self._open:
            merged = ", or merge rare levels of the response" * (self.call.blocks > 1)
            return (
                "not identified at this budget: noise swamps the curvature of "
                f"{shorten(', '.join(self._open))}, which affects the other coefficients; use "
                f"narrower bounds, a larger budget, more rows or fewer terms{merged}"
            )
        if self.release.curvature is not None:
            return (
                "not identified at this budget: the bought curvature does not exceed its noise; "
                "use a larger budget, more rows, fewer terms, or levels that the terms do not "
                "separate"
            )
        if self.release.info.name in BUYERS:
            return "no share of the budget was spent on standard errors: fit with inference=True"
        return (
            f'mechanism="{self.release.info.name}" has no intervals with known coverage: fit with '
            'mechanism="objective" or "gradients"'
        )
