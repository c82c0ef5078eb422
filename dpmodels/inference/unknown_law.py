"""A spectrum whose noise has no known law: nothing is said of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Floats


@dataclass(frozen=True)
class Unread:
    """Eigenvalues of an estimate with an error of unknown law.

    It answers what :class:`dpmodels.inference.Spectrum` answers, with nan: no floor, no interval,
    no cosine. Components count as distinct where their eigenvalue is positive, and none as alike.
    """

    values: Floats

    entry_sd = float("nan")

    @property
    def sd(self) -> Floats:
        """Not known; nor is any other number of each component."""
        return np.full(len(self.values), np.nan)

    floor = sd

    @property
    def distinct(self) -> NDArray[np.bool_]:
        """Whether each eigenvalue is positive."""
        return self.values > 0

    readable = distinct

    @property
    def alike(self) -> NDArray[np.bool_]:
        """No two components are known to be alike."""
        return np.eye(len(self.values), dtype=bool)

    def debiased(self) -> Floats:
        """Not known."""
        return self.sd

    expected_cos2 = debiased

    def noise_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Not known."""
        return self.sd, self.sd
