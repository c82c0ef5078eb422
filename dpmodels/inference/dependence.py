"""How much more the share of a state varies where states follow each other in chains."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpmodels.privacy import MarkovChain
from dpmodels.typing import Floats

# A choice: chains that take turns leave next to no variance, and no interval is made of none.
LEAST: Final = 0.01


def share_effects(chain: MarkovChain, steps: int) -> Floats:
    """Return by state how many independent times one time of a series stands for.

    ``1 + 2 sum (1 - h/T) (P^h(j, j) - pi_j)/(1 - pi_j)`` over lags h below T is the variance of
    state j's share of T times of a stationary chain, over that of independent ones; of a class the
    largest of those of its `laws`. ArgumentError of a chain that keeps several laws.
    """
    kept = chain.stationary
    most = np.max([_effects(own, kept, steps) for own in chain.laws], axis=0)
    return np.asarray(np.maximum(most, LEAST))


def _effects(own: Floats, kept: Floats, steps: int) -> Floats:
    total, power = np.ones(len(own)), np.eye(len(own))
    for lag in range(1, steps):
        power = power @ own
        total += 2 * (1 - lag / steps) * (np.diag(power) - kept) / (1 - kept)
    return np.asarray(total)
