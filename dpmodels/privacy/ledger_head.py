"""The lock file of a ledger: the lock, and the head of its chain.

SQLite's own locks are POSIX locks, which a process loses as soon as it closes any descriptor of the
file, for example after a backup. So every transaction holds an advisory lock on another file beside
the ledger (`flock`, which belongs to a single open file description). The same file stores the
number and the hash of the last line, in two slots that are written alternately: after a crash the
older one is intact. It is written after the ledger is synced. So a ledger may be one line ahead of
it, but never behind: that means that an older copy replaced the ledger, or that a foreign journal
was rolled back, and charges would be lost.
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
from types import ModuleType
from typing import Final, NamedTuple, NoReturn

from dpmodels.atomic_files import discard_partials_of
from dpmodels.errors import LedgerError

try:
    import fcntl

    _UNIX: ModuleType | None = fcntl
except ImportError:  # Windows, where SQLite's locks are not lost
    _UNIX = None


SUFFIX: Final = ".lock"
_FORMAT: Final = "dpmodels.head/1"
# Bytes from one slot to the next, so that each lies in its own sector.
_SLOT: Final = 4096
_DIGITS: Final = 18  # Of numbers that SQLite can hold
_FIRST_WAIT, _LONGEST_WAIT = 0.0005, 0.01


class Head(NamedTuple):
    """The last recorded line of a ledger."""

    line: int
    hash: str


class HeadFile:
    """The locked lock file."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    def read(self) -> Head | None:
        """Return the head; None if it has not been written yet."""
        heads = [head for head in map(self._slot, (0, 1)) if head is not None]
        return max(heads, default=None)

    def write(self, head: Head, *, is_synced: bool = True) -> None:
        """Write the head over the older slot, and sync it unless an older one will do."""
        slots = [self._slot(0), self._slot(1)]
        lines = [-1 if slot is None else slot.line for slot in slots]
        body = f"{_FORMAT} {head.line} {head.hash}"
        record = f"{body} {_checksum(body)}\n".encode()
        try:
            os.pwrite(self._descriptor, record, _SLOT * lines.index(min(lines)))
            if is_synced:
                os.fsync(self._descriptor)
        except OSError as error:
            raise LedgerError(_failed(self._path, "written", error)) from None

    def forget(self) -> None:
        """Delete the head."""
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


def _failed(path: Path, action: str, error: OSError) -> str:
    reason = os.strerror(error.errno or 0)
    return f"the lock file {lock_path(path).name} of the ledger cannot be {action} ({reason})"


def lock_path(path: Path) -> Path:
    """Return the path of a ledger's lock file."""
    return path.with_name(path.name + SUFFIX)


@contextmanager
def locked(path: Path, timeout: float) -> Iterator[HeadFile]:
    """Hold the lock of a ledger, excluding all threads and processes of this machine."""
    try:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(lock_path(path), flags, 0o600)
    except OSError as error:
        raise LedgerError(
            f"{_failed(path, 'opened', error)}: it must be a regular file in a folder with "
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
    deadline, wait = time.monotonic() + timeout, _FIRST_WAIT
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
        if time.monotonic() >= deadline:
            raise LedgerError(
                f"the ledger {path.name}: another process has locked it for {timeout:g} seconds. "
                "Nothing was charged"
            )
        time.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)


# Refuse locations and neighbouring files with which charges could be lost.

_NETWORK: Final = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.glusterfs", "fuse.sshfs"),
        *("glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb2", "smb3"),
    }
)
_JOURNAL: Final = "-journal"


def require_local(path: Path) -> None:
    """Refuse a network file system, if the system reports it."""
    kind = _file_system(path)
    if kind in _NETWORK or str(path).startswith("\\\\"):
        raise LedgerError(
            f"{path.name} lies on a network file system ({kind or 'a share'}), whose locks cannot "
            "prevent two machines from spending the same budget: put it on a local disk"
        )


def require_single(path: Path) -> None:
    """Refuse a ledger with a second name, since its journal and lock may lie beside that one."""
    with suppress(OSError):
        if os.stat(path).st_nlink > 1:
            discard_partials_of(path)
        if os.stat(path).st_nlink > 1:
            raise LedgerError(
                f"{path.name} has a second name, a hard link, beside which its lock and journal "
                "would not be found: remove the second name. Nothing was charged"
            )
    if any(point == path for point, _ in _mounts()):
        raise LedgerError(
            f"{path.name} is mounted as a single file, and its lock and journal lie elsewhere: "
            "mount its folder. Nothing was charged"
        )
    for suffix in ("-wal", "-shm"):
        if os.path.lexists(f"{path}{suffix}"):
            raise LedgerError(
                f"{path.name}{suffix} lies beside the ledger, which never uses such a file: remove "
                "it unless it is in use. Nothing was charged"
            )


def require_own_journal(path: Path, check: Callable[[Path], None]) -> None:
    """Refuse a journal left by a crash unless it fits the ledger, which a copy tests."""
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
                f"{journal.name} does not belong to the current state of this ledger, and rolling "
                "it back would lose charges: move it away. Nothing was charged"
            ) from None


def refuse_missing(path: Path) -> NoReturn:
    """Refuse a missing ledger, and suggest a similar name."""
    names: list[str] = []
    with suppress(OSError):
        names = [name for name in os.listdir(path.parent) if not name.startswith(".")]
    close = get_close_matches(path.name, names, n=1, cutoff=0.8)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise LedgerError(
        f"{str(path)!r} does not exist{hint}: to create a ledger write new=True and its budget, "
        "dp.Ledger.open(path, eps=2.0, delta=1e-6, new=True), or in the shell "
        "dpmodels ledger FILE --eps 2 --delta 1e-6"
    )


def _mounts() -> list[tuple[Path, str]]:
    """Return the known mount points and the types of their file systems."""
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
    """Return the type of the file system of a path; empty if unknown."""
    folder = path.parent.resolve()
    kinds = {
        len(point.parts): kind
        for point, kind in _mounts()
        if folder == point or point in folder.parents
    }
    return kinds[max(kinds)] if kinds else ""
