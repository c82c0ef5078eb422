"""The lock file of a ledger: who may touch the ledger now, and the head of its chain.

SQLite's own locks are POSIX locks, which a process loses as soon as it closes any descriptor of the
file, be it of a backup or of a hash. So every transaction holds an advisory lock of another file
beside the ledger (`flock`, which belongs to one open description alone). The same file holds the
number and the hash of the last line, in two slots that are written in turn: after a crash the
older one is whole. It is written after the ledger was synced. So a ledger may be one line ahead of
it, and never behind: then an older copy was put in its place, or a journal that is not its own was
played back, and charges would be forgotten.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from dpmodels.errors import LedgerError

try:
    import fcntl

    _UNIX: Any = fcntl
except ImportError:  # Windows, where SQLite's locks are not lost
    _UNIX = None


SUFFIX: Final = ".lock"
_FORMAT: Final = "dpmodels.head/1"
# Bytes from one slot to the next: each lies in a sector of its own.
_SLOT: Final = 4096
_DIGITS: Final = 18  # Of numbers that SQLite can hold
_FIRST_WAIT, _LONGEST_WAIT = 0.0005, 0.01


class Head(NamedTuple):
    """The last line that a ledger is known to have."""

    line: int
    hash: str


class HeadFile:
    """The lock file while its lock is held."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    def read(self) -> Head | None:
        """Return the head; None where none was written yet."""
        heads = [head for head in map(self._slot, (0, 1)) if head is not None]
        return max(heads, default=None)

    def write(self, head: Head) -> None:
        """Write the head over the older slot, and sync it."""
        slots = [self._slot(0), self._slot(1)]
        lines = [-1 if slot is None else slot.line for slot in slots]
        body = f"{_FORMAT} {head.line} {head.hash}"
        record = f"{body} {_checksum(body)}\n".encode()
        try:
            os.pwrite(self._descriptor, record, _SLOT * lines.index(min(lines)))
            os.fsync(self._descriptor)
        except OSError as error:
            raise LedgerError(_failed(self._path, "written", error)) from None

    def forget(self) -> None:
        """Leave no head, as another one was accepted."""
        os.ftruncate(self._descriptor, 0)

    def _slot(self, number: int) -> Head | None:
        try:
            record = os.pread(self._descriptor, 256, number * _SLOT).split(b"\n")[0]
        except OSError as error:
            raise LedgerError(
                f"{_failed(self._path, 'read', error)}. Nothing was charged"
            ) from None
        body, _, checksum = record.decode("ascii", "replace").rpartition(" ")
        words = body.split(" ")
        if checksum != _checksum(body) or len(words) != 3 or words[0] != _FORMAT:
            return None
        whole = words[1].isdecimal() and len(words[1]) <= _DIGITS
        return Head(int(words[1]), words[2]) if whole else None


def _checksum(body: str) -> str:
    return sha256(body.encode("ascii", "replace")).hexdigest()[:16]


def _failed(path: Path, what: str, error: OSError) -> str:
    reason = os.strerror(error.errno or 0)
    return f"the lock file {lock_path(path).name} of the ledger cannot be {what} ({reason})"


def lock_path(path: Path) -> Path:
    """Return where the lock file of a ledger lies."""
    return path.with_name(path.name + SUFFIX)


@contextmanager
def locked(path: Path, timeout: float) -> Iterator[HeadFile]:
    """Hold the lock of a ledger, alone among all threads and processes of this machine."""
    try:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(lock_path(path), flags, 0o600)
    except OSError as error:
        raise LedgerError(
            f"{_failed(path, 'opened', error)}: it must be a file of its own in a folder with "
            "write permission. Nothing was charged"
        ) from None
    try:
        _acquire(descriptor, path, timeout)
        try:
            yield HeadFile(descriptor, path)
        finally:
            if _UNIX is not None:
                with suppress(OSError):
                    _UNIX.flock(descriptor, _UNIX.LOCK_UN)
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, timeout: float) -> None:
    if _UNIX is None:
        return
    end, wait = time.monotonic() + timeout, _FIRST_WAIT
    while True:
        try:
            _UNIX.flock(descriptor, _UNIX.LOCK_EX | _UNIX.LOCK_NB)
        except BlockingIOError:
            pass
        except OSError as error:
            raise LedgerError(
                f"the ledger {path.name} cannot be locked ({os.strerror(error.errno or 0)}): put "
                "it on a local disk. Nothing was charged"
            ) from None
        else:
            return
        if time.monotonic() >= end:
            raise LedgerError(
                f"the ledger {path.name}: another process has locked it for {timeout:g} seconds. "
                "Nothing was charged"
            )
        time.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)
