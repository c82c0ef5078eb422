"""Rows of a survey design before a cap is released, and numbers of their units by weight."""

from __future__ import annotations

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.errors import FrameError
from dpmodels.formula.sampling import STEPS
from dpmodels.statistics.statistic import Statistic, fingerprint
from dpmodels.typing import Floats, Numbers


class UnitWeights(Statistic):
    """Units of one design; their rows take places once there is a cap."""

    __slots__ = ("_design", "_upper")

    def __init__(self, design: PrivateDesign, upper: float, *, count_public: bool) -> None:
        basis = fingerprint(design.facts, count_public=count_public)
        super().__init__("units by weight", np.zeros(0, dtype=object), 0, basis)
        self._design = design
        self._upper = upper

    def __add__(self, other: Statistic) -> Statistic:
        """Refuse rows in several places: a cap is of all units together."""
        raise FrameError("a survey design needs all rows in one place: write data=, not sites=")

    def by_weight(self, ends: Floats) -> Numbers:
        """Count units in cells of total weight that end at `ends`; larger ones are in the last.

        A unit adds 1 to one cell, or nothing if none of its rows has a weight.
        """
        edges, counts = ends / self._upper * STEPS, np.zeros(len(ends), dtype=np.int64)
        for totals in self._design.unit_weights():
            cells = np.searchsorted(edges, totals[totals > 0])
            counts += np.bincount(np.minimum(cells, len(ends) - 1), minlength=len(ends))
        return counts.astype(object)

    def by_stratum(self, levels: int) -> Numbers:
        """Count units by stratum; a unit adds 1 to one of them, or nothing without a stratum."""
        strata = self._design.unit_strata()
        return np.bincount(strata[strata >= 0], minlength=levels).astype(object)

    def capped(self, cap: float, factors: tuple[float, ...] = ()) -> PrivateDesign:
        """Return the rows with the places that follow from a released cap, and factors."""
        design = self._design.capped(cap, factors)
        design.require_passes()
        return design
