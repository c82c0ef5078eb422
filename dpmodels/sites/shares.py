"""How much noise each site adds, so that the honest ones hide every row.

Theorem
    Let ``h`` honest sites each add to integers ``x_s`` independent discrete
    Gaussians of scales ``f·σ_i``, i a coordinate, and let everyone else see no
    more than the sum of what the honest sites send. If one site's integers
    move by ``Δ`` with ``Σ_i Δ_i²/σ_i² ≤ 1/m²``, the view is no easier to tell
    apart than a release of discrete Gaussian noise in ``h`` times as many
    coordinates of multiplier ``m``, where

        f² h = 1 + m² Σ_i ⌊h²/4⌋/σ_i² .

Proof
    A sum of discrete Gaussians is not a discrete Gaussian, and it need not be
    one. The view is a function of the vector of all honest noise, and it moves
    by ``Δ`` when each ``Δ_i`` is divided between the sites' noise in whole
    steps: r of them get ``⌈Δ_i/h⌉`` and the others ``⌊Δ_i/h⌋``, whose squares
    have the sum ``Δ_i²/h + r(h - r)/h``. So the vector moves by at most
    ``(1/m² + Σ_i ⌊h²/4⌋/σ_i²)/(f² h) = 1/m²`` in squared units of its own
    noise, and what follows from that vector is post-processing. The zCDP
    parameter of integer shifts of discrete Gaussians is exact; for (ε, δ)
    every scale is at least 2²⁰ steps, as it is where one site adds the noise.

    *Masks that leak.* If each honest site sends its own noisy integers plus
    masks, where ``e`` pairs of honest sites connect all of them and a pair's
    masks are a discrete Gaussian of scale ``r σ_i`` and its negative, the same
    shift of the whole view is made by moving each ``Δ_i`` along a tree of
    pairs: the parts have one sign, so no pair moves by more than ``Δ_i``, and
    the h - 1 pairs add at most ``(h - 1)/(r² m²)``: f² grows by
    ``1/(1 - (h - 1)/r²)``.

References
----------
.. [1] Canonne, C., Kamath, G. and Steinke, T. (2020). "The discrete Gaussian
   for differential privacy." NeurIPS.
.. [2] Kairouz, P., Liu, Z. and Steinke, T. (2021). "The distributed discrete
   Gaussian mechanism for federated learning with secure aggregation." ICML.
   How near the sum itself is to a discrete Gaussian; not needed here.
"""

from __future__ import annotations

import math

from dpmodels.errors import ArgumentError, said
from dpmodels.mechanisms.add_noise import SMALLEST_SCALE
from dpmodels.typing import Floats

# Covers the rounding of every product and root of floats.
ROUND_UP = 1 + 1e-12


def noise_share(honest: int, multiplier: float, own: Floats, leak: float = 0.0) -> float:
    """Return the scale of a site's noise over the planned one, of scales `own` in lattice steps.

    `leak` is the part of the budget that masks leak, in [0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> noise_share(4, 1.0, np.full(3, 2.0**40))
    0.5000000000005
    """
    return max(least_factor(honest, multiplier, own, leak), SMALLEST_SCALE / float(own.min()))


def least_factor(honest: int, multiplier: float, own: Floats, leak: float = 0.0) -> float:
    """Return the same for scales of any size, for zCDP.

    Examples
    --------
    >>> import numpy as np
    >>> least_factor(1, 1.0, np.ones(3))
    1.000000000001
    """
    rounding = multiplier**2 * (honest**2 // 4) * float((own**-2.0).sum())
    return math.sqrt((1 + rounding) / (honest * (1 - leak))) * ROUND_UP


def honest_sites(sites: int, protocol: str, colluders: object, dropouts: object = 0) -> int:
    """Return how many sites are left when some tell all they know, and some do not answer."""
    left = sites
    for word, number in (("colluders", colluders), ("dropouts", dropouts)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ArgumentError(
                f"{word}={said(number)} of protocol {protocol!r}: expected a whole number from 0"
            )
        left -= number
    if left < 1:
        raise ArgumentError(
            f"protocol={protocol!r} with {sites} sites, colluders={colluders} and "
            f"dropouts={dropouts}: at least one site has to be honest and answer; write fewer, or "
            "name more sites"
        )
    return left
