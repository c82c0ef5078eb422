"""Scores of the units of a survey design, summed once: their lengths, squares and sums."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics.gradient import GradientScore
from dpmodels.statistics.passes import PARTS, Score, person_totals, squares_of_totals
from dpmodels.statistics.statistic import Statistic, fingerprint
from dpmodels.typing import Floats, Numbers


class UnitScores(Statistic):
    """The score of each unit of capped rows, times the root of its stratum's factor.

    A unit's score is the sum over its places of those of its rows, over the number of places that
    it may take: a function of released values and of that unit. Factors are released, and those
    roots at most 1.
    """

    __slots__ = ("_scores", "_strata", "factors")

    def __init__(
        self,
        design: PrivateDesign,
        lattice: Lattice,
        score: Score | GradientScore,
        n_places: int,
        *,
        count_public: bool,
    ) -> None:
        basis = fingerprint(design.facts, count_public=count_public)
        basis = basis.also({"score": score.digest})
        totals, n_rows = person_totals(
            *(design, lattice, score.function(lattice), len(score.regressors)),
            count_public=count_public,
        )
        super().__init__("scores of units", np.zeros(0, dtype=object), n_rows, basis)
        sampled, strata = design.sampled, design.unit_strata()
        assert sampled is not None
        roots = np.sqrt(np.array(sampled.factors or (1.0,)))
        roots /= roots.max()
        self.factors = roots[strata] if sampled.factors else np.ones(len(strata))
        scores = np.zeros((len(totals), len(strata)))
        scores[:, : totals.shape[1]] = totals / (PARTS * n_places)
        self._scores, self._strata = scores * self.factors, strata

    def by_length(self, limits: Floats) -> Numbers:
        """Count units by the cell of the length of their score; longer ones are in the last.

        Cells end at `limits`. A unit adds 1 to one cell, so the L2 sensitivity is √2 where it is
        replaced, 1 where it is added or removed; in absolute values 2 and 1.
        """
        # Each operation is on the numbers of one unit.
        lengths = np.sqrt((self._scores**2).sum(axis=0))
        cells = np.minimum(np.searchsorted(limits, lengths), len(limits) - 1)
        return np.bincount(cells, minlength=len(limits)).astype(object)

    def squares(
        self, longest: float, finer: Lattice, marks: tuple[float, ...], least: float, levels: int
    ) -> Numbers:
        """Sum ``z zᵀ`` over units, z of marks and the score clipped to `longest`, on a lattice.

        The first mark is ``marks[0] * least`` of the radius over the unit's factor, `least` being
        the smallest factor; ``marks[1]``, if there, stands at the place of the unit's stratum.
        """
        first = np.floor(marks[0] * least * finer.radius / self.factors)
        lines = [first]
        if len(marks) > 1:
            size = math.floor(marks[1] * finer.radius)
            lines.extend((self._strata == np.arange(levels)[:, None]) * size)
        return squares_of_totals(self._scores / longest, finer, np.stack(lines).astype(np.int64))
