"""A fitted model as what follows from it takes it: a law, a link, terms, and how rows are coded."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmodels.formula.row_coder import RowCoder
from dpmodels.formula.values import Columns
from dpmodels.inference.links import Link
from dpmodels.inference.protocol import CoefficientsLaw
from dpmodels.results.terms import Terms
from dpmodels.typing import Floats


class Fitted(NamedTuple):
    """The parts of a fitted model."""

    law: CoefficientsLaw
    link: Link
    terms: Terms
    coder: RowCoder

    def rows(self, columns: Columns) -> Floats:
        """Return the regressors of rows, shape (rows, coefficients), nan where incomplete."""
        return self.regressors(self.coder.coded(columns))

    def regressors(self, coded: Floats) -> Floats:
        """Put the intercept before coded columns, shape (columns, rows), and turn them."""
        own = len(self.terms.names) - len(coded)
        return np.vstack([np.ones((own, coded.shape[1])), coded]).T
