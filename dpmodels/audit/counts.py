"""How often an event came up on either side, and between which rates that holds.

*Theorem* (Clopper and Pearson). Of ``n`` independent runs ``k`` show an event
of probability ``p``. With ``U(k)`` the solution of ``P(Binomial(n, U) <= k) =
a``, ``P(p > U(k)) <= a``: if ``p > U(k)`` then, as the binomial distribution
function falls in p, ``P(Binomial(n, p) <= k) < a``, which happens for at most
the first few k, of total probability below a. The lower bound is the same for
``n - k``.

References
----------
.. [1] Clopper, C. J. and Pearson, E. S. (1934). "The use of confidence or
   fiducial limits illustrated in the case of the binomial." Biometrika 26,
   404-413.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import betaincinv


def upper_rate(seen: int, runs: int, error: float) -> float:
    """Return a rate that is exceeded with probability at most ``error``, of `seen` in `runs`."""
    return 1.0 if seen >= runs else float(betaincinv(seen + 1, runs - seen, 1 - error))


def lower_rate(seen: int, runs: int, error: float) -> float:
    """Return a rate that is undercut with probability at most ``error``."""
    return 0.0 if seen <= 0 else float(betaincinv(seen, runs - seen + 1, error))


@dataclass(frozen=True)
class Counts:
    """How often each side erred about an event, "the release came from the neighbour"."""

    alarms: int
    rows_runs: int
    misses: int
    neighbour_runs: int

    @property
    def rates(self) -> tuple[float, float]:
        """False-positive and false-negative rate."""
        return self.alarms / self.rows_runs, self.misses / self.neighbour_runs

    def box(self, error: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return intervals for both rates that hold together but with probability ``error``."""
        both = (self.alarms, self.rows_runs), (self.misses, self.neighbour_runs)
        alarms, misses = (
            (lower_rate(*own, error / 4), upper_rate(*own, error / 4)) for own in both
        )
        return alarms, misses
