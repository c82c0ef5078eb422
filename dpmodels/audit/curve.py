"""Points of the measured trade-off curve, with boxes that hold all together."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpmodels.audit.attack import Parts, Scorer, count
from dpmodels.audit.result import Point

_POINTS: Final = 9


def points(
    cut: Parts,
    scorer: Scorer,
    error: float,
) -> tuple[Point, ...]:
    """Count a score at thresholds that the choosing runs spread over the curve.

    Parameters
    ----------
    cut : Parts
        The runs.
    scorer : callable
        The score.
    error : float
        Probability that any of the boxes misses its rates, at most.
    """
    spread = np.concatenate([scorer(side) for side in cut.choosing])
    spread = spread[np.isfinite(spread)]
    if not len(spread):
        return ()
    levels = np.linspace(0, 1, _POINTS + 2)[1:-1]
    thresholds = np.unique(np.quantile(spread, levels, method="lower"))
    found = []
    for threshold in thresholds:
        counts = count(cut.counting, scorer, float(threshold))
        found.append(Point(*counts.rates, *counts.box(error / len(thresholds))))
    return tuple(found)
