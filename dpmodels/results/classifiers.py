"""The results of private classifiers: support vector machines and multinomial logits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from dpmodels.arguments import boolean, integer, option
from dpmodels.errors import ArgumentError, shorten
from dpmodels.formula.response import two_sided
from dpmodels.released import CoefficientsRelease
from dpmodels.results.base import NO_SCORE, Refused, Result, per_row
from dpmodels.results.call import INTERCEPT, CoefficientsCall
from dpmodels.results.coefficient_model import TYPES
from dpmodels.results.derived_table import DefaultPlot, Estimates, Terms, anova, ratios_where
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.glm import LinearPredictors
from dpmodels.results.public_rows import index_of, public_rows, require_coder
from dpmodels.typing import Axes, Coder, Floats
from dpmodels.verbs import documented

NO_LAW = (
    "is not available: coefficients of a support vector machine are those of a penalised "
    "classifier, whose distribution is not known; for tests and intervals use dp.dp_glm(..., "
    'family="binomial")'
)


@dataclass(frozen=True, repr=False)
class SVMResult(DefaultPlot):
    """A private linear classifier: released values and public facts only."""

    call: CoefficientsCall
    release: CoefficientsRelease
    coder: Coder | None = field(default=None, repr=False)

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients of the coded columns in their own units, shrunk towards 0 by the ridge."""
        values = self.call.held_in(self.release.ball).matrix @ self.release.coefficients
        return pd.Series(values, pd.Index(self.call.names, name="term"), name="params")

    @property
    def classes(self) -> tuple[str, ...]:
        """The two levels; the decision function is positive for the second."""
        return self.call.levels

    def decision_function(self, newdata: object, *, clip: bool = False) -> Floats:
        """Return the margin of new, public rows, shape (rows,): positive for the second level.

        nan for incomplete rows, and for those outside the codebook's bounds, which a warning
        counts; with `clip` their numbers are clipped to the bounds. Not available where the formula
        has no terms.
        """
        params = np.asarray(self.params, dtype=np.float64)
        return public_rows(self.coder, newdata, clip=clip).linear(params)

    def predict(self, newdata: object, *, clip: bool = False) -> pd.Series[str]:
        """Return the level of new, public rows; None where it cannot be predicted."""
        labels = self._level(self.decision_function(newdata, clip=clip))
        return pd.Series(labels, index_of(newdata), dtype=object, name=self.call.response)

    def _level(self, margin: Floats) -> NDArray[np.object_]:
        first, second = self.call.levels
        labels = np.where(margin > 0, second, first).astype(object)
        labels[np.isnan(margin)] = None
        return np.asarray(labels)

    def augment(self, newdata: object, *, clip: bool = False) -> pd.DataFrame:
        """Return public rows with ``.fitted``, their level, its ``.margin`` and ``.outside``.

        `clip` is as for :meth:`decision_function`; ``.outside`` is whether a number is beyond the
        codebook's bounds.
        """
        table = require_coder(self.coder).table(newdata)
        rows = public_rows(self.coder, table, clip=clip)
        margin = rows.linear(np.asarray(self.params, dtype=np.float64))
        added = {".fitted": self._level(margin), ".margin": margin, ".outside": rows.outside}
        return table.assign(**added)

    _estimated = "Coefficient"

    def _estimates(self) -> EstimateTable:
        names = self.call.names
        return table_of_estimates(self, pd.Index(names, name="term"), labels=names)

    def _line(self) -> dict[str, object]:
        return {"nobs": self.nobs, "nterms": len(self.call.names), "ridge": self.release.ridge}

    scores, fittedvalues, resid = per_row("decision_function(newdata)")
    score = Refused(NO_SCORE)
    cov_params, t_test, wald_test, anova, margins, emmeans, contrasts, get_prediction = (
        Refused(NO_LAW) for _ in range(8)
    )
    _no_intervals = (
        "coefficients of a support vector machine are those of a penalised classifier, and "
        "nothing is released about the rows near its margin; for intervals use dp.dp_glm(..., "
        'family="binomial")'
    )


# A multinomial logit, with coefficients by level of the response.

_BY_LEVEL: Final = (
    "is not available for a multinomial logit: anova() tests each term for all levels together, "
    "tidy(exponentiate=True) and conf_int() describe each coefficient, predict(newdata) public "
    "rows"
)


@dataclass(frozen=True, repr=False)
class MultinomialResult(LinearPredictors[pd.DataFrame], Result):
    """A private multinomial logit: released values and public facts only.

    Notes
    -----
    Coefficients of a level are log odds against the reference, the first level
    declared: frames have a row for each term and a column for each other level,
    as statsmodels' ``MNLogit`` has them. They are the same model whichever
    level is the reference, noise included.

    Standard errors and intervals as of :class:`dpmodels.results.glm.GLMResult`; those of rare
    levels may be nan while those of others are not. If the reference is rare all are: declare a
    common level first.
    """

    call: CoefficientsCall
    release: CoefficientsRelease
    coder: Coder | None = field(default=None, repr=False)

    @property
    def classes(self) -> tuple[str, ...]:
        """The levels of the response, the reference first."""
        return self.call.levels

    @property
    def identified(self) -> pd.DataFrame:
        """Which coefficients have finite 95 % intervals."""
        return self._labelled(self.linear.identified, "identified")

    @property
    def params(self) -> pd.DataFrame:
        """Coefficients of the coded columns in their own units, by term and level."""
        return self._labelled(self.linear.params, "")

    @property
    def params_released(self) -> pd.DataFrame:
        """Coefficients as released, shrunk by the ridge towards equal odds."""
        return self._labelled(self.linear.matrix @ self.release.coefficients, "")

    @property
    def bse(self) -> pd.DataFrame:
        """Standard errors for the population: sampling and privacy noise."""
        law = self._law("bse")
        return self._labelled(law.errors(np.eye(len(law.matrix))), "")

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients about the population's, if there is one."""
        law, index = self._law("cov_params()"), self._index
        mask = np.where(law.identified, 1.0, np.nan)
        return pd.DataFrame(law.covariance() * np.outer(mask, mask), index, index)

    def anova(self, typ: Literal[2, 3] = 2) -> Estimates:
        """Test each term of the formula for all levels together by Wald's χ².

        It allows for sampling and privacy noise, and is the same whichever level is the reference.

        Parameters
        ----------
        typ : {2, 3}
            As of :meth:`GLMResult.anova`.

        Returns
        -------
        Estimates
            ``term, statistic, df, p_value, identified``; nan for a term that is not identified
            for all levels.

        Raises
        ------
        ArgumentError
            If there is no such type.
        NotAvailable
            Where there are no standard errors.
        """
        kind, law = integer("typ", typ, 2, 3), self._law("anova()")
        coded = two_sided(self.call.formula, self.call.codebook, most=len(self.classes)).terms
        table = anova(law, Terms(coded, self.call.names, self.call.blocks), kind)
        notes = (TYPES[kind], "Wald chi2 of all levels; it allows for sampling and privacy noise.")
        return Estimates(self, "Tests of terms", table, notes, test="chi2")

    def _estimates(self) -> EstimateTable:
        available = table_of_estimates(self, self._index, identified=self.linear.identified)
        frames = {name: x for name, x in available.numbers.items() if isinstance(x, pd.DataFrame)}
        stacked = {name: frame.to_numpy(np.float64).T.ravel() for name, frame in frames.items()}
        labels = {"label": self.call.names * self.call.blocks}
        return replace(available, numbers={**available.numbers, **stacked}, labels=labels)

    def tidy(self, *, exponentiate: bool = False) -> pd.DataFrame:
        """Return the estimates, or relative risk ratios; see :meth:`LMResult.tidy`."""
        return ratios_where(exponentiate, super().tidy())

    def _line(self) -> dict[str, object]:
        sizes = {"nobs": self.nobs, "nterms": len(self.linear.matrix), "family": self.call.family}
        return {**sizes, "nlevels": len(self.call.levels), "ridge": self.release.ridge}

    def plot(
        self,
        level: float = 0.95,
        ax: Axes | None = None,
        *,
        standardize: Literal["range"] | None = None,
        exponentiate: bool = False,
        caption: bool = True,
    ) -> Axes:
        """Draw the coefficients of all levels, or relative risk ratios.

        Parameters are those of :func:`dp.coefplot`.
        """
        from dpmodels.plots.coefficients import Intervals, coefficients

        self._law("plot()")
        over = option("standardize", standardize, ("range", None))
        terms = [name for name in self.call.names if name != INTERCEPT]
        if not terms:
            raise ArgumentError("plot(): the model has no terms besides the constant")
        coded = two_sided(self.call.formula, self.call.codebook, most=len(self.classes)).terms
        length = (coded.upper - coded.lower if over else np.ones(len(terms)))[:, None]
        both, models = (self.noise_int(level), self.conf_int(level)), []
        reference, *y_levels = self.classes
        for y_level in y_levels:
            ends = (interval.loc[y_level].loc[terms].to_numpy() * length for interval in both)
            values = self.params[y_level][terms].to_numpy() * length[:, 0]
            models.append(Intervals(y_level, values, *ends))
        what = "Relative risk ratio" if exponentiate else "Log odds"
        where = ", over the range" if over else ""
        return coefficients(
            models,
            labels=terms,
            title=f"{what} against {shorten(reference, 30)}{where}",
            level=level,
            ratio=boolean("exponentiate", exponentiate),
            **self._picture(ax, caption),
        )

    def _size(self) -> str:
        return f"{self.call.family}, {len(self.call.levels)} levels"

    @documented
    def decision_function(self, newdata: object, *, clip: bool = False) -> pd.DataFrame:
        """Return log odds of new, public rows against the reference, a column for each level.

        Returns
        -------
        DataFrame
            nan for incomplete rows.

        Raises
        ------
        NotAvailable
            Where the formula has no terms.
        """
        rows = public_rows(self.coder, newdata, clip=clip)
        lines = [rows.linear(coefficients) for coefficients in self.params.to_numpy(np.float64).T]
        names = pd.Index(self.call.levels[1:], name="y_level")
        return pd.DataFrame(np.column_stack(lines), columns=names)

    def predict(self, newdata: object, *, clip: bool = False) -> pd.DataFrame:
        """Return probabilities of new, public rows, as :meth:`decision_function`.

        A column for each level, the reference first; they add up to 1.
        """
        odds = self.decision_function(newdata, clip=clip)
        log_odds = np.column_stack([np.zeros(len(odds)), odds.to_numpy(np.float64)])
        mask = np.where(np.isnan(log_odds).any(axis=1), np.nan, 1.0)[:, None]
        names = pd.Index(self.call.levels, name="y_level")
        return pd.DataFrame(softmax(np.nan_to_num(log_odds), axis=1) * mask, columns=names)

    t_test, wald_test, get_prediction, margins, get_margeff, emmeans, contrasts, ratios, augment = (
        Refused(_BY_LEVEL) for _ in range(9)
    )

    def _labelled(self, values: NDArray[np.generic], name: str) -> pd.DataFrame:
        index = pd.Index(self.call.names, name="term")
        columns = pd.Index(self.call.levels[1:], name="y_level")
        return pd.DataFrame(values.reshape(len(columns), -1).T, index=index, columns=columns)

    @property
    def _index(self) -> pd.MultiIndex:
        keys = (self.call.levels[1:], self.call.names)
        return pd.MultiIndex.from_product(keys, names=["y_level", "term"])
