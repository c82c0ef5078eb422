"""Rounds of an exchange that end without a site: its message stays hidden, whenever it comes.

Theorem
    Theorem 81. In each round a site hides its noisy integers under the masks of its pairs and a
    pad, keystreams of seeds of that round, and divides all these seeds between the sites (Shamir),
    of whom ``S - d`` give one back. Whoever adds up says which sites sent a message. Each of these
    gives its shares of the seeds of their pads, and of their pairs with a site that is missing. So
    of a site either the pad or masks become known, never both, and all that is learned is one sum
    over :func:`least_honest` honest sites or more, whatever each was told of who is missing.
Noise
    Each site's is that of :mod:`dpmodels.sites.joint_rounds` or :mod:`dpmodels.sites.summing` for
    so many honest sites.
Numerics
    exact: words, and integers modulo a prime.
Source
    Bonawitz et al. (2017), "Practical secure aggregation for privacy-preserving machine learning",
    CCS. Seeds are of one round, so that those of a round open no other; the count of honest sites
    where sites receive different lists is ours.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.errors import ArgumentError, FrameError
from dpmodels.sites import key_file
from dpmodels.sites.summing import Words, add, negative

if TYPE_CHECKING:
    from dpmodels.sites.key_file import Participant

# Of a share, a number below 2**521, in words of 64 bits.
SHARE_WORDS = 9


def least_honest(honest: int, dropouts: int) -> int:
    """Return the least number of honest sites in a sum, if not all were told who is missing alike.

    >>> least_honest(9, 1), least_honest(9, 3), least_honest(9, 0)
    (8, 5, 9)
    """
    return -(-honest * (honest - 2 * dropouts) // (honest - dropouts))


@dataclass(frozen=True)
class Quorum:
    """How many sites of an exchange must answer in each round."""

    sites: int
    needed: int

    @property
    def shares_shape(self) -> tuple[int, int, int]:
        """Return the shape of a site's shares: by who receives it, and by seed."""
        return self.sites, self.sites, SHARE_WORDS

    def conceal(self, masked: Words, member: Participant, session: bytes) -> Words:
        """Hide a masked vector under a fresh pad; return it with the shares of all seeds, flat."""
        seeds = [key_file.pair_key(member.private, public, session) for public in member.public]
        seeds[member.place] = secrets.token_bytes(key_file.SECRET_BYTES)
        concealed = masked.copy()
        add(concealed, _stream(seeds[member.place], masked.shape))
        shares = np.empty(self.shares_shape, dtype=np.uint64)
        for place, seed in enumerate(seeds):
            for receiver, share in enumerate(key_file.split_secret(seed, self.sites, self.needed)):
                content = share.value.to_bytes(8 * SHARE_WORDS, "little")
                shares[receiver, place] = np.frombuffer(content, dtype="<u8")
        for receiver, public in enumerate(member.public):
            shares[receiver] ^= self._key(member, public, member.place, session)
        return np.concatenate([concealed.ravel(), shares.ravel()])

    def opened(
        self, shares: Words, present: Sequence[int], member: Participant, session: bytes
    ) -> Words:
        """Return a site's shares of the seeds that end a round.

        `shares` are those of the sites at the places `present`, shape (present, sites, sites, 9).
        The result has the shape of :meth:`opening_shape`.
        """
        opened = np.empty(self.opening_shape(present), dtype=np.uint64)
        for at, place in enumerate(present):
            key = self._key(member, member.public[place], place, session)
            opened[at] = (shares[at, member.place] ^ key)[self._seeds(place, present)]
        return opened

    def opening_shape(self, present: Sequence[int]) -> tuple[int, int, int]:
        """Return the shape of what a site gives at the end of a round."""
        return len(present), 1 + self.sites - len(present), SHARE_WORDS

    def pads(
        self, openings: Mapping[int, Words], present: Sequence[int], shape: tuple[int, int]
    ) -> Words:
        """Return what lies on the sum of the present sites: their pads, and masks of the missing.

        `openings` are by the place of who gave them. FrameError if they are not of one seed.
        """
        total = np.zeros(shape, dtype=np.uint64)
        for at, place in enumerate(present):
            for column, partner in enumerate(self._seeds(place, present)):
                parts = [
                    key_file.KeyShare(
                        giver + 1,
                        int.from_bytes(given[at, column].astype("<u8").tobytes(), "little"),
                    )
                    for giver, given in openings.items()
                ]
                try:
                    stream = _stream(key_file.join_secret(parts, self.needed), shape)
                except ArgumentError as error:
                    raise FrameError(f"the openings of the round do not fit: {error}") from None
                add(total, negative(stream) if partner < place else stream)
        return total

    def _seeds(self, place: int, present: Sequence[int]) -> list[int]:
        """Return which seeds of a present site are opened: its pad, its pairs with the missing."""
        return [place, *(site for site in range(self.sites) if site not in present)]

    def _key(self, member: Participant, partner: bytes, sender: int, session: bytes) -> Words:
        key = key_file.pair_key(member.private, partner, session + b", shares of site %d" % sender)
        return _stream(key, self.shares_shape[1:])


def _stream(seed: bytes, shape: tuple[int, ...]) -> Words:
    return key_file.PairStream(seed).words(int(np.prod(shape))).reshape(shape)
