"""The privacy cost of several releases together, conversion to and from zCDP, budget division.

*Gaussian releases* of multipliers ``m_i`` cost exactly what one of multiplier ``m`` costs,
``1/m**2 = sum 1/m_i**2``. *Pure releases* add their eps. *Mixtures* take the smallest of three
valid bounds: the exact curve of `losses`, the sum of the Gaussian's exact eps and the pure ones,
and the conversion from zCDP.

*Releases with their own delta.* A pair of distributions that is (eps, delta)-close both ways is a
post-processing of one that reveals the table with probability delta and is otherwise eps-private
[5]_. So their deltas add up, and unless one of them fails they are pure.

All costs are linear in an event's count, and a cost computed with rounding is raised by a relative
1e-10. Gaussian noise is priced at a multiplier smaller by `LATTICE_LOSS`, as the lemma of Theorem
10 requires for noise on integers.

*Prices.* The totals of a ledger hold the cost of a charge in terms of Gaussian privacy. A Gaussian
release of multiplier m has ``mu = 1/m``. An eps-private one is dominated by randomised response,
whose trade-off curve has its corner at ``1/(1 + e**eps)`` and lies above that of Gaussians with
``mu = 2 Phi^-1(e**eps / (1 + e**eps))``, since the latter is convex. A release of bounded range eta
is dominated by two points whose log odds differ by eta [6]_; the worst pair is symmetric, since
``Phi^-1`` of the logistic function is odd and concave above 0 (the logistic distribution has
heavier tails than the normal one in van Zwet's order [7]_): ``mu`` is that of an eta/2-private
release. By the same concavity ``mu <= eps sqrt(pi/2)``, which is used for small eps. For rho see
the conversion from zCDP.

*Numerics.* Costs are raised by a relative 1e-12; sums are rounded up at every step.

.. [1] Dong, J., Roth, A. and Su, W. (2022). "Gaussian Differential Privacy." Journal of the Royal
   Statistical Society B 84(1), 3-37.
.. [2] Bun, M. and Steinke, T. (2016). "Concentrated Differential Privacy: Simplifications,
   Extensions, and Lower Bounds." TCC 2016-B.
.. [3] Cesar, M. and Rogers, R. (2021). "Bounding, Concentrating, and Truncating: Unifying Privacy
   Loss Composition for Data Analytics." ALT 2021.
.. [4] Canonne, C., Kamath, G. and Steinke, T. (2020). "The Discrete Gaussian for Differential
   Privacy." NeurIPS 2020.
.. [5] Kairouz, P., Oh, S. and Viswanath, P. (2015). "The Composition Theorem for Differential
   Privacy." ICML 2015.
.. [6] Dong, J., Durfee, D. and Rogers, R. (2020). "Optimal Differential Privacy Composition for
   Exponential Mechanisms." ICML 2020.
.. [7] van Zwet, W. R. (1964). "Convex Transformations of Random Variables." Mathematical Centre
   Tracts 7, Amsterdam.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from scipy.special import log_expit, log_ndtr, ndtri_exp

from dpmodels.errors import BudgetError
from dpmodels.privacy import budget
from dpmodels.privacy.budget import ApproxDP, PureDP
from dpmodels.privacy.calibrate import (
    LATTICE_LOSS,
    checked_shares,
    composed_eps,
    gaussian_eps,
    gaussian_multiplier,
    split_gaussian,
)
from dpmodels.privacy.events import (
    WRITE_MULTIPLIER,
    ApproxEvent,
    BoundedRangeEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PufferfishEvent,
    PureEvent,
    failing,
    unfailing,
)

# More than the rounding of a cost, and negligible.
_ROUND_UP: Final = 1 + 1e-10
_ROUND_DOWN: Final = 1 - 1e-12
# The shares of a division are printed decimals: their sum may be off by rounding.
_TOLERANCE: Final = 1e-9


def compose_gaussians(multipliers: Iterable[float]) -> float:
    """Return the multiplier of the one Gaussian release equivalent to several.

    ``(sum 1/m_i**2) ** -0.5`` of noise sds over L2 sensitivities; infinite for no release.

    >>> compose_gaussians([5.0, 5.0, 5.0, 5.0])
    2.5
    """
    numbers = (budget.positive_number("multipliers", m, WRITE_MULTIPLIER) for m in multipliers)
    norm = math.hypot(*(1 / number for number in numbers))
    return 1 / norm if norm > 0 else math.inf


def split(total: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Return parts of an eps, a rho or a delta, relative to the sum of the shares.

    They never add up to more than `total`, in exact arithmetic: the largest gives up what rounding
    would add.

    >>> split(0.3, shares=(1, 1, 1))
    (0.09999999999999999, 0.09999999999999999, 0.09999999999999999)
    """
    numbers, total_share = checked_shares(shares)
    parts = [total * number / total_share for number in numbers]
    largest = parts.index(max(parts))
    limit = Fraction(total) - sum(map(Fraction, parts[:largest] + parts[largest + 1 :]))
    while Fraction(parts[largest]) > limit:
        parts[largest] = math.nextafter(parts[largest], 0.0)
    return tuple(parts)


def pure_eps(
    event: LaplaceEvent | BoundedRangeEvent | PureEvent | ApproxEvent | PufferfishEvent,
) -> float:
    """Return the eps of one release of a non-Gaussian event, provided that it does not fail.

    Infinite for a release that is not differentially private.
    """
    if isinstance(event, PufferfishEvent):
        return math.inf
    return 1 / event.multiplier if isinstance(event, LaplaceEvent) else event.eps


def _rho(event: Event) -> float:
    match event:
        case GaussianEvent(multiplier):
            return 0.5 / multiplier / multiplier
        case BoundedRangeEvent(eps):
            return bounded_range_to_zcdp(eps)
        case PufferfishEvent():
            return math.inf
        case _:
            return pure_to_zcdp(pure_eps(event))


def _gathered(events: Iterable[Event]) -> tuple[float, dict[float, int]]:
    """Return the multiplier of all Gaussian events, and how often each pure eps occurs."""
    gaussian: Counter[float] = Counter()
    pure: Counter[float] = Counter()
    for event in events:
        if isinstance(event, GaussianEvent):
            gaussian[event.multiplier] += event.count
        else:
            pure[pure_eps(event)] += event.count
    norm = math.hypot(*(math.sqrt(count) / m for m, count in gaussian.items()))
    multiplier = 1 / norm if norm > 0 else math.inf
    return multiplier, dict(sorted(pure.items()))


def total_rho(events: Iterable[Event]) -> float:
    """Return the rho of zCDP that a composition satisfies: the sum over its events.

    Infinite if an event has its own delta.

    >>> total_rho((GaussianEvent(2.0), BoundedRangeEvent(1.0, count=2)))
    0.375
    """
    events = tuple(events)
    if failing(events):
        return math.inf
    return math.fsum(event.count * _rho(event) for event in events)


def total_eps(events: Iterable[Event], delta: float) -> float:
    """Return an eps at which a composition is (eps, delta)-differentially private.

    With `delta` zero the sum of the pure eps, infinite if an event is Gaussian. Exact for
    Gaussian events only, otherwise the smallest of three bounds. The events' own deltas are
    subtracted from `delta` first; infinite if they exceed it.

    >>> round(total_eps((GaussianEvent(10.0, count=1000),), delta=1e-6), 3)
    19.424
    >>> total_eps((LaplaceEvent(4.0), PureEvent(0.5)), delta=0.0)
    0.75
    """
    delta = budget.unit_number("delta", delta, "write delta=1e-6")
    events = tuple(events)
    lost = failing(events)
    if lost > delta * (1 + _TOLERANCE):
        return math.inf
    delta = delta - lost if lost < delta * (1 - _TOLERANCE) else 0.0
    events = unfailing(events)
    multiplier, pure = _gathered(events)
    multiplier *= 1 - LATTICE_LOSS
    if math.inf in pure:
        return math.inf
    gaussian = 0.0
    if math.isfinite(multiplier):
        gaussian = gaussian_eps(delta * _ROUND_DOWN, multiplier) * _ROUND_UP
    summed = gaussian + math.fsum(eps * count for eps, count in pure.items())
    if delta == 0 or not pure:
        return summed
    return min(
        summed,
        composed_eps(delta, multiplier, pure) * _ROUND_UP,
        zcdp_to_approx(total_rho(events), delta),
    )


def pure_to_zcdp(eps: float) -> float:
    """Return the rho of zCDP that every eps-differentially private release satisfies.

    ``eps**2 / 2`` (Bun and Steinke 2016, Proposition 1.4).

    >>> pure_to_zcdp(1.0)
    0.5
    """
    eps = budget.positive_number("eps", eps, "write eps=1.0")
    return eps * eps / 2


def bounded_range_to_zcdp(eps: float) -> float:
    """Return the rho of zCDP that every eps-bounded-range release satisfies.

    ``eps**2 / 8``, eps the length of the interval of privacy losses (Cesar and Rogers 2021).

    >>> bounded_range_to_zcdp(1.0)
    0.125
    """
    return pure_to_zcdp(eps) / 4


def gaussian_to_bounded_range(multiplier: float) -> float:
    """Return the longest interval of privacy losses that costs no more than Gaussian noise.

    A release whose losses lie in an interval of length
    ``2 log(Φ(1/(2 multiplier)) / Φ(-1/(2 multiplier)))`` is at every level at least as hard to
    distinguish from a neighbour's as Gaussian noise of that multiplier.

    *Proof.* A pair of distributions whose log ratio lies in an interval of length ε is a
    post-processing of a pair of coins with probabilities p and q, ``logit p - logit q = ε`` [6]_.
    These are at least as hard to distinguish as normal distributions at distance μ if
    ``Φ⁻¹(p) - Φ⁻¹(q) <= μ``: the trade-off curve of the coins consists of two lines, so by
    convexity it suffices to compare at their corner. For given ε the left side is largest at
    ``p = 1 - q``: the derivative of ``Φ⁻¹`` with respect to the logit, ``Φ(z) Φ(-z)/φ(z)`` at
    ``u = Φ(z)``, decreases on both sides of ``z = 0``, since the hazard h of the normal
    distribution has a derivative below 1, so ``h(z) - h(-z) < 2z`` (Sampford 1953). There it is
    ``2 Φ⁻¹(p)`` with ``ε = 2 logit p``.

    >>> round(gaussian_to_bounded_range(1.0), 3)
    1.614
    """
    half = 0.5 / budget.positive_number("multiplier", multiplier, "write multiplier=1.0")
    return 2 * float(log_ndtr(half) - log_ndtr(-half)) * (1 - 1e-9)


def zcdp_to_approx(rho: float, delta: float) -> float:
    """Return an eps at which every rho-zCDP release is (eps, delta)-private.

    The minimum over ``alpha > 1`` of ``alpha*rho + log(1 - 1/alpha) - log(alpha*delta)/(alpha -
    1)`` (Canonne, Kamath and Steinke 2020, Section 2.3), and zero at least. Purely Gaussian
    releases cost less: `total_eps` prices them exactly.

    >>> round(zcdp_to_approx(0.1, delta=1e-6), 3)
    2.142
    """
    from scipy.optimize import minimize_scalar

    rho = budget.finite_number("rho", rho, "write rho=0.1")
    delta = budget.unit_number("delta", delta, "write delta=1e-6")
    if rho <= 0 or delta == 0:
        raise BudgetError(
            f"rho={rho!r}, delta={delta!r}: both must be positive; write rho=0.1, delta=1e-6."
        )

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)  # alpha - 1
        log_order = math.log1p(excess)
        return (1 + excess) * rho + log_excess - log_order - (math.log(delta) + log_order) / excess

    centre = (math.log(1 - math.log(delta)) - math.log(rho)) / 2
    minimum = minimize_scalar(bound, bounds=(centre - 20, centre + 20), method="bounded")
    return max(float(minimum.fun), 0.0) * (1 + 1e-10)


def divide(
    total: budget.Guarantee, shares: Sequence[float], gaussian: Sequence[bool]
) -> tuple[budget.Guarantee, ...]:
    """Return the guarantees of stages that together satisfy one.

    *Pure and concentrated budgets* add up: a stage gets its share of eps or of rho. *Budgets of eps
    and delta*: all stages have the full delta. Stages of other noise get their share of eps; the
    Gaussian stages together get the rest, and divide ``1/m**2`` of its multiplier m, which is
    their exact composition. A ledger that reserves the former for pure releases (``pure=``)
    accepts all stages, one by one, provided that the eps of each stage's releases add up to its
    share.

    Shares are positive and add up to 1; `gaussian` says for each stage whether all its noise is
    Gaussian, which matters only with a delta.

    >>> divide(PureDP(1.0), (0.25, 0.75), (False, False))
    (PureDP(eps=0.25), PureDP(eps=0.75))
    >>> halves = divide(ApproxDP(1.0, 1e-6), (0.5, 0.5), (True, True))
    >>> [round(half.eps, 3) for half in halves]
    [0.689, 0.689]
    """
    parts = [budget.positive_number("shares", share, "write shares=(0.3, 0.7)") for share in shares]
    if abs(math.fsum(parts) - 1) > _TOLERANCE:
        raise BudgetError(f"shares add up to {math.fsum(parts):g}: write shares=(0.3, 0.7).")
    match total:
        case PureDP(eps):
            return tuple(map(PureDP, split(eps, parts)))
        case budget.ZCDP(rho):
            return tuple(map(budget.ZCDP, split(rho, parts)))
        case _:
            return _mixed(total, parts, gaussian)


def _mixed(
    total: ApproxDP, parts: list[float], gaussian: Sequence[bool]
) -> tuple[budget.Guarantee, ...]:
    gaussian_parts = [part for part, normal in zip(parts, gaussian, strict=True) if normal]
    levels = list(split(total.eps, parts))
    if len(gaussian_parts) > 1:
        # If all stages are Gaussian the sum is 1 up to rounding.
        eps = total.eps * (1.0 if len(gaussian_parts) == len(parts) else math.fsum(gaussian_parts))
        multiplier = gaussian_multiplier(replace(total, eps=eps))
        normal_levels = [
            gaussian_eps(total.delta, m) for m in split_gaussian(multiplier, gaussian_parts)
        ]
        positions = [position for position, normal in enumerate(gaussian) if normal]
        for position, level in zip(positions, normal_levels, strict=True):
            levels[position] = level
    if min(levels) <= 0:
        raise BudgetError(f"delta={total.delta:g} is too large to divide: write delta=1e-6.")
    return tuple(ApproxDP(level, total.delta) for level in levels)


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
    ) -> Totals:
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
