"""A progress bar for long reading that shows no private number of rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeVar

from dpmodels.frames.protocol import Chunk

if TYPE_CHECKING:
    from dpmodels.frames.progress_bar import Bar

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


# A choice: seconds before the bar appears.
_DELAY: Final = 1.0

_INDETERMINATE: Final = "{desc} ..."
_SHARE: Final = "{l_bar}{bar}| {elapsed}<{remaining}"

Item = TypeVar("Item")


def progress(chunks: Iterator[Chunk], *, total: int | None, label: str) -> Iterator[Chunk]:
    """Pass chunks on, with a bar in rows on stderr while they are read.

    `total` is None where the number of rows is private: the bar is then the label alone, without
    any count. Nothing is shown within the first second, nor where stderr is not a terminal, nor for
    rows that are one part of a table whose other parts are read at the same time.

    >>> from dpmodels.frames import open_rows, progress
    >>> chunks = open_rows({"x": [1, 2, 3]}).chunks(("x",), 2)
    >>> [len(chunk["x"]) for chunk in progress(chunks, total=3, label="moments")]
    [2, 1]
    """
    layout = _INDETERMINATE if total is None else None
    with _bar(total, label, layout) as bar:
        for chunk in chunks:
            yield chunk
            bar.update(len(next(iter(chunk.values()), ())))


def steps(items: Iterator[Item], *, total: int | None, label: str) -> Iterator[Item]:
    """Pass items on, with a bar that shows the share done.

    `total` is None where that number is private, as in `progress`.
    """
    with _bar(total, label, _INDETERMINATE if total is None else _SHARE) as bar:
        for item in items:
            yield item
            bar.update()


def _bar(total: int | None, label: str, layout: str | None) -> "Bar":
    from dpmodels.frames.progress_bar import Bar

    return Bar(
        total=total,
        desc=label,
        unit=" rows",
        unit_scale=True,
        leave=False,
        delay=_DELAY,
        disable=True if one_of_many() else None,
        bar_format=layout,
    )
