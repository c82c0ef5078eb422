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
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from dpmodels.errors import LedgerError
from dpmodels.writing import discard_partials_of

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
        fields = body.split(" ")
        if checksum != _checksum(body) or len(fields) != 3 or fields[0] != _FORMAT:
            return None
        is_number = fields[1].isdecimal() and len(fields[1]) <= _DIGITS
        return Head(int(fields[1]), fields[2]) if is_number else None


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


# Where a ledger's file lies: refuse places and neighbouring files that make charges forgotten.

_NETWORK: Final = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.glusterfs", "fuse.sshfs"),
        *("glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb2", "smb3"),
    }
)
_JOURNAL: Final = "-journal"


def require_local(path: Path) -> None:
    """Refuse a file system of a network, as far as the system tells."""
    kind = _file_system(path)
    if kind in _NETWORK or str(path).startswith("\\\\"):
        raise LedgerError(
            f"{path.name} lies on a network file system ({kind or 'a share'}), whose locks do not "
            "keep two machines from spending the same budget: put it on a local disk"
        )


def require_single(path: Path) -> None:
    """Refuse a ledger with a second name, whose journal and lock lie beside the other name."""
    with suppress(OSError):
        if os.stat(path).st_nlink > 1:
            discard_partials_of(path)
        if os.stat(path).st_nlink > 1:
            raise LedgerError(
                f"{path.name} has another name, by a hard link, under which its lock and journal "
                "would not be found: remove the other name. Nothing was charged"
            )
    if any(point == path for point, _ in _mounts()):
        raise LedgerError(
            f"{path.name} is mounted as a single file, and its lock and journal lie elsewhere: "
            "mount its folder. Nothing was charged"
        )
    for suffix in ("-wal", "-shm"):
        if os.path.lexists(f"{path}{suffix}"):
            raise LedgerError(
                f"{path.name}{suffix} lies beside the ledger, which never has such a file: remove "
                "it if nobody uses it. Nothing was charged"
            )


def require_own_journal(path: Path, check: Callable[[Path], None]) -> None:
    """Try a journal that a crash left on a copy of the ledger, and refuse one of another file."""
    journal = Path(f"{path}{_JOURNAL}")
    if not journal.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "ledger"
        shutil.copyfile(path, copy)
        shutil.copyfile(journal, f"{copy}{_JOURNAL}")
        try:
            check(copy)
        except LedgerError:
            raise LedgerError(
                f"{journal.name} does not belong to this ledger in its present state, and playing "
                "it back would lose charges: move it away. Nothing was charged"
            ) from None


def refuse_missing(path: Path) -> NoReturn:
    """Refuse a ledger that is not there, and name one that may have been meant."""
    names: list[str] = []
    with suppress(OSError):
        names = [name for name in os.listdir(path.parent) if not name.startswith(".")]
    close = get_close_matches(path.name, names, n=1, cutoff=0.8)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise LedgerError(
        f"{str(path)!r} is not there{hint}: to make a new ledger write new=True and its budget, "
        "dp.Ledger.open(path, eps=2.0, delta=1e-6, new=True)"
    )


def _mounts() -> list[tuple[Path, str]]:
    """Return the points where file systems are mounted and their kinds, as far as is known."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    lines = [line.split(" ") for line in mounts.splitlines()]
    return [
        (Path(point.encode().decode("unicode_escape", errors="replace")), kind)
        for _, point, kind, *_ in lines
    ]


def _file_system(path: Path) -> str:
    """Return the kind of the file system of a path; empty where the system does not tell."""
    folder = path.parent.resolve()
    kinds = {
        len(point.parts): kind
        for point, kind in _mounts()
        if folder == point or point in folder.parents
    }
    return kinds[max(kinds)] if kinds else ""
