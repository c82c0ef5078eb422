"""The optimal conversion of zCDP: what it implies for one event.

*Theorem.* Two releases satisfy rho-zCDP if ``D_alpha <= alpha rho`` for every
order above 1 and in both directions. Whether an event occurred is
post-processing, so its probabilities p and q satisfy

    log(p^alpha q^(1 - alpha) + (1 - p)^alpha (1 - q)^(1 - alpha)) <= alpha (alpha - 1) rho,

and the same with p and q exchanged. For given q, let ``p(q)`` be the largest
such p. Divergences are quasi-convex [2]_, so the allowed pairs form a convex set
and ``g(q) = p(q) - e^eps q`` is concave: between two points of a grid it lies
below the lines through the two points before and the two points after. The
largest value of these bounds is a delta at eps, and no conversion that uses
one order at a time gives a smaller one, up to the grid. Omitting orders
only weakens the claim.

References
----------
.. [1] Bun, M. and Steinke, T. (2016). "Concentrated Differential Privacy:
   Simplifications, Extensions, and Lower Bounds." TCC 2016-B.
.. [2] van Erven, T. and Harremoes, P. (2014). "Renyi Divergence and
   Kullback-Leibler Divergence." IEEE Transactions on Information Theory 60(7).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from dpmodels.typing import Floats

# Choices. Omitting orders only weakens the claim.
_ORDERS: Final = 1 + np.geomspace(0.02, 2e3, 40)
_LEAST: Final = 1e-14  # the smallest probability of the grid
_HALVINGS: Final = 36  # to 1e-11 of a probability
_MORE_HALVINGS: Final = 70  # to the last digits of misses above 1e-15

# Probabilities of an event under one release, and of its complement.
Event = tuple[Floats, Floats]


def zcdp_profile(eps: Floats, rho: float) -> Floats:
    """Return the smallest delta that rho-zCDP implies for events, at each nonnegative eps.

    >>> delta = zcdp_profile(np.array([0.5, 2.0]), 0.1)
    >>> bool(0.05 < delta[0] < 0.1), bool(delta[1] < 1e-4)
    (True, True)
    """
    rare, largest = _largest(rho)
    heights = largest - np.exp(eps)[..., None] * rare
    widths = np.diff(rare)
    slopes = np.diff(heights) / widths
    ahead = heights[..., 1:-2] + np.maximum(slopes[..., :-2], 0) * widths[1:-1]
    back = heights[..., 2:-1] + np.maximum(-slopes[..., 2:], 0) * widths[1:-1]
    inner = np.minimum(ahead, back).max(axis=-1)
    # Before the first point only monotonicity of p is known.
    return np.asarray(np.clip(np.maximum(inner, largest[1]), 0.0, 1.0))


def zcdp_misses(alarms: Floats, rho: float) -> Floats:
    """Return the smallest miss rates that rho-zCDP allows at false alarm rates in [0, 1].

    >>> zcdp_misses(np.array([0.0, 0.05, 1.0]), 0.5).round(3).tolist()
    [1.0, 0.664, 0.0]
    """
    rates = np.clip(np.ravel(alarms), 1e-300, 1 - 1e-16)
    low, high = np.zeros_like(rates), 1 - rates
    for _ in range(_MORE_HALVINGS):
        middle = np.where(low > 0, np.sqrt(low * high), high / 16)
        middle = np.where(high > 2 * low, middle, (low + high) / 2)
        powers = (1 - middle, middle), (rates, 1 - rates)
        excess = np.maximum(_excess(*powers, rho), _excess(*powers[::-1], rho))
        low, high = np.where(excess <= 0, low, middle), np.where(excess <= 0, middle, high)
    misses = np.select([np.ravel(alarms) <= 0, np.ravel(alarms) >= 1], [1.0, 0.0], low)
    return np.asarray(misses.reshape(np.shape(alarms)))


def least_rho(p: Floats, q: Floats) -> Floats:
    """Return the smallest rho under which an event may have both probabilities, in (0, 1).

    >>> bool(least_rho(np.array([0.69]), np.array([0.31]))[0] < 0.5)
    True
    """
    order = _ORDERS[:, None]
    flat = np.ravel(p), np.ravel(q)
    rates = [(rate, 1 - rate) for rate in flat]
    rhos = [_divergence(*pair) / (order * (order - 1)) for pair in (rates, rates[::-1])]
    return np.asarray(np.max(rhos, axis=(0, 1)).reshape(np.shape(p)))


@lru_cache(maxsize=256)
def _largest(rho: float) -> tuple[Floats, Floats]:
    """Return probabilities, and the largest probability of the other release with each."""
    lower = np.geomspace(_LEAST, 0.5, 200)
    rare = np.concatenate([lower, 1 - lower[-2::-1]])
    low, high = rare.copy(), np.ones_like(rare)
    for _ in range(_HALVINGS):
        middle = np.where(low < 0.01, np.sqrt(low * high), (low + high) / 2)
        rates = (middle, 1 - middle), (rare, 1 - rare)
        excess = np.maximum(_excess(*rates, rho), _excess(*rates[::-1], rho))
        within = excess <= 0
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    return np.append(rare, 1.0), np.append(high, 1.0)


def _excess(p: Event, q: Event, rho: float) -> Floats:
    """Return the largest excess over all orders of a divergence over its bound."""
    order = _ORDERS[:, None]
    return np.asarray((_divergence(p, q) - order * (order - 1) * rho).max(axis=0))


def _divergence(p: Event, q: Event) -> Floats:
    """Return ``(alpha - 1) D_alpha`` of two events, one line per order."""
    with np.errstate(divide="ignore"):
        present, absent = ((np.log(left), np.log(right)) for left, right in zip(p, q, strict=True))
    order = _ORDERS[:, None]
    sides = [order * log_p + (1 - order) * log_q for log_p, log_q in (present, absent)]
    return np.asarray(np.logaddexp(*sides))
