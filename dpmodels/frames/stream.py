"""Tables that come one after the other, each of them once."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import ClassVar

from dpmodels.errors import FrameError
from dpmodels.frames.protocol import ANY, Chunk, Kind, RowSource
from dpmodels.frames.require import require


class StreamRows:
    """The rows of an iterable of tables, for one pass.

    The first table is taken from the iterable when the names are asked for. What the iterable
    itself raises is the user's own and passes through.
    """

    rereadable: ClassVar[bool] = False

    def __init__(self, sources: Iterable[RowSource]) -> None:
        self._sources: Iterator[RowSource] = iter(sources)
        self._names: tuple[str, ...] | None = None
        self._spent = False

    @property
    def names(self) -> tuple[str, ...]:
        """The column names of the first table."""
        if self._names is None:
            first = next(self._sources, None)
            if first is None:
                raise FrameError(
                    "the iterable gives no table: give at least one, "
                    "with its columns and 0 rows where there are none"
                )
            self._sources = chain([first], self._sources)
            self._names = first.names
        return self._names

    @property
    def nrows(self) -> None:
        """Unknown: only reading the tables would tell."""
        return None

    def kind(self, name: str) -> Kind:
        """Anything: the tables to come are not known, and the first may be a single row."""
        return ANY

    def chunks(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        """Blocks of at most `rows` rows of the wanted columns, table after table."""
        require(self, wanted)
        if self._spent:
            raise FrameError(
                "an iterable of tables can be read once: make a new one for each model, "
                "or write the tables to one Parquet file and give its path"
            )
        self._spent = True
        return chain.from_iterable(source.chunks(wanted, rows) for source in self._sources)
