"""Files that are written completely or not at all: no release is ever half on disk.

A file is written under a temporary name in the folder of its target, at its full size, and synced;
then it takes its own name in one step. At any time a
reader finds the old file, no file, or the complete new one.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from os import PathLike
from pathlib import Path

from dpmodels.errors import ArgumentError, FrameError, quoted
from dpmodels.typing import AnyPath

_PARTIAL = re.compile(r"\.[0-9a-f]{32}\.partial")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def require_target(
    path: AnyPath, *, overwrite: bool = False, never: Iterable[AnyPath] = ()
) -> Path:
    """Refuse a path that nothing can be written to, before anything is spent on its content.

    `overwrite` allows to replace an existing file, but never a link. `never` are files and folders
    that are read or written elsewhere: the target may not be one of them, under any name, or inside
    one.

    >>> require_target("nowhere/fit.nc")
    Traceback (most recent call last):
    ...
    dpmodels.errors.FrameError: 'nowhere/fit.nc': its folder does not exist; make it first
    """
    target = checked_path(path)
    name = repr(str(target))
    for protected in never:
        if _same_or_inside(target, checked_path(protected)):
            raise ArgumentError(
                f"{name} is also read or written here as {str(protected)!r}; give another path"
            )
    _require_free(target, overwrite)
    probe = _unused(target)
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(probe)
    except OSError as error:
        raise FrameError(
            f"{name}: its folder takes no files ({_why(error)}); give a path in another one"
        ) from None
    return target


def write_whole(
    path: AnyPath, content: bytes, *, overwrite: bool = False, private: bool = False
) -> None:
    """Write a file completely or not at all.

    A `private` file is readable only by its owner. If a write fails, an old file is unchanged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a.txt", b"all of it")
    ...     (Path(folder) / "a.txt").read_bytes()
    b'all of it'
    """
    place = checked_path(path)
    _require_free(place, overwrite)
    partial = stage(place, content, private=private)
    try:
        publish(partial, place, overwrite=overwrite)
    finally:
        discard(partial)


def stage(path: AnyPath, content: bytes, *, private: bool = False) -> Path:
    """Write and sync a file beside its target, under a random name, for :func:`publish`."""
    place = checked_path(path)
    partial = _unused(place)
    try:
        mode = 0o600 if private else 0o666
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                # Reserve the space of a file if the system can, so that no write fails halfway.
                size = len(content)
                if size and hasattr(os, "posix_fallocate"):
                    try:
                        os.posix_fallocate(file.fileno(), 0, size)
                    except OSError as error:
                        if error.errno in _NO_ROOM:
                            raise
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            _sync_folder(place)
        except BaseException:
            discard(partial)
            raise
    except OSError as error:
        raise FrameError(_not_written(place, error)) from None
    return partial


def publish(partial: Path, path: AnyPath, *, overwrite: bool = False) -> None:
    """Give a staged file its own name, in one step.

    If that fails, the staged file still exists.
    """
    place = checked_path(path)
    try:
        if overwrite:
            os.replace(partial, place)
        else:
            # Fail if the name exists. On file systems without links, an empty file reserves the
            # name until the complete one replaces it.
            try:
                os.link(partial, place)
            except FileExistsError:
                raise
            except OSError:
                os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                try:
                    os.replace(partial, place)
                except OSError:
                    discard(place)
                    raise
    except FileExistsError:
        raise FrameError(_already_exists(place)) from None
    except OSError as error:
        raise FrameError(_not_written(place, error)) from None
    discard(partial)
    _sync_folder(place)


def discard_partials_of(place: Path) -> None:
    """Remove second names left by a process that was killed while it named a file."""
    for name in os.listdir(place.parent):
        sibling = place.with_name(name)
        if _PARTIAL.fullmatch(name) and _same_or_inside(sibling, place):
            discard(sibling)


def discard(partial: Path) -> None:
    """Remove a staged file if it still exists."""
    with suppress(OSError):
        os.unlink(partial)


def checked_path(path: object) -> Path:
    """Return a path; refuse other values."""
    if not isinstance(path, str | PathLike) or not isinstance(os.fspath(path), str):
        raise ArgumentError(f"path={quoted(path)}: expected the path of a file, such as 'fit.nc'")
    if not os.fspath(path) or "\0" in os.fspath(path):
        raise ArgumentError(
            f"path={os.fspath(path)!r} is not the name of a file; give one such as 'fit.nc'"
        )
    return Path(path)


def _require_free(place: Path, overwrite: bool) -> None:
    name = repr(str(place))
    try:
        status = os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        if not place.absolute().parent.is_dir():
            raise FrameError(f"{name}: its folder does not exist; make it first") from None
        return
    except OSError as error:
        raise FrameError(f"{name} cannot be written ({_why(error)}); give another path") from None
    if not stat.S_ISREG(status.st_mode):
        what = "a link" if stat.S_ISLNK(status.st_mode) else "not a file"
        raise FrameError(
            f"{name} already exists and is {what}, which is never replaced; give a new name"
        )
    if not overwrite:
        raise FrameError(_already_exists(place))


def _same_or_inside(place: Path, reference: Path) -> bool:
    with suppress(OSError):
        if os.path.samefile(place, reference):
            return True
    real_place, real_reference = Path(os.path.realpath(place)), Path(os.path.realpath(reference))
    return real_place == real_reference or (
        os.path.exists(real_place) and real_reference in real_place.parents
    )


def _unused(place: Path) -> Path:
    return place.with_name(f".{secrets.token_hex(16)}.partial")


def _sync_folder(place: Path) -> None:
    """Make a name survive a power failure, if folders can be synced."""
    with suppress(OSError):
        descriptor = os.open(place.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _why(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else type(error).__name__


def _already_exists(place: Path) -> str:
    return f"{str(place)!r} already exists; give a new name"


def _not_written(place: Path, error: OSError) -> str:
    return (
        f"{str(place)!r} was not written ({_why(error)}), and nothing there was changed; a result "
        "is still in memory: save it to another path"
    )
