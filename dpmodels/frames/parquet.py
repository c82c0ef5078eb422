"""Parquet files, read in small batches of the wanted columns."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from dpmodels.errors import FrameError
from dpmodels.frames.protocol import Chunk
from dpmodels.frames.require import require

_BUFFER: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """The rows of a Parquet file.

    Memory is that of one block and one page of each wanted column, whatever the
    number of rows: pages are read through a small buffer, row groups are not loaded
    ahead and the file is not mapped.

    Parameters
    ----------
    path : Path
        The file; it is opened anew for every pass.
    names : tuple of str
        The columns of its schema.
    nrows : int
        The number of rows that its metadata states.
    """

    path: Path
    names: tuple[str, ...] = field(repr=False)
    nrows: int = field(repr=False)
    rereadable: ClassVar[bool] = True

    def chunks(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        """Blocks of at most `rows` rows of the wanted columns."""
        require(self, wanted)
        return self._read(wanted, rows)

    def _read(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        from dpmodels.frames.arrow_cells import arrow_cells

        with _opened(self.path) as file:
            batches = file.iter_batches(rows, columns=list(wanted), use_threads=False)
            for batch in _intact(batches, self.path):
                yield {name: arrow_cells(batch.column(name)) for name in wanted}


def open_parquet(path: Path) -> ParquetRows:
    """Open a Parquet file, of which the footer alone is read.

    Raises
    ------
    FrameError
        pyarrow is not installed, or the file is no Parquet file.
    """
    with _opened(path) as file:
        return ParquetRows(path, tuple(file.schema_arrow.names), file.metadata.num_rows)


def _opened(path: Path) -> Any:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise FrameError(
            'reading Parquet files needs pyarrow: pip install "dpmodels[arrow]"'
        ) from None
    try:
        return parquet.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=_BUFFER)
    except (pa.ArrowException, OSError):
        raise FrameError(
            f"{str(path)!r} cannot be opened as a Parquet file: "
            "write it with DataFrame.to_parquet, or give it the suffix of what it is"
        ) from None


def _intact(batches: Iterator[Any], path: Path) -> Iterator[Any]:
    """Pass batches on; tell of a damaged file without what the reader says of its content."""
    import pyarrow as pa

    while True:
        try:
            batch = next(batches, None)
            damaged = False
        except (pa.ArrowException, OSError):
            damaged = True
        if damaged:
            raise FrameError(f"{str(path)!r} is damaged: write the file anew")
        if batch is None:
            return
        yield batch
