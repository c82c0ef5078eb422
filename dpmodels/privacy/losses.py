"""Gaussian and eps-private releases together: one exact curve of (eps, delta).

*Theorem.* Every eps-private release is dominated by randomised response, whose privacy loss is eps
with probability ``e**eps / (1 + e**eps)`` and -eps otherwise. If ``L`` is the loss of a composition
of those and ``H`` the hockey-stick curve of the Gaussian releases, the whole composition, adaptive
or not, satisfies ``delta(eps) = E[H(eps - L)]``.

Laplace noise is priced as randomised response too. A discrete Laplace release whose sensitivity is
one lattice step *is* randomised response, and has a larger delta than the continuous law of the
same scale.

*Numerics.* ``k`` equal releases have a binomial loss. Where the atoms get too many, each is spread
over its two neighbours on a grid so that its mass under both hypotheses is kept: that only adds
information, so the curve only rises.

.. [1] Kairouz, P., Oh, S. and Viswanath, P. (2015). "The Composition Theorem for Differential
   Privacy." ICML 2015.
.. [2] Zhu, Y., Dong, J. and Wang, Y.-X. (2022). "Optimal Accounting of Differential Privacy via
   Characteristic Function." AISTATS 2022.
.. [3] Doroshenko, V., Ghazi, B., Kamath, P., Kumar, R. and Manurangsi, P. (2022). "Connect the
   Dots: Tighter Discrete Approximations of Privacy Loss Distributions." PoPETs 2022(4).
"""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from scipy.special import gammaln

from dpmodels.privacy.calibrate import gaussian_eps, hockey_stick
from dpmodels.typing import Floats

# Choices: losses on the grid, and repeats of one eps, up to which a price takes milliseconds.
_ATOMS: Final = 2048
_MOST_REPEATS: Final = 100_000
# Room for the rounding of the binomial masses, which is below 1e-9 up to _MOST_REPEATS.
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
    place = np.minimum(((losses - lowest) / step).astype(np.intp), _ATOMS - 2)
    upper = np.clip(np.expm1(lowest + place * step - losses) / np.expm1(-step), 0, 1) * mass
    spread = np.zeros(_ATOMS)
    np.add.at(spread, place, mass - upper)
    np.add.at(spread, place + 1, upper)
    return lowest + step * np.arange(_ATOMS), spread


def _composed_losses(pure: Mapping[float, int]) -> tuple[Floats, Floats]:
    losses, mass = np.zeros(1), np.ones(1)
    for eps, count in pure.items():
        more, chances = _coarsened(*_binomial_losses(eps, count))
        losses, mass = _coarsened(
            np.add.outer(losses, more).ravel(), np.multiply.outer(mass, chances).ravel()
        )
    return losses, mass


def composed_eps(delta: float, multiplier: float, pure: Mapping[float, int]) -> float:
    """Return an eps at which Gaussian and pure releases together are (eps, delta)-private.

    `pure` counts releases by eps; `multiplier` is that of all Gaussian ones, infinite if there is
    none. Never below the smallest eps, above it by the coarsening of the losses; infinite if one
    eps is repeated more than 100,000 times.
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

    most = math.fsum(eps * count for eps, count in pure.items())
    if math.isfinite(multiplier):
        most += gaussian_eps(delta, multiplier)
    if excess(0.0) <= 0:
        return 0.0
    if excess(most) >= 0:
        return most
    return float(brentq(excess, 0.0, most, xtol=1e-300, rtol=1e-14))
