"""A table of a database, as queries read it: a dialect, a transaction, Arrow batches, groups."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeGuard, TypeVar

import numpy as np

from dpmodels.errors import DPModelsError, FrameError, did_you_mean
from dpmodels.frames.convert import arrow_cells
from dpmodels.frames.protocol import ANY, Chunk, Holds, Kind, RowSource, decoded, unfinished
from dpmodels.typing import Integers

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")
Item = TypeVar("Item")

LONGEST_CELL: Final = 2**16
"""Characters of a text of PostgreSQL; of a longer one these and a digest are read."""


class Driver(Protocol):
    """How queries reach a database."""

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query, of which a few batches are in memory."""
        ...

    def failure(self, error: Exception) -> str:
        """Describe an error without its text, which may quote a cell."""
        ...

    def close(self) -> None:
        """End the transaction, and a connection that is not the user's."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Engine:
    """A table of a database, read in a transaction that changes nothing.

    `dialect` is ``"duckdb"``, ``"sqlite"`` or ``"postgresql"``; `table` stands after FROM, without
    an alias; `label` is for messages. If `is_snapshot`, all queries see the same rows, and scans of
    the table give them in the same order. If `declares`, the types are those that the database
    states of its columns; those of a query may follow from cells. The transaction ends with the
    last reference.
    """

    dialect: str
    driver: Driver
    table: str
    label: str
    types: Mapping[str, str]
    is_snapshot: bool
    unreadable: frozenset[str] = frozenset()  # Columns that the user has no right to read
    declares: bool = True

    def __post_init__(self) -> None:
        weakref.finalize(self, self.driver.close)

    def __repr__(self) -> str:
        return f"<{self.dialect}: {self.label}>"

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold by its declared type, if there is one."""
        if name in self.unreadable:
            raise FrameError(
                f"the user has no right to read column {name!r} of {self.label}: GRANT SELECT is "
                "needed"
            )
        return kind_of_type(self.types[name]) if self.declares else ANY

    def cell(self, name: str) -> str:
        """Return the expression that reads a column as a number, a date or a text."""
        column = double_quoted(name)
        if self.dialect == "sqlite":
            return f"+{column}"  # No column of a declared type, for which Python has a converter
        return column if self.dialect != "postgresql" else _postgres_cell(column, self.kind(name))

    def group_key(self, name: str) -> str:
        """Return the cell as it is grouped: cells that are equal in it are read as the same."""
        cell = self.cell(name)
        is_text = self.dialect == "sqlite" or self.types[name] == "VARCHAR" or "::text" in cell
        return f"({cell}) COLLATE {_EXACT[self.dialect]}" if is_text else cell

    def sort_key(self, name: str) -> str:
        """Return an expression to sort by: cells that are equal in it are the same."""
        return _SORTED[self.dialect].format(double_quoted(name))

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query inside the snapshot; PostgreSQL's numerics arrive as text.

        Errors are those of reading after a charge, and quote no cell.
        """
        batches = streamed(lambda: self.driver.batches(sql, batch_rows), self.driver.failure)
        return sliced(batches, batch_rows)

    def chunks(self, sql: str, names: tuple[str, ...], batch_rows: int) -> Iterator[Chunk]:
        """Run a query whose columns get these names, in blocks of cells as sources give them."""
        return arrow_chunks(self.batches(sql, batch_rows), names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.types)

    def count(self) -> int:
        """Count the rows, in the database; those of a snapshot once."""
        return self._snapshot_rows if self.is_snapshot else self._counted()

    @cached_property
    def _snapshot_rows(self) -> int:
        return self._counted()

    def _counted(self) -> int:
        (chunk,) = self.chunks(f"SELECT {_COUNT[self.dialect]} AS n FROM {self.table}", ("n",), 1)
        return int(decoded(chunk["n"])[0])

    def read(
        self, columns: tuple[str, ...], order: tuple[str, ...], block_rows: int
    ) -> Iterator[Chunk]:
        """Select columns, sorted by others where `order` names some."""
        cells = [f"{self.cell(name)} AS c{at}" for at, name in enumerate(columns)]
        sql = f"SELECT {', '.join(cells) or 'NULL'} FROM {self.table}"
        if order:
            sql += f" ORDER BY {', '.join(map(self.sort_key, order))}"
        return self.chunks(sql, columns, block_rows)


# A file of DuckDB may have a macro that is called as its function is.
_COUNT: Final = {
    "duckdb": "system.main.count(*)",
    "sqlite": "count(*)",
    "postgresql": "count(*)",
}
# Collations that tell all texts apart.
_EXACT: Final = {"duckdb": "C", "sqlite": "BINARY", "postgresql": '"C"'}
_SORTED: Final = {
    "duckdb": "{}",
    "sqlite": "{} COLLATE BINARY",
    "postgresql": '{}::text COLLATE "C"',
}


def double_quoted(identifier: str) -> str:
    """Quote an identifier as SQL does."""
    return '"' + identifier.replace('"', '""') + '"'


def _postgres_cell(column: str, kind: Kind) -> str:
    """Read numbers as such, days as dates of four-digit years, all else as text."""
    if kind.name in ("smallint", "integer", "bigint", "boolean", "double precision"):
        return column
    if kind.name == "real":
        return f"{column}::double precision"
    if kind.holds is Holds.DAYS:
        day = f"{column}::date"
        return f"CASE WHEN {day} BETWEEN '0001-01-01' AND '9999-12-31' THEN {day} END"
    text = f"{column}::text"
    digest = f"left({text}, {LONGEST_CELL}) || md5({text})"
    return f"CASE WHEN length({text}) > {LONGEST_CELL} THEN {digest} ELSE {text} END"


# Kinds of columns by their declared types.

# What a column of a type can hold, and the type of variable that it states.
_HOLDS: Final = (
    (Holds.WHOLE, "integer", r"(tiny|small|big|huge|u|utiny|usmall|ubig|uhuge)?int(eger|2|4|8)?"),
    (Holds.WHOLE, "boolean", r"bool(ean)?"),
    (Holds.DAYS, "date", r"(date|datetime|timestamp(_s|_ms|_ns|tz)?)( with(out)? time zone)?"),
    (Holds.ANYTHING, "numeric", r"double( precision)?|real|float[48]?|numeric|decimal"),
    (Holds.ANYTHING, "categorical", r"enum|(var|bp)?char|character( varying)?|text|string|citext"),
    (Holds.ANYTHING, "", r"uuid|blob|name|\"null\""),
)


def kind_of_type(declared: str) -> Kind:
    """Tell what a column of a declared type can hold; types that are not known hold nothing.

    >>> kind_of_type("DECIMAL(10,2)").holds.name, kind_of_type("timestamp(3) with time zone").name
    ('ANYTHING', 'timestamp with time zone')
    >>> [kind_of_type(name).holds.name for name in ("integer[]", "jsonb", "STRUCT(a INTEGER)")]
    ['NOTHING', 'NOTHING', 'NOTHING']
    """
    name = re.sub(r"\s*\(.*\)", "", declared, flags=re.DOTALL)
    for holds, declares, pattern in _HOLDS:
        if re.fullmatch(pattern, name.lower()):
            return Kind(holds, name, declares)
    return Kind(Holds.NOTHING, name)


# Errors of databases, whose texts may quote cells: they are replaced, and not chained.


def translated(describe: Callable[[Exception], str], run: Callable[[], Result]) -> Result:
    """Run a function; its error becomes a FrameError without the text."""
    try:
        return run()
    except DPModelsError:
        raise
    except Exception as error:
        message = describe(error)
    raise FrameError(message)


def streamed(
    start: Callable[[], Iterator[Item]], describe: Callable[[Exception], str]
) -> Iterator[Item]:
    """Pass on what an iterator gives; its errors come after the charge, without their text."""

    def described(error: Exception) -> str:
        return unfinished(describe(error))

    items = translated(described, start)
    while (item := translated(described, lambda: next(items, None))) is not None:
        yield item


def damaged(file: str, _: Exception) -> str:
    """Say what to do with a file that cannot be read to its end."""
    return f"{file} is damaged: write the file anew"


def sliced(batches: Iterator[pa.RecordBatch], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Cut Arrow batches that are longer than requested."""
    for batch in batches:
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)


def arrow_chunks(batches: Iterator[pa.RecordBatch], names: tuple[str, ...]) -> Iterator[Chunk]:
    """Give the columns of Arrow batches, by position, under these names."""
    for batch in batches:
        yield {name: arrow_cells(batch.column(at)) for at, name in enumerate(names)}


def require_table(label: str, table: str, names: list[str], *, any_case: bool) -> str:
    """Return the name of a table as the database has it; FrameError where it has none."""
    folded = {name.casefold() if any_case else name: name for name in names}
    name = folded.get(table.casefold() if any_case else table)
    if name is None:
        raise FrameError(
            f"there is no table {label}{did_you_mean(table, names)}: check the name, the schema "
            "and the database, or whether the user may see it"
        )
    return name


# Distinct rows with their counts, as a database groups them.
#
# A sum over rows is that over groups of the count times what a row of the group adds, if rows of a
# group are read alike (Theorem 68 a).


class Groups(NamedTuple):
    """Some of the distinct rows of a table, and how often each occurs, shape (rows,)."""

    chunk: Chunk
    counts: Integers


class GroupedSource(RowSource, Protocol):
    """A table whose equal rows can be read as one."""

    def repeats(self, name: str) -> bool:
        """Whether declared values are few cells to the source; by the column's type alone."""
        ...

    def groups(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Groups]:
        """Distinct rows of the columns, at most `block_rows` at once; a row may come repeatedly."""
        ...


def groups_rows(source: RowSource) -> TypeGuard[GroupedSource]:
    """Whether a source groups equal rows; nothing is read."""
    return hasattr(type(source), "groups")


def groups_of(engine: Engine, columns: tuple[str, ...], block_rows: int) -> Iterator[Groups]:
    """Read the distinct rows of some columns, in an order that does not depend on chance."""
    keys = ", ".join(map(engine.group_key, columns))
    order = ", ".join(str(at) for at in range(1, len(columns) + 1))
    query = (
        f"SELECT {keys}, {_COUNT[engine.dialect]} FROM {engine.table} "
        f"GROUP BY {order} ORDER BY {order}"
    )
    names = tuple(map(str, range(len(columns) + 1)))
    for chunk in engine.chunks(query, names, block_rows):
        *cells, counts = (chunk[name] for name in names)
        yield Groups(dict(zip(columns, cells, strict=True)), decoded(counts).astype(np.int64))
