"""Tests, effects and predictions of fitted coefficients: post-processing at no privacy cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pandas as pd

from dpmodels.arguments import boolean, integer, option
from dpmodels.errors import NotAvailable
from dpmodels.formula.coding import RowCoder
from dpmodels.formula.response import two_sided
from dpmodels.inference.least_squares import CoefficientsLaw
from dpmodels.inference.links import IDENTITY, Link
from dpmodels.inference.screening_tests import ADJUSTMENTS
from dpmodels.results import derived_table, marginal_means
from dpmodels.results.base import Refused, checked_level
from dpmodels.results.call import INTERCEPT
from dpmodels.results.discoveries import Tested
from dpmodels.results.public_rows import PublicRows, index_of, public_rows, require_coder
from dpmodels.typing import Coder, Floats
from dpmodels.verbs import documented

TYPES: Final = {
    2: "Type II: each term given all others except those that contain it (marginality), as in "
    "R's car::Anova.",
    3: "Type III: all coefficients of each term as coded; with interactions, main effects are "
    "those at the reference levels.",
}


class CoefficientModel(Tested):
    """A model of coefficients: tests by coefficient and by term."""

    if TYPE_CHECKING:

        @property
        def params(self) -> pd.Series[float]:
            """Coefficients."""

        @property
        def coder(self) -> Coder | None:
            """Codes rows as terms; None without terms."""

        @property
        def _link(self) -> Link:
            """How the mean follows from the terms."""

        @property
        def _expected(self) -> str:
            """The name of the expected response."""

        def _response(self, rows: PublicRows) -> Floats:
            """Return the expected response of rows, nan where incomplete."""

        def _law(self, method: str) -> CoefficientsLaw:
            """Return the law about the population's coefficients; NotAvailable without one."""

    get_margeff = Refused("is not available: " + marginal_means.NO_ROWS)
    coef, coefficients = (Refused("is called params here, as in statsmodels") for _ in range(2))
    confint = Refused("is called conf_int() here, as in statsmodels")
    vcov = Refused("is called cov_params() here, as in statsmodels")
    residuals = Refused("would disclose private rows; for public rows use predict(newdata)")
    update, step = (
        Refused(
            "would be another release: write the formula in a call of its own, or release "
            "dp_moments(...) once, from which lm(formula) is free"
        )
        for _ in range(2)
    )
    aic, bic, deviance, llr, prsquared = (
        Refused(
            "needs the likelihood of the private rows, which was not released; anova() tests terms"
        )
        for _ in range(5)
    )
    f_test, fvalue, f_pvalue = (
        Refused("is a chi-square here, which allows for noise: see wald_test() and anova()")
        for _ in range(3)
    )

    def tidy(self, *, exponentiate: bool = False) -> pd.DataFrame:
        """Return the estimates, one a row, with the column names of R's broom.

        Parameters
        ----------
        exponentiate : bool, default False
            Whether estimates and intervals are exponentiated, as odds or rate ratios or where
            the response is a logarithm; standard errors are not, as in broom.

        Returns
        -------
        DataFrame
            ``term``, then the columns that :meth:`Result.tidy` lists.
        """
        return derived_table.ratios_where(exponentiate, super().tidy())

    @property
    def design(self) -> pd.DataFrame:
        """Under a survey design by coefficient what the step to all weights took off it.

        Columns are ``cap``, the weight above which units were capped in the first estimate,
        ``shift``, how far that is above the one shown, and ``shift_sd``, the error of the latter,
        which is in all intervals.

        Raises
        ------
        NotAvailable
            Without a survey design, and without such a step.
        """
        cap = self.release.units
        if cap is None:
            raise NotAvailable(
                "the rows have no survey design: write design=dp.design(weights=..., ...)"
            )
        shift, shift_sd = self._cap_shift
        columns = {"cap": cap.cap, "shift": shift, "shift_sd": shift_sd}
        return pd.DataFrame(columns, index=self.params.index)

    @property
    def _cap_shift(self) -> tuple[Floats, Floats]:
        """What the step to all weights took off the coefficients, and its error."""
        raise NotAvailable("there is no step to all weights: a step needs dp_lm or dp_glm")

    @property
    def _extra_variables(self) -> tuple[str, ...]:
        """Variables of the codebook that are not in the terms."""
        return ()

    @property
    def _coefficients(self) -> tuple[str, ...]:
        """Names of all coefficients of the model."""
        return tuple(map(str, self.params.index))

    @cached_property
    def _terms(self) -> derived_table.Terms:
        names = self._coefficients
        if isinstance(self.coder, RowCoder):
            return derived_table.Terms(self.coder.design, names)
        book, extra = self.call.codebook, self._extra_variables
        sides = two_sided(self.call.formula, book, excluded=extra, absorb=True)
        return derived_table.Terms(sides.terms, names)

    @property
    def terms(self) -> dict[str, tuple[str, ...]]:
        """The coefficients of each term of the formula, by its name."""
        return dict(self._terms.columns)

    @documented
    def t_test(self, constraints: object, level: float = 0.95) -> pd.DataFrame:
        """Test linear combinations of the coefficients one by one.

        Parameters
        ----------
        constraints : str, list of str, array_like or (array_like, array_like)
            Such as ``"educ = 2 * exper"`` or ``"a = b, c = 0"``; the name of a term, ``"C(sex)"``
            or ``"sex"``, for its coefficients being 0; a list of these; a matrix of shape
            (constraints, parameters) for combinations that are 0; or that matrix and the values to
            test.

        Returns
        -------
        DataFrame
            ``estimate, value, std_error, statistic, p_value, lower, upper``; `value` is the tested
            value.

        Raises
        ------
        ArgumentError
            If the constraints cannot be read.
        NotAvailable
            Where there are no standard errors.
        """
        law = self._law("t_test()")
        return derived_table.t_test(law, self._terms, constraints, checked_level(level))

    def wald_test(self, constraints: object) -> pd.Series[float]:
        """Test linearly independent constraints, as for :meth:`t_test`, together.

        ``statistic, df, p_value``, against the χ² with `df` degrees of freedom;
        nan where a combination is not identified.
        """
        return derived_table.wald_test(self._law("wald_test()"), self._terms, constraints)

    def anova(self, typ: Literal[2, 3] = 2) -> derived_table.Estimates:
        """Test each term of the formula by Wald's χ², which allows for noise and sampling.

        Parameters
        ----------
        typ : {2, 3}
            Type II, each term given all others except those that contain it: ``a`` of ``a * b`` as
            if there were no ``a:b``. Or type III, the coefficients of each term as coded.

        Returns
        -------
        Estimates
            ``term, statistic, df, p_value, identified``, nan for a term with a
            coefficient that is not identified.

        Raises
        ------
        ArgumentError
            If there is no such type.
        NotAvailable
            Where there are no standard errors, or no terms.
        """
        kind = integer("typ", typ, 2, 3)
        law = self._law("anova()")
        if not self._terms.factors:
            raise NotAvailable("anova() is not available: the formula has no terms")
        table = derived_table.anova(law, self._terms, kind)
        notes = (TYPES[kind], "Wald chi2 allows for sampling and privacy noise.")
        return derived_table.Estimates(self, "Tests of terms", table, notes, test="chi2")

    @property
    def _absorbed(self) -> set[str]:
        """Variables of fixed effects."""
        return set()

    @property
    def _means(self) -> Mapping[str, float]:
        """Released means of numeric variables; none where the release has no moments."""
        return {}

    @property
    def _unit(self) -> str:
        """The unit of the expected response; empty without one."""
        return self._link.unit

    def _fitted(self, method: str) -> marginal_means.Fitted:
        coder = require_coder(self.coder)
        return marginal_means.Fitted(self._law(method), self._link, self._terms, coder, self._means)

    @property
    def _without_reference(self) -> list[str]:
        """Factors of which contrasts compare levels that the coefficients do not."""
        return marginal_means.without_reference(self._fitted("contrasts()"))

    @documented
    def get_prediction(
        self, newdata: object, level: float = 0.95, *, clip: bool = False
    ) -> pd.DataFrame:
        """Return the expected response of public rows with its intervals.

        Returns
        -------
        DataFrame
            ``mean, mean_se, mean_ci_lower, mean_ci_upper``: intervals of the
            linear predictor, carried over by the link. nan where a row is
            incomplete, or needs a coefficient that is not identified.

        Raises
        ------
        NotAvailable
            Where there are no standard errors, or no terms.
        """
        rows = public_rows(self.coder, newdata, clip=clip)
        model, coverage = self._fitted("get_prediction()"), checked_level(level)
        regressors = model.regressors(rows.coded)
        return predicted(model.law, model.link, regressors, coverage, rows.offset)

    @documented
    def predict(self, newdata: object, *, clip: bool = False) -> pd.Series[float]:
        """Return the expected response of public rows: a mean, or the probability of a level.

        Returns
        -------
        Series
            With the index of a pandas `newdata`; nan where a row is incomplete, or needs a
            coefficient not :attr:`identified`.

        Raises
        ------
        NotAvailable
            Where every row needs such a coefficient.
        """
        rows = public_rows(self.coder, newdata, clip=clip)
        return pd.Series(self._response(rows), index_of(newdata), name=self._expected)

    @documented
    def augment(self, newdata: object, level: float = 0.95, *, clip: bool = False) -> pd.DataFrame:
        """Return public rows with the model's predictions, as R's broom does.

        Returns
        -------
        DataFrame
            All columns of `newdata`, then ``.fitted``, the expected response, its
            ``.se_fit``, ``.lower`` and ``.upper``, which are nan without standard
            errors, and ``.outside``, whether a number is beyond the codebook's
            bounds.
        """
        table = require_coder(self.coder).table(newdata)
        rows, coverage = public_rows(self.coder, table, clip=clip), checked_level(level)
        try:
            model = self._fitted("augment()")
            regressors = model.regressors(rows.coded)
            numbers = predicted(model.law, model.link, regressors, coverage, rows.offset)
            columns = numbers.to_numpy().T
        except NotAvailable:
            mean = self._response(rows)
            columns = np.vstack([mean, np.full((3, len(mean)), np.nan)])
        added = dict(zip((".fitted", ".se_fit", ".lower", ".upper"), columns, strict=True))
        return table.assign(**added, **{".outside": rows.outside})

    @documented
    def margins(
        self,
        newdata: object = None,
        variables: str | Sequence[str] | None = None,
        level: float = 0.95,
        *,
        clip: bool = False,
    ) -> derived_table.Estimates:
        """Return average effects of variables on the expected response of public rows.

        Of a number the mean slope dY/dX, of a category the mean difference of the
        expected response were all rows of a level, from that of its first: R's
        ``margins`` and statsmodels' ``get_margeff(dummy=True)``.

        Parameters
        ----------
        newdata : frame, mapping or path
            Rows that are not private, with the variables of the right-hand side:
            effects are averages over those that are complete. Those of the fit are not kept.
        variables : str or sequence of str, optional
            Of which variables; by default of all, but for fixed effects and numbers
            that enter in steps.

        Returns
        -------
        Estimates
            ``term, contrast, estimate, std_error, statistic, p_value, conf_low, conf_high``: errors
            of noise and sampling by the delta method, with `newdata` treated as fixed.

        Raises
        ------
        ArgumentError
            If no row is complete, or a variable is not in the terms.
        NotAvailable
            Without `newdata`, and where there are no standard errors, or no terms.
        """
        if newdata is None:
            raise NotAvailable(marginal_means.NO_ROWS)
        model, coverage = self._fitted("margins()"), checked_level(level)
        rows = public_rows(self.coder, newdata, clip=clip)
        design = model.coder.design
        if variables is None:
            candidates = (name for name in design.variables if name not in self._absorbed)
            names = [name for name in candidates if not marginal_means.in_steps(design, name)]
            if not names:
                raise NotAvailable(
                    "margins() is not available: all numbers of the formula enter in steps, "
                    "whose slopes are 0; compare predict() of rows"
                )
        else:
            names = marginal_means.variables_named(design, variables)
        table = marginal_means.margins(model, rows.columns, names, coverage)
        notes = (
            f"Averages over {rows.counted}, treated as fixed; delta-method errors of sampling and "
            "privacy noise. dY/dX: for one unit of the number.",
        )
        title = f"Average marginal effects on {self._expected}{in_unit(self._unit)}"
        return derived_table.Estimates(self, title, table, notes, coverage)

    @documented
    def emmeans(
        self,
        factors: str | Sequence[str],
        *,
        at: Mapping[str, object] | None = None,
        level: float = 0.95,
    ) -> derived_table.Estimates:
        """Return the expected response at each level of factors, as R's package emmeans does.

        Parameters
        ----------
        factors : str or sequence of str
            Variables, ``"sex"`` or ``["sex", "region"]``, or ``"sex:region"``. A
            number needs its values in `at`.
        at : mapping, optional
            Values to fix variables at, ``{"age": 40}``. By default numbers are at their released
            mean, or at the middle of their public range where the release has no mean of them: in
            models other than `dp_lm`, and where they enter by functions alone. The heading of the
            table says which. Other factors are averaged over with equal weights, of the linear
            predictor.

        Returns
        -------
        Estimates
            The factors, then ``estimate, std_error, conf_low, conf_high``.

        Raises
        ------
        ArgumentError
            If a factor is not in the terms, or a value not within the codebook.
        NotAvailable
            Where there are no standard errors, or no terms.
        """
        model, coverage = self._fitted("emmeans()"), checked_level(level)
        cells = marginal_means.grid(model, factors, at)
        numbers = predicted(model.law, model.link, cells.rows, coverage)
        numbers.columns = pd.Index(["estimate", "std_error", "conf_low", "conf_high"])
        table = pd.concat([cells.keys, numbers], axis=1)
        title = f"Estimated marginal means of {self._expected}{in_unit(self._unit)}"
        notes = marginal_means.grid_notes(cells, model.link)
        facts = marginal_means.grid_facts(cells)
        return derived_table.Estimates(self, title, table, notes, coverage, facts=facts)

    def contrasts(
        self,
        factors: str | Sequence[str],
        *,
        at: Mapping[str, object] | None = None,
        adjust: str = "holm",
        level: float = 0.95,
        exponentiate: bool = False,
    ) -> derived_table.Estimates:
        """Return the differences of all pairs of levels of factors, of the linear predictor.

        Parameters
        ----------
        factors, at
            As for :meth:`emmeans`.
        adjust : {"holm", "bonferroni", "sidak", "none"}
            How p-values and intervals allow for the number of pairs.
        level : float
            Coverage of all intervals together, in (0, 1), or of each with ``"none"``.
        exponentiate : bool, default False
            Whether differences and intervals are shown as ratios: of odds, of
            rates, or of geometric means where the response is a logarithm.

        Returns
        -------
        Estimates
            ``contrast, estimate, std_error, statistic, p_value, conf_low, conf_high``.

        Raises
        ------
        ArgumentError
            If there are fewer than two levels, or as :meth:`emmeans`.
        NotAvailable
            Where there are no standard errors, or no terms.
        """
        how = option("adjust", adjust, tuple(ADJUSTMENTS))
        model, coverage = self._fitted("contrasts()"), checked_level(level)
        cells = marginal_means.compared(model, factors, at)
        ratio = boolean("exponentiate", exponentiate)
        table = marginal_means.contrasts(model, cells, how, coverage, ratio=ratio)
        pairs = f"{len(table)} pairs: {ADJUSTMENTS[how]}." if len(table) > 1 else ""
        averaged = marginal_means.grid_notes(cells, IDENTITY)
        notes = tuple(filter(None, (pairs, *averaged)))
        scale = f"differences of {model.link.name}{in_unit(self._unit * (not model.link.ratio))}"
        scale = (model.link.ratio or "Ratios").lower() if ratio else scale
        title = f"Contrasts of {self._expected}: {scale}"
        facts = marginal_means.grid_facts(cells)
        return derived_table.Estimates(self, title, table, notes, coverage, ratio, facts=facts)

    def _ratios(self, level: float) -> derived_table.Estimates:
        """Return exponentiated coefficients but the intercept's."""
        coverage = checked_level(level)
        self._law("ratios()")
        if not self._terms.factors:
            raise NotAvailable("ratios() is not available: the formula has no terms")
        ends = self.conf_int(coverage)
        table = self.tidy().set_index("term")[["estimate", "std_error", "statistic", "p_value"]]
        table = table.assign(conf_low=ends["lower"], conf_high=ends["upper"])
        table = table.drop(INTERCEPT, errors="ignore").reset_index()
        table.loc[table["std_error"].isna(), "estimate"] = np.nan
        notes = ("Standard errors are of the logarithm; intervals allow for sampling and noise.",)
        return derived_table.Estimates(
            self, self._link.ratio, derived_table.exponentiated(table), notes, coverage, ratio=True
        )


def in_unit(unit: str) -> str:
    """Return a unit in brackets, to follow what it is of; empty without one."""
    return f" ({unit})" if unit else ""


# The response that a model expects of public rows, with intervals.


def predicted(
    law: CoefficientsLaw, link: Link, rows: Floats, level: float, offset: Floats | float = 0.0
) -> pd.DataFrame:
    """Return ``mean, mean_se, mean_ci_lower, mean_ci_upper`` of rows, shape (rows, coefficients).

    Intervals of the linear predictor, each by itself, carried over by the link, which increases;
    errors by its slope. An offset is added to the linear predictor. nan where a row is incomplete,
    or needs what is not identified.
    """
    table = np.full((len(rows), 4), np.nan)
    full = np.column_stack([rows, np.broadcast_to(offset, len(rows))])
    complete = np.isfinite(full).all(axis=1)
    # Equal rows are predicted once.
    unique_full, inverse = np.unique(full[complete], axis=0, return_inverse=True)
    unique_rows = unique_full[:, :-1]
    identified = law.identifies(unique_rows)
    added = unique_full[identified, -1]
    predictions = np.full((len(unique_rows), 4), np.nan)
    eta = unique_rows[identified] @ law.params + added
    predictions[identified, 0] = link.mean(eta)
    predictions[identified, 1] = np.abs(link.slope(eta)) * law.errors(unique_rows[identified])
    ends = law.intervals(unique_rows[identified], level) + added[:, None]
    predictions[identified, 2:] = link.mean(ends)
    table[complete] = predictions[inverse.ravel()]
    return pd.DataFrame(table, columns=["mean", "mean_se", "mean_ci_lower", "mean_ci_upper"])
