"""Parquet and Arrow files, read in small batches of the wanted columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from glob import glob, has_magic
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeGuard
from urllib.parse import unquote

import numpy as np

from dpmodels.errors import FrameError
from dpmodels.frames.columns import kinds_of_schema, require
from dpmodels.frames.convert import arrow_cells, is_text
from dpmodels.frames.engine import arrow_chunks, damaged, sliced, streamed, translated
from dpmodels.frames.protocol import ANY, Chunk, FileState, Kind, kind_of_parts, unfinished

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# A choice: bytes read at a time, small beside a page.
_BUFFER: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """The rows of Parquet files, one file after the other.

    Memory is that of two blocks and one page of each wanted column, whatever the number of rows:
    pages are read through a small buffer, row groups are not loaded ahead and no file is mapped.

    `kinds` has what each column can hold in the file where it can hold most; columns are those of
    the schema, then those that the names of folders hold. `texts` are each file's columns of text,
    which come as dictionaries, as they lie in the file.
    """

    files: tuple[Path, ...]
    names: tuple[str, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)
    kinds: Mapping[str, Kind] = field(repr=False)
    states: tuple[FileState, ...] = field(default=(), repr=False)
    texts: tuple[frozenset[str], ...] = field(default=(), repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def nrows(self) -> int:
        """The number of rows of all files."""
        return sum(self.counts)

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold in any of the files: software types each by its cells."""
        return self.kinds[name]

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns, none across two files."""
        require(self, columns)
        return prefetch(self._read(columns, block_rows))

    def _read(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        self._require_same()
        for path, name, n_rows, texts in zip(
            self.files, display_paths(self.files), self.counts, self.texts, strict=True
        ):
            folder_values = dict(folder_cells(path))
            file_columns = [column for column in columns if column not in folder_values]
            with _opened(path, name, texts.intersection(file_columns)) as file:
                read = partial(
                    file.iter_batches, block_rows, columns=file_columns, use_threads=False
                )
                n_read = 0
                for batch in streamed(read, partial(damaged, name)):
                    n_read += batch.num_rows
                    yield {
                        column: np.full(batch.num_rows, folder_values[column], object)
                        if column in folder_values
                        else arrow_cells(batch.column(column))
                        for column in columns
                    }
            if n_read != n_rows:
                raise FrameError(unfinished(damaged(name, EOFError())))
        self._require_same()

    def _require_same(self) -> None:
        for state in self.states:
            state.require_same()


def require_file(path: Path) -> None:
    """Refuse a path without a file."""
    if not path.is_file():
        raise FrameError(f"there is no file {str(path)!r}: check the path and the working folder")


def open_parquet(files: tuple[Path, ...]) -> ParquetRows:
    """Open Parquet files, of which the footers alone are read."""
    require_once(files, {})
    names = display_paths(files)
    states = tuple(map(FileState.of, files, names))
    footers = [_footer(path, name) for path, name in zip(files, names, strict=True)]
    columns = footers[0].names
    for name, footer in zip(names, footers, strict=True):
        both_names = (*columns, *footer.names) if footer.names != columns else ()
        for column in both_names:
            if columns.count(column) != footer.names.count(column):
                has, lacks = (names[0], name) if columns.count(column) else (name, names[0])
                raise FrameError(
                    f"{has} has a column {column!r} and {lacks} has not, or not as often: write "
                    "the files with one schema, or give only those that have it"
                )
    kinds = {name: kind_of_parts(footer.kinds[name] for footer in footers) for name in columns}
    counts, texts = (
        tuple(getattr(footer, name) for footer in footers) for name in ("nrows", "texts")
    )
    return ParquetRows(files, columns, counts, kinds, states, texts)


class _Footer(NamedTuple):
    names: tuple[str, ...]
    kinds: Mapping[str, Kind]
    nrows: int
    texts: frozenset[str]


def _footer(path: Path, name: str) -> _Footer:
    with _opened(path, name) as file:
        schema, folders = file.schema_arrow, dict(folder_cells(path))
        kinds = kinds_of_schema(schema) | dict.fromkeys(folders, ANY)
        texts = frozenset(field.name for field in schema if is_text(_entry_type(field.type)))
        return _Footer((*schema.names, *folders), kinds, file.metadata.num_rows, texts)


def _entry_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary's entries: text of it is checked unless read as such."""
    from pyarrow import types

    return kind.value_type if types.is_dictionary(kind) else kind


def _opened(path: Path, name: str, texts: Iterable[str] = ()) -> pq.ParquetFile:
    """Open a file; the columns of `texts` come as dictionaries."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise FrameError(
            'reading Parquet files needs pyarrow: pip install "dpmodels[arrow]"'
        ) from None
    try:
        return parquet.ParquetFile(
            path,
            memory_map=False,
            pre_buffer=False,
            buffer_size=_BUFFER,
            page_checksum_verification=True,
            read_dictionary=list(texts),
        )
    except (pa.ArrowException, OSError):
        raise FrameError(
            f"{name} cannot be opened as a Parquet file: "
            "write it with DataFrame.to_parquet, or give it the suffix of what it is"
        ) from None


# Reading one chunk while the one before is worked on.


def prefetch(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Pass chunks on in their order, the next of them read by a thread meanwhile.

    Reading must be thread-safe, as decoding a file is. Two chunks are in memory at
    a time; what reading raises comes where the chunk would have come.
    """
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk


# Arrow IPC files (.arrow, .feather), read one record batch of the wanted columns at a time.

SUFFIXES: Final = (".arrow", ".feather")


@dataclass(frozen=True, slots=True)
class ArrowFileRows:
    """The rows of an Arrow IPC file; memory is that of one of its record batches."""

    state: FileState
    names: tuple[str, ...] = field(repr=False)
    kinds: Mapping[str, Kind] = field(repr=False)
    nrows: int = field(repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def files(self) -> tuple[Path, ...]:
        """The file."""
        return (self.state.path,)

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold, by its type in the file."""
        return self.kinds[name]

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns."""
        require(self, columns)
        return self._read(columns, block_rows)

    def _read(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        self.state.require_same()
        fields = [self.names.index(name) for name in columns]
        batches = streamed(
            lambda: _batches(self.state.path, fields), partial(damaged, self.state.name)
        )
        # The file keeps its own order of columns.
        in_file = tuple(self.names[at] for at in sorted(fields))
        for chunk in arrow_chunks(sliced(batches, block_rows), in_file):
            yield {name: chunk[name] for name in columns}
        self.state.require_same()


def open_arrow_file(path: Path) -> ArrowFileRows:
    """Open an Arrow IPC file, of which the schema and the lengths of its batches are read."""
    require_file(path)
    state = FileState.of(path)

    def opened() -> ArrowFileRows:
        import pyarrow as pa

        with pa.ipc.open_file(path) as file:
            schema = file.schema
        kinds = kinds_of_schema(schema)
        n_rows = sum(batch.num_rows for batch in _batches(path, [0][: len(kinds)]))
        return ArrowFileRows(state, tuple(schema.names), kinds, n_rows)

    return translated(lambda error: _cannot_open(state.name, error), opened)


def _batches(path: Path, fields: list[int]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    with pa.ipc.open_file(path, options=options) as file:
        for at in range(file.num_record_batches):
            yield file.get_batch(at)


def _cannot_open(name: str, error: Exception) -> str:
    if isinstance(error, ImportError):
        return 'reading Arrow files needs pyarrow: pip install "dpmodels[arrow]"'
    return (
        f"{name} cannot be opened as an Arrow file: write it with DataFrame.to_feather, or give it "
        "the suffix of what it is"
    )


# Which Parquet files a folder, a pattern or a list of paths stands for.

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
        # What all names of a file share; where files have no numbers, its path.
        status = file.stat()
        identity = (status.st_dev, status.st_ino) if status.st_ino else file.resolve()
        if identity in names_by_file:
            raise FrameError(
                f"{names_by_file[identity]} and {name} are one file that is listed twice, "
                "and its rows would count twice: list it once"
            )
        names_by_file[identity] = name


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
        if not isinstance(data, str | PathLike):
            return files_of_all(data) if is_list_of_files(data) else ()
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
        candidates = (
            file
            for file in path.rglob("*")
            if file.suffix.lower() == SUFFIX
            and file.is_file()
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        )
        files = tuple(sorted(candidates))
        if not files:
            raise FrameError(
                f"the folder {str(path)!r} has no {SUFFIX} file: give a folder of Parquet files, "
                "or read the files yourself and give the DataFrames one after the other"
            )
        return files
    if is_pattern(path):
        paths = [Path(match) for match in sorted(glob(str(path), recursive=True))]
        if not paths:
            raise FrameError(
                f"no file matches {str(path)!r}: check the pattern and the working folder"
            )
        mismatch = next((match for match in paths if match.suffix.lower() != SUFFIX), None)
        if mismatch is not None:
            raise FrameError(
                f"{str(path)!r} matches {str(mismatch)!r}, which does not have the suffix "
                f"{SUFFIX}: only Parquet files are read together, write a pattern that ends in "
                f"{SUFFIX}"
            )
        return files_of_all(paths)
    require_file(path)
    return (path,)


def files_of_all(items: Sequence[str | PathLike[str]]) -> tuple[Path, ...]:
    """Give the Parquet files of a list, in its order; errors as from `files_of`."""
    return tuple(file for item in items for file in files_of(Path(item)))
