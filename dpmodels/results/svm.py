"""The result of a private linear support vector machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.released import CoefficientsRelease
from dpmodels.results.base import NO_SCORE, Refused, per_row
from dpmodels.results.call import CoefficientsCall
from dpmodels.results.derived_table import DefaultPlot
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.public_rows import index_of, public_rows, require_coder
from dpmodels.typing import Coder, Floats

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
        return pd.Series(
            self.call.held_in(self.release.ball).matrix @ self.release.coefficients,
            index=pd.Index(self.call.names, name="term"),
            name="params",
        )

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

    def predict(self, newdata: object, *, clip: bool = False) -> pd.Series[Any]:
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
