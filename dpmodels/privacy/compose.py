"""The price of several releases together.

*Gaussian releases* of multipliers ``m_i`` cost exactly what one of multiplier
``m`` costs, ``1/m**2 = sum 1/m_i**2``. *Pure releases* add their eps. *Mixtures*
take the smallest of three valid bounds: the exact curve of `losses`, the sum of
the Gaussian's exact eps and the pure ones, and the conversion from zCDP.

Everything is linear in an event's count, and a price computed with rounding is
raised by 1e-10 of itself.

References
----------
.. [1] Dong, J., Roth, A. and Su, W. (2022). "Gaussian Differential Privacy."
   Journal of the Royal Statistical Society B 84(1), 3-37.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from dpmodels.errors import BudgetError
from dpmodels.privacy.budget import positive_number, unit_number
from dpmodels.privacy.calibrate import gaussian_eps
from dpmodels.privacy.concentrated import (
    bounded_range_to_zcdp,
    pure_to_zcdp,
    zcdp_to_approx,
)
from dpmodels.privacy.events import (
    BoundedRangeEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
)
from dpmodels.privacy.losses import composed_eps

_ROUND_UP: Final = 1 + 1e-10
_ROUND_DOWN: Final = 1 - 1e-12


def compose_gaussians(multipliers: Iterable[float]) -> float:
    """Return the multiplier of the one Gaussian release that several amount to.

    Parameters
    ----------
    multipliers : iterable of float
        Noise standard deviations divided by their L2 sensitivities, above zero.

    Returns
    -------
    float
        ``(sum 1/m_i**2) ** -0.5``; infinite for none.

    Raises
    ------
    BudgetError
        If a multiplier is not a finite number above zero.

    Examples
    --------
    >>> compose_gaussians([5.0, 5.0, 5.0, 5.0])
    2.5
    """
    write = "give the noise scale divided by the sensitivity"
    norm = math.hypot(*(1 / positive_number("multipliers", m, write) for m in multipliers))
    return 1 / norm if norm > 0 else math.inf


def split_gaussian(multiplier: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Return multipliers of releases that together cost what one Gaussian release costs.

    Parameters
    ----------
    multiplier : float
        Of the one release, above zero.
    shares : sequence of float
        Relative shares of the budget ``1/multiplier**2``, each above zero; they
        are divided by their sum.

    Returns
    -------
    tuple of float
        One multiplier for each share.

    Raises
    ------
    BudgetError
        If there is no share, or a number is not finite and above zero.

    Examples
    --------
    >>> split_gaussian(2.0, shares=(3, 1))
    (2.309..., 4.0)
    """
    multiplier = positive_number("multiplier", multiplier, "write multiplier=1.0")
    if len(shares) == 0:
        raise BudgetError("shares is empty: write shares=(1, 1) for two equal parts.")
    parts = [positive_number("shares", share, "write shares=(1, 1)") for share in shares]
    total = math.fsum(parts)
    return tuple(multiplier * math.sqrt(total / part) for part in parts)


def pure_eps(event: LaplaceEvent | BoundedRangeEvent | PureEvent) -> float:
    """Return the eps of one release of an event that has a pure guarantee."""
    return 1 / event.multiplier if isinstance(event, LaplaceEvent) else event.eps


def _rho(event: Event) -> float:
    match event:
        case GaussianEvent(multiplier):
            return 0.5 / multiplier / multiplier
        case BoundedRangeEvent(eps):
            return bounded_range_to_zcdp(eps)
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
    """Return the rho of zCDP that a composition satisfies.

    Parameters
    ----------
    events : iterable of events
        The releases.

    Returns
    -------
    float
        The sum of their rho; zero for none.

    Examples
    --------
    >>> total_rho((GaussianEvent(2.0), BoundedRangeEvent(1.0, count=2)))
    0.375
    """
    return math.fsum(event.count * _rho(event) for event in events)


def total_eps(events: Iterable[Event], delta: float) -> float:
    """Return an eps at which a composition is (eps, delta)-differentially private.

    Parameters
    ----------
    events : iterable of events
        The releases.
    delta : float
        In [0, 1).

    Returns
    -------
    float
        Zero for no events. With `delta` zero the sum of the pure eps, infinite
        where an event is Gaussian. Exact for Gaussian events alone, otherwise
        the smallest of three bounds.

    Raises
    ------
    BudgetError
        If `delta` lies outside its range.

    Examples
    --------
    >>> round(total_eps((GaussianEvent(10.0, count=1000),), delta=1e-6), 3)
    19.424
    >>> total_eps((LaplaceEvent(4.0), PureEvent(0.5)), delta=0.0)
    0.75
    """
    delta = unit_number("delta", delta, "write delta=1e-6")
    events = tuple(events)
    multiplier, pure = _gathered(events)
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
