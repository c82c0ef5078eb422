"""Tables that come one after the other: a list, read as often as needed, or an iterable, once."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import ClassVar

from dpmodels.errors import FrameError
from dpmodels.frames.protocol import ANY, Chunk, Kind, RowSource, unfinished
from dpmodels.frames.require import require


class ListedRows:
    """The rows of a list of tables, which can be read again."""

    rereadable: ClassVar[bool] = True

    def __init__(self, sources: tuple[RowSource, ...]) -> None:
        if not sources:
            raise FrameError(_EMPTY.format("list gives"))
        self._sources = sources

    @property
    def names(self) -> tuple[str, ...]:
        """The column names that all tables have; twice where one of them has it twice."""
        counts = [Counter(source.names) for source in self._sources]
        first = dict.fromkeys(self._sources[0].names)
        names = [name for name in first if all(count[name] for count in counts)]
        return tuple(name for name in names for _ in range(max(count[name] for count in counts)))

    @property
    def nrows(self) -> int | None:
        """The number of rows of all tables, None where only reading them would tell."""
        counts = [source.nrows for source in self._sources]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def kind(self, name: str) -> Kind:
        """Anything: a table may be a single row, whose cell then decides the type."""
        return ANY

    def chunks(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        """Blocks of at most `rows` rows of the wanted columns, table after table."""
        require(self, wanted)
        return chain.from_iterable(source.chunks(wanted, rows) for source in self._sources)


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
                raise FrameError(_EMPTY.format("iterable gives"))
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
        return self._read(wanted, rows)

    def _read(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        """Read the tables to come, whose errors are raised after the charge."""
        try:
            source = next(self._sources, None)
            while source is not None:
                yield from source.chunks(wanted, rows)
                source = next(self._sources, None)
        except FrameError as error:
            text = str(error)
        else:
            return
        raise FrameError(text if _CHARGED in text else unfinished(text.rstrip(".")))


_CHARGED = unfinished("").removeprefix(".")
_EMPTY = "the {} no table: give at least one, with its columns and 0 rows where there are none"
