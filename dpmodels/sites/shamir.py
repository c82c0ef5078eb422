"""Shares of a secret of which some number, and no fewer, give it back.

References
----------
.. [1] Shamir, A. (1979). "How to share a secret." Communications of the ACM
   22(11), 612-613.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from dpmodels.errors import ArgumentError

# A Mersenne prime above 2**256.
PRIME = 2**521 - 1
SECRET_BYTES = 32


class KeyShare(NamedTuple):
    """The value of a random polynomial at a place from 1, modulo `PRIME`."""

    place: int
    value: int

    def __repr__(self) -> str:
        return f"<KeyShare {self.place}, value not shown>"


def split_secret(secret: bytes, shares: int, needed: int) -> tuple[KeyShare, ...]:
    """Divide a secret between holders; fewer than needed learn nothing of it.

    Parameters
    ----------
    secret : bytes
        32 of them.
    shares, needed : int
        How many shares there are, and how many give the secret back.

    Raises
    ------
    ArgumentError
        If `needed` is not from 1 to `shares`, or the secret is not of 32 bytes.

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
    """Give a secret back.

    Raises
    ------
    ArgumentError
        If fewer shares of different places are there than needed, or they are
        not of one secret.
    """
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
