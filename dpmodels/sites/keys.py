"""Secrets of pairs of sites, and the random words that both make of them."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from dpmodels.errors import FrameError, PrivacyError

DOMAIN = b"dpmodels.sites/1:"


class PairStream:
    """The keystream of AES-256-CTR under a secret of two sites, read once from its start.

    Parameters
    ----------
    key : bytes
        32 of them, for one release only.
    """

    __slots__ = ("_encryptor",)

    def __init__(self, key: bytes) -> None:
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
    """Agree with another site on a secret for one release.

    Parameters
    ----------
    private : X25519PrivateKey
        One's own.
    other : bytes
        The other site's public key.
    session : bytes
        What both are about to release; other words give another secret.

    Returns
    -------
    bytes
        32 of them, the same at both sites.

    Raises
    ------
    FrameError
        If the other key is not one.

    References
    ----------
    RFC 7748 (X25519) and RFC 5869 (HKDF).
    """
    try:
        secret = private.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError:
        raise FrameError("the public key of a site is not an X25519 key of 32 bytes") from None
    both = b"".join(sorted((public_bytes(private), other)))
    return HKDF(SHA256(), 32, salt=session, info=DOMAIN + both).derive(secret)
