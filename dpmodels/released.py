"""What has crossed: a released value, the law of its noise, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.privacy import Adjacency, Event, Guarantee


@dataclass(frozen=True)
class Card:
    """What a mechanism promises, in the words its table prints.

    Attributes
    ----------
    name : str
        The word that selects it.
    theorem, sensitivity, noise : str
        The guarantee, the inequality it rests on, the law of the noise.
    numerics : {"exact lattice", "idealised"}
        Whether the guarantee holds to the last bit.
    source : str
        Where it comes from.
    """

    name: str
    theorem: str
    sensitivity: str
    noise: str
    numerics: str
    source: str


@dataclass(frozen=True)
class MomentNoise:
    """Standard deviations of the independent Gaussian noise in released moments.

    Attributes
    ----------
    count, mean, diagonal, off : float
        Of the number of rows, of each coordinate of their sum, of each
        diagonal and each off-diagonal entry of their second moment, in the
        released values' own units. ``mean`` is nan where no sum was released.
    """

    count: float
    mean: float
    diagonal: float
    off: float


@dataclass(frozen=True)
class MomentsRelease:
    """Released augmented moments of rows in the unit ball.

    Attributes
    ----------
    count : float
        Noisy number of complete rows.
    total : ndarray, shape (columns,) or None
        Noisy sum of the rows; None where it was not released.
    second : ndarray, shape (columns, columns)
        Noisy sum of ``x xᵀ``; symmetric, not necessarily positive.
    noise : MomentNoise
        The law of the noise in the three of them.
    rows : int or None
        Number of rows read, where that is public.
    card : Card
        The mechanism.
    guarantee : Guarantee
        What the release satisfies.
    adjacency : Adjacency
        Between which neighbours.
    events : tuple of Event
        What an accountant composes.
    simulated : bool
        True inside ``dp.simulation``: then nothing here is private.
    """

    count: float
    total: NDArray[np.float64] | None
    second: NDArray[np.float64]
    noise: MomentNoise
    rows: int | None
    card: Card
    guarantee: Guarantee
    adjacency: Adjacency
    events: tuple[Event, ...]
    simulated: bool

    def facts(self) -> Mapping[str, str]:
        """Return what every report says about the release."""
        return {
            "Guarantee": self.guarantee.describe(),
            "Mechanism": f"{self.card.name} ({self.card.numerics})",
            "Neighbours": self.adjacency.describe(),
        }
