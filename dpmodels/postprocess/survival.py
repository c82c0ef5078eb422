"""From noisy counts of events and of censored rows by interval to a survival curve.

An interval's hazard is its events over the rows at risk: those present at its start, less half of
those censored within it (the actuarial convention). In an interval of a single value all of them
are at risk, and the curve is that of Kaplan and Meier.

.. [1] Kaplan, E. L. and Meier, P. (1958). "Nonparametric estimation from incomplete observations."
   JASA 53(282), 457-481.
.. [2] Cutler, S. J. and Ederer, F. (1958). "Maximum utilization of the life table method in
   analyzing survival." Journal of Chronic Diseases 8(6), 699-712.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from dpmodels.postprocess.protocol import rising
from dpmodels.typing import Floats, Integers

# Noise sds that the rows at risk must reach for a curve to go on: a choice.
DETECTION_SDS: Final = 5.0
NOTHING: Final = 1e-12


def at_risk(cells: Floats) -> Floats:
    """Return the rows at the start of each interval, of counts of shape (..., endings, cells)."""
    return np.asarray(np.cumsum(cells.sum(axis=-2)[..., ::-1], axis=-1)[..., ::-1])


def identified(risk: Floats, sds: Floats) -> int:
    """Return the number of first intervals whose rows at risk exceed their noise.

    The rule depends only on released numbers and their noise sds.
    """
    detected = risk >= np.maximum(DETECTION_SDS * sds, 0.5)
    return int(np.argmin(np.append(detected, False)))


@dataclass(frozen=True, eq=False)
class Followed:
    """Consistent integer counts of a curve: rows at risk, events, censored rows.

    `halved` is the fraction of the rows censored within an interval that was not at risk in it;
    arrays have the shape (intervals,).
    """

    risk: Integers
    events: Integers
    censored: Integers
    halved: Floats

    @cached_property
    def exposed(self) -> Floats:
        """Rows at risk in each interval."""
        return np.asarray(self.risk - self.halved * self.censored)

    @cached_property
    def hazard(self) -> Floats:
        """Fraction of the exposed rows with the event; 0 if no row was exposed."""
        return self._hazard(self.exposed)

    def _hazard(self, exposed: Floats | Integers) -> Floats:
        none = np.zeros(len(exposed))
        return np.asarray(np.divide(self.events, exposed, out=none, where=exposed > 0))

    @cached_property
    def survival(self) -> Floats:
        """Survival beyond each interval: nonincreasing, within 0 and 1."""
        return np.asarray(np.cumprod(1 - self.hazard))

    @property
    def unordered(self) -> tuple[Floats, Floats]:
        """Bounds on `survival` over all orders in which rows left within intervals.

        Lowest if the rows censored within an interval left before its events, highest if after.
        """
        lost = self.censored * (self.halved > 0)
        hazards = (self._hazard(exposed) for exposed in (self.risk - lost, self.risk))
        low, high = (np.asarray(np.cumprod(1 - hazard)) for hazard in hazards)
        return low, high

    @cached_property
    def greenwood(self) -> Floats:
        """Sampling variance of the logarithm of `survival`; infinite where that is 0."""
        left = self.exposed * (self.exposed - self.events)
        full = np.full(len(left), np.inf)
        terms = np.divide(self.events, left, out=full, where=left > 0)
        return np.cumsum(np.where(self.events > 0, terms, 0.0))

    @cached_property
    def effective(self) -> Floats:
        """Number of uncensored rows with the same information on each point of the curve.

        The harmonic mean of the exposed rows over the survival before, which falls with time; its
        last value where there was no event.
        """
        before = np.append(1.0, self.survival)[:-1]
        last = np.divide(self.exposed, before, out=np.zeros(len(before)), where=before > 0)
        last = np.minimum.accumulate(last)
        is_identified = (self.greenwood > 0) & np.isfinite(self.greenwood)
        odds = 1 / np.where(is_identified, self.survival, 1.0) - 1
        variance = np.where(is_identified, self.greenwood, 1.0)
        return np.asarray(np.where(is_identified, odds / variance, last))


def followed(cells: Floats, sds: Floats, halved: Floats, end: int) -> Followed:
    """Return consistent integer counts of the first `end` intervals.

    `cells`, shape (2, cells), are unbiased counts of censored rows and of events, `sds` the noise
    sds of the rows at risk. Running totals are made nondecreasing; the rows at risk, which fall by
    them, start at the level nearest to the unbiased ones.
    """
    if not end:
        none = np.zeros(0, dtype=np.int64)
        return Followed(none, none, none, halved[:0])
    totals = np.rint(rising(np.cumsum(cells[:, :end], axis=1))).astype(np.int64)
    gone = totals.sum(axis=0)
    before = np.append(0, gone[:-1])
    weights = 1 / np.maximum(sds[:end] ** 2, NOTHING)
    level = round(float((weights * (at_risk(cells)[:end] + before)).sum() / weights.sum()))
    censored, events = np.diff(totals, axis=1, prepend=0)
    return Followed(np.maximum(level, gone[-1]) - before, events, censored, halved[:end])
