"""From one counted event to a lower bound of the number that was claimed.

*Theorem.* A number that is at least the smallest value not rejected at level
``error`` is wrong with probability at most ``error``: the true value's own
hypothesis is rejected no more often, and every larger one is true as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dpmodels.audit.claim import Claim
from dpmodels.audit.counts import Counts
from dpmodels.audit.p_value import Line, p_value

_LARGEST: Final = {"eps": 40.0, "mu": 12.0, "rho": 72.0}
_NEAR: Final = 4e-4
_RAREST: Final = 1e-15


@dataclass(frozen=True)
class Guess:
    """Rates of an event as the choosing runs have them: they pick the line it is held against."""

    alarms: float
    misses: float


def beats(claim: Claim, counts: Counts, guess: Guess, error: float) -> float:
    """Return the p-value of a claim.

    Parameters
    ----------
    claim : Claim
        The hypothesis.
    counts : Counts
        Of the event, from runs that did not choose it.
    guess : Guess
        From runs that did.
    error : float
        The level it will be compared with, for the accuracy.
    """
    return p_value(counts, _line(claim, guess), error / 50)


def _line(claim: Claim, guess: Guess) -> Line:
    return claim.line(guess.alarms, guess.misses)


def lower_bound(claim: Claim, counts: Counts, guess: Guess, error: float) -> float:
    """Return the largest number of the claim's family that the counts rule out, 0 if none.

    Parameters
    ----------
    claim, counts, guess
        As in :func:`beats`; the number in the claim is not looked at.
    error : float
        Probability that the bound is above the truth, at most.

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
