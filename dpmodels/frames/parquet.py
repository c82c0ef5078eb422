"""Parquet files, read in small batches of the wanted columns."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from dpmodels.errors import FrameError
from dpmodels.frames.files import folder_cells, require_once, shown
from dpmodels.frames.protocol import ANY, Chunk, FileState, Kind, kind_of_parts, unfinished
from dpmodels.frames.require import is_inferred, kind_of_arrow, require

# A choice: bytes read at a time, small beside a page.
_BUFFER: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """The rows of Parquet files, one file after the other.

    Memory is that of two blocks and one page of each wanted column, whatever the number of rows:
    pages are read through a small buffer, row groups are not loaded ahead and no file is mapped.

    `kinds` has what each column can hold in the file where it can hold most; columns are those of
    the schema, then those that the names of folders hold.
    """

    files: tuple[Path, ...]
    names: tuple[str, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)
    kinds: Mapping[str, Kind] = field(repr=False)
    states: tuple[FileState, ...] = field(default=(), repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def nrows(self) -> int:
        """The number of rows of all files."""
        return sum(self.counts)

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold in any of the files: software types each by its cells."""
        return self.kinds[name]

    def chunks(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        """Blocks of at most `rows` rows of the wanted columns, none across two files."""
        require(self, wanted)
        return prefetch(self._read(wanted, rows))

    def _read(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        from dpmodels.frames.convert import arrow_cells

        self._require_same()
        for path, name, stated in zip(self.files, shown(self.files), self.counts, strict=True):
            outside = dict(folder_cells(path))
            inside = [column for column in wanted if column not in outside]
            with _opened(path, name) as file:
                batches = file.iter_batches(rows, columns=inside, use_threads=False)
                for batch in _intact(batches, name, stated):
                    yield {
                        column: np.full(batch.num_rows, outside[column], object)
                        if column in outside
                        else arrow_cells(batch.column(column))
                        for column in wanted
                    }
        self._require_same()

    def _require_same(self) -> None:
        for state in self.states:
            state.require_same()


def open_parquet(files: tuple[Path, ...]) -> ParquetRows:
    """Open Parquet files, of which the footers alone are read."""
    require_once(files, {})
    names = shown(files)
    states = tuple(map(FileState.of, files, names))
    footers = [_footer(path, name) for path, name in zip(files, names, strict=True)]
    for name, footer in zip(names, footers, strict=True):
        _require_alike(names[0], footers[0].names, name, footer.names)
    names = footers[0].names
    kinds = {own: kind_of_parts(footer.kinds[own] for footer in footers) for own in names}
    return ParquetRows(files, names, tuple(footer.nrows for footer in footers), kinds, states)


class _Footer(NamedTuple):
    names: tuple[str, ...]
    kinds: Mapping[str, Kind]
    nrows: int


def _footer(path: Path, name: str) -> _Footer:
    with _opened(path, name) as file:
        schema, folders = file.schema_arrow, dict(folder_cells(path))
        kinds = dict(zip(schema.names, map(kind_of_arrow, schema.types), strict=True))
        if is_inferred(schema.metadata):
            kinds = {column: Kind(ANY.holds, kind.name) for column, kind in kinds.items()}
        kinds |= dict.fromkeys(folders, ANY)
        return _Footer((*schema.names, *folders), kinds, file.metadata.num_rows)


def _require_alike(first: str, names: tuple[str, ...], other: str, others: tuple[str, ...]) -> None:
    """Refuse files whose columns differ in name."""
    if names == others:
        return
    for column in (*names, *others):
        if names.count(column) != others.count(column):
            has, lacks = (first, other) if names.count(column) else (other, first)
            raise FrameError(
                f"{has} has a column {column!r} and {lacks} has not, or not as often: write the "
                "files with one schema, or give only those that have it"
            )


def _opened(path: Path, name: str) -> Any:
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
        )
    except (pa.ArrowException, OSError):
        raise FrameError(
            f"{name} cannot be opened as a Parquet file: "
            "write it with DataFrame.to_parquet, or give it the suffix of what it is"
        ) from None


def _intact(batches: Iterator[Any], name: str, stated: int) -> Iterator[Any]:
    """Pass batches on; tell of a damaged file without what the reader says of its content."""
    import pyarrow as pa

    seen = 0
    while True:
        try:
            batch = next(batches, None)
            seen += 0 if batch is None else batch.num_rows
            damaged = batch is None and seen != stated
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

    Reading has to leave other threads alone, as decoding a file does. Two chunks are in memory at a
    time; what reading raises comes where the chunk would have come.
    """
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk
