"""Rows of partitions that a process of Dask keeps between the passes of one fit.

They are those of the first pass, with their checksum, which so need not be computed again. A
partition whose rows are gone, with their worker or by a limit, is read anew and compared. Nothing
is written to disk, sent to another process or shown.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Final, NamedTuple

from dpmodels.design.parts import MOST_BYTES, KeptParts

WORKER_PART: Final = 8
"""A choice: of the memory that a worker may have this part is for rows, but 400 MiB at least."""
IDLE_SECONDS: Final = 60.0
"""A choice: rows that no pass has read for so long are dropped."""


class Remembered(NamedTuple):
    """Rows of a partition, and what they are compared by."""

    kept: KeptParts
    n_rows: int  # The places that they take
    checksum: int


class _Entry(NamedTuple):
    remembered: Remembered
    nbytes: int
    used: float


Key = tuple[bytes, int]
"""The token of what a client reads several times, and the number of a partition."""

_lock: Final = threading.Lock()
_watched = threading.Event()  # Whether a timer runs
_entries: Final[dict[Key, _Entry]] = {}


def take(key: Key) -> Remembered | None:
    """Take rows out, for the thread that reads them; None where they are not in this process."""
    with _lock:
        entry = _entries.pop(key, None)
    return None if entry is None else entry.remembered


def put(key: Key, remembered: Remembered) -> None:
    """Keep rows of a partition, if those under its token fit; others make room, oldest first."""
    nbytes, most = remembered.kept.nbytes, _most_bytes()
    with _lock:
        in_use = nbytes + sum(entry.nbytes for entry in _entries.values())
        for other in [other for other in _entries if other[0] != key[0]]:
            if in_use <= most:
                break
            in_use -= _entries.pop(other).nbytes
        if in_use > most:
            return
        if not _watched.is_set():
            _wait()
        _entries[key] = _Entry(remembered, nbytes, time.monotonic())


def _most_bytes() -> int:
    """Return the limit, from the memory that was given to the worker."""
    distributed = sys.modules.get("distributed")
    try:
        limit = distributed.get_worker().memory_manager.memory_limit if distributed else 0
    except (AttributeError, ValueError):  # No worker runs in this process
        limit = 0
    return max(MOST_BYTES, int(limit or 0) // WORKER_PART)


def _wait() -> None:
    _watched.set()
    timer = threading.Timer(IDLE_SECONDS / 2, _drop_idle)
    timer.daemon = True
    timer.start()


def _drop_idle() -> None:
    oldest = time.monotonic() - IDLE_SECONDS
    with _lock:
        for key in [key for key, entry in _entries.items() if entry.used < oldest]:
            del _entries[key]
        if _entries:
            _wait()
        else:
            _watched.clear()
