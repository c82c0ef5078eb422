"""Logits that are computed from released counts of cells: binomial, multinomial and ordinal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmodels.formula.crossed import crossed
from dpmodels.formula.response import two_levels, two_sided
from dpmodels.inference.count_model import CountEstimate, estimate, of_family
from dpmodels.inference.links import IDENTITY, LOGIT, Link
from dpmodels.released import CountsRelease
from dpmodels.results.base import Refused
from dpmodels.results.by_level import ByLevel
from dpmodels.results.call import CoefficientsCall
from dpmodels.results.derived_table import Estimates
from dpmodels.results.glm import CoefficientsFit, GLMResult
from dpmodels.results.hypotheses import Terms
from dpmodels.results.marginal_means import Fitted
from dpmodels.results.multinomial import MultinomialResult
from dpmodels.results.public_rows import PublicRows, public_rows, require_coder
from dpmodels.typing import Floats

# A choice by simulation: noise in the information about a combination over the information, up to
# which its interval is reported.
CLEAR: Final = 0.25


@dataclass(frozen=True)
class CountFit(CoefficientsFit):
    """Coefficients from counts with the law of their error; of the first `size` alone if given."""

    release: Any
    size: int | None = None

    @cached_property
    def ball_law(self) -> Any:
        """The estimate and its law; coefficients have no other unit."""
        call, release, n_levels = self.call, self.release, len(self.call.levels)
        table = crossed(two_levels(two_sided(call.formula, call.codebook, most=n_levels)))
        assert not isinstance(table, str)
        counts = release.values[:-1].reshape(-1, n_levels)
        rows = np.insert(table.rows, 0, 1.0, axis=1) if call.intercept else table.rows
        effect = release.adjacency.design_effect
        law = estimate(of_family(call.family, rows, n_levels), counts, release.noise_sd, effect)
        if self.size is None:
            return law
        params, noise, sampling, influence, inverse = law
        first = slice(self.size)
        roots = (params[first], noise[first], sampling[first])
        return CountEstimate(*roots, influence[:, first], inverse[first, first])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.call.names[: self.size]

    @cached_property
    def scaled_call(self) -> CoefficientsCall:
        """The call, whose coefficients are in their own units."""
        return replace(self.call, matrix=np.eye(len(self.call.names)))

    @cached_property
    def matrix(self) -> Floats:
        """The identity."""
        return np.eye(len(self.params))

    @property
    def sandwich(self) -> None:
        """None, as no curvature is released."""

    @cached_property
    def params(self) -> Floats:
        """The estimate."""
        return np.asarray(self.ball_law.params)

    @np.errstate(all="ignore")
    def identifies(self, directions: Floats) -> NDArray[np.bool_]:
        """Return for which combinations the information is clear of noise.

        That about ``d · params`` is ``1 / dᵀ H⁻¹ d``; as a sum over cells of counts times
        ``(dᵀ H⁻¹ g)²`` its noise over itself is at most :data:`CLEAR`.
        """
        law = self.ball_law
        variance = np.einsum("ij,jk,ik->i", directions, law.inverse, directions)
        noise = np.sqrt(((law.influence @ directions.T) ** 4).sum(axis=0))
        return np.asarray((variance > 0) & (self.release.noise_sd * noise <= CLEAR * variance))

    def ends(self, directions: Floats, level: float, *, full: bool = True) -> Floats:
        """Return intervals for the population or for these rows, shape (combinations, 2)."""
        root = self.root if full else self.ball_law.noise_root
        half = float(ndtri((1 + level) / 2)) * np.linalg.norm(directions @ root, axis=1)
        half, middle = np.where(self.identifies(directions), half, np.nan), directions @ self.params
        return np.column_stack([middle - half, middle + half])

    def roots(self, directions: Floats, values: Floats) -> Floats:
        """Return signed roots of the statistics of combinations that are `values`."""
        return np.asarray((directions @ self.params - values) / self.errors(directions))

    def distance(self, conditions: Floats, values: Floats) -> float:
        """Return the Wald distance of conditions, to compare with χ²."""
        roots = conditions @ self.root
        sds = np.linalg.norm(roots, axis=1)
        away = np.linalg.pinv(roots / sds[:, None]) @ ((conditions @ self.params - values) / sds)
        return float(away @ away)

    @property
    def why_not(self) -> str:
        """The reason why there are no standard errors; empty where there are."""
        if self.identified.any():
            return ""
        return (
            "not identified at this budget: noise hides the counts that determine each "
            "coefficient; use a larger budget, more rows or fewer combinations of levels"
        )


@dataclass(frozen=True, repr=False)
class CountedGLM(GLMResult):
    """A private logistic regression from counts of cells: released values and public facts only.

    Coefficients maximise the likelihood of the noisy counts; standard errors count their noise and
    sampling. Coefficients whose information is not clear of noise are not identified.
    """

    release: CountsRelease  # type: ignore[assignment]

    @cached_property
    def linear(self) -> CountFit:
        """The coefficients, and the laws of their combinations."""
        return CountFit(self.call, self.release)

    @property
    def params_released(self) -> pd.Series[float]:
        """The coefficients: what is released are counts."""
        return self.params.rename("params_released")

    @property
    def noise_least(self) -> pd.Series[float]:
        """Noise standard deviations to first order, of all coefficients."""
        return self._series(np.linalg.norm(self.linear.ball_law.noise_root, axis=1), "noise_least")

    def decision_function(self, newdata: object, *, clip: bool = False) -> Floats:
        """Return the linear predictor of public rows, as :meth:`GLMResult.decision_function`."""
        return self._lines(public_rows(self.coder, newdata, clip=clip))

    def _response(self, rows: PublicRows) -> Floats:
        return self._link.mean(self._lines(rows))

    def _lines(self, rows: PublicRows) -> Floats:
        """Return linear predictors, nan where they are not identified."""
        model = self._fitted_rows
        regressors = model.regressors(rows.coded)
        known = model.law.identifies(np.nan_to_num(regressors))
        return np.where(known, regressors @ model.law.params, np.nan)

    @property
    def _fitted_rows(self) -> Fitted:
        return Fitted(self.linear, self._link, self._terms, require_coder(self.coder))

    def _line(self) -> dict[str, object]:
        sizes = {"nobs": self.nobs, "nterms": len(self.call.names), "family": self.call.family}
        return {**sizes, "ncells": len(self.release.values) - 1}


@dataclass(frozen=True, repr=False)
class CountedMultinomial(ByLevel, MultinomialResult):  # type: ignore[misc]
    """A private multinomial logit from counts of cells: as :class:`MultinomialResult`.

    Errors are those of :class:`CountedGLM`; effects and means have a row for each level.
    """

    release: CountsRelease  # type: ignore[assignment]

    @cached_property
    def linear(self) -> CountFit:
        """The coefficients, level by level, and the laws of their combinations."""
        return CountFit(self.call, self.release)

    @property
    def params_released(self) -> pd.DataFrame:
        """The coefficients: what is released are counts."""
        return self.params

    def _line(self) -> dict[str, object]:
        sizes = {"nobs": self.nobs, "nterms": len(self.linear.params), "family": self.call.family}
        return {**sizes, "nlevels": len(self.classes), "ncells": len(self.release.values) - 1}


@dataclass(frozen=True, repr=False)
class OrdinalResult(ByLevel, CountedGLM):  # type: ignore[misc]
    """A private proportional-odds logit from counts of cells.

    As in R's ``MASS::polr``, ``logit P(y <= a) = threshold - slopes x``: a slope above 0 raises the
    response. After the slopes come the thresholds, named ``low|mid``. ``emmeans()`` and
    ``contrasts()`` are of ``slopes x``, the latent scale; ``margins()`` of probabilities.
    """

    @property
    def slopes(self) -> pd.Series[float]:
        """The coefficients of the terms."""
        return self.params.iloc[: 1 - len(self.classes)].rename("slopes")

    @property
    def thresholds(self) -> pd.Series[float]:
        """The thresholds between the levels."""
        return self.params.iloc[1 - len(self.classes) :].rename("thresholds")

    @property
    def _terms(self) -> Terms:
        coded = two_sided(self.call.formula, self.call.codebook, most=len(self.classes)).terms
        return Terms(coded, self.call.names)

    @property
    def _fitted_rows(self) -> Fitted:
        """The slopes alone, on the latent scale."""
        law, coder = CountFit(self.call, self.release, len(self.slopes)), require_coder(self.coder)
        return Fitted(law, IDENTITY, Terms(coder.design, law.names), coder)

    def _fitted(self, method: str) -> Fitted:
        self._law(method)
        return self._fitted_rows

    _expected = "the latent response"
    _unit = "log odds"

    @property
    def _link(self) -> Link:
        return LOGIT

    def _ratios(self, level: float) -> Estimates:
        ratios = super()._ratios(level)
        is_slope = ~ratios.table["term"].isin(self.thresholds.index)
        return replace(ratios, table=ratios.table[is_slope])

    t_test, wald_test = GLMResult.t_test, GLMResult.wald_test
    emmeans, contrasts = GLMResult.emmeans, GLMResult.contrasts
    augment = Refused(
        "is not available for an ordinal logit, which expects a probability for each level: use "
        "predict(newdata) or get_prediction(newdata)"
    )
