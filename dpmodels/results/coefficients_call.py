"""What was asked: the public facts of one fit of coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dpmodels.codebook import Codebook
from dpmodels.outside import Amount, AmountOrNan, Bounded, one_of
from dpmodels.typing import Floats

LINKS = {"binomial": "logit link", "poisson": "log link"}


@dataclass(frozen=True)
class CoefficientsCall:
    """A linear predictor as it was asked for.

    Attributes
    ----------
    formula : str
        As written.
    codebook : Codebook
        The declarations that were used.
    names : tuple of str
        Of the coefficients; the intercept first, where there is one.
    response : str
        Name of the response's column.
    levels : tuple of str
        The two levels of the response, the modelled one last; empty where it
        is a number.
    family : str
        The loss in a word.
    matrix : ndarray, shape (coefficients, columns)
        Turns released coefficients, in units of the ball, into those of the
        coded columns in their own units.
    row_norm, worst_case : float
        The longest scaled row of the terms that is kept whole, and the
        longest that the codebook allows.
    scale : {"range", None}
        The scaling asked for.
    clip : float
        Bound on a residual in units of the response; nan where there is none.
    ledger : str
        What the ledger said after the charge; empty without one.
    reason : str
        Why this mechanism, where the choice was automatic.
    """

    formula: str
    codebook: Annotated[Codebook, Codebook.from_dict]
    names: tuple[str, ...]
    response: str
    levels: tuple[str, ...]
    family: Annotated[str, one_of(*LINKS, "svm")]
    matrix: Annotated[Bounded, "coefficient", "column"]
    row_norm: Amount
    worst_case: Amount
    scale: Annotated[str | None, one_of("range", None)]
    clip: AmountOrNan
    ledger: str = ""
    reason: str = ""

    @property
    def intercept(self) -> bool:
        """Whether the first coefficient is the intercept."""
        return self.names[:1] == ("Intercept",)

    def linear(self, params: Floats, coded: Floats) -> Floats:
        """Return the linear predictor of coded rows, shape (terms, rows)."""
        own = int(self.intercept)
        return np.asarray((params[0] if own else 0.0) + params[own:] @ coded)
