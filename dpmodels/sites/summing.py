"""Noisy integers of each site under masks that cancel in the sum of all sites.

Vectors travel as integers modulo ``2**(64 words)``, in 64-bit words, lowest first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FrameError
from dpmodels.noise import Entropy, seeded
from dpmodels.sites.keys import PairStream, pair_key, public_bytes
from dpmodels.sites.payload import AnyPlan, Payload, Summed, draw, pack, scales, unit, unpack
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats, Integers

if TYPE_CHECKING:
    pass

Words = NDArray[np.uint64]

# A site does not know how many rows the others have; two words hold any sum.
WORDS = 2
BITS = 64
LOW = 2**BITS - 1


def to_words(integers: NDArray[Any], words: int) -> Words:
    """Reduce integers of any size.

    Examples
    --------
    >>> to_words(np.array([-1, 5], dtype=object), 1).tolist()
    [[18446744073709551615, 5]]
    """
    wide = integers.astype(object)
    parts = [np.array((wide >> BITS * word) & LOW, dtype=np.uint64) for word in range(words)]
    return np.stack(parts)


def from_words(reduced: Words) -> NDArray[Any]:
    """Return the integers nearest to zero, of dtype object.

    Examples
    --------
    >>> from_words(to_words(np.array([-(2**90), 3], dtype=object), 2)).tolist()
    [-1237940039285380274899124224, 3]
    """
    words, size = reduced.shape
    wide: NDArray[Any] = np.zeros(size, dtype=object)
    for word in range(words):
        wide = wide + (reduced[word].astype(object) << BITS * word)
    half = 1 << BITS * words - 1
    return np.where(wide >= half, wide - 2 * half, wide)


def add(total: Words, other: Words) -> None:
    """Add in place, modulo the modulus."""
    carry: Any = None
    for line, own in zip(total, other, strict=True):
        line += own
        over = line < own
        if carry is not None:
            line += carry
            over |= line < carry
        carry = over.astype(np.uint64)


def negative(reduced: Words) -> Words:
    """Return what adds up to zero with a vector."""
    turned = ~reduced
    one = np.zeros_like(turned)
    one[0] = 1
    add(turned, one)
    return turned


# The sum of the exact integers and so many deviations of its noise stay below half the modulus.
# Noise beyond has probability exp(-512).
ROOM_BITS = 63
DEVIATIONS = 32


def words_needed(plan: AnyPlan, rows: Sequence[int]) -> int:
    """Return how many 64-bit words hold the sum, by public facts."""
    if not plan.facts.adjacency.n_public:
        return 2
    # All but one site may collude: then each adds the noise of one release, and half that again
    # covers what rounding and masks cost.
    noise = DEVIATIONS * math.ceil(1.5 * math.sqrt(len(rows)) * float(scales(plan).max()))
    return 1 if sum(rows) * unit(plan) + noise < 2**ROOM_BITS else 2


def masked(
    payload: Payload, plan: AnyPlan, share: float, masks: Sequence[Words], words: int, own: Entropy
) -> Words:
    """Add a site's noise and its masks to its integers: what it sends."""
    noise = draw(scales(plan) * share, own)
    sent = to_words(payload.exact + noise.astype(object), words)
    for mask in masks:
        add(sent, mask)
    return sent


def pair_masks(place: int, others: Sequence[int], mask: Callable[[int], Words]) -> list[Words]:
    """Return a site's masks: of each pair the first adds what the second takes off."""
    return [mask(other) if place < other else negative(mask(other)) for other in others]


def sent_by_all(
    send: Callable[..., Words], statistics: Sequence[Statistic], plan: AnyPlan, entropy: Entropy
) -> tuple[list[Words], list[int]]:
    """Run all sites in this process, with fresh keys."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

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
    """Make the release of what all sites sent."""
    shapes = {one.shape for one in sent}
    if len(shapes) != 1:
        raise FrameError("the sites sent vectors of different lengths")
    noisy = from_words(_added(sent))
    return unpack(strategy, noisy, plan, sum(rows), widening)


def coalition_view(
    protocol: Any,
    statistics: Sequence[Statistic],
    plan: AnyPlan,
    entropy: Entropy,
    pair_noise: Callable[[AnyPlan, PairStream, int], Integers] | None = None,
) -> Floats:
    """Return the sum without the noise of the last sites, who collude with the aggregator.

    With `pair_noise` also each honest vector without the masks that they share.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    most = len(statistics)
    payloads = [pack(one, plan) for one in statistics]
    words = words_needed(plan, [one.rows for one in payloads])
    # Four words are the 32 bytes of a key.
    keys = [X25519PrivateKey.from_private_bytes(entropy.words(4).tobytes()) for _ in range(most)]
    public, honest = [public_bytes(key) for key in keys], most - protocol.colluders
    seeds = [int(seed) for seed in entropy.words(most)]
    sent = [
        protocol.send(one, plan, place, keys[place], public, b"", words, seeded(seeds[place]))
        for place, one in enumerate(payloads)
    ]
    total = from_words(_added(sent))
    scale = scales(plan) * protocol.share(plan, most)
    for place in range(honest, most):
        total = total - payloads[place].exact - draw(scale, seeded(seeds[place])).astype(object)
    seen = [total]
    for place in range(honest) if pair_noise else ():
        assert pair_noise is not None
        for told in set(protocol.partners(place, most)) & set(range(honest, most)):
            secret = PairStream(pair_key(keys[told], public[place], b""))
            add(sent[place], negative(to_words(pair_noise(plan, secret, most), words)))
        seen.append(from_words(sent[place]))
    return np.concatenate(seen).astype(np.float64)


def _added(sent: Sequence[Words]) -> Words:
    total = np.zeros_like(sent[0])
    for one in sent:
        add(total, one)
    return total
