"""Rows parted in two: those that candidates are fitted to, and those that judge them."""

from __future__ import annotations

import numpy as np

from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.statistic import Statistic


class HeldOut(Statistic):
    """Gradients of the rows of both sides, of which none is read yet."""

    __slots__ = ("fitted", "held")

    def __init__(self, fitted: Gradients, held: Gradients) -> None:
        super().__init__("parted rows", np.zeros(0, dtype=object), 0, fitted.fingerprint)
        self.fitted = fitted
        self.held = held

    def __add__(self, other: Statistic) -> Statistic:
        """Join those of disjoint rows, side by side; an ArgumentError names the difference."""
        if not isinstance(other, HeldOut):
            return NotImplemented
        self._require(other)
        fitted, held = self.fitted + other.fitted, self.held + other.held
        assert isinstance(fitted, Gradients)
        assert isinstance(held, Gradients)
        return HeldOut(fitted, held)
