"""The result of a private linear support vector machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.released import CoefficientsRelease
from dpmodels.results.base import NO_SCORE, Refused, Result, per_row
from dpmodels.results.call import CoefficientsCall
from dpmodels.results.legend import labelled
from dpmodels.typing import Coder, Floats


@dataclass(frozen=True, repr=False)
class SVMResult(Result):
    """A private linear classifier: released values and public facts only."""

    call: CoefficientsCall
    release: CoefficientsRelease
    coder: Coder | None = field(default=None, repr=False)

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients of the coded columns in their own units, pulled towards 0 by the ridge."""
        return pd.Series(
            self.call.matrix @ self.release.coefficients,
            index=pd.Index(self.call.names, name="term"),
            name="params",
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """The two levels; the decision function is positive for the second."""
        return self.call.levels

    def decision_function(self, newdata: object) -> Floats:
        """Return the margin of new, public rows, shape (rows,): positive for the second level.

        nan for incomplete rows; not available where the formula has no terms.
        """
        params = np.asarray(self.params, dtype=np.float64)
        return self.call.linear(params, self.coder, newdata)

    def predict(self, newdata: object) -> NDArray[np.object_]:
        """Return the level of new, public rows, shape (rows,); None for incomplete rows."""
        margin = self.decision_function(newdata)
        first, second = self.call.levels
        labels = np.where(margin > 0, second, first).astype(object)
        labels[np.isnan(margin)] = None
        return np.asarray(labels)

    def tidy(self) -> pd.DataFrame:
        """Return one row a coefficient: ``term, estimate``."""
        names = self.call.names
        table = pd.DataFrame({"term": list(names), "estimate": self.params.to_numpy()})
        return labelled(table, self.call.codebook, label=names)

    def _line(self) -> dict[str, Any]:
        return {"nobs": self.nobs, "nterms": len(self.call.names), "ridge": self.release.ridge}

    scores, fittedvalues, resid = per_row("decision_function(newdata)")
    score = Refused(NO_SCORE)
    _no_intervals = (
        "coefficients of a support vector machine are those of a penalised classifier, and "
        "nothing is released of the rows near its margin; for intervals use "
        'dp.dp_glm(..., family="binomial")'
    )
