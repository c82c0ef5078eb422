"""Noisy integers of each site under masks that cancel in the sum of all sites.

Vectors travel as integers modulo ``2**(64 words)``, in 64-bit words, lowest first.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import ArgumentError, FrameError, quoted
from dpmodels.mechanisms.add_noise import SMALLEST_SCALE
from dpmodels.noise import Entropy, seeded
from dpmodels.released import AnyRelease
from dpmodels.sites import packing
from dpmodels.sites.key_file import PairStream, Participant, Secrets, public_bytes
from dpmodels.sites.packing import AnyPlan, Payload, draw, scales, unit, unpack
from dpmodels.sites.protocol import Joint, MessageProtocol, Names, Parts, Statistics
from dpmodels.statistics import Statistic
from dpmodels.typing import Exact, Flags, Floats, Integers

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey


Words = NDArray[np.uint64]

# A site does not know how many rows the others have; two words hold any sum.
WORDS = 2
BITS = 64
LOW = 2**BITS - 1


def to_words(integers: Exact, words: int) -> Words:
    """Reduce integers of any size.

    >>> to_words(np.array([-1, 5], dtype=object), 1).tolist()
    [[18446744073709551615, 5]]
    """
    wide = integers.astype(object)
    parts = [np.array((wide >> BITS * word) & LOW, dtype=np.uint64) for word in range(words)]
    return np.stack(parts)


def from_words(reduced: Words) -> Exact:
    """Return the integers nearest to zero, of dtype object.

    >>> from_words(to_words(np.array([-(2**90), 3], dtype=object), 2)).tolist()
    [-1237940039285380274899124224, 3]
    """
    words, size = reduced.shape
    wide: Exact = np.zeros(size, dtype=object)
    for word in range(words):
        wide = wide + (reduced[word].astype(object) << BITS * word)
    half = 1 << BITS * words - 1
    return np.where(wide >= half, wide - 2 * half, wide)


def add(total: Words, addend: Words) -> None:
    """Add in place, modulo the modulus."""
    carry: Flags | None = None
    for total_word, addend_word in zip(total, addend, strict=True):
        total_word += addend_word
        overflow = total_word < addend_word
        if carry is not None:
            total_word += carry
            overflow |= total_word < carry
        carry = overflow.astype(np.uint64)


def negative(reduced: Words) -> Words:
    """Return what adds up to zero with a vector."""
    complement = ~reduced
    unit_vector = np.zeros_like(complement)
    unit_vector[0] = 1
    add(complement, unit_vector)
    return complement


# The exact sum and this number of standard deviations of its noise stay below half the modulus.
# Noise beyond has probability exp(-512).
ROOM_BITS = 63
DEVIATIONS = 32


def words_needed(plan: AnyPlan, rows: Sequence[int]) -> int:
    """Return how many 64-bit words the sum needs, by public facts."""
    if not plan.facts.adjacency.n_public:
        return 2
    # All but one site may collude: then each adds the noise of one release, and half that again
    # covers what rounding and masks cost.
    noise = DEVIATIONS * math.ceil(1.5 * math.sqrt(len(rows)) * float(scales(plan).max()))
    return 1 if sum(rows) * unit(plan) + noise < 2**ROOM_BITS else 2


def masked(
    payload: Payload,
    plan: AnyPlan,
    noise_factor: float,
    masks: Sequence[Words],
    words: int,
    entropy: Entropy,
) -> Words:
    """Add a site's noise and its masks to its integers: what it sends."""
    noise = draw(scales(plan) * noise_factor, entropy)
    sent = to_words(payload.exact + noise.astype(object), words)
    for mask in masks:
        add(sent, mask)
    return sent


def pair_masks(place: int, partners: Sequence[int], mask: Callable[[int], Words]) -> list[Words]:
    """Return a site's masks: of each pair the first adds what the second takes off."""
    return [mask(partner) if place < partner else negative(mask(partner)) for partner in partners]


def secrets_of_all(names: Names, keys: Sequence[X25519PrivateKey]) -> list[Secrets]:
    """Return what each of the sites in this process shares with the others."""
    public = tuple(map(public_bytes, keys))
    return [Secrets(Participant(names, public, *of), b"") for of in enumerate(keys)]


def coalition_view(
    protocol: Any,
    joint: Joint,
    statistics: Statistics,
    entropy: Entropy,
    pair_noise: Callable[[AnyPlan, PairStream, int], Integers] | None = None,
) -> Floats:
    """Return the sum without the noise of the last sites, who collude with the aggregator.

    With `pair_noise` also each honest vector without the masks that they share.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    n_sites, plan = len(statistics), joint.plan
    payloads = [packing.pack(statistic, plan) for statistic in statistics]
    words = words_needed(plan, [payload.rows for payload in payloads])
    # Four words are the 32 bytes of a key.
    keys = [X25519PrivateKey.from_private_bytes(entropy.words(4).tobytes()) for _ in range(n_sites)]
    secrets, honest = secrets_of_all(joint.names, keys), n_sites - protocol.colluders
    seeds = [int(seed) for seed in entropy.words(n_sites)]
    sent = [
        protocol.send(payload, plan, of_site, words, seeded(seed))
        for payload, of_site, seed in zip(payloads, secrets, seeds, strict=True)
    ]
    total = from_words(_added(sent))
    scale = scales(plan) * protocol.share(plan, n_sites)
    for place in range(honest, n_sites):
        total = total - payloads[place].exact - draw(scale, seeded(seeds[place])).astype(object)
    views = [total]
    for place in range(honest) if pair_noise else ():
        assert pair_noise is not None
        for colluder in set(protocol.partners(place, n_sites)) & set(range(honest, n_sites)):
            stream = secrets[colluder].stream(place)
            add(sent[place], negative(to_words(pair_noise(plan, stream, n_sites), words)))
        views.append(from_words(sent[place]))
    return np.concatenate(views).astype(np.float64)


def _added(sent: Sequence[Words]) -> Words:
    total = np.zeros_like(sent[0])
    for vector in sent:
        add(total, vector)
    return total


# What protocols share whose sites send noisy integers under masks that cancel in the sum.


class MaskedSum(MessageProtocol):
    """Pairs of sites share secrets; subclasses define what is sent and how it is combined."""

    passes_noise: ClassVar[bool] = True
    keyed: ClassVar[bool] = True
    cancels: ClassVar[str]  # What a message says does not cancel without all sites
    colluders: int

    @abstractmethod
    def share(self, plan: AnyPlan, sites: int) -> float:
        """Return the scale of each site's noise over the planned one."""

    @abstractmethod
    def send(
        self, payload: Payload, plan: AnyPlan, secrets: Secrets, words: int, entropy: Entropy
    ) -> Words:
        """Return what a site sends, its noise under masks, shape (words, numbers).

        The private key is for this release only; the session is what is released, the same words at
        all sites.
        """

    def release(self, joint: Joint, statistics: Statistics, entropy: Entropy) -> AnyRelease:
        """Run all sites and the aggregator in this process, with fresh keys."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        payloads = [packing.pack(statistic, joint.plan) for statistic in statistics]
        rows = [payload.rows for payload in payloads]
        words = words_needed(joint.plan, rows)
        secrets = secrets_of_all(joint.names, [X25519PrivateKey.generate() for _ in payloads])
        pairs = zip(payloads, secrets, strict=True)
        sent = [self.send(payload, joint.plan, of, words, entropy) for payload, of in pairs]
        return self.whole(joint, sent, rows)

    def part(
        self, joint: Joint, statistic: Statistic, secrets: Secrets | None, entropy: Entropy
    ) -> Words:
        """Return what the site sends, as words for any number of rows."""
        assert secrets is not None
        return self.send(packing.pack(statistic, joint.plan), joint.plan, secrets, WORDS, entropy)

    def shape(self, plan: AnyPlan) -> tuple[str, tuple[int, ...]]:
        """Return the shape of the integers as words."""
        return "words", (WORDS, len(scales(plan)))

    def whole(self, joint: Joint, parts: Parts, rows: Sequence[int], absent: int = 0) -> AnyRelease:
        """Make the release of one vector a site; FrameError if there is none of one.

        Of a round that ended without `absent` sites, the names are those of the others.
        """
        strategy, plan, names = joint
        if len(parts) != len(names):
            raise FrameError(
                f"{len(names) - len(parts)} of {len(names)} sites did not answer: {self.cancels} "
                "not cancel, and nothing is released; start again without them"
            )
        widening = self.share(plan, len(names) + absent) * math.sqrt(len(names))
        if len({vector.shape for vector in parts}) != 1:
            raise FrameError("the sites sent vectors of different lengths")
        release = unpack(strategy, from_words(_added(parts)), plan, sum(rows), widening)
        size, word = len(scales(plan)), packing.WORD * len(parts[0])
        return packing.shared_by(
            release, self.trust, names, size, word, packing.coalition(self.colluders)
        )


# How much noise each site adds, so that the honest ones hide every row.
#
# Theorem
#     Let ``h`` honest sites each add to integers ``x_s`` independent discrete
#     Gaussians of scales ``f·σ_i``, i a coordinate, and let everyone else see no
#     more than the sum of what the honest sites send. If one site's integers
#     move by ``Δ`` with ``Σ_i Δ_i²/σ_i² ≤ 1/m²``, the view is no easier to tell
#     apart than a release of discrete Gaussian noise in ``h`` times as many
#     coordinates of multiplier ``m``, where
#
#         f² h = 1 + m² Σ_i ⌊h²/4⌋/σ_i² .
#
# Proof
#     A sum of discrete Gaussians is not a discrete Gaussian, and it need not be
#     one. The view is a function of the vector of all honest noise, and it moves
#     by ``Δ`` when each ``Δ_i`` is divided between the sites' noise in whole
#     steps: r of them get ``⌈Δ_i/h⌉`` and the others ``⌊Δ_i/h⌋``, whose squares
#     have the sum ``Δ_i²/h + r(h - r)/h``. So the vector moves by at most
#     ``(1/m² + Σ_i ⌊h²/4⌋/σ_i²)/(f² h) = 1/m²`` in squared units of its own
#     noise, and what follows from that vector is post-processing. The zCDP
#     parameter of integer shifts of discrete Gaussians is exact; for (ε, δ)
#     every scale is at least 2²⁰ steps, as it is where one site adds the noise.
#
#     *Masks that leak.* If each honest site sends its own noisy integers plus
#     masks, where ``e`` pairs of honest sites connect all of them and a pair's
#     masks are a discrete Gaussian of scale ``r σ_i`` and its negative, the same
#     shift of the whole view is made by moving each ``Δ_i`` along a tree of
#     pairs: the parts have one sign, so no pair moves by more than ``Δ_i``, and
#     the h - 1 pairs add at most ``(h - 1)/(r² m²)``: f² grows by
#     ``1/(1 - (h - 1)/r²)``.
#
# References
# ----------
# .. [1] Canonne, C., Kamath, G. and Steinke, T. (2020). "The discrete Gaussian
#    for differential privacy." NeurIPS.
# .. [2] Kairouz, P., Liu, Z. and Steinke, T. (2021). "The distributed discrete
#    Gaussian mechanism for federated learning with secure aggregation." ICML.
#    How near the sum itself is to a discrete Gaussian; not needed here.

# Covers the rounding of every product and root of floats.
ROUND_UP = 1 + 1e-12


def noise_share(honest: int, multiplier: float, step_scales: Floats, leak: float = 0.0) -> float:
    """Return the scale of a site's noise over the planned one, of `step_scales` in lattice steps.

    `leak` is the part of the budget that masks leak, in [0, 1).

    >>> import numpy as np
    >>> noise_share(4, 1.0, np.full(3, 2.0**40))
    0.5000000000005
    """
    return max(
        least_factor(honest, multiplier, step_scales, leak),
        SMALLEST_SCALE / float(step_scales.min()),
    )


def least_factor(honest: int, multiplier: float, step_scales: Floats, leak: float = 0.0) -> float:
    """Return the same for scales of any size, for zCDP.

    >>> import numpy as np
    >>> least_factor(1, 1.0, np.ones(3))
    1.000000000001
    """
    rounding = multiplier**2 * (honest**2 // 4) * float((step_scales**-2.0).sum())
    return math.sqrt((1 + rounding) / (honest * (1 - leak))) * ROUND_UP


def honest_sites(sites: int, protocol: str, colluders: object, dropouts: object = 0) -> int:
    """Return the number of sites that neither collude nor drop out."""
    left = sites
    for word, number in (("colluders", colluders), ("dropouts", dropouts)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ArgumentError(
                f"{word}={quoted(number)} of protocol {protocol!r}: expected a whole number from 0"
            )
        left -= number
    if left < 1:
        raise ArgumentError(
            f"protocol={protocol!r} with {sites} sites, colluders={colluders} and "
            f"dropouts={dropouts}: at least one site has to be honest and answer; write fewer, or "
            "name more sites"
        )
    return left
