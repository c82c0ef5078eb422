"""The test of one event against one line that no error rates of a private release lie under.

Every trade-off function is convex: the error rates ``(a, b)`` of an event,
false positives and false negatives, lie on or above each of its supporting
lines ``b + s a = c``. For (eps, delta) these are ``b + e^eps a = 1 - delta`` and
its mirror image.

*Theorem.* Let ``A`` of ``n`` runs and ``B`` of ``m`` runs be independent
binomial counts of rates ``a`` and ``b`` with ``b + s a >= c``. The p-value
below is at most ``t`` with probability at most ``t``, for any t.

*Proof.* Let ``T = B/m + s A/n``. For known rates ``F(T) = P(T' <= T)`` has that
property. F falls in a and in b, so that on the part of the null hypothesis
where ``a`` is in a cell ``[l, r]`` it is at most its value at ``(l, c - s r)``;
the largest of these values over the cells that cover an interval which holds
``a`` but with probability g, plus g, is a p-value (Berger and Boos 1994). In a
sum over A the terms of a run of values are bounded by its first one. All
rounding goes up.

The line is chosen before the counts are seen. Against two separate bounds for
the rates, which err in both directions at once, the test needs half the runs.

References
----------
.. [1] Berger, R. L. and Boos, D. D. (1994). "P values maximized over a
   confidence set for the nuisance parameter." JASA 89, 1012-1016.
.. [2] Dong, J., Roth, A. and Su, W. (2022). "Gaussian Differential Privacy."
   Journal of the Royal Statistical Society B 84(1), 3-37. Section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import bdtr, bdtrc

from dpmodels.audit.counts import Counts, lower_rate, upper_rate
from dpmodels.typing import Floats

_CELLS: Final = 48  # a choice: of the interval for the false-positive rate; fewer only raise p
_BINS: Final = 100  # a choice: terms of the sum; fewer only raise p
_OUTSIDE: Final = 1e-15  # mass of a count beyond the range that is summed
_ROUNDING: Final = 1e-9  # far above that of doubles


@dataclass(frozen=True)
class Boundary:
    """Rates on or above ``misses + slope * alarms = level`` are within the claim.

    The slope is above zero; the level at most 1 and at most the slope, so that coin-flipping lies
    on or above the line.
    """

    slope: float
    level: float


def p_value(counts: Counts, boundary: Boundary, nuisance: float = 1e-5) -> float:
    """Return the p-value of the hypothesis that an event's rates are on or above a line.

    In (0, 1], and never below `nuisance`, the error of the interval for the false-positive rate.
    The runs had no part in choosing the event or the line.

    Examples
    --------
    >>> fair = Counts(alarms=500, rows_runs=1000, misses=500, neighbour_runs=1000)
    >>> p_value(fair, Boundary(slope=1.0, level=0.9)) > 0.9
    True
    >>> p_value(Counts(400, 1000, 400, 1000), Boundary(slope=1.0, level=0.9)) < 1e-4
    True
    """
    alarms, misses = counts.rates
    if misses + boundary.slope * alarms >= boundary.level:
        return 1.0
    low = lower_rate(counts.alarms, counts.rows_runs, nuisance / 2)
    high = upper_rate(counts.alarms, counts.rows_runs, nuisance / 2)
    low = max(low, (boundary.level - 1) / boundary.slope)
    if low > high:
        return nuisance
    edges = np.linspace(low, high, _CELLS + 1)
    below = np.clip(boundary.level - boundary.slope * edges[1:], 0.0, 1.0)
    return float(min(1.0, nuisance + _tail(counts, boundary, edges[:-1], below).max()))


def _tail(counts: Counts, boundary: Boundary, alarm: Floats, miss: Floats) -> Floats:
    """Bound ``P(B/m + s A/n <= observed)`` for pairs of rates."""
    n, m = counts.rows_runs, counts.neighbour_runs
    alarms, misses = counts.rates
    reached = (misses + boundary.slope * alarms) * (1 + _ROUNDING)
    most = min(n, int(n * reached / boundary.slope))
    spread = 8 * np.sqrt(n * np.array([alarm[0], alarm[-1]])) + 40
    first = int(max(0, n * alarm[0] - spread[0]))
    last = int(min(most, n * alarm[-1] + spread[1]))
    if last < first:  # every count that is small enough is far below its mean
        return np.full(len(alarm), _OUTSIDE) + bdtr(most, n, alarm)
    starts = np.unique(np.linspace(first, last + 1, _BINS + 1).astype(np.int64))
    ends = starts[1:] - 1
    mass = np.diff(bdtr(np.append(starts[0] - 1, ends).clip(-1), n, alarm[:, None]), axis=1)
    if first == 0:
        mass[:, 0] = bdtr(ends[0], n, alarm)
    room = np.floor(m * (reached - boundary.slope * starts[:-1] / n) + _ROUNDING).clip(0, m)
    within = np.where(room >= m, 1.0, bdtr(np.minimum(room, m - 1), m, miss[:, None]))
    beyond = (bdtr(first - 1, n, alarm) if first else 0.0) + (
        bdtrc(last, n, alarm) if last < most else 0.0
    )
    return np.asarray((mass.clip(0) * within).sum(axis=1) + beyond + _OUTSIDE)
