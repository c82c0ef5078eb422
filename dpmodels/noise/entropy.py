"""Uniform random words from AES-256 in counter mode, and the one place where a seed is allowed.

Every draw of the noise floor is a function of independent, uniform 64-bit words. They are the
keystream of AES-256-CTR: indistinguishable from uniform for anyone without the key, which is fresh
from the operating system for every `secure` source and is kept nowhere but inside the cipher.

References
----------
NIST SP 800-38A (2001), Recommendation for Block Cipher Modes of Operation, section 6.5.
"""

import hashlib
import operator
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpmodels.arguments import checked_keywords
from dpmodels.errors import ArgumentError, PrivacyError
from dpmodels.noise.uniform import Entropy

# So that a seed is a key of nothing else.
_SEED_DOMAIN = b"dpmodels.noise.entropy.seeded/1:"
_DERIVED_DOMAIN = b"dpmodels.noise.entropy.derived/1:"
# Bytes encrypted at a time: a choice.
_ZEROS = memoryview(bytes(2**18))
# update_into asks for one cipher block, less a byte, beyond what it writes.
_SLACK_WORDS = 2


class _Keystream:
    """The keystream of AES-256-CTR under one key, read once from its start."""

    __slots__ = ("_encryptor", "_origin", "_process")

    def __init__(self, key: bytes, origin: str) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._origin = origin
        self._process = os.getpid()

    def words(self, count: int) -> NDArray[np.uint64]:
        if os.getpid() != self._process:
            raise PrivacyError(
                "This source of random words was made before the process forked, and would "
                "give the same noise twice. Make a new one in the child process."
            )
        buffer = np.empty(count + _SLACK_WORDS, dtype=np.uint64)
        stream = buffer.view(np.uint8)
        for start in range(0, 8 * count, len(_ZEROS)):
            zeros = _ZEROS[: 8 * count - start]
            self._encryptor.update_into(zeros, stream[start:].data)
        return buffer[:count]

    def __repr__(self) -> str:
        return f"<Entropy: AES-256-CTR, {self._origin}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise PrivacyError(
            "A source of random words cannot be copied or pickled: the copy would give the same "
            "noise twice. Make a new source where it is needed."
        )


def secure() -> Entropy:
    """Make a source keyed from the operating system's random bits.

    It refuses to be copied, pickled or used on the other side of a fork.
    """
    return _Keystream(os.urandom(32), "keyed from the operating system")


def seeded(seed: int) -> Entropy:
    """Make a repeatable source, for simulations only: nothing drawn from it is private.

    Equal seeds give equal words: the key is the SHA-256 digest of the seed. ArgumentError if
    `seed` is not an integer.
    """
    if isinstance(seed, bool | np.bool_):
        raise ArgumentError("seed is a truth value; write an integer, as in seed=1.")
    try:
        number = operator.index(seed)
    except TypeError:
        raise ArgumentError(
            f"seed is of type {type(seed).__name__}; write an integer, as in seed=1."
        ) from None
    key = hashlib.sha256(_SEED_DOMAIN + str(number).encode()).digest()
    return _Keystream(key, "seeded: simulation, not private")


def derived(key: bytes, number: int) -> Entropy:
    """Make one of many sources that a secret key of 32 bytes determines, by its number.

    Their words are those of AES-256-CTR under different keys: as good as `secure` if the key is
    drawn from such a source, and needed where several machines have to draw the same.
    """
    digest = hashlib.sha256(_DERIVED_DOMAIN + key + number.to_bytes(8, "little")).digest()
    return _Keystream(digest, "derived from a secret key")


_stream: ContextVar[Entropy | None] = ContextVar("dpmodels_simulation", default=None)


@checked_keywords("dp.simulation")
def simulation(*, seed: int) -> AbstractContextManager[None]:
    """Make all noise inside the block repeatable. Inside the block nothing is private.

    Anyone who knows the seed can subtract the noise. Use it on simulated or public rows, in tests
    and in teaching, never for a release.

    The block has one stream of random words, which advances from one release to the next: two
    releases inside a block differ, and the same block run again repeats both. A nested block has a
    stream of its own; when it ends, the outer stream goes on where it was. Threads started inside
    the block are outside it unless they are given its context.

    Parameters
    ----------
    seed : int
        Any integer.

    Returns
    -------
    context manager
        To be used in one ``with`` statement.

    Raises
    ------
    ArgumentError
        If `seed` is not an integer.

    Examples
    --------
    >>> with simulation(seed=1):
    ...     first = source().words(2)
    >>> with simulation(seed=1):
    ...     again = source().words(2)
    >>> bool((first == again).all()), simulating()
    (True, False)
    """
    return _installed(seeded(seed))


@contextmanager
def _installed(stream: Entropy) -> Iterator[None]:
    token = _stream.set(stream)
    try:
        yield
    finally:
        _stream.reset(token)


def source() -> Entropy:
    """Give the stream of the simulation around the call, else a fresh `secure` source.

    It is the same object throughout a simulation, a new one at every call outside.
    """
    stream = _stream.get()
    return secure() if stream is None else stream


def simulating() -> bool:
    """Tell whether the call is made inside a `simulation` block."""
    return _stream.get() is not None
