"""What an audit of so many runs could have found: said beside what it found.

For (eps, delta) the releases that are easiest to tell from their claim are
randomised response, error rates ``(1 - delta)/(1 + e^eps)`` on both sides. For
Gaussian noise and zCDP Gaussian noise stands in, with the threshold at which
rates move fastest for their standard error. Both by the normal approximation,
for a test with all of the power, so no audit finds less than that.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import ndtr, ndtri

from dpmodels.audit.bound import Guess, lower_bound
from dpmodels.audit.claim import Claim
from dpmodels.audit.counts import Counts
from dpmodels.typing import Floats

_POWER: Final = 0.8
_MOST: Final = 64.0  # times the claim
_HALVINGS: Final = 8
_RAREST: Final = 1e-12


def ceiling(claim: Claim, runs: int, error: float) -> float:
    """Return the largest bound that can come out at all: where no run errs.

    Parameters
    ----------
    claim : Claim
        Its family.
    runs : int
        Counted runs of a side.
    error : float
        Of the test.

    Examples
    --------
    >>> 3.4 < ceiling(Claim("eps", 1.0, 0.0), 100, 0.05) < 3.6
    True
    """
    never = Counts(0, runs, 0, runs)
    tiny = 0.5 / (runs + 1)
    return lower_bound(claim, never, Guess(tiny, tiny), error)


def detectable(claim: Claim, runs: int, error: float) -> float:
    """Return the smallest true number that would be flagged in four audits of five.

    Returns
    -------
    float
        In the claim's unit; infinite if none would be.

    Examples
    --------
    >>> 1.0 < detectable(Claim("eps", 1.0, 1e-5), 10_000, 0.05) < 1.1
    True
    """
    if ceiling(claim, runs, error) <= claim.value:
        return math.inf
    tried = np.geomspace(1.0, _MOST, 40)
    found = [bool(_found(claim, times, runs, error)) for times in tried]
    if not any(found):
        return math.inf
    first = found.index(True)
    low, high = tried[max(first - 1, 0)], tried[first]
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _found(claim, middle, runs, error) else (middle, high)
    return float(high) * claim.value


def _found(claim: Claim, times: float, runs: int, error: float) -> bool:
    """Whether some event is expected to lie far enough under the line it is held against."""
    alarms, misses = _rates(claim.of(claim.value * times))
    slopes = claim.log_slopes(alarms, misses)
    steep = np.exp(slopes)
    noise = misses * (1 - misses) + steep**2 * alarms * (1 - alarms)
    standing = (claim.levels(slopes) - misses - steep * alarms) / np.sqrt(noise / runs)
    return bool(standing.max() >= -float(ndtri(error)) - float(ndtri(1 - _POWER)))


def _rates(true: Claim) -> tuple[Floats, Floats]:
    """Return error rates of events under a release that is as bad as it may be."""
    if true.unit == "eps":
        rate = np.array([(1 - true.delta) / (1 + math.exp(true.value))])
        return rate, rate
    mu = true.value if true.unit == "mu" else math.sqrt(2 * true.value)
    cuts = np.linspace(0, 3, 13) + mu / 2
    return ndtr(-cuts).clip(_RAREST), ndtr(cuts - mu).clip(_RAREST)
