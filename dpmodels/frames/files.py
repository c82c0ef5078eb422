"""Which Parquet files a folder, a pattern or a list of paths stands for."""

from collections.abc import Hashable, Sequence
from glob import glob, has_magic
from os import PathLike, fspath
from pathlib import Path
from typing import Final, TypeGuard
from urllib.parse import unquote

from dpmodels.errors import FrameError

SUFFIX = ".parquet"

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


def folder_cells(path: Path) -> tuple[tuple[str, str | None], ...]:
    """Read the cells that all rows of a file share and the names of its folders hold.

    As text, None where missing, from names as Apache Hive and Spark write them.
    """
    pairs = (part.split("=", 1) for part in path.parts[:-1] if "=" in part[1:])
    return tuple((unquote(name), None if cell == _NULL else unquote(cell)) for name, cell in pairs)


def display_paths(files: Sequence[Path]) -> tuple[str, ...]:
    """Return the paths of files for messages, without the cells in folder names."""
    return tuple(_display_path(path, number) for number, path in enumerate(files, start=1))


def _display_path(path: Path, number: int) -> str:
    if not folder_cells(path):
        return repr(str(path))
    folders = (part.split("=")[0] + "=*" if "=" in part[1:] else part for part in path.parts[:-1])
    return f"{str(Path(*folders, path.name))!r} (file {number} by name)"


def require_once(files: Sequence[Path], names_by_file: dict[Hashable, str]) -> None:
    """Refuse a file that is there twice, under one name or by links under several.

    `names_by_file` holds the files before, to which these are added.
    """
    for file, name in zip(files, display_paths(files), strict=True):
        identity = _identity(file)
        if identity in names_by_file:
            raise FrameError(
                f"{names_by_file[identity]} and {name} are one file that is listed twice, "
                "and its rows would count twice: list it once"
            )
        names_by_file[identity] = name


def _identity(file: Path) -> Hashable:
    """Give what all names of a file share; where files have no numbers, its path."""
    status = file.stat()
    return (status.st_dev, status.st_ino) if status.st_ino else file.resolve()


def is_pattern(path: Path) -> bool:
    """Whether a path stands for others: it has a wildcard, and no file is called so."""
    return has_magic(str(path)) and not path.exists()


def is_list_of_files(data: object) -> TypeGuard[Sequence[str | PathLike[str]]]:
    """Whether data are a list of Parquet files, folders of them or patterns.

    Items that are text count only by their suffix: other texts may be cells.
    """
    return isinstance(data, list | tuple) and len(data) > 0 and all(_is_file(item) for item in data)


def _is_file(item: object) -> bool:
    if not isinstance(item, str | PathLike):
        return False
    path = Path(fspath(item))
    folder = isinstance(item, PathLike) and path.is_dir()
    return folder or path.suffix.lower() == SUFFIX


def named_files(data: object) -> tuple[Path, ...]:
    """Return the files that data stand for; empty where they are not paths, or do not exist."""
    try:
        if is_list_of_files(data):
            return files_of_all(data)
        if not isinstance(data, str | PathLike):
            return ()
        path = Path(data)
        return (path,) if path.is_file() else files_of(path)
    except (FrameError, OSError, ValueError):
        return ()


def files_of(path: Path) -> tuple[Path, ...]:
    """Give the Parquet files of a path, in the order of their names.

    A file; a folder, which stands for the ``.parquet`` files in it and in the folders below, but
    for those whose name begins with ``.`` or ``_``; or a pattern such as ``rows/2024-*.parquet``,
    with ``**`` for folders at any depth.
    """
    if path.is_dir():
        return _below(path)
    if is_pattern(path):
        return _matching(path)
    if not path.is_file():
        raise FrameError(f"there is no file {str(path)!r}: check the path and the working folder")
    return (path,)


def files_of_all(items: Sequence[str | PathLike[str]]) -> tuple[Path, ...]:
    """Give the Parquet files of a list, in its order; errors as from `files_of`."""
    return tuple(file for item in items for file in files_of(Path(item)))


def _below(folder: Path) -> tuple[Path, ...]:
    candidates = (
        file
        for file in folder.rglob("*")
        if file.suffix.lower() == SUFFIX
        and file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )
    files = tuple(sorted(candidates))
    if not files:
        raise FrameError(
            f"the folder {str(folder)!r} has no {SUFFIX} file: give a folder of Parquet files, "
            "or read the files yourself and give the DataFrames one after the other"
        )
    return files


def _matching(pattern: Path) -> tuple[Path, ...]:
    paths = [Path(match) for match in sorted(glob(str(pattern), recursive=True))]
    if not paths:
        raise FrameError(
            f"no file matches {str(pattern)!r}: check the pattern and the working folder"
        )
    mismatch = next((path for path in paths if path.suffix.lower() != SUFFIX), None)
    if mismatch is not None:
        raise FrameError(
            f"{str(pattern)!r} matches {str(mismatch)!r}, which does not have the suffix {SUFFIX}: "
            f"only Parquet files are read together, write a pattern that ends in {SUFFIX}"
        )
    return files_of_all(paths)
