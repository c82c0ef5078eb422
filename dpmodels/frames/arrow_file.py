"""Arrow IPC files (.arrow, .feather), read one record batch of the wanted columns at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from dpmodels.errors import FrameError
from dpmodels.frames.engine import arrow_chunks, sliced, streamed, translated
from dpmodels.frames.protocol import ANY, Chunk, FileState, Kind
from dpmodels.frames.require import is_inferred, kind_of_arrow, require

if TYPE_CHECKING:
    import pyarrow as pa

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
        batches = streamed(lambda: _batches(self.state.path, fields), self._damaged)
        # The file keeps its own order of columns.
        in_file = tuple(self.names[at] for at in sorted(fields))
        for chunk in arrow_chunks(sliced(batches, block_rows), in_file):
            yield {name: chunk[name] for name in columns}
        self.state.require_same()

    def _damaged(self, _: Exception) -> str:
        return f"{self.state.name} is damaged: write the file anew"


def open_arrow_file(path: Path) -> ArrowFileRows:
    """Open an Arrow IPC file, of which the schema and the lengths of its batches are read."""
    if not path.is_file():
        raise FrameError(f"there is no file {str(path)!r}: check the path and the working folder")
    state = FileState.of(path)

    def opened() -> ArrowFileRows:
        import pyarrow as pa

        with pa.ipc.open_file(path) as file:
            schema = file.schema
        kinds = dict(zip(schema.names, map(kind_of_arrow, schema.types), strict=True))
        if is_inferred(schema.metadata):
            kinds = {name: Kind(ANY.holds, kind.name) for name, kind in kinds.items()}
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
