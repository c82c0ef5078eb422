"""The exact privacy cost of Gaussian noise, and the smallest noise for a guarantee.

*Theorem.* Gaussian noise of standard deviation ``m`` times the L2 sensitivity is (eps,
delta)-differentially private if and only if, with ``mu = 1/m``,

    delta >= Phi(mu/2 - eps/mu) - exp(eps) * Phi(-mu/2 - eps/mu).

*Numerics.* With ``a = mu/2 - eps/mu``, phi the normal density and ``R(y) = Phi(-y)/phi(y)`` Mills'
ratio, the right side is ``phi(a) * (R(-a) - R(mu - a))``. For small ``mu`` the difference is
computed as the integral of ``-R'(y) = 1 - y R(y)``, without cancellation or overflow. The solution
for ``m`` is searched in floating point over ``a`` (where ``mu = a + sqrt(a**2 + 2 eps)``) and
enlarged by a relative 2.5e-10. It is then certified with 60 or more digits at a multiplier smaller
by a relative 1.5e-10, the sum of three margins: noise on integers (:data:`LATTICE_LOSS`), the
rounding of ``sum 1/m**2`` in a filter (1e-10), and the rounding of products ``m * sensitivity``.

.. [1] Balle, B. and Wang, Y.-X. (2018). "Improving the Gaussian Mechanism for Differential Privacy:
   Analytical Calibration and Optimal Denoising." ICML 2018. Theorem 8.
.. [2] Bun, M. and Steinke, T. (2016). "Concentrated Differential Privacy: Simplifications,
   Extensions, and Lower Bounds." TCC 2016-B. Proposition 1.6.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import erfcx, gammaln, ndtr

from dpmodels.errors import BudgetError
from dpmodels.privacy import budget
from dpmodels.privacy.budget import ApproxDP
from dpmodels.typing import Floats

if TYPE_CHECKING:
    import mpmath

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
    tail = _mills(mu - a)
    return np.where(a <= 0, density * (_mills(np.maximum(-a, 0)) - tail), ndtr(a) - density * tail)


def hockey_stick(eps: Floats, multiplier: float) -> Floats:
    """Return the exact delta of Gaussian noise at every eps, of either sign and any shape."""
    mu = 1 / multiplier
    size = np.abs(eps)
    delta = _delta_at(mu / 2 - size / mu, mu)
    return np.where(eps < 0, -np.expm1(-size) + np.exp(-size) * delta, delta)


def gaussian_delta(eps: float, multiplier: float) -> float:
    """Return the smallest delta at which Gaussian noise is (eps, delta)-private.

    For nonnegative eps; the multiplier is the noise sd over the L2 sensitivity. The relative error
    is at most 1e-9 down to 1e-300, for eps up to 1e9.

    >>> round(gaussian_delta(1.0, multiplier=1.0), 6)
    0.126937
    """
    eps = budget.finite_number("eps", eps, "write eps=1.0")
    if eps < 0:
        raise BudgetError(f"eps={eps!r} is negative: write eps=1.0.")
    multiplier = budget.positive_number("multiplier", multiplier, "write multiplier=1.0")
    return float(hockey_stick(np.asarray(eps), multiplier))


def gaussian_eps(delta: float, multiplier: float) -> float:
    """Return the smallest eps at which Gaussian noise is (eps, delta)-private.

    For delta in [0, 1); infinite at ``delta=0``, as Gaussian noise has no pure guarantee.

    >>> round(gaussian_eps(1e-6, multiplier=10.0), 4)
    0.3969
    """
    delta = budget.unit_number("delta", delta, "write delta=1e-6")
    multiplier = budget.positive_number("multiplier", multiplier, "write multiplier=1.0")
    return _eps_of(delta, 1 / multiplier) if delta else math.inf


@lru_cache(maxsize=4096)
def _eps_of(delta: float, mu: float) -> float:
    from scipy.optimize import brentq

    def excess(a: float) -> float:
        return math.log(max(float(_delta_at(np.asarray(a), mu)), _TINY)) - math.log(delta)

    if excess(mu / 2) <= 0:
        return 0.0
    bracket = -_EXTREME, mu / 2
    return mu * (mu / 2 - float(brentq(excess, *bracket, xtol=1e-300, rtol=1e-15, maxiter=2_000)))


def _solved(eps: float, delta: float) -> float:
    from scipy.optimize import brentq

    def mu_at(a: float) -> float:
        root = math.sqrt(a * a + 2 * eps)
        return a + root if a > 0 else 2 * eps / (root - a)

    def excess(a: float) -> float:
        return math.log(max(float(_delta_at(np.asarray(a), mu_at(a))), _TINY)) - math.log(delta)

    return 1 / mu_at(float(brentq(excess, -_EXTREME, _EXTREME, xtol=1e-300, rtol=1e-15)))


_PRECISE: Final = threading.local()


def _context() -> mpmath.MPContext:
    """Return this thread's context, since threads share the precision of mpmath's global one."""
    if not hasattr(_PRECISE, "context"):
        import mpmath

        _PRECISE.context = mpmath.MPContext()
    return _PRECISE.context


def _is_certified(eps: float, delta: float, multiplier: float) -> bool:
    context = _context()
    magnitudes = abs(math.log10(eps)) + 2 * abs(math.log10(multiplier))
    context.dps = 60 + math.ceil(magnitudes)
    mu = 1 / context.mpf(multiplier)
    body, tail = (context.erfc((eps / mu + half) / context.sqrt(2)) for half in (-mu / 2, mu / 2))
    return bool(body - context.exp(eps) * tail <= 2 * context.mpf(delta))


@lru_cache(maxsize=4096)
def gaussian_multiplier(guarantee: budget.Guarantee) -> float:
    """Return the smallest Gaussian noise multiplier that satisfies a guarantee.

    The noise sd over the L2 sensitivity, rounded up by a relative 1e-9 at most. A pure guarantee,
    which no Gaussian noise satisfies, is refused.

    >>> round(gaussian_multiplier(ApproxDP(eps=1.0, delta=1e-6)), 6)
    4.224679
    """
    if isinstance(guarantee, budget.PureDP):
        raise BudgetError(
            "delta = 0 is requested of a Gaussian mechanism, which has no pure guarantee: "
            f"{budget.WRITE_DELTA}, or budget=dp.ZCDP(rho). Where a verb has a mechanism without "
            "delta, mechanism='auto' chooses it."
        )
    if isinstance(guarantee, ApproxDP):
        smallest = _solved(guarantee.eps, guarantee.delta)
        margin = _MARGIN
        reduced = smallest * (1 - _RESERVE)
        while not _is_certified(guarantee.eps, guarantee.delta, reduced * (1 + margin)):
            margin *= 2
        return smallest * (1 + margin)
    multiplier = math.sqrt(0.5) / math.sqrt(guarantee.rho)
    while 2 * Fraction(guarantee.rho) * Fraction(multiplier) ** 2 < 1:
        multiplier = math.nextafter(multiplier, math.inf)
    return multiplier


# Gaussian and eps-private releases together: one exact curve of (eps, delta).
#
# *Theorem.* Every eps-private release is dominated by randomised response, whose privacy loss is
# eps with probability ``e**eps / (1 + e**eps)`` and -eps otherwise. If ``L`` is the loss of a
# composition of those and ``H`` the hockey-stick curve of the Gaussian releases, the whole
# composition, adaptive or not, satisfies ``delta(eps) = E[H(eps - L)]``.
#
# Laplace noise is priced as randomised response too. A discrete Laplace release whose sensitivity
# is one lattice step *is* randomised response, and has a larger delta than continuous Laplace noise
# of the same scale.
#
# *Numerics.* ``k`` equal releases have a binomial loss. If there are too many atoms, each is spread
# over its two neighbours on a grid, preserving its mass under both hypotheses: that only adds
# information, so the curve only rises.
#
# .. [1] Kairouz, P., Oh, S. and Viswanath, P. (2015). "The Composition Theorem for Differential
#    Privacy." ICML 2015.
# .. [2] Zhu, Y., Dong, J. and Wang, Y.-X. (2022). "Optimal Accounting of Differential Privacy via
#    Characteristic Function." AISTATS 2022.
# .. [3] Doroshenko, V., Ghazi, B., Kamath, P., Kumar, R. and Manurangsi, P. (2022). "Connect the
#    Dots: Tighter Discrete Approximations of Privacy Loss Distributions." PoPETs 2022(4).

# Choices that keep the time in milliseconds: losses on the grid, and repeats of one eps.
_ATOMS: Final = 2048
_MOST_REPEATS: Final = 100_000
# Allowance for the rounding of the binomial masses, which is below 1e-9 up to _MOST_REPEATS.
_SLACK: Final = 1e-8


def _binomial_losses(eps: float, count: int) -> tuple[Floats, Floats]:
    """Return the losses of `count` randomised responses and their probabilities."""
    yes = np.arange(count + 1, dtype=np.float64)
    log_ways = gammaln(count + 1.0) - gammaln(yes + 1) - gammaln(count - yes + 1)
    mass = np.exp(log_ways - count * math.log1p(math.exp(-eps)) - (count - yes) * eps)
    possible = mass > 0
    return eps * (2 * yes - count)[possible], mass[possible]


def _coarsened(losses: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Return at most `_ATOMS` atoms whose curve is nowhere below that of the given ones."""
    if losses.size <= _ATOMS:
        return losses, mass
    lowest = losses.min()
    step = (losses.max() - lowest) / (_ATOMS - 1)
    index = np.minimum(((losses - lowest) / step).astype(np.intp), _ATOMS - 2)
    upper = np.clip(np.expm1(lowest + index * step - losses) / np.expm1(-step), 0, 1) * mass
    spread = np.zeros(_ATOMS)
    np.add.at(spread, index, mass - upper)
    np.add.at(spread, index + 1, upper)
    return lowest + step * np.arange(_ATOMS), spread


def _composed_losses(pure: Mapping[float, int]) -> tuple[Floats, Floats]:
    losses, mass = np.zeros(1), np.ones(1)
    for eps, count in pure.items():
        pure_losses, chances = _coarsened(*_binomial_losses(eps, count))
        losses, mass = _coarsened(
            np.add.outer(losses, pure_losses).ravel(), np.multiply.outer(mass, chances).ravel()
        )
    return losses, mass


def composed_eps(delta: float, multiplier: float, pure: Mapping[float, int]) -> float:
    """Return an eps at which Gaussian and pure releases together are (eps, delta)-private.

    `pure` counts releases by eps; `multiplier` is that of all Gaussian releases, infinite without
    any. An upper bound of the smallest eps, exact up to the coarsening of the losses; infinite if
    one eps is repeated more than 100,000 times.
    """
    from scipy.optimize import brentq

    if max(pure.values(), default=0) > _MOST_REPEATS:
        return math.inf
    losses, mass = _composed_losses(pure)

    def curve(eps: Floats) -> Floats:
        if math.isfinite(multiplier):
            return hockey_stick(eps, multiplier)
        return -np.expm1(np.minimum(eps, 0))

    def excess(eps: float) -> float:
        total = float(mass @ curve(eps - losses))
        return math.log(max(total, 5e-324)) - math.log(delta * (1 - _SLACK))

    upper = math.fsum(eps * count for eps, count in pure.items())
    if math.isfinite(multiplier):
        upper += gaussian_eps(delta, multiplier)
    if excess(0.0) <= 0:
        return 0.0
    if excess(upper) >= 0:
        return upper
    return float(brentq(excess, 0.0, upper, xtol=1e-300, rtol=1e-14))


def split_gaussian(multiplier: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Return multipliers of releases that together cost the same as one Gaussian release.

    Each gets its share of the budget ``1/multiplier**2``, relative to the sum of the shares.

    >>> split_gaussian(2.0, shares=(3, 1))
    (2.309..., 4.0)
    """
    multiplier = budget.positive_number("multiplier", multiplier, "write multiplier=1.0")
    parts, total_share = checked_shares(shares)
    return tuple(multiplier * math.sqrt(total_share / part) for part in parts)


def checked_shares(shares: Sequence[float]) -> tuple[list[float], float]:
    """Return the parts of a budget and their sum; BudgetError unless all are positive."""
    if len(shares) == 0:
        raise BudgetError("shares is empty: write shares=(1, 1) for two equal parts.")
    parts = [budget.positive_number("shares", share, "write shares=(1, 1)") for share in shares]
    return parts, math.fsum(parts)
