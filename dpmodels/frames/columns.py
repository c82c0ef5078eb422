"""Tables in memory, cut into blocks of rows; their columns, compared with those that are needed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dpmodels.dates import Date, is_on_clocks
from dpmodels.dictionaries.schema import kind_of_dtype as variable_type
from dpmodels.errors import FrameError, did_you_mean, shorten
from dpmodels.frames.convert import (
    MISSING,
    LevelCodes,
    arrow_cells,
    is_bytes,
    is_days,
    is_number,
    is_text,
)
from dpmodels.frames.protocol import (
    ANY,
    Cells,
    Chunk,
    Holds,
    Kind,
    RowSource,
    Untyped,
    coded,
    unfinished,
)
from dpmodels.typing import Array
from dpmodels.variables import Categorical, Variable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

# Columns of classes that other code defines: subclasses of arrays, series and lists, sequences.
#
# Code of such a class may raise an error whose text has a cell, or only at some cell, so that one
# row would decide whether a call fails. Where the base class is known, its own code reads the
# column. Otherwise the cells are read one by one, and a cell that cannot be read is missing.


Values: TypeAlias = NDArray[np.generic]
_BUILTIN: Final = (list, tuple, range)


def base_array(array: Values) -> Values:
    """Return an array without the class that was derived from numpy's; masked arrays stay masked.

    >>> import numpy as np
    >>> type(base_array(np.array([1.0, 2.0]).view(np.recarray))).__name__
    'ndarray'
    """
    if isinstance(array, np.ma.MaskedArray):
        if type(array) is np.ma.MaskedArray and type(array.data) is np.ndarray:
            return array
        cells = np.ndarray.view(array, np.ndarray)
        return np.ma.MaskedArray(cells, np.asarray(np.ma.MaskedArray.mask.fget(array)))  # type: ignore[attr-defined]
    return np.asarray(array)


def converted_array(column: object) -> Values:
    """Convert a column by its class's own `__array__`; an error in it is not quoted."""
    with suppress(Exception):
        return base_array(np.asarray(column))
    raise FrameError(
        unfinished(
            "a column is of a class that numpy cannot convert to an array; the reason is not "
            "shown, as it may quote cells: give an array or a list"
        )
    )


def cells_one_by_one(column: Sequence[object], start: int, stop: int) -> Values:
    """Read the cells from `start` to before `stop`; those that cannot be read are missing."""
    cells = np.full(max(stop - start, 0), MISSING, dtype=object)
    for position in range(len(cells)):
        with suppress(Exception):
            cells[position] = column[start + position]
    return cells


def length_of(column: Sized) -> int | None:
    """Return the length of a column; None where it has none or its code fails."""
    with suppress(Exception):
        return len(column)
    return None


Cut = Callable[[int, int], Cells]
"""The rows from a first to before a last, as a 1-D array or coded cells."""


def blocks(cuts: Mapping[str, Cut], nrows: int, block_rows: int) -> Iterator[Chunk]:
    """Consecutive blocks of at most `block_rows` of the `nrows` rows of some columns.

    FrameError where a column has fewer rows by now, or more.
    """
    for start in range(0, nrows, block_rows):
        stop = min(start + block_rows, nrows)
        chunk = {name: cut(start, stop) for name, cut in cuts.items()}
        _require_length(chunk, stop - start)
        yield chunk
    _require_length({name: cut(nrows, nrows + 1) for name, cut in cuts.items()}, 0)


def _require_length(chunk: Chunk, n_rows: int) -> None:
    for name, cells in chunk.items():
        if len(cells) != n_rows:
            raise FrameError(
                unfinished(
                    f"the number of rows of column {name!r} changed while it was in use: give "
                    "data that stay as they are"
                )
            )


def cut(column: Any) -> Cut:
    """How to take rows out of a column: as views where the column allows it.

    A sequence of Python objects is read cell by cell: numpy would give all cells the type that fits
    every one of them.
    """
    import narwhals.stable.v2 as nw

    if nw.dependencies.is_narwhals_series(column):
        return cut(column.to_native())
    if isinstance(column, np.ndarray):
        array = base_array(column)
        return lambda start, stop: array[start:stop]
    by_library = _cut_of_library(column)
    if by_library is not None:
        return by_library
    if hasattr(column, "__array__") and not isinstance(column, Sequence):
        return cut(converted_array(column))
    if isinstance(column, deque):  # whose middle is slow to reach by position
        column = list(deque.__iter__(column))
    base = next((kind for kind in _BUILTIN if isinstance(column, kind)), None)

    def cells_between(start: int, stop: int) -> Values:
        if base is None:
            stop = min(stop, length_of(column) or 0)
            return cells_one_by_one(column, start, stop)
        part = base.__getitem__(column, slice(start, stop))
        return np.fromiter(part, object, len(part))

    return cells_between


def _cut_of_library(column: Any) -> Cut | None:
    """Find the cut of a column of pandas, polars or Arrow, or of a library like pandas."""
    import narwhals.stable.v2 as nw

    pandas = nw.dependencies.get_pandas()
    if pandas is not None:
        if isinstance(column, pandas.Series):
            return _cut_of_pandas(column)
        if isinstance(column, pandas.Index):  # Of tuples alone it has levels
            return _cut_of_pandas(pandas.Series(column.to_flat_index()))
        if isinstance(column, pandas.api.extensions.ExtensionArray):
            return _cut_of_pandas(pandas.Series(column))
    if nw.dependencies.is_polars_series(column):
        return lambda start, stop: _polars_cells(column.slice(start, stop - start))
    pyarrow = nw.dependencies.get_pyarrow()
    if pyarrow is not None and isinstance(column, pyarrow.Array | pyarrow.ChunkedArray):
        return lambda start, stop: arrow_cells(column.slice(start, stop - start))
    if nw.dependencies.is_into_series(column):
        return cut(nw.from_native(column, series_only=True).to_pandas())
    return None


def _cut_of_pandas(series: pandas.Series[Any]) -> Cut:
    """How to take rows out of a pandas series.

    Views of numpy columns; categories as coded cells; nullable integers and logical values masked,
    since floats would lose digits of ids; nullable floats with NaN; times in a zone as local ones;
    text and Arrow columns as `arrow_cells` gives them; any other extension type as Python objects,
    one by one where it is not of pandas.
    """
    import pandas as pd

    if type(series) is not pd.Series:
        series = pd.Series(series, copy=False)
    dtype: Any = series.dtype
    array: Any = series.array
    if isinstance(dtype, np.dtype):
        values = series.to_numpy()
        return lambda start, stop: values[start:stop]
    if type(dtype).__module__.partition(".")[0] != "pandas":  # Of other code
        return lambda start, stop: cells_one_by_one(array, start, min(stop, len(series)))
    if isinstance(dtype, pd.CategoricalDtype):
        labels = np.asarray(array.categories, dtype=object)
        return lambda start, stop: coded(labels, array.codes[start:stop])
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", None) == "pyarrow":
        import pyarrow as pa

        column = pa.array(array)
        return lambda start, stop: arrow_cells(column.slice(start, stop - start))
    if isinstance(array, pd.arrays.IntegerArray | pd.arrays.BooleanArray):
        missing, values = np.asarray(array.isna()), array.to_numpy(dtype.numpy_dtype, na_value=0)
        return lambda start, stop: np.ma.MaskedArray(values[start:stop], missing[start:stop])
    if isinstance(dtype, pd.DatetimeTZDtype):
        return lambda start, stop: _local_times(array[start:stop])
    if isinstance(array, pd.arrays.FloatingArray):
        return lambda start, stop: array[start:stop].to_numpy("float64", na_value=MISSING)
    return lambda start, stop: np.asarray(array[start:stop], dtype=object)


def _local_times(array: pandas.arrays.DatetimeArray) -> NDArray[np.generic]:
    """Give times in a zone as the zone's own, NaT where they have none."""
    times = array.copy()
    times[np.flatnonzero(~is_on_clocks(array.tz_convert(None).to_numpy())).tolist()] = None
    return np.asarray(times.tz_localize(None).to_numpy())


def _polars_cells(series: polars.Series) -> Cells:
    """Give the n cells of a polars series, shape (n,).

    Numbers as numbers (integers with nulls: masked; other numbers: NaN for null), logical values
    as bool (with nulls: masked), dates and times as numpy's, those in a zone as local ones, text,
    bytes and categories as coded cells, decimals, integers of 128 bits, times of a clock and Python
    objects as objects, None for null. Other types (durations, lists, structures) are all NaN.
    """
    import polars as pl

    kind = series.dtype
    # Older polars has no such integers; others end the process over an empty part of objects.
    if kind in (pl.Time, pl.Object) or str(kind) in ("Int128", "UInt128"):
        return np.fromiter(series.to_list(), object, len(series))
    if series.null_count() and (kind.is_integer() or kind == pl.Boolean):
        filled = series.fill_null(False if kind == pl.Boolean else 0)
        return np.ma.MaskedArray(filled.to_numpy(), series.is_null().to_numpy())
    if kind in (pl.String, pl.Categorical, pl.Enum, pl.Binary):
        try:
            return arrow_cells(series.to_arrow())
        except ModuleNotFoundError:  # polars works without pyarrow
            return series.to_numpy()
    if kind.is_numeric() or kind == pl.Boolean:
        return series.to_numpy()
    if kind == pl.Datetime:
        # Times in a zone are the zone's own, NaT where they have none.
        kind = cast("pl.Datetime", series.dtype)
        if kind.time_zone is None:
            return series.to_numpy()
        instants = series.to_physical().cast(pl.Datetime(kind.time_unit)).to_numpy()
        local = series.set(pl.Series(~is_on_clocks(instants)), None).dt.replace_time_zone(None)
        return local.to_numpy()
    if kind == pl.Date:
        return series.to_numpy()
    return np.full(len(series), MISSING)


@dataclass(frozen=True, slots=True)
class ColumnRows(Untyped):
    """The rows of 1-D columns (arrays, lists, Series, Arrow arrays) of one length."""

    columns: Mapping[str, object] = field(repr=False)
    nrows: int = field(repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.columns)

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns."""
        require(self, columns)
        return blocks({name: cut(self.columns[name]) for name in columns}, self.nrows, block_rows)


def open_mapping(data: Mapping[object, object]) -> ColumnRows:
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


def open_structured(data: Array) -> ColumnRows:
    """Open a structured array; for any other a FrameError says how to name columns."""
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
    shape = None
    with suppress(Exception):  # Its own code may fail
        shape = column.shape
    if isinstance(shape, tuple) and len(shape) == 1:
        return int(shape[0])
    listed = isinstance(column, Sequence) and not isinstance(column, str | bytes)
    streamed = hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__")
    length = length_of(column) if shape is None and (listed or streamed) else None
    if length is not None:
        return length
    raise FrameError(
        f"column {name!r} is not one-dimensional: give each column as a 1-D array, "
        "a Series or a list with one cell for each row"
    )


@dataclass(frozen=True, slots=True)
class NativeRows(Untyped):
    """The rows of an eager data frame, cut without copying where the frame allows it."""

    frame: Any = field(repr=False)
    nrows: int = field(init=False, repr=False)
    rereadable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "nrows", int(self.frame.shape[0]))

    @property
    def names(self) -> tuple[str, ...]:
        """The column names; a name that is not text is given as ``""``."""
        import narwhals.stable.v2 as nw

        arrow = nw.dependencies.is_pyarrow_table(self.frame)
        names = self.frame.column_names if arrow else self.frame.columns
        return tuple(name if isinstance(name, str) else "" for name in names)

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns."""
        require(self, columns)
        names = self.names
        cuts = {name: cut(self._column(names.index(name))) for name in columns}
        return blocks(cuts, self.nrows, block_rows)

    def _column(self, position: int) -> object:
        """Take a column by its position: names may repeat among unused columns."""
        import narwhals.stable.v2 as nw

        if nw.dependencies.is_pyarrow_table(self.frame):
            return self.frame.column(position)
        if nw.dependencies.is_polars_dataframe(self.frame):
            return self.frame.to_series(position)
        return self.frame.iloc[:, position]


# Names and types of the columns of a table, compared with those that a model needs.


def _declaring(kind: Kind, dtype: object) -> Kind:
    """Return the kind with the type of variable that a declared type states."""
    declares = variable_type(dtype)
    is_integer = kind.holds is Holds.WHOLE and declares == "numeric"
    return kind._replace(declares="integer" if is_integer else declares)


def kinds_of_schema(schema: pa.Schema) -> dict[str, Kind]:
    """Tell what columns can hold; anything if they are of pandas, which infers types from cells."""
    kinds = dict(zip(schema.names, map(kind_of_arrow, schema.types), strict=True))
    if b"pandas" in (schema.metadata or {}):
        return {name: Kind(ANY.holds, kind.name) for name, kind in kinds.items()}
    return kinds


def kind_of_arrow(arrow_type: pa.DataType) -> Kind:
    """Tell what a column of an Arrow type can hold; for a column of nulls anything."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(arrow_type, pa.BaseExtensionType):
        return kind_of_arrow(arrow_type.storage_type)
    if types.is_dictionary(arrow_type):
        return kind_of_arrow(arrow_type.value_type)
    if types.is_integer(arrow_type) or types.is_boolean(arrow_type):
        return _declaring(Kind(Holds.WHOLE, str(arrow_type)), arrow_type)
    if is_days(arrow_type):
        return _declaring(Kind(Holds.DAYS, str(arrow_type)), arrow_type)
    readable = (is_number, is_text, is_bytes, types.is_null)
    is_readable = any(check(arrow_type) for check in readable)
    kind = Kind(Holds.ANYTHING if is_readable else Holds.NOTHING, str(arrow_type).split("<")[0])
    return _declaring(kind, arrow_type)


_HELD: Final = {
    Holds.NOTHING: "neither numbers nor text",
    Holds.DAYS: "neither numbers nor text",
    Holds.WHOLE: "whole numbers alone",
}


def require(source: RowSource, columns: tuple[str, ...]) -> None:
    """Refuse a table that lacks a column or holds it twice.

    Only names are compared: no row is read. The message repeats the missing names and those names
    of the table that resemble them; it never lists the other names, since the first line of a CSV
    file without a header is a row.

    >>> from dpmodels.frames import open_rows, require
    >>> require(open_rows({"wage": [9.5, 12.0], "educ": [12, 16]}), ("wage",))
    >>> require(open_rows({"wage": [9.5, 12.0]}), ("wages", "educ"))
    Traceback (most recent call last):
        ...
    dpmodels.errors.FrameError: the data have no column 'wages' (did you mean 'wage'?), 'educ':
    rename the columns of the data, or the variables of the formula and the codebook
    """
    counts = Counter(source.names)
    missing = [name for name in columns if name not in counts]
    if missing:
        remedy = _misread_header(source.names)
        options = () if remedy else source.names
        listed = ", ".join(f"{name!r}{did_you_mean(name, options)}" for name in missing)
        remedy = remedy or (
            "rename the columns of the data, or the variables of the formula and the codebook"
        )
        raise FrameError(f"the data have no column {listed}: {remedy}")
    duplicates = [repr(name) for name in columns if counts[name] > 1]
    if duplicates:
        raise FrameError(
            f"the data have more than one column called {', '.join(duplicates)}: "
            "rename or drop all but one"
        )


def _misread_header(names: tuple[str, ...]) -> str:
    """Say how to write a file whose first line was not read as names; empty if it seems to be.

    Such a name is quoted nowhere: it is a whole line, which is a row where there is no header.
    """
    for mark, encoding in {"\0": "utf-16", "\ufffd": "latin-1"}.items():
        if any(mark in name for name in names):
            read = f'pandas.read_csv(path, encoding="{encoding}")'
            return f"its names are not UTF-8: read it with {read}"
    separators = {";": '";"', "\t": r'"\t"', "|": '"|"'}
    used = [text for mark, text in separators.items() if len(names) == 1 and mark in names[0]]
    if not used:
        return ""
    return (
        f"its one column has {used[0]} in its name, and commas separate the cells of CSV files: "
        f"read it with pandas.read_csv(path, sep={used[0]}, dtype=str), and make points of decimal "
        'commas by data[name].str.replace(",", ".")'
    )


def require_declared(source: RowSource, declared: Mapping[str, Variable]) -> None:
    """Refuse a table that lacks a declared column, or can hold no declared value in it.

    Names and types are compared, and no cell is read. A column is refused for its type only where
    a file or a database declares the type (Parquet, Arrow files, stored tables) and no cell of that
    type is what was declared: a column of durations, of lists or structures; of dates, where none
    are declared; of whole numbers, where dates are declared or levels that are not numbers. Types
    of tables in memory and of queries refuse nothing, in files that pandas wrote either: software
    infers them from cells, so that one row would decide whether there is a release.

    >>> from dpmodels.codebook import Codebook
    >>> from dpmodels.frames import open_rows, require_declared
    >>> require_declared(open_rows({"born": ["1990-05-01"]}), Codebook(born=(1900, 2030)))
    """
    require(source, tuple(declared))
    for name, variable in declared.items():
        kind = source.kind(name)
        if kind.holds is not Holds.ANYTHING and kind.holds is not _required_holds(variable):
            raise FrameError(
                f"column {name!r} is of type {kind.name}, which holds {_HELD[kind.holds]}, and "
                f"{name!r} is declared as {_instead(variable, kind.holds)}"
            )


def _required_holds(variable: Variable) -> Holds:
    """Return the least that a column must hold for the declared values."""
    if isinstance(variable, Date):
        return Holds.DAYS
    numbers = not isinstance(variable, Categorical) or LevelCodes(variable.levels).any_number
    return Holds.WHOLE if numbers else Holds.ANYTHING


def require_levels(source: RowSource, names: tuple[str, ...]) -> None:
    """Refuse a table that lacks a column of levels, or can hold no text or number in it."""
    require(source, names)
    for name in names:
        kind = source.kind(name)
        if kind.holds < Holds.WHOLE:
            raise FrameError(
                f"column {name!r} is of type {kind.name}, which holds neither numbers nor text: "
                "make a column of text of it, one text for each level"
            )


def _instead(variable: Variable, holds: Holds) -> str:
    public = shorten(variable.describe(), 200)
    if isinstance(variable, Date):
        return f"days, {public}: make dates of it, or text such as 2001-12-31"
    if not isinstance(variable, Categorical):
        dated = ", or declare dp.Date(first, last)" if holds is Holds.DAYS else ""
        return f"a number, {public}: make numbers of it, such as days or years since a date{dated}"
    or_declare = ", or declare levels that are numbers" if holds is Holds.WHOLE else ""
    return f"levels, {public}: make a column of text of it that holds them{or_declare}"
