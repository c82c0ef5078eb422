"""One process at a time in a folder, where the system has locks for that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dpmodels.errors import LedgerError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder; the lock ends with the process, however that ends."""
    with ExitStack() as held:
        if fcntl is not None:
            with suppress(OSError):  # A file system without locks
                _lock(folder, held)
        yield


def _lock(folder: Path, held: ExitStack) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    held.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LedgerError(
            f"another process makes a study in {str(folder)!r}: run this one when it has ended; "
            "nothing was charged here"
        ) from None
