"""The law of coefficients that are normal about the population's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmodels.typing import Floats


@dataclass(frozen=True)
class NormalLaw:
    """Coefficients with a covariance, nan where they are not identified."""

    names: tuple[str, ...]
    params: Floats
    held: Floats

    def covariance(self) -> Floats:
        """Return the covariance, shape (coefficients, coefficients)."""
        return self.held

    def told(self, directions: Floats) -> NDArray[np.bool_]:
        """Return which combinations have a variance."""
        return np.isfinite(self.errors(directions))

    def errors(self, directions: Floats) -> Floats:
        """Return the standard errors of combinations."""
        variances = ((directions @ self.held) * directions).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))

    def intervals(self, directions: Floats, level: float) -> Floats:
        """Return normal intervals, shape (combinations, 2)."""
        half = float(ndtri((1 + level) / 2)) * self.errors(directions)
        middle = directions @ self.params
        return np.column_stack([middle - half, middle + half])

    def roots(self, directions: Floats, values: Floats) -> Floats:
        """Return distances from `values` in standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((directions @ self.params - values) / self.errors(directions))

    def distance(self, conditions: Floats, values: Floats) -> float:
        """Return Wald's statistic."""
        sds = self.errors(conditions)
        off = (conditions @ self.params - values) / sds
        spread = conditions @ self.held @ conditions.T / np.outer(sds, sds)
        return float(off @ np.linalg.pinv(spread, hermitian=True) @ off)
