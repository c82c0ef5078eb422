"""The interface of a model's sampling distribution for tests and tables of coefficients."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Floats


class CoefficientsLaw(Protocol):
    """The distribution of estimated coefficients about the population's, from noise and sampling.

    Methods take combinations ``directions · params``, `directions` of shape (combinations,
    coefficients), in the units of the coded columns.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""

    @property
    def params(self) -> Floats:
        """The estimate, shape (coefficients,)."""

    def covariance(self) -> Floats:
        """Return the covariance in the delta form, shape (coefficients, coefficients)."""

    def identifies(self, directions: Floats) -> NDArray[np.bool_]:
        """Return which combinations are identified."""

    def errors(self, directions: Floats) -> Floats:
        """Return standard errors, infinite or nan where a combination is not identified."""

    def intervals(self, directions: Floats, level: float) -> Floats:
        """Return intervals, shape (combinations, 2), infinite or nan where not identified."""

    def roots(self, directions: Floats, values: Floats) -> Floats:
        """Return signed roots of the test statistics of ``directions · params = values``."""

    def distance(self, conditions: Floats, values: Floats) -> float:
        """Return the χ² statistic of ``conditions · params = values``."""
