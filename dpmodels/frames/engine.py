"""What every database offers: its dialect, the columns of a table, and queries in one snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeVar

from dpmodels.errors import DPModelsError, FrameError
from dpmodels.frames.protocol import ANY, Chunk, Holds, Kind, unfinished

if TYPE_CHECKING:
    import pyarrow as pa


Result = TypeVar("Result")
Item = TypeVar("Item")


class Engine(Protocol):
    """A table of a database, read in one transaction that changes nothing.

    All queries of one engine see the same rows, from the first to `close`, if `is_snapshot`.
    """

    @property
    def dialect(self) -> str:
        """The name of the SQL dialect: ``"duckdb"``, ``"sqlite"`` or ``"postgresql"``."""
        ...

    @property
    def table(self) -> str:
        """The table as it stands after FROM, quoted."""
        ...

    @property
    def label(self) -> str:
        """The table for messages, without a password."""
        ...

    @property
    def is_snapshot(self) -> bool:
        """Whether all queries see the same rows, in the same order where they scan the table."""
        ...

    def quoted(self, identifier: str) -> str:
        """Quote an identifier by the rules of the dialect, whatever its characters."""
        ...

    def columns(self) -> Mapping[str, str]:
        """Return the declared types of the columns by name, in the order of the table."""
        ...

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold by its declared type."""
        ...

    def cell(self, name: str) -> str:
        """Return the expression that reads a column as a number, a text or a date."""
        ...

    def group_key(self, name: str) -> str:
        """Return the cell as it is grouped: cells that are equal in it are read as the same."""
        ...

    def sort_key(self, name: str) -> str:
        """Return an expression to sort by: cells that are equal in it are the same."""
        ...

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query inside the snapshot; whole numbers beyond 64 bits may arrive as text.

        Errors are of the package and quote no cell.
        """
        ...

    def chunks(self, sql: str, names: tuple[str, ...], batch_rows: int) -> Iterator[Chunk]:
        """Run a query whose columns get these names, in blocks of cells as sources give them."""
        ...

    def close(self) -> None:
        """End the transaction; of a connection of the user nothing else."""
        ...


def double_quoted(identifier: str) -> str:
    """Quote an identifier as SQL does."""
    return '"' + identifier.replace('"', '""') + '"'


def table_text(schema: str | None, table: str) -> str:
    """Return a table, in a schema or not, as it stands after FROM."""
    return ".".join(double_quoted(part) for part in (schema, table) if part is not None)


# Kinds of columns by their declared types.

_HOLDS: Final = (
    (Holds.NOTHING, r".*\[\d*\]"),
    (Holds.WHOLE, r"(tiny|small|big|huge|u|utiny|usmall|ubig|uhuge)?int(eger|2|4|8)?"),
    (Holds.WHOLE, r"bool(ean)?"),
    (Holds.DAYS, r"(date|datetime|timestamp(_s|_ms|_ns|tz)?)( with(out)? time zone)?"),
    (Holds.ANYTHING, r"double( precision)?|real|float[48]?|numeric|decimal"),
    (Holds.ANYTHING, r"text|varchar|character( varying)?|char|bpchar|string|name|citext"),
    (Holds.ANYTHING, r"uuid|enum|blob|\"null\""),
)


def kind_of_type(declared: str) -> Kind:
    """Tell what a column of a declared type can hold; types that are not known hold nothing.

    >>> kind_of_type("DECIMAL(10,2)").holds.name, kind_of_type("timestamp(3) with time zone")
    ('ANYTHING', Kind(holds=<Holds.DAYS: 1>, name='timestamp with time zone'))
    >>> [kind_of_type(name).holds.name for name in ("integer[]", "jsonb", "STRUCT(a INTEGER)")]
    ['NOTHING', 'NOTHING', 'NOTHING']
    """
    array = declared.endswith("]")
    name = declared if array else re.sub(r"\s*\(.*\)", "", declared, flags=re.DOTALL)
    name = name.split("(")[0] + "[]" * ("(" in name) if array else name
    for holds, pattern in _HOLDS:
        if re.fullmatch(pattern, name.lower()):
            return ANY if name == '"NULL"' else Kind(holds, name)
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
    while True:
        item = translated(described, lambda: next(items, None))
        if item is None:
            return
        yield item


def sliced(batches: Iterator[Any], batch_rows: int) -> Iterator[Any]:
    """Cut Arrow batches that are longer than requested."""
    for batch in batches:
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)


def refuse_missing(label: str, hint: str = "") -> NoReturn:
    """Refuse a table that the database does not have."""
    raise FrameError(
        f"there is no table {label}{hint}: check the name, the schema and the database, or "
        "whether the user may see it"
    )


def arrow_chunks(batches: Iterator[Any], names: tuple[str, ...]) -> Iterator[Chunk]:
    """Give the columns of Arrow batches, by position, under these names."""
    from dpmodels.frames.convert import arrow_cells

    for batch in batches:
        yield {name: arrow_cells(batch.column(at)) for at, name in enumerate(names)}
