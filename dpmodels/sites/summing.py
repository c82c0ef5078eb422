"""Noisy integers of each site under masks that cancel in the sum of all sites."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from dpmodels.errors import FrameError
from dpmodels.noise import Entropy
from dpmodels.sites.keys import public_bytes
from dpmodels.sites.payload import AnyPlan, Payload, Summed, draw, pack, scales, unit, unpack
from dpmodels.sites.words import Words, add, from_words, negative, to_words
from dpmodels.statistics import Statistic

# The sum of the exact integers and so many deviations of its noise stay below half the modulus.
# Noise beyond has probability exp(-512).
ROOM_BITS = 63
DEVIATIONS = 32


def words_needed(plan: AnyPlan, rows: Sequence[int]) -> int:
    """Return how many 64-bit words hold the sum, by public facts.

    Parameters
    ----------
    plan : Plan or CountPlan
        Two words where the number of rows is private.
    rows : sequence of int
        Of each site.
    """
    if not plan.facts.adjacency.n_public:
        return 2
    # All but one site may collude: then each adds the noise of one release, and half that again
    # covers what rounding and masks cost.
    noise = DEVIATIONS * math.ceil(1.5 * math.sqrt(len(rows)) * float(scales(plan).max()))
    return 1 if sum(rows) * unit(plan) + noise < 2**ROOM_BITS else 2


def masked(
    payload: Payload, plan: AnyPlan, share: float, masks: Sequence[Words], words: int, own: Entropy
) -> Words:
    """Add a site's noise and its masks to its integers: what it sends.

    Parameters
    ----------
    payload : Payload
        Exact integers.
    plan : Plan or CountPlan
        By which they were measured.
    share : float
        The scale of the site's noise over the planned one.
    masks : sequence of ndarray
        One for each site it has a secret with.
    words : int
        64-bit words of each integer.
    own : Entropy
        Of the noise, known to this site alone.
    """
    noise = draw(scales(plan) * share, own)
    sent = to_words(payload.exact + noise.astype(object), words)
    for mask in masks:
        add(sent, mask)
    return sent


def pair_masks(place: int, others: Sequence[int], shared: Callable[[int], Words]) -> list[Words]:
    """Return a site's masks: of each pair the first adds what the second takes off.

    Parameters
    ----------
    place : int
        The site's.
    others : sequence of int
        Places of the sites it has a secret with.
    shared : callable
        Takes another's place and returns what both make of their secret.
    """
    return [shared(other) if place < other else negative(shared(other)) for other in others]


def sent_by_all(
    send: Callable[..., Words], statistics: Sequence[Statistic], plan: AnyPlan, entropy: Entropy
) -> tuple[list[Words], list[int]]:
    """Run all sites in this process, with fresh keys.

    Parameters
    ----------
    send : callable
        The protocol's, for one site.
    statistics : sequence of Statistic
        One a site.
    plan : Plan or CountPlan
        By which they were measured.
    entropy : Entropy
        Of the noise.

    Returns
    -------
    sent, rows
        What each sends, and of how many rows.
    """
    payloads = [pack(own, plan) for own in statistics]
    rows = [own.rows for own in payloads]
    words = words_needed(plan, rows)
    keys = [X25519PrivateKey.generate() for _ in payloads]
    public = [public_bytes(key) for key in keys]
    sent = [
        send(own, plan, place, key, public, b"", words, entropy)
        for place, (own, key) in enumerate(zip(payloads, keys, strict=True))
    ]
    return sent, rows


def summed(
    strategy: Any, plan: AnyPlan, sent: Sequence[Words], rows: Sequence[int], widening: float
) -> Summed:
    """Make the release of what all sites sent.

    Parameters
    ----------
    strategy, plan
        What is released.
    sent : sequence of ndarray
        One vector a site.
    rows : sequence of int
        Of each.
    widening : float
        The standard deviation of the noise in the sum over the planned one.

    Raises
    ------
    FrameError
        If the messages do not fit each other.
    """
    shapes = {one.shape for one in sent}
    if len(shapes) != 1:
        raise FrameError("the sites sent vectors of different lengths")

    def added(total: Words, other: Words) -> Words:
        add(total, other)
        return total

    noisy = from_words(reduce(added, sent, np.zeros_like(sent[0])))
    return unpack(strategy, noisy, plan, sum(rows), widening)
