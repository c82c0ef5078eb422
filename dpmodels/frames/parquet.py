"""Parquet files, read in small batches of the wanted columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from dpmodels.errors import FrameError
from dpmodels.frames.convert import arrow_cells, is_text
from dpmodels.frames.files import display_paths, folder_cells, require_once
from dpmodels.frames.protocol import ANY, Chunk, FileState, Kind, kind_of_parts, unfinished
from dpmodels.frames.require import is_inferred, kind_of_arrow, require

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
                batches = file.iter_batches(block_rows, columns=file_columns, use_threads=False)
                for batch in _intact(batches, name, n_rows):
                    yield {
                        column: np.full(batch.num_rows, folder_values[column], object)
                        if column in folder_values
                        else arrow_cells(batch.column(column))
                        for column in columns
                    }
        self._require_same()

    def _require_same(self) -> None:
        for state in self.states:
            state.require_same()


def open_parquet(files: tuple[Path, ...]) -> ParquetRows:
    """Open Parquet files, of which the footers alone are read."""
    require_once(files, {})
    names = display_paths(files)
    states = tuple(map(FileState.of, files, names))
    footers = [_footer(path, name) for path, name in zip(files, names, strict=True)]
    for name, footer in zip(names, footers, strict=True):
        _require_alike(names[0], footers[0].names, name, footer.names)
    names = footers[0].names
    kinds = {column: kind_of_parts(footer.kinds[column] for footer in footers) for column in names}
    counts, texts = (
        tuple(getattr(footer, name) for footer in footers) for name in ("nrows", "texts")
    )
    return ParquetRows(files, names, counts, kinds, states, texts)


class _Footer(NamedTuple):
    names: tuple[str, ...]
    kinds: Mapping[str, Kind]
    nrows: int
    texts: frozenset[str]


def _footer(path: Path, name: str) -> _Footer:
    with _opened(path, name) as file:
        schema, folders = file.schema_arrow, dict(folder_cells(path))
        kinds = dict(zip(schema.names, map(kind_of_arrow, schema.types), strict=True))
        if is_inferred(schema.metadata):
            kinds = {column: Kind(ANY.holds, kind.name) for column, kind in kinds.items()}
        kinds |= dict.fromkeys(folders, ANY)
        texts = frozenset(field.name for field in schema if is_text(field.type))
        return _Footer((*schema.names, *folders), kinds, file.metadata.num_rows, texts)


def _require_alike(
    first: str, first_names: tuple[str, ...], second: str, second_names: tuple[str, ...]
) -> None:
    """Refuse files whose columns differ in name."""
    if first_names == second_names:
        return
    for column in (*first_names, *second_names):
        if first_names.count(column) != second_names.count(column):
            has, lacks = (first, second) if first_names.count(column) else (second, first)
            raise FrameError(
                f"{has} has a column {column!r} and {lacks} has not, or not as often: write the "
                "files with one schema, or give only those that have it"
            )


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


def _intact(batches: Iterator[pa.RecordBatch], name: str, n_rows: int) -> Iterator[pa.RecordBatch]:
    """Pass batches on; report a damaged file without quoting its content."""
    import pyarrow as pa

    n_read = 0
    while True:
        try:
            batch = next(batches, None)
            n_read += 0 if batch is None else batch.num_rows
            damaged = batch is None and n_read != n_rows
        except (pa.ArrowException, OSError):
            damaged = True
        if damaged:
            raise FrameError(unfinished(f"{name} is damaged: write the file anew"))
        if batch is None:
            return
        yield batch


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
