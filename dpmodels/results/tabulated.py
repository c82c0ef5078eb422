"""Coefficients from counts of cells, and what follows where a response has several levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from dpmodels.arguments import boolean, option
from dpmodels.errors import NotAvailable
from dpmodels.formula.parse import quote
from dpmodels.formula.response import two_levels, two_sided
from dpmodels.formula.tally import crossed
from dpmodels.inference.count_model import CountEstimate, estimate, of_family
from dpmodels.inference.links import IDENTITY, LOGIT, Link
from dpmodels.inference.screening_tests import ADJUSTMENTS
from dpmodels.released import CountsRelease
from dpmodels.results.base import Refused, checked_level
from dpmodels.results.call import CoefficientsCall
from dpmodels.results.classifiers import MultinomialResult
from dpmodels.results.derived_table import Estimates, Terms, t_test, tested, wald_test
from dpmodels.results.glm import CoefficientsFit, GLMResult
from dpmodels.results.marginal_means import (
    NO_ROWS,
    STEP,
    Fitted,
    compared,
    complete_rows,
    contrasts,
    grid,
    grid_facts,
    grid_notes,
    levels_of,
    variables_named,
)
from dpmodels.results.public_rows import PublicRows, bounds, index_of, public_rows, require_coder
from dpmodels.typing import Coder, Floats

# Probabilities of levels in rows, shape (rows, K), and derivatives by the coefficients.
Shares = tuple[Floats, Floats]
# Below it a probability has no error on the scale of log odds.
SMALLEST = 1e-12
PREDICTED = ["mean", "mean_se", "mean_ci_lower", "mean_ci_upper"]


class LevelTerms(Terms):
    """The terms of several linear predictors, whose coefficients are named ``level:term``."""

    def matrix(self, *terms: str) -> Floats:
        """Return selectors of terms' coefficients for all levels, one a row."""
        selected = [name for term in terms for name in self.columns[term]]
        rest = [name.partition(":")[2] for name in self.names]
        return np.eye(len(self.names))[[at for at, name in enumerate(rest) if name in selected]]


class ByLevel:
    """Probabilities by level, their marginal effects and means, and tests of combinations.

    Parameters are those of the methods of :class:`~dpmodels.results.glm.GLMResult`.
    """

    if TYPE_CHECKING:
        call: CoefficientsCall
        coder: Coder | None
        linear: Any
        _law: Callable[[str], CoefficientsFit]

        @property
        def classes(self) -> tuple[str, ...]:
            """The levels of the response."""

    @property
    def _outcome(self) -> str:
        return str(self.call.response.rpartition("[T.")[0] or self.call.response)

    @property
    def _fitted_rows(self) -> Fitted:
        coder = require_coder(self.coder)
        return Fitted(self.linear, LOGIT, Terms(coder.design, self.call.names), coder)

    @property
    def _level_terms(self) -> LevelTerms:
        names = tuple(f"{level}:{name}" for level in self.classes[1:] for name in self.call.names)
        return LevelTerms(require_coder(self.coder).design, names)

    def _shares(self, rows: Floats) -> Shares:
        model = of_family(self.call.family, rows, len(self.classes))
        shares = np.exp(model.logs(self.linear.params))
        return shares, shares[:, :, None] * model.slopes(self.linear.params)

    def _predicted(self, rows: Floats, level: float, names: list[str]) -> pd.DataFrame:
        """Return probabilities, errors and intervals by row and level, nan if not identified."""
        table = np.full((len(rows), len(self.classes), 4), np.nan)
        complete = np.isfinite(rows).all(axis=1)
        shares, slopes = self._shares(rows[complete])
        spread = np.clip(shares, SMALLEST, 1 - SMALLEST)
        bend = spread * (1 - spread)
        towards = (slopes / bend[:, :, None]).reshape(-1, slopes.shape[2])
        columns = tested(self.linear, towards, logit(spread).ravel(), level, "none")
        error, *ends = (
            columns[name].reshape(shares.shape) for name in ("std_error", "conf_low", "conf_high")
        )
        shares = np.where(np.isnan(error), np.nan, shares)
        table[complete] = np.stack([shares, error * bend, *map(expit, ends)], axis=2)
        return pd.DataFrame(table.reshape(-1, 4), columns=names)

    def predict(self, newdata: object, *, clip: bool = False) -> pd.DataFrame:
        """Return probabilities of public rows, a column for each level; they add up to 1.

        nan where a row is incomplete, or needs coefficients that are not identified.
        """
        table = self._rows_predicted(newdata, 0.95, clip)
        shares = table["mean"].to_numpy().reshape(-1, len(self.classes))
        return pd.DataFrame(shares, index_of(newdata), pd.Index(self.classes, name="y_level"))

    def get_prediction(
        self, newdata: object, level: float = 0.95, *, clip: bool = False
    ) -> pd.DataFrame:
        """Return probabilities of public rows with intervals, a line for each row and level."""
        self._law("get_prediction()")
        table = self._rows_predicted(newdata, checked_level(level), clip)
        keys = [range(len(table) // len(self.classes)), self.classes]
        return table.set_index(pd.MultiIndex.from_product(keys, names=["row", "y_level"]))

    def _rows_predicted(self, newdata: object, level: float, clip: bool) -> pd.DataFrame:
        rows = public_rows(self.coder, newdata, clip=clip).coded
        return self._predicted(self._fitted_rows.regressors(rows), level, PREDICTED)

    def margins(
        self,
        newdata: object = None,
        variables: str | Sequence[str] | None = None,
        level: float = 0.95,
        *,
        clip: bool = False,
    ) -> Estimates:
        """Return average effects of variables on the probability of each level of the response."""
        if newdata is None:
            raise NotAvailable(NO_ROWS)
        self._law("margins()")
        model, rows = self._fitted_rows, public_rows(self.coder, newdata, clip=clip)
        columns, design = complete_rows(model, rows.columns), model.coder.design
        effects = {
            (quote(name), contrast): effect
            for name in variables_named(design, variables or list(design.variables))
            for contrast, effect in self._effects(model, columns, name).items()
        }
        keys = [(outcome, *key) for key in effects for outcome in self.classes]
        values, slopes = map(np.concatenate, zip(*effects.values(), strict=True))
        numbers = tested(self.linear, slopes, values, checked_level(level), "none")
        table = pd.DataFrame(keys, columns=["y_level", "term", "contrast"]).assign(**numbers)
        notes = (f"Averages over {rows.counted}, treated as fixed; delta-method errors.",)
        return Estimates(self, "Average marginal effects by level", table, notes, level)  # type: ignore[arg-type]

    def _effects(
        self, model: Fitted, columns: Mapping[str, Floats], name: str
    ) -> dict[str, Shares]:
        """Return mean differences of levels from the first, or the mean slope of a number."""
        at = columns[name]

        def less(
            first: Floats | float, second: Floats | float, width: Floats | float = 1.0
        ) -> Shares:
            at_ends = ({**columns, name: end + 0 * at} for end in (first, second))
            ends = [self._shares(model.rows(rows)) for rows in at_ends]
            by = np.reshape(width, (-1, 1))
            shares, slopes = ((one - other).T / by.T for one, other in zip(*ends, strict=True))
            return shares.mean(axis=-1), slopes.mean(axis=-1).T

        levels = levels_of(model.coder.design, name)
        if levels is None:
            low, high = bounds(model.coder.design.codebook, name)
            step = STEP * (high - low)
            up, down = np.minimum(at + step, high), np.maximum(at - step, low)
            return {"dY/dX": less(up, down, up - down)}
        (first, code), *rest = levels.items()
        return {f"{other} - {first}": less(of_other, code) for other, of_other in rest}

    def emmeans(
        self,
        factors: str | Sequence[str],
        *,
        at: Mapping[str, object] | None = None,
        level: float = 0.95,
    ) -> Estimates:
        """Return the probability of each level of the response at levels of factors.

        Averages over other factors are of the linear predictors.
        """
        self._law("emmeans()")
        model, coverage = self._fitted_rows, checked_level(level)
        cells, names = grid(model, factors, at), ["estimate", "std_error", "conf_low", "conf_high"]
        keys = cells.keys.loc[cells.keys.index.repeat(len(self.classes))].reset_index(drop=True)
        keys.insert(0, "y_level", list(self.classes) * len(cells.keys))
        table = pd.concat([keys, self._predicted(cells.rows, coverage, names)], axis=1)
        title = f"Estimated marginal means of {self._outcome} (probability of each level)"
        notes, facts = grid_notes(cells, model.link), grid_facts(cells)
        return Estimates(self, title, table, notes, coverage, facts=facts)  # type: ignore[arg-type]

    def contrasts(
        self,
        factors: str | Sequence[str],
        *,
        at: Mapping[str, object] | None = None,
        adjust: str = "holm",
        level: float = 0.95,
        exponentiate: bool = False,
    ) -> Estimates:
        """Return differences of log odds against the reference, of all pairs of levels of factors.

        Each level of the response is adjusted by itself.
        """
        how = option("adjust", adjust, tuple(ADJUSTMENTS))
        ratio = boolean("exponentiate", exponentiate)
        model, coverage = self._fitted_rows, checked_level(level)
        model, tables = model._replace(law=self._law("contrasts()")), {}
        cells = compared(model, factors, at)
        for block, outcome in zip(np.eye(len(self.classes) - 1), self.classes[1:], strict=True):
            lines = cells._replace(rows=np.asarray(np.kron(block, cells.rows), float))
            tables[outcome] = contrasts(model, lines, how, coverage, ratio=ratio)
        table = pd.concat(tables, names=["y_level"]).reset_index(level=0)
        response, n_pairs = self._outcome, len(table) // len(tables)
        scale = model.link.ratio.lower() if ratio else f"differences of {model.link.name}"
        title = f"Contrasts of {response}: {scale} against {self.classes[0]}"
        pairs = f"{n_pairs} pairs for each level of {response}: {ADJUSTMENTS[how]}."
        notes = (*([pairs] if n_pairs > 1 else []), *grid_notes(cells, IDENTITY))
        return Estimates(self, title, table, notes, coverage, ratio, facts=grid_facts(cells))  # type: ignore[arg-type]

    def t_test(self, constraints: object, level: float = 0.95) -> pd.DataFrame:
        """Test combinations of coefficients, such as ``"b:sex[T.M] = 0"`` for the level b.

        The name of a term stands for its coefficients in all levels.
        """
        law = self._law("t_test()")
        return t_test(law, self._level_terms, constraints, checked_level(level))

    def wald_test(self, constraints: object) -> pd.Series[float]:
        """Test linearly independent constraints, as for :meth:`t_test`, together."""
        return wald_test(self._law("wald_test()"), self._level_terms, constraints)


# A choice by simulation: noise in the information about a combination over the information, up to
# which its interval is reported.
CLEAR: Final = 0.25


@dataclass(frozen=True)
class CountFit(CoefficientsFit):
    """Coefficients from counts with the law of their error; of the first `size` alone if given."""

    release: CountsRelease  # type: ignore[assignment]
    size: int | None = None

    @cached_property
    def ball_law(self) -> CountEstimate:  # type: ignore[override]
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
        sds = np.linalg.norm(self.linear.ball_law.noise_root, axis=1)
        return self._labelled(sds, "noise_least")

    def decision_function(self, newdata: object, *, clip: bool = False) -> Floats:
        """Return the linear predictor of public rows, as :meth:`GLMResult.decision_function`."""
        return self._lines(public_rows(self.coder, newdata, clip=clip))

    def _response(self, rows: PublicRows) -> Floats:
        return self._link.mean(self._lines(rows))

    def _lines(self, rows: PublicRows) -> Floats:
        """Return linear predictors, nan where they are not identified."""
        model = self._fitted_rows
        regressors = model.regressors(rows.coded)
        identified = model.law.identifies(np.nan_to_num(regressors))
        return np.where(identified, regressors @ model.law.params, np.nan)

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
