"""Secrets of sites: of pairs, with the random words that both make of them, and in shares.

References
----------
.. [1] Shamir, A. (1979). "How to share a secret." Communications of the ACM
   22(11), 612-613.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import ArgumentError, FrameError, PrivacyError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

DOMAIN = b"dpmodels.sites/1:"
# A Mersenne prime above 2**256.
PRIME = 2**521 - 1
SECRET_BYTES = 32


class PairStream:
    """The keystream of AES-256-CTR under a secret of two sites, read once from its start.

    The key, 32 bytes, is for one release only.
    """

    __slots__ = ("_encryptor",)

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next 64-bit words, the same on any machine."""
        stream = self._encryptor.update(bytes(8 * count))
        return np.frombuffer(stream, dtype="<u8").astype(np.uint64)

    def __repr__(self) -> str:
        return "<PairStream, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("the secret of two sites cannot be pickled or copied")


def public_bytes(private: X25519PrivateKey) -> bytes:
    """Return the public half of a key, 32 bytes."""
    return private.public_key().public_bytes_raw()


def pair_key(private: X25519PrivateKey, other: bytes, session: bytes) -> bytes:
    """Agree with another site on a secret of 32 bytes: X25519 (RFC 7748), then HKDF (RFC 5869).

    Another session, which is what both release, gives another secret.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    try:
        secret = private.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError:
        raise FrameError("the public key of a site is not an X25519 key of 32 bytes") from None
    both = b"".join(sorted((public_bytes(private), other)))
    return HKDF(SHA256(), 32, salt=session, info=DOMAIN + both).derive(secret)


class KeyShare(NamedTuple):
    """The value of a random polynomial at a place from 1, modulo `PRIME`."""

    place: int
    value: int

    def __repr__(self) -> str:
        return f"<KeyShare {self.place}, value not shown>"


def split_secret(secret: bytes, shares: int, needed: int) -> tuple[KeyShare, ...]:
    """Divide a secret between holders; fewer than needed learn nothing of it.

    Examples
    --------
    >>> parts = split_secret(bytes(range(32)), 5, 3)
    >>> join_secret(parts[1:4], 3) == bytes(range(32))
    True
    """
    if not 1 <= needed <= shares or len(secret) != SECRET_BYTES:
        raise ArgumentError(
            f"{needed} of {shares} shares of {len(secret)} bytes: expected a number needed from 1 "
            f"to that of the shares, of a secret of {SECRET_BYTES} bytes"
        )
    polynomial = [int.from_bytes(secret)] + [secrets.randbelow(PRIME) for _ in range(needed - 1)]
    return tuple(KeyShare(at, _value(polynomial, at)) for at in range(1, shares + 1))


def join_secret(parts: Sequence[KeyShare], needed: int) -> bytes:
    """Give a secret back."""
    own = {part.place: part for part in parts}
    if len(own) < needed:
        raise ArgumentError(f"{len(own)} shares of different holders are there, {needed} needed")
    chosen = list(own.values())[:needed]
    secret = 0
    for part in chosen:
        weight = part.value
        for other in chosen:
            if other.place != part.place:
                weight = weight * other.place % PRIME
                weight = weight * pow(other.place - part.place, -1, PRIME) % PRIME
        secret = (secret + weight) % PRIME
    if secret >= 2 ** (8 * SECRET_BYTES):
        raise ArgumentError("the shares are not of one secret")
    return secret.to_bytes(SECRET_BYTES)


def _value(polynomial: Sequence[int], at: int) -> int:
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * at + coefficient) % PRIME
    return value
