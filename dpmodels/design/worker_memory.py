"""Rows of partitions that a process of Dask keeps between the passes of one fit.

They are those of the first pass, with its checksum. A partition whose rows are gone, with their
worker or by a limit, is read anew and compared. Nothing is written to disk, sent or shown.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Final, NamedTuple

from dpmodels.design.parts import MOST_BYTES, KeptParts

# Choices: the part of a worker's memory for rows, MOST_BYTES at least, and how long they stay after
# a pass.
WORKER_PART: Final = 8
IDLE_SECONDS: Final = 60.0


class Remembered(NamedTuple):
    """Rows of a partition, and what they are compared by."""

    rows: KeptParts
    n_rows: int  # The places that they take
    checksum: int


# By the token of what a client reads several times and the number of the partition, with the time.
_entries: Final[dict[tuple[bytes, int], tuple[Remembered, float]]] = {}
_lock: Final = threading.Lock()
_watched = threading.Event()  # Whether a timer runs


def take(token: bytes, number: int) -> Remembered | None:
    """Take rows out, for the thread that reads them; None where they are not in this process."""
    with _lock:
        return _entries.pop((token, number), (None, 0.0))[0]


def put(token: bytes, number: int, remembered: Remembered) -> None:
    """Keep rows of a partition, if those under its token fit; others make room, oldest first."""
    size, limit = remembered.rows.nbytes, _most_bytes()
    with _lock:
        replaceable = [key for key in _entries if key[0] != token]
        while size + sum(rows.nbytes for (rows, *_), _ in _entries.values()) > limit:
            if not replaceable:
                return
            del _entries[replaceable.pop(0)]
        _entries[token, number] = remembered, time.monotonic()
        if not _watched.is_set():
            _watch()


def _most_bytes() -> int:
    """Return the limit, from the memory that was given to the worker."""
    distributed = sys.modules.get("distributed")
    try:
        limit = distributed.get_worker().memory_manager.memory_limit if distributed else 0
    except (AttributeError, ValueError):  # No worker runs in this process
        limit = 0
    return max(MOST_BYTES, int(limit or 0) // WORKER_PART)


def _watch() -> None:
    _watched.set()
    timer = threading.Timer(IDLE_SECONDS / 2, _drop_idle)
    timer.daemon = True
    timer.start()


def _drop_idle() -> None:
    oldest = time.monotonic() - IDLE_SECONDS
    with _lock:
        for key in [key for key, (_, used) in _entries.items() if used < oldest]:
            del _entries[key]
        _watched.clear()
        if _entries:
            _watch()
