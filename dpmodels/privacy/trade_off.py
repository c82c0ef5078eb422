"""Interpretation of a guarantee: bounds on tests, guesses and posteriors by one trade-off curve.

A test decides from which of two neighbouring tables a release came. ``f(alpha)`` is the smallest
miss rate of a test with false alarm rate alpha; ``p = 1 - f`` is its largest power.

* (eps, delta) [1]_ [2]_: ``max(0, 1 - delta - e^eps alpha, e^-eps (1 - delta - alpha))``.
* Gaussian noise of multiplier ``1/mu`` [3]_: ``Phi(Phi^-1(1 - alpha) - mu)``.
* rho-zCDP: :func:`dpmodels.privacy.concentrated.zcdp_misses`.

These curves are convex and symmetric: f is its own inverse.

*Groups.* Between tables that differ in k units lie k - 1 others. A test that rejects the first at
rate alpha rejects the next at a rate of at most p(alpha), the following one at most p(p(alpha)),
since p increases. The curve of this ``p`` is convex and symmetric too [3]_.

*Advantage.* ``1 - alpha - f(alpha)`` is largest where ``f(alpha) = alpha``: the reflection of a
point of the curve is on the curve, and their midpoint has the same sum and lies on the diagonal.

*Posterior.* Let S be the outputs that raise the odds of the first hypothesis more than r-fold.
With ``P(S) = b``, ``Q(S) < b / r`` and ``Q(S) >= f(1 - b)``, since f is its own inverse. Since
``f(1 - b) / b`` increases with b, ``r = beta / f(1 - beta)`` is exceeded with probability beta at
most. Without delta r is ``e^eps`` for every beta. Merging the outputs of S shows that no smaller
bound holds for all releases with the curve.

*Numerics.* Idealised: floating point, to 1e-12.

.. [1] Wasserman, L. and Zhou, S. (2010). "A statistical framework for differential privacy."
   JASA 105, 375-389.
.. [2] Kairouz, P., Oh, S. and Viswanath, P. (2015). "The Composition Theorem for Differential
   Privacy." ICML 2015.
.. [3] Dong, J., Roth, A. and Su, W. (2022). "Gaussian Differential Privacy." Journal of the Royal
   Statistical Society B 84(1), 3-37.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import ndtr, ndtri

from dpmodels.privacy.budget import ZCDP, ApproxDP, Guarantee, PureDP
from dpmodels.privacy.compose import compose_gaussians, total_eps
from dpmodels.privacy.concentrated import zcdp_misses
from dpmodels.privacy.events import Event, GaussianEvent
from dpmodels.typing import Floats

Curve = Guarantee | GaussianEvent


def approx_misses(alarms: Floats, eps: float, delta: float) -> Floats:
    """Return the smallest miss rates under (eps, delta), at false alarm rates in [0, 1].

    >>> approx_misses(np.array([0.0, 0.05, 1.0]), 1.0, 0.0).round(3).tolist()
    [1.0, 0.864, 0.0]
    """
    with np.errstate(divide="ignore"):
        steep = np.exp(np.minimum(eps + np.log(alarms), 0.0))
    flat = math.exp(-eps) * (1 - delta - alarms)
    return np.asarray(np.maximum(1 - delta - steep, flat).clip(0.0))


def gaussian_misses(alarms: Floats, mu: float) -> Floats:
    """Return the smallest miss rates under Gaussian noise of multiplier ``1/mu``.

    >>> gaussian_misses(np.array([0.05]), 1.0).round(3).tolist()
    [0.74]
    """
    return np.asarray(ndtr(-ndtri(alarms) - mu))


def misses(curve: Curve, alarms: Floats, units: int = 1) -> Floats:
    """Return the smallest miss rates of tests, at false alarm rates in [0, 1].

    For neighbours that differ in `units` rows or persons.

    >>> misses(ZCDP(0.5), np.array([0.05])).round(3).tolist()
    [0.664]
    """
    for _ in range(units - 1):
        alarms = 1 - misses(curve, alarms)
    match curve:
        case PureDP(eps):
            return approx_misses(alarms, eps, 0.0)
        case ApproxDP(eps, delta):
            return approx_misses(alarms, eps, delta)
        case ZCDP(rho):
            return zcdp_misses(alarms, rho)
        case gaussian:
            return gaussian_misses(alarms, 1 / gaussian.multiplier)


def power(curve: Curve, alpha: float, units: int = 1) -> float:
    """Return the largest power of a test of level `alpha` in (0, 1).

    >>> round(power(PureDP(1.0), 0.05), 3)
    0.136
    """
    return 1 - float(misses(curve, np.array([alpha]), units)[0])


def advantage(curve: Curve, units: int = 1) -> float:
    """Return the largest excess of power over level: the total variation of two releases.

    >>> round(advantage(PureDP(1.0)), 3)
    0.462
    """
    from scipy.optimize import brentq

    def above(alpha: float) -> float:
        return float(misses(curve, np.array([alpha]), units)[0]) - alpha

    return 1 - 2 * float(brentq(above, 0.0, 0.5, xtol=1e-13))


def odds_factor(curve: Curve, beta: float, units: int = 1) -> float:
    """Return the largest factor on odds, except for outputs of probability `beta`; may be infinite.

    Without delta it holds for all outputs.

    >>> round(odds_factor(PureDP(1.0), 0.05), 3), round(odds_factor(ApproxDP(1.0, 0.01), 0.05), 3)
    (2.718, 3.398)
    """
    if isinstance(curve, PureDP):
        return math.exp(units * curve.eps) if units * curve.eps < 700 else math.inf
    miss_rate = float(misses(curve, np.array([1 - beta]), units)[0])
    return beta / miss_rate if miss_rate > 0 else math.inf


def shifted(prior: float, factor: float) -> float:
    """Return the probability whose odds are `factor` times those of `prior`.

    >>> round(shifted(0.5, math.e), 3), shifted(0.5, math.inf)
    (0.731, 1.0)
    """
    return prior / (prior + (1 - prior) / factor) if factor > 0 else 0.0


def curve_of(events: Iterable[Event]) -> Curve | None:
    """Return the curve of releases that are all Gaussian, or all without delta, else None.

    >>> curve_of([GaussianEvent(2.0, count=4)])
    GaussianEvent(multiplier=1.0, count=1)
    """
    events = tuple(events)
    gaussian = [event for event in events if isinstance(event, GaussianEvent)]
    if gaussian and len(gaussian) == len(events):
        return GaussianEvent(
            compose_gaussians([event.multiplier / math.sqrt(event.count) for event in gaussian])
        )
    eps = total_eps(events, 0.0)
    return PureDP(eps) if 0 < eps < math.inf else None
