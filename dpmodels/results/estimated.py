"""What every fit of coefficients tells after the fit: post-processing, free of charge."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

import pandas as pd

from dpmodels.arguments import whole
from dpmodels.formula.response import two_sided
from dpmodels.inference.protocol import CoefficientsLaw
from dpmodels.results.base import checked_level
from dpmodels.results.discoveries import Tested
from dpmodels.results.estimates import Estimates
from dpmodels.results.hypotheses import anova, t_test, wald_test
from dpmodels.results.terms import Terms

TYPES = {
    2: "Type II: each term after all others but those that hold it (marginality), as of R's "
    "car::Anova.",
    3: "Type III: the coefficients of each term in the model as it is coded; with interactions "
    "main effects are those at the reference levels.",
}


class Estimated(Tested):
    """A model of coefficients: tests by coefficient and by term."""

    if TYPE_CHECKING:

        @property
        def params(self) -> pd.Series[float]:
            """Coefficients."""

        def _law(self, asked: str) -> CoefficientsLaw:
            """Return the law about the population's, or refuse what is asked with the reason."""

    @property
    def _apart(self) -> tuple[str, ...]:
        """Variables that are no terms, though the codebook of the call has them."""
        return ()

    @cached_property
    def _terms(self) -> Terms:
        own = two_sided(self.call.formula, self.call.codebook, apart=self._apart)
        return Terms(own.terms, tuple(map(str, self.params.index)))

    @property
    def terms(self) -> dict[str, tuple[str, ...]]:
        """The coefficients of each term of the formula, by its name."""
        return dict(self._terms.columns)

    def t_test(self, constraints: object, level: float = 0.95) -> pd.DataFrame:
        """Test linear combinations of the coefficients one by one.

        Parameters
        ----------
        constraints : str, array_like or (array_like, array_like)
            Such as ``"educ = 2 * exper"`` or ``"a = b, c = 0"``; the name of a
            term, ``"C(sex)"`` or ``"sex"``, for its coefficients being 0; a
            matrix of shape (constraints, parameters) for combinations that are
            0; or that matrix and the values they are held against.
        level : float
            Coverage of the intervals, in (0, 1).

        Returns
        -------
        DataFrame
            ``estimate, value, std_error, statistic, p_value, lower, upper``; `value` is what
            the combination is held against.

        Raises
        ------
        ArgumentError
            If the constraints cannot be read.
        NotAvailable
            Where there are no standard errors.
        """
        law = self._law("t_test()")
        return t_test(law, self._terms, constraints, checked_level(level))

    def wald_test(self, constraints: object) -> pd.Series[float]:
        """Test linearly independent constraints, as for :meth:`t_test`, together.

        ``statistic, df, p_value``, against the χ² with `df` degrees of freedom;
        nan where a combination is not identified.
        """
        return wald_test(self._law("wald_test()"), self._terms, constraints)

    def anova(self, typ: Literal[2, 3] = 2) -> Estimates:
        """Test each term of the formula by Wald's χ², which allows for noise and sampling.

        Parameters
        ----------
        typ : {2, 3}
            Type II, each term after all others but those that hold it: ``a`` of
            ``a * b`` as if there were no ``a:b``. Or type III, the coefficients of
            each term in the model as it is coded.

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
            Where there are no standard errors.
        """
        kind = whole("typ", typ, 2, 3)
        table = anova(self._law("anova()"), self._terms, kind)
        notes = (
            TYPES[kind],
            "Wald chi2 holds sampling and privacy noise.",
        )
        return Estimates(self, "Tests of terms", table, notes)
