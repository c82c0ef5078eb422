"""Rows parted in two, those that candidates are tried on and those that judge, and all of them."""

from __future__ import annotations

from typing import cast

import numpy as np

from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.statistic import Statistic


class HeldOut(Statistic):
    """Gradients of all rows and of both sides, of which none is read yet."""

    __slots__ = ("fitted", "held", "whole")

    def __init__(self, whole: Gradients, fitted: Gradients, held: Gradients) -> None:
        super().__init__("parted rows", np.zeros(0, dtype=object), 0, whole.fingerprint)
        self.whole = whole
        self.fitted = fitted
        self.held = held

    def __add__(self, other: Statistic) -> Statistic:
        """Join those of disjoint rows, side by side; an ArgumentError names the difference."""
        if not isinstance(other, HeldOut):
            return NotImplemented
        self._require(other)
        own, others = (self.whole, self.fitted, self.held), (other.whole, other.fitted, other.held)
        joined = (cast("Gradients", one + two) for one, two in zip(own, others, strict=True))
        return HeldOut(*joined)
