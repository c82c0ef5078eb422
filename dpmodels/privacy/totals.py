"""The totals of a ledger's charges, and the cost of a charge in terms of Gaussian privacy.

*Prices.* A Gaussian release of multiplier m has ``mu = 1/m``. An eps-private one is dominated by
randomised response, whose trade-off curve has its corner at ``1/(1 + e**eps)`` and lies above that
of Gaussians with ``mu = 2 Phi^-1(e**eps / (1 + e**eps))``, since the latter is convex. A release of
bounded range eta is dominated by two points whose log odds differ by eta [2]_; the worst pair is
symmetric, since ``Phi^-1`` of the logistic function is odd and concave above 0 (the logistic
distribution has heavier tails than the normal one in van Zwet's order [3]_): ``mu`` is that of an
eta/2-private release. By the same concavity ``mu <= eps sqrt(pi/2)``, which is used for small eps.
For rho see `compose`.

*Numerics.* Costs are raised by a relative 1e-12; sums are rounded up at every step.

.. [1] Dong, J., Roth, A. and Su, W. (2022). "Gaussian Differential Privacy." Journal of the Royal
   Statistical Society B 84(1), 3-37.
.. [2] Dong, J., Durfee, D. and Rogers, R. (2020). "Optimal Differential Privacy Composition for
   Exponential Mechanisms." ICML 2020.
.. [3] van Zwet, W. R. (1964). "Convex Transformations of Random Variables." Mathematical Centre
   Tracts 7, Amsterdam.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from scipy.special import log_expit, ndtri_exp

from dpmodels.privacy.compose import pure_eps, total_rho
from dpmodels.privacy.events import BoundedRangeEvent, Event, GaussianEvent, PufferfishEvent

# More than the rounding of a cost.
_UP: Final = 1 + 1e-12
# Below this eps Phi^-1 loses digits, and the bound of the docstring is used.
_SMALL: Final = 1e-3


def pure_mu(eps: float) -> float:
    """Return the mu of Gaussian privacy that every eps-private release satisfies.

    ``2 Phi^-1(e**eps / (1 + e**eps))``, rounded up.
    """
    if eps < _SMALL:
        return eps * math.sqrt(math.pi / 2) * _UP
    return -2 * float(ndtri_exp(log_expit(-eps))) * _UP


def mu(event: Event) -> float:
    """Return the mu of Gaussian privacy that one release of an event satisfies."""
    match event:
        case GaussianEvent(multiplier):
            return 1 / multiplier
        case BoundedRangeEvent(eps):
            return pure_mu(eps / 2)
        case PufferfishEvent():
            return math.inf
        case _:
            return pure_mu(pure_eps(event))


def _summed_mu2(events: Iterable[Event]) -> float:
    return math.fsum(mu(event) ** 2 * event.count for event in events)


def summed_eps(events: Iterable[Event]) -> float:
    """Return the sum of the eps of all non-Gaussian events."""
    non_gaussian = [event for event in events if not isinstance(event, GaussianEvent)]
    return math.fsum(pure_eps(event) * event.count for event in non_gaussian)


def rounded_up(total: float, addend: float) -> float:
    """Return the sum, rounded up to a floating-point number."""
    rounded = total + addend
    added = rounded - total
    if math.isinf(rounded):
        return rounded
    error = (total - (rounded - added)) + (addend - added)
    return math.nextafter(rounded, math.inf) if error > 0 else rounded


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals of a ledger's charges: everything that its filter needs."""

    charges: int = 0
    # Sums of the eps of all pure releases (the tight eps of a first charge as a plan, rule d), and
    # of the 1/m**2 of all Gaussian noise.
    pure: float = 0.0
    normal: float = 0.0
    # Sum of the pure eps in the share, and its limit.
    share: float = 0.0
    most: float = 0.0
    # Sums of mu**2 and of rho outside the share.
    mu2: float = 0.0
    rho: float = 0.0
    # Whether the Gaussian filter applies outside the share, not the zCDP one.
    gaussian: bool = True
    # Eps of the first charge by tight composition, while it is the only one.
    alone: float = math.inf
    # Sum of the releases' own deltas, and its limit, which is fixed once anything is outside the
    # share.
    failing: float = 0.0
    aside: float = 0.0
    # The series of all quilts' secrets; empty without quilts.
    series: str = ""

    def plus(
        self, charged: tuple[Event, ...], *, gaussian: bool, share_limit: float, in_share: bool
    ) -> "Totals":
        """Return the totals after one more charge.

        `in_share` says whether the charge's pure releases are in the share.
        """
        eps = summed_eps(charged)
        normal = tuple(event for event in charged if isinstance(event, GaussianEvent))
        outside = normal if in_share else charged
        return Totals(
            charges=self.charges + 1,
            pure=rounded_up(self.pure, eps),
            normal=rounded_up(self.normal, _summed_mu2(normal)),
            share=rounded_up(self.share, eps) if in_share else self.share,
            most=share_limit,
            mu2=rounded_up(self.mu2, _summed_mu2(outside)),
            rho=rounded_up(self.rho, total_rho(outside)),
            gaussian=gaussian,
        )

    def lost(self, delta: float) -> tuple[float, float]:
        """Return the sum of the releases' own deltas after adding `delta`, and its limit."""
        failing = rounded_up(self.failing, delta)
        return failing, self.aside if self.mu2 or self.rho else failing

    @property
    def summed(self) -> float:
        """Sum of the eps of all charges; infinite if one is not pure."""
        return math.inf if self.normal else self.pure
