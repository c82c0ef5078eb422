"""Where a ledger's file lies: refuse places and neighbouring files that make charges forgotten."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NoReturn

from dpmodels.errors import LedgerError
from dpmodels.writing import discard_partials_of

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
    near = get_close_matches(path.name, names, n=1, cutoff=0.8)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
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
