"""A spectrum whose noise has no known law: nothing is said of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.inference.spectrum import Spectrum
from dpmodels.typing import Floats


@dataclass(frozen=True)
class Unread:
    """Eigenvalues of an estimate with an error of unknown law.

    It answers what :class:`dpmodels.inference.Spectrum` answers, with nan: no floor, no interval,
    no cosine, and no components alike. `source` is the spectrum of the unbiased release that the
    estimate was made from, where it has a law: as many components count as distinct, and as
    readable, as are in it one after another; without a law those of a positive eigenvalue.
    """

    values: Floats
    source: Spectrum | None = None

    entry_sd = float("nan")

    @property
    def sd(self) -> Floats:
        """Not known; nor is any other number of each component."""
        return np.full(len(self.values), np.nan)

    floor = sd

    @property
    def distinct(self) -> NDArray[np.bool_]:
        """Whether each is one of those there are."""
        return self._first(None if self.source is None else self.source.distinct)

    @property
    def readable(self) -> NDArray[np.bool_]:
        """Whether each is one of those that can be read."""
        return self._first(None if self.source is None else self.source.readable)

    def _first(self, there: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        positive = self.values > 0
        return positive if there is None else positive & np.logical_and.accumulate(there)

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
