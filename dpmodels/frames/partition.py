"""Whether the rows at hand are one part of a table, read while others are."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ONE_OF_MANY: ContextVar[bool] = ContextVar("one_of_many", default=False)


def one_of_many() -> bool:
    """Whether other parts of the table are read at the same time.

    Then a part is read by one thread, and shows no progress of its own.
    """
    return _ONE_OF_MANY.get()


@contextmanager
def as_one_of_many() -> Iterator[None]:
    """Read what is read inside as one part of a table."""
    token = _ONE_OF_MANY.set(True)
    try:
        yield
    finally:
        _ONE_OF_MANY.reset(token)
