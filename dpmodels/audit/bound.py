"""From one counted event to a lower bound of the number that was claimed, and what could come out.

*Theorem.* A number that is at most the smallest value not rejected at level
``error`` is above the truth with probability at most ``error``: the true value's
own hypothesis is rejected no more often, and every larger one is true as well.

What an audit of so many runs could have found is said beside what it found. For
(eps, delta) the releases that are easiest to tell from their claim are
randomised response, error rates ``(1 - delta)/(1 + e^eps)`` on both sides. For
Gaussian noise and zCDP Gaussian noise stands in, with the threshold at which
rates move fastest for their standard error. Both by the normal approximation,
for a test with all of the power, so no audit finds less than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtr, ndtri

from dpmodels.audit.claim import Claim
from dpmodels.audit.counts import Counts
from dpmodels.audit.p_value import p_value
from dpmodels.typing import Floats

# At these the best event errs once in 1e9 runs or less, and an audit has at most 1e8.
_LARGEST: Final = {"eps": 40.0, "mu": 12.0, "rho": 72.0}
_NEAR: Final = 4e-4  # a choice: bounds are printed to three digits
_RAREST: Final = 1e-15  # of rates in logarithms: near the resolution of doubles
_POWER: Final = 0.8  # a choice: four audits of five
_MOST: Final = 64.0  # a choice: times the claim, beyond which nothing is said to be found
_HALVINGS: Final = 8  # of a step of a ninth: to a two-thousandth of the number


@dataclass(frozen=True)
class Guess:
    """Rates of an event as the choosing runs have them: they pick the line it is held against."""

    alarms: float
    misses: float


def beats(claim: Claim, counts: Counts, guess: Guess, error: float) -> float:
    """Return the p-value of a claim, by runs that did not choose the event.

    A fiftieth of the level that it is compared with goes into its nuisance.
    """
    return p_value(counts, claim.boundary(guess.alarms, guess.misses), error / 50)


def lower_bound(claim: Claim, counts: Counts, guess: Guess, error: float) -> float:
    """Return the largest number of the claim's family that the counts rule out, 0 if none.

    It is above the truth with probability at most `error`, whatever number the claim has.

    Examples
    --------
    >>> seen = Counts(alarms=100, rows_runs=10_000, misses=9_000, neighbour_runs=10_000)
    >>> bool(1.8 < lower_bound(Claim("eps", 1.0, 0.0), seen, Guess(0.01, 0.9), 0.05) < 2.3)
    True
    """
    alarms, misses = counts.rates
    if alarms + misses >= 1:
        return 0.0
    # Numbers that allow the rates as they are seen are not ruled out.
    seen = [np.clip(np.asarray(rate), _RAREST, 1.0) for rate in (alarms, misses)]
    low, high = 0.0, min(_LARGEST[claim.unit], float(claim.least(*seen)))
    while high - low > _NEAR * (1 + low):
        middle = (low + high) / 2
        if beats(claim.of(middle), counts, guess, error) <= error:
            low = middle
        else:
            high = middle
    return low


def ceiling(claim: Claim, runs: int, error: float) -> float:
    """Return the largest bound that so many counted runs a side give: where no run errs.

    Examples
    --------
    >>> 3.4 < ceiling(Claim("eps", 1.0, 0.0), 100, 0.05) < 3.6
    True
    """
    never = Counts(0, runs, 0, runs)
    tiny = 0.5 / (runs + 1)
    return lower_bound(claim, never, Guess(tiny, tiny), error)


def detectable(claim: Claim, runs: int, error: float) -> float:
    """Return the smallest true number that four audits of five would flag, infinite if none.

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
    return ndtr(-cuts).clip(1e-12), ndtr(cuts - mu).clip(1e-12)
