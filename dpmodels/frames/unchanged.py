"""What shows that a file is the one that was opened: its size, its time and its number."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpmodels.errors import FrameError
from dpmodels.frames.protocol import unfinished


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a file when it was opened; shows its path alone."""

    path: Path
    name: str
    facts: tuple[int, ...]

    @classmethod
    def of(cls, path: Path, name: str = "") -> FileState:
        """Return the present state of a file; `name` is what messages call it."""
        return cls(path, name or repr(str(path)), _facts(path))

    def require_same(self) -> None:
        """Refuse a file that was changed or replaced since: a FrameError after the charge."""
        try:
            same = _facts(self.path) == self.facts
        except OSError:
            same = False
        if not same:
            raise FrameError(
                unfinished(
                    f"{self.name} was changed or replaced since it was opened: give a file that "
                    "stays as it is"
                )
            )


def _facts(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev
