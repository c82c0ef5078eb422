"""The exact price of Gaussian noise, and the least noise for a price.

*Theorem.* Gaussian noise of standard deviation ``m`` times the L2 sensitivity is (eps,
delta)-differentially private if and only if, with ``mu = 1/m``,

    delta >= Phi(mu/2 - eps/mu) - exp(eps) * Phi(-mu/2 - eps/mu).

*Numerics.* With ``a = mu/2 - eps/mu``, phi the normal density and ``R(y) = Phi(-y)/phi(y)`` Mills'
ratio, the right side is ``phi(a) * (R(-a) - R(mu - a))``, whose difference is taken as the integral
of ``-R'(y) = 1 - y R(y)`` for small ``mu``: nothing cancels, nothing overflows. The solution for
``m`` is searched in floating point over ``a`` (where ``mu = a + sqrt(a**2 + 2 eps)``), enlarged by
2.5e-10 of itself, and then certified in 60 or more digits at a multiplier that is smaller by
1.5e-10: the sum of what noise on integers loses (:data:`LATTICE_LOSS`), of what a filter leaves for
the rounding of ``sum 1/m**2`` (1e-10), and of the rounding of products ``m * sensitivity``.

.. [1] Balle, B. and Wang, Y.-X. (2018). "Improving the Gaussian Mechanism for Differential Privacy:
   Analytical Calibration and Optimal Denoising." ICML 2018. Theorem 8.
.. [2] Bun, M. and Steinke, T. (2016). "Concentrated Differential Privacy: Simplifications,
   Extensions, and Lower Bounds." TCC 2016-B. Proposition 1.6.
"""

import math
import threading
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from scipy.special import erfcx, ndtr

from dpmodels.errors import BudgetError
from dpmodels.privacy.budget import (
    WRITE_DELTA,
    ApproxDP,
    Guarantee,
    PureDP,
    finite_number,
    positive_number,
    unit_number,
)
from dpmodels.typing import Floats

# Of the multiplier: discrete Gaussian noise of 2**20 lattice steps or more is as private as
# continuous noise of a multiplier smaller by 2**-35 (docs/theory.md, lemma of Theorem 10).
LATTICE_LOSS: Final = 3e-11
# Of the multiplier, see *Numerics*; and the smallest number above zero.
_MARGIN: Final = 2.5e-10
_RESERVE: Final = 1.5e-10
_TINY: Final = 5e-324
# phi(a) underflows below -39; beyond 40 delta is one to the last digit.
_EXTREME: Final = 40.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_ROOT_2PI: Final = math.sqrt(2 * math.pi)


def _mills(y: Floats) -> Floats:
    return math.sqrt(math.pi / 2) * np.asarray(erfcx(y / math.sqrt(2)))


def _delta_at(a: Floats, mu: float) -> Floats:
    """Return the hockey-stick divergence at eps = mu * (mu/2 - a) >= 0."""
    a = np.maximum(a, -25 * _EXTREME)
    density = np.exp(-a * a / 2) / _ROOT_2PI
    if mu < 1:
        y = mu * (_NODES + 1) / 2 - a[..., None]
        return np.asarray(density * (mu / 2) * ((1 - y * _mills(y)) @ _WEIGHTS))
    far = _mills(mu - a)
    return np.where(a <= 0, density * (_mills(np.maximum(-a, 0)) - far), ndtr(a) - density * far)


def hockey_stick(eps: Floats, multiplier: float) -> Floats:
    """Return the exact delta of Gaussian noise at every eps, of either sign and any shape."""
    mu = 1 / multiplier
    size = np.abs(eps)
    delta = _delta_at(mu / 2 - size / mu, mu)
    return np.where(eps < 0, -np.expm1(-size) + np.exp(-size) * delta, delta)


def gaussian_delta(eps: float, multiplier: float) -> float:
    """Return the smallest delta at which Gaussian noise is (eps, delta)-private.

    For eps from 0; the multiplier is the noise sd over the L2 sensitivity. Accurate to 1e-9 of
    itself down to 1e-300 for eps up to 1e9.

    >>> round(gaussian_delta(1.0, multiplier=1.0), 6)
    0.126937
    """
    eps = finite_number("eps", eps, "write eps=1.0")
    if eps < 0:
        raise BudgetError(f"eps={eps!r} is below zero: write eps=1.0.")
    multiplier = positive_number("multiplier", multiplier, "write multiplier=1.0")
    return float(hockey_stick(np.asarray(eps), multiplier))


def gaussian_eps(delta: float, multiplier: float) -> float:
    """Return the smallest eps at which Gaussian noise is (eps, delta)-private.

    For delta in [0, 1); infinite at ``delta=0``, as Gaussian noise has no pure guarantee.

    >>> round(gaussian_eps(1e-6, multiplier=10.0), 4)
    0.3969
    """
    delta = unit_number("delta", delta, "write delta=1e-6")
    multiplier = positive_number("multiplier", multiplier, "write multiplier=1.0")
    return _eps_of(delta, 1 / multiplier) if delta else math.inf


@lru_cache(maxsize=4096)
def _eps_of(delta: float, mu: float) -> float:
    from scipy.optimize import brentq

    def excess(a: float) -> float:
        return math.log(max(float(_delta_at(np.asarray(a), mu)), _TINY)) - math.log(delta)

    if excess(mu / 2) <= 0:
        return 0.0
    ends = -_EXTREME, mu / 2
    return mu * (mu / 2 - float(brentq(excess, *ends, xtol=1e-300, rtol=1e-15, maxiter=2_000)))


def _solved(eps: float, delta: float) -> float:
    from scipy.optimize import brentq

    def mu_at(a: float) -> float:
        root = math.sqrt(a * a + 2 * eps)
        return a + root if a > 0 else 2 * eps / (root - a)

    def excess(a: float) -> float:
        return math.log(max(float(_delta_at(np.asarray(a), mu_at(a))), _TINY)) - math.log(delta)

    return 1 / mu_at(float(brentq(excess, -_EXTREME, _EXTREME, xtol=1e-300, rtol=1e-15)))


_PRECISE: Final = threading.local()


def _context() -> Any:
    """Return a context of this thread: the precision of mpmath's global one is shared by all."""
    if not hasattr(_PRECISE, "context"):
        import mpmath

        _PRECISE.context = mpmath.MPContext()
    return _PRECISE.context


def _is_certified(eps: float, delta: float, multiplier: float) -> bool:
    context = _context()
    magnitudes = abs(math.log10(eps)) + 2 * abs(math.log10(multiplier))
    context.dps = 60 + math.ceil(magnitudes)
    mu = 1 / context.mpf(multiplier)
    near, far = (context.erfc((eps / mu + half) / context.sqrt(2)) for half in (-mu / 2, mu / 2))
    return bool(near - context.exp(eps) * far <= 2 * context.mpf(delta))


@lru_cache(maxsize=4096)
def gaussian_multiplier(guarantee: Guarantee) -> float:
    """Return the least Gaussian noise that satisfies a guarantee.

    The noise sd over the L2 sensitivity: at least the smallest that satisfies it, and at most 1e-9
    of itself more. A pure guarantee, which no Gaussian noise satisfies, is refused.

    >>> round(gaussian_multiplier(ApproxDP(eps=1.0, delta=1e-6)), 6)
    4.224679
    """
    if isinstance(guarantee, PureDP):
        raise BudgetError(
            f"{guarantee.describe()}, delta = 0 is asked of a Gaussian mechanism, which has no "
            f"pure guarantee: {WRITE_DELTA}, or budget=dp.ZCDP(rho); mechanism='auto' takes one "
            "that needs no delta where there is one."
        )
    if isinstance(guarantee, ApproxDP):
        least = _solved(guarantee.eps, guarantee.delta)
        margin = _MARGIN
        kept = least * (1 - _RESERVE)
        while not _is_certified(guarantee.eps, guarantee.delta, kept * (1 + margin)):
            margin *= 2
        return least * (1 + margin)
    multiplier = math.sqrt(0.5) / math.sqrt(guarantee.rho)
    while 2 * Fraction(guarantee.rho) * Fraction(multiplier) ** 2 < 1:
        multiplier = math.nextafter(multiplier, math.inf)
    return multiplier
