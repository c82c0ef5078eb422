"""Data frames in memory: pandas, polars, Arrow and what narwhals knows like them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import narwhals.stable.v2 as nw

from dpmodels.frames.blocks import blocks, cut
from dpmodels.frames.kind import Kind, kind_of
from dpmodels.frames.protocol import Chunk
from dpmodels.frames.require import require


@dataclass(frozen=True, slots=True)
class NativeRows:
    """The rows of an eager data frame, cut without copying where the frame allows it."""

    frame: Any = field(repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """The column names; a name that is not text is given as ``""``."""
        arrow = nw.dependencies.is_pyarrow_table(self.frame)
        names = self.frame.column_names if arrow else self.frame.columns
        return tuple(name if isinstance(name, str) else "" for name in names)

    @property
    def nrows(self) -> int:
        """The number of rows."""
        return int(self.frame.shape[0])

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold by its type."""
        return kind_of(self._column(self.names.index(name)))

    def chunks(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        """Blocks of at most `rows` rows of the wanted columns."""
        require(self, wanted)
        names = self.names
        cuts = {name: cut(self._column(names.index(name))) for name in wanted}
        return blocks(cuts, self.nrows, rows)

    def _column(self, position: int) -> Any:
        """Take a column by its position: names may repeat among columns nobody wants."""
        if nw.dependencies.is_pyarrow_table(self.frame):
            return self.frame.column(position)
        if nw.dependencies.is_polars_dataframe(self.frame):
            return self.frame.to_series(position)
        return self.frame.iloc[:, position]
