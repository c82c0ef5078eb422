"""What tests and tables made of coefficients ask of the law of a model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Floats


class CoefficientsLaw(Protocol):
    """The law of estimated coefficients about the population's, noise and sampling.

    Of combinations ``directions · params``, shape (combinations, coefficients), in the units of the
    coded columns.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""

    @property
    def params(self) -> Floats:
        """The estimate, shape (coefficients,)."""

    def covariance(self) -> Floats:
        """Return the covariance in the delta form, shape (coefficients, coefficients)."""

    def told(self, directions: Floats) -> NDArray[np.bool_]:
        """Return which combinations are identified."""

    def errors(self, directions: Floats) -> Floats:
        """Return standard errors, infinite or nan where a combination is not identified."""

    def intervals(self, directions: Floats, level: float) -> Floats:
        """Return intervals, shape (combinations, 2), infinite or nan where not identified."""

    def roots(self, directions: Floats, values: Floats) -> Floats:
        """Return signed roots of the statistics of combinations that are `values`."""

    def distance(self, conditions: Floats, values: Floats) -> float:
        """Return how far ``conditions · params = values`` is, to hold against χ²."""
