"""What has crossed: a released value, the law of its noise, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.privacy import Adjacency, ApproxDP, Event, GaussianEvent, Guarantee, total_eps


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
    """Standard deviations of the independent noise in released moments.

    Attributes
    ----------
    count, mean, diagonal, off : float
        Of the number of rows, of each coordinate of their sum, of each
        diagonal and each off-diagonal entry of their second moment, in the
        released values' own units. ``mean`` is nan where no sum was released,
        ``diagonal`` and ``off`` where the error of the second moment has no
        known law.
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
    estimate : ndarray, shape (columns, columns) or None
        Of the same release: an estimate of the second moment that is closer
        than ``second``, with an error of unknown law.
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
    estimate: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class SubspaceRelease:
    """Released orthonormal directions of rows in the unit ball.

    Attributes
    ----------
    frame : ndarray, shape (columns, components)
        Orthonormal columns, in the order of `variances` where those were
        bought; the order means nothing where the mechanism only knows the
        space they span.
    variances : ndarray, shape (components,) or None
        Noisy sums of squares of the rows along the directions, where bought.
    variance_sd : float
        Noise standard deviation of each of them; nan where not bought.
    count : float
        Noisy number of complete rows where `variances` were bought, else nan.
    ordered : bool
        Whether the directions mean something one by one.
    limit : str
        What the guarantee rests on besides the theorem; empty where nothing.
    expected_loss : float
        What the captured sum of squares is expected to fall short by,
        approximately, in units of the squared row norm; nan where theory
        gives nothing.
    rows : int or None
        Number of rows read, where that is public.
    card, guarantee, adjacency, events, simulated
        As in :class:`MomentsRelease`.
    """

    frame: NDArray[np.float64]
    variances: NDArray[np.float64] | None
    variance_sd: float
    count: float
    ordered: bool
    limit: str
    expected_loss: float
    rows: int | None
    card: Card
    guarantee: Guarantee
    adjacency: Adjacency
    events: tuple[Event, ...]
    simulated: bool


Release = MomentsRelease | SubspaceRelease


def release_facts(release: Release) -> Mapping[str, str]:
    """Return what every report says about a release."""
    return {
        "Guarantee": release.guarantee.describe(),
        "Mechanism": f"{release.card.name} ({release.card.numerics})",
        "Neighbours": release.adjacency.describe(),
    }


def unused_delta(release: Release) -> tuple[str, ...]:
    """Say where a delta was granted to a mechanism that has no use for it."""
    guarantee, events = release.guarantee, release.events
    if not isinstance(guarantee, ApproxDP) or any(isinstance(e, GaussianEvent) for e in events):
        return ()
    spent = total_eps(events, 0.0)
    if spent > guarantee.eps * (1 + 1e-9):
        return ()
    return (f"delta is not used: the release is private with eps = {spent:.4g} and delta = 0.",)
