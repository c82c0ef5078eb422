"""Named columns: a mapping of names to arrays, or a structured array."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from numpy.typing import NDArray

from dpmodels.errors import FrameError
from dpmodels.frames.blocks import blocks, cut
from dpmodels.frames.kind import Kind, kind_of
from dpmodels.frames.protocol import Chunk
from dpmodels.frames.require import require


@dataclass(frozen=True, slots=True)
class ColumnRows:
    """The rows of 1-D columns (arrays, lists, Series, Arrow arrays) of one length."""

    columns: Mapping[str, Any] = field(repr=False)
    nrows: int = field(repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.columns)

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold by its type."""
        return kind_of(self.columns[name])

    def chunks(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        """Blocks of at most `rows` rows of the wanted columns."""
        require(self, wanted)
        return blocks({name: cut(self.columns[name]) for name in wanted}, self.nrows, rows)


def open_mapping(data: Mapping[Any, Any]) -> ColumnRows:
    """Open a mapping of names to 1-D array-likes of one length."""
    columns = {name: data[name] for name in data if isinstance(name, str)}
    lengths = {name: _length(name, column) for name, column in columns.items()}
    first = next(iter(lengths), None)
    for name, length in lengths.items():
        if first is not None and length != lengths[first]:
            raise FrameError(
                f"columns {first!r} and {name!r} differ in length: "
                "give columns of one length, one cell for each row"
            )
    return ColumnRows(columns, lengths[first] if first is not None else 0)


def open_structured(data: NDArray[Any]) -> ColumnRows:
    """Open a structured array; tell how to name the columns of any other."""
    names = data.dtype.names
    if names is None:
        raise FrameError(
            "a plain array has no column names: write "
            '{"x": array[:, 0], "y": array[:, 1]} or pandas.DataFrame(array, columns=[...])'
        )
    if data.ndim != 1:
        raise FrameError(
            "a structured array must be one-dimensional, a record for each row: "
            "write array.reshape(-1)"
        )
    return open_mapping({name: data[name] for name in names})


def _length(name: str, column: Any) -> int:
    """Count the cells of a column, from its shape or length alone."""
    shape = getattr(column, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 1:
        return int(shape[0])
    listed = isinstance(column, Sequence) and not isinstance(column, str | bytes)
    if shape is None and (listed or hasattr(column, "__arrow_c_array__")):
        return len(column)
    if shape is None and hasattr(column, "__arrow_c_stream__"):
        return len(column)
    raise FrameError(
        f"column {name!r} is not one-dimensional: give each column as a 1-D array, "
        "a Series or a list with one cell for each row"
    )
