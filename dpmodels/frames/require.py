"""Names and types of the columns of a table, compared with those that a model needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from dpmodels.dates import Date
from dpmodels.dictionaries.schema import kind_of_dtype as variable_type
from dpmodels.errors import FrameError, did_you_mean, shorten
from dpmodels.frames.convert import LevelCodes, is_bytes, is_days, is_number, is_text
from dpmodels.frames.protocol import Holds, Kind, RowSource
from dpmodels.variables import Categorical, Variable

if TYPE_CHECKING:
    import pyarrow as pa


def _declaring(kind: Kind, dtype: object) -> Kind:
    """Return the kind with the type of variable that a declared type states."""
    declares = variable_type(dtype)
    is_integer = kind.holds is Holds.WHOLE and declares == "numeric"
    return kind._replace(declares="integer" if is_integer else declares)


def is_inferred(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Whether an Arrow schema comes of a frame of pandas, which infers types from cells."""
    return b"pandas" in (metadata or {})


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
    remedy = _misread_header(source.names)
    options = () if remedy else source.names
    missing = [f"{name!r}{did_you_mean(name, options)}" for name in columns if name not in counts]
    if missing:
        remedy = remedy or (
            "rename the columns of the data, or the variables of the formula and the codebook"
        )
        raise FrameError(f"the data have no column {', '.join(missing)}: {remedy}")
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
    if any(mark in name for name in names for mark in "\ufffd\0"):
        return 'its names are not UTF-8: read it with pandas.read_csv(path, encoding="latin-1")'
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
        if kind.holds not in (Holds.ANYTHING, _required_holds(variable)):
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
