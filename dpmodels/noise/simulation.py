"""Repeatable noise for simulations: the one place where a seed is allowed."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from dpmodels.noise.entropy import secure, seeded
from dpmodels.noise.protocol import Entropy

_stream: ContextVar[Entropy | None] = ContextVar("dpmodels_simulation", default=None)


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
