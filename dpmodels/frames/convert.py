"""Cells of any type, one by one or a column at a time, as numbers or as level indices.

A cell is read by the type it is built on, with that type's own code. Methods of foreign classes
(`__float__`, `__hash__`, `__eq__`, `__class__`) are not called, since they might raise, warn or
print.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from fractions import Fraction
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dpmodels.dates import day_of, day_of_text, days_of_times, is_on_clocks, time_text, time_texts
from dpmodels.frames.protocol import Cells, Coded, coded, decoded, joined
from dpmodels.typing import Array, Floats

if TYPE_CHECKING:
    import pyarrow as pa

MISSING: Final = float("nan")

# The spellings that pandas, polars and R write for logical values. pandas.read_csv
# gives them as bool or as text according to the *other* rows of the column.
_LOGICAL: Final = {
    "True": 1.0,
    "TRUE": 1.0,
    "true": 1.0,
    "False": 0.0,
    "FALSE": 0.0,
    "false": 0.0,
}


def plain(cell: object) -> str | float:
    """Read a cell as a text or a number; NaN where it is neither.

    Text, bytes (UTF-8, undecodable bytes replaced) and UUIDs as str, dates and times as ISO text;
    integers, floats, logical values, decimals and fractions as the nearest float, a complex number
    as its real part if it has no other. NaN for all else: None and the missing values of every
    library, sequences, integers beyond the range of float, foreign objects.

    >>> import numpy as np
    >>> plain("F"), plain(True), plain(np.int8(3)), plain(10**400), plain([1.0])
    ('F', 1.0, 3.0, nan, nan)
    """
    kind = type(cell)
    try:
        for base, read in _READERS:
            if type.__subclasscheck__(base, kind):
                return read(cell)
    except Exception:
        return MISSING
    return MISSING


def number(text: str) -> float:
    """Read the number that a text spells; NaN where it spells none.

    >>> number("1.50"), number("True"), number("F")
    (1.5, 1.0, nan)
    """
    try:
        return float(text)
    except ValueError:
        return _LOGICAL.get(text, MISSING)


def _real(cell: complex) -> float:
    return float(cell.real) if cell.imag == 0 else MISSING


def _time(cell: object) -> str | float:
    return time_text(cell) or MISSING


# Order matters: numpy.timedelta64 counts as an integer type, numpy.complex128 as complex.
_READERS: Final[tuple[tuple[type, Callable[[Any], str | float]], ...]] = (
    (str, str.__str__),
    (float, float.__float__),
    (int, int.__float__),
    (bytes, lambda cell: bytes.decode(cell, "utf-8", "replace")),
    (np.bool_, float),
    (np.timedelta64, lambda _: MISSING),
    (np.integer, float),
    (np.floating, float),
    (complex, _real),
    (np.complexfloating, _real),
    (Decimal, Decimal.__float__),
    (Fraction, Fraction.__float__),
    (UUID, UUID.__str__),
    (date, _time),
    (time, _time),
    (np.datetime64, _time),
)


_NUMERIC: Final = "biuf"
_CELLS: Final = "OUST"

# Types are compared by id: a foreign metaclass may define how types hash and compare.
_PLAIN_NUMBERS: Final = frozenset(map(id, (float, int, bool, NoneType)))
_PLAIN_CELLS: Final = _PLAIN_NUMBERS | {id(str)}


def to_float(values: Cells) -> Floats:
    """Convert a column of any dtype, shape (n,), to numbers, each cell on its own.

    Numbers as the nearest float, logical values as 0 and 1, text as the number it spells. NaN for
    everything else: missing and masked values, dates and durations, complex numbers with an
    imaginary part, integers beyond the range of float, foreign objects. A float64 array is returned
    as it is, not copied.

    Never raises and never warns. Text ``"True"`` counts as 1, since pandas reads the same cell of a
    CSV file as a logical value or as text according to other rows.

    >>> import numpy as np
    >>> to_float(np.array([3, "2.5", True, None, "many", [1]], dtype=object))
    array([3. , 2.5, 1. , nan, nan, nan])
    """
    if isinstance(values, Coded):
        return values.by_entry(to_float, MISSING)
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), MISSING, to_float(np.ma.getdata(values)))
    kind = values.dtype.kind
    with np.errstate(all="ignore"):
        if kind in _NUMERIC:
            return values.astype(np.float64, copy=False)
        if kind == "c":
            return np.where(values.imag == 0, values.real, MISSING).astype(np.float64)
        if kind in _CELLS:
            cells = values.tolist()
            if values.dtype.kind == "O" and set(map(id, map(type, cells))) <= _PLAIN_NUMBERS:
                try:
                    return values.astype(np.float64)
                except OverflowError:
                    pass
            return np.fromiter(map(_cell_to_float, cells), np.float64, len(cells))
    return np.full(len(values), MISSING)


def _cell_to_float(cell: object) -> float:
    value = plain(cell)
    return number(value) if isinstance(value, str) else value


def to_days(values: Cells) -> Floats:
    """Convert a column of any dtype, shape (n,), to days since 1970-01-01, each cell on its own.

    Dates, times (the day they fall on, in their own zone) and text in the form of ISO 8601. NaN for
    everything else, numbers among it. Never raises and never warns.

    >>> import numpy as np
    >>> to_days(np.array(["1970-01-02", "1970-01-03T12:00", "19700102", 3, None], dtype=object))
    array([ 1.,  2., nan, nan, nan])
    """
    if isinstance(values, Coded):
        return values.by_entry(to_days, MISSING)
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), MISSING, to_days(np.ma.getdata(values)))
    if values.dtype.kind == "M":
        return days_of_times(values)
    if values.dtype.kind not in _CELLS:
        return np.full(len(values), MISSING)
    day_by_text: dict[str, float] = {}

    def day(cell: object) -> float:
        text = plain(cell)
        if not isinstance(text, str):
            return day_of(cell)
        if text not in day_by_text:
            day_by_text[text] = day_of_text(text)
        return day_by_text[text]

    return np.fromiter(map(day, values.tolist()), np.float64, len(values))


def to_codes(values: Cells, levels: tuple[Hashable, ...]) -> NDArray[np.intp]:
    """Convert a column of any dtype, shape (n,), to positions among levels, each cell on its own.

    -1 where the cell is missing, masked or not listed; of equal levels the first counts, and one
    that is neither text, a number nor a date (None, NaN) matches no cell.

    A text cell matches the level of the same text, unstripped and unfolded. A number, and a text
    that is not a level but spells a number, matches a level of that number, or else a level whose
    text spells it: ``1``, ``1.0``, ``True``, ``"1"`` and ``"1.0"`` all match level ``1``, and all
    match level ``"1"`` where neither ``1`` nor their own text is a level. So do dates and times,
    and ISO text. Software that reads a file gives the same cell as text, as a number or as a date
    according to other rows; here that makes no difference. Numbers are compared as float64. Never
    raises and never warns.

    >>> import numpy as np
    >>> to_codes(np.array(["F", "M", None, "m"], dtype=object), ("F", "M"))
    array([ 0,  1, -1, -1])
    >>> to_codes(np.array([1.0, 2.0, np.nan]), ("1", "2"))
    array([ 0,  1, -1])
    """
    if isinstance(values, Coded):
        return values.by_entry(lambda entries: to_codes(entries, levels), -1)
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), -1, to_codes(np.ma.getdata(values), levels))
    codes = LevelCodes(levels)
    kind = values.dtype.kind
    if kind in _NUMERIC or kind == "c":
        return codes.of_numbers(to_float(values))
    if kind == "M":
        return _time_cells(values).by_entry(lambda texts: to_codes(texts, levels), -1)
    if kind in _CELLS:
        with np.errstate(all="ignore"):
            return np.fromiter(map(codes.__getitem__, plain_cells(values)), np.intp, len(values))
    return np.full(len(values), -1, dtype=np.intp)


def _time_cells(values: NDArray[np.generic]) -> Coded:
    """Return numpy's times as their texts, missing ones as None: empty text can be a level."""
    distinct, positions = np.unique(values, return_inverse=True)
    texts: NDArray[np.object_] = np.fromiter(
        (text or None for text in time_texts(distinct)), object, len(distinct)
    )
    return Coded(texts, positions)


def plain_cells(values: NDArray[np.generic]) -> list[str | float | None]:
    """Read the cells of a column of objects or text, shape (n,), each as a text or a number.

    Whole numbers, logical values and None may be left as they are.
    """
    cells: list[str | float | None] = values.tolist()
    if set(map(id, map(type, cells))) <= _PLAIN_CELLS:
        return cells
    with np.errstate(all="ignore"):
        return list(map(plain, cells))


def concatenated(parts: Sequence[Cells]) -> Cells:
    """Join blocks of a column, of which some may be masked or coded."""
    if parts and all(isinstance(part, Coded) for part in parts):
        return joined(cast("Sequence[Coded]", parts))
    arrays = [decoded(part) for part in parts]
    masked = any(isinstance(part, np.ma.MaskedArray) for part in arrays)
    join: Callable[..., Array] = np.ma.concatenate if masked else np.concatenate
    return join(arrays) if arrays else np.empty(0)


class LevelCodes(dict[str | float | None, int]):
    """The code of a cell: the index of its level, or -1.

    A dictionary from plain cells (text, numbers, None) that works out a cell it has not met and
    remembers it. Numbers that are equal are one key: 1, 1.0 and True.

    The first of equal levels counts.

    >>> codes = LevelCodes((1, "F"))
    >>> codes["F"], codes["1.0"], codes[True], codes["f"], codes[None]
    (1, 0, 0, -1, -1)
    """

    def __init__(self, levels: tuple[Hashable, ...]) -> None:
        declared = [(plain(level), index) for index, level in enumerate(levels)]
        texts = [(level, index) for level, index in declared if isinstance(level, str)]
        declared_numbers = [(level, k) for level, k in declared if isinstance(level, float)]
        # "1" before "1.0" before "01": the level that prints as the number before others that spell
        # it. SQLite's reals are whole numbers where a column has other types too.
        printed_first = sorted(texts, key=lambda pair: _print_rank(pair[0]))
        spelled = [(number(text), index) for text, index in printed_first]
        self._numbers: dict[float, int] = {}
        for value, index in declared_numbers + spelled:
            if value == value:  # Not NaN
                self._numbers.setdefault(value, index)
        self._times = {time_text(text): index for text, index in reversed(texts)}
        self._times.pop("", None)
        super().__init__()
        for text, index in texts:
            self.setdefault(text, index)

    def __missing__(self, cell: str | float | None) -> int:
        """Work out, and remember, a cell that is not a declared text."""
        value = plain(cell)
        spelled = number(value) if isinstance(value, str) else value
        code = self._numbers.get(spelled, -1)
        if isinstance(value, str) and self._times and code < 0:
            code = self._times.get(time_text(value), -1)
        self[cell] = code
        return code

    @property
    def any_number(self) -> bool:
        """Whether a number can be one of the levels."""
        return bool(self._numbers)

    @property
    def any_time(self) -> bool:
        """Whether a date or time can be one of the levels."""
        return bool(self._times)

    @property
    def numbers(self) -> Mapping[float, int]:
        """The code of each number that is a level."""
        return self._numbers

    def of_numbers(self, values: Floats) -> NDArray[np.intp]:
        """Look up an array of numbers, shape (n,)."""
        if not self._numbers:
            return np.full(len(values), -1, dtype=np.intp)
        keys = np.array(sorted(self._numbers))
        codes = np.array([self._numbers[key] for key in keys.tolist()], dtype=np.intp)
        positions = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
        return np.where(keys[positions] == values, codes[positions], -1)


def _print_rank(text: str) -> int:
    """Return 0 for the text of a whole number, 1 for that of a float or logical value, else 2."""
    value = number(text)
    return 0 if text == f"{value:.0f}" else 2 - (text in {repr(value), "True", "False"})


# Cells as names of undeclared levels.

# Characters that a level may have: a choice.
LONGEST: Final = 100
# From here on double precision does not represent every whole number.
_EXACT: Final = 2.0**53


def level_names(values: Cells) -> Array:
    """Return the level that each cell of a column of any dtype names, None where none.

    A level is a text of up to 100 printable characters, or a whole number below 2**53 in size,
    named by its digits, or a date or time, named by its shortest ISO text. Text that spells a
    number or a time is that, since software gives the same cell as text, as a number or as a date
    according to other rows: ``1``, ``1.0``, ``True``, ``"1"`` and ``"01"`` are all level ``"1"``,
    as they are to :func:`to_codes` where that is declared. All other cells are missing: other
    numbers, longer text, blank text, and text that a table could not print. Never raises and never
    warns.

    >>> import numpy as np
    >>> level_names(np.array(["x", "01", 1.0, 0.5, " ", None, "x" * 101], dtype=object)).tolist()
    ['x', '1', '1', None, None, None, None]
    """
    if isinstance(values, Coded):
        return values.by_entry(level_names, None)
    if isinstance(values, np.ma.MaskedArray):
        result = level_names(np.ma.getdata(values))
        result[np.ma.getmaskarray(values)] = None
        return result
    if values.dtype.kind == "M":
        return _time_cells(values).by_entry(level_names, None)
    if values.dtype.kind in "OUST":
        names = _Names()
        cells = map(plain, values.tolist())
        return np.fromiter((names[cell] for cell in cells), object, len(values))
    numbers, inverse = np.unique(to_float(values), return_inverse=True)
    distinct_names: NDArray[np.object_] = np.fromiter(
        map(_name, numbers.tolist()), object, len(numbers)
    )
    return distinct_names[inverse]


class _Names(dict[str | float, str | None]):
    """The name of a cell, worked out once for each that is met."""

    def __missing__(self, cell: str | float) -> str | None:
        name = self[cell] = _name(cell)
        return name


def _name(cell: str | float) -> str | None:
    """Return the level that a plain cell names; None for none."""
    value = cell
    if isinstance(value, str):
        if len(value) > LONGEST or not value.isprintable() or not value.strip():
            return None
        value = number(value)
        if value != value:
            return time_text(cell) or str(cell)
    if not abs(value) < _EXACT or value != int(value):
        return None
    return str(int(value))


# Arrow arrays as numpy arrays: views where there is nothing missing.


def arrow_cells(column: pa.ChunkedArray) -> Cells:
    """Give the n cells of an Arrow array or chunked array, shape (n,).

    Numbers as numbers (integers with nulls: masked, as floats would lose digits; other numbers: NaN
    for null), logical values as bool (with nulls: masked), dates and times as numpy's, text, bytes
    and dictionary-encoded cells as `Coded`, decimals, UUIDs and times of a clock as objects, None
    for null. Other types (durations, lists, structures) are all NaN.
    """
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return _array_cells(column)
    if column.num_chunks == 1:
        return _array_cells(column.chunk(0))
    return concatenated([*map(_array_cells, column.chunks)])


def _array_cells(array: pa.Array) -> Cells:
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        cells = _array_cells(array.storage)
        return _uuid_texts(cells) if kind.extension_name == "arrow.uuid" else cells
    if types.is_dictionary(kind):
        return _dictionary_cells(array)
    if is_text(kind) or is_bytes(kind):
        try:
            return _dictionary_cells(array.dictionary_encode())
        except pa.ArrowException:  # A type that this Arrow does not encode
            return _entries(array)
    if array.null_count and (types.is_integer(kind) or types.is_boolean(kind)):
        filled = array.fill_null(pa.scalar(0).cast(kind)).to_numpy(zero_copy_only=False)
        return np.ma.MaskedArray(filled, array.is_null().to_numpy(zero_copy_only=False))
    if is_number(kind) or types.is_null(kind):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if is_days(kind):
        return _times(array)
    if types.is_time(kind):
        # As objects; None outside a day, which Python's times do not hold.
        from pyarrow import compute

        times = array.cast(pa.time64("us"), safe=False)
        ticks = times.cast(pa.int64())
        in_day = compute.and_(compute.greater_equal(ticks, 0), compute.less(ticks, 86_400 * 10**6))
        cells = compute.if_else(in_day, times, pa.scalar(None, times.type)).to_pylist()
        return np.fromiter(cells, object, len(cells))
    return np.full(len(array), MISSING)


def _times(array: pa.Array) -> Array:
    """Dates and times; those in a zone are local, or in UTC where the zone is unknown."""
    import pyarrow as pa
    from pyarrow import compute, types

    if types.is_timestamp(array.type) and array.type.tz is not None:
        instants = array.cast(pa.timestamp(array.type.unit)).to_numpy(zero_copy_only=False)
        missing = pa.scalar(None, array.type)
        array = compute.if_else(pa.array(is_on_clocks(instants)), array, missing)
        try:
            array = compute.local_timestamp(array)
        except pa.ArrowException:
            array = array.cast(pa.timestamp(array.type.unit))
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _dictionary_cells(array: pa.Array) -> Cells:
    positions = array.indices.cast("int64", safe=False).fill_null(-1).to_numpy()
    return coded(_entries(array.dictionary), positions)


def _entries(array: pa.Array) -> Array:
    """Give cells, text as objects; all as bytes where one is not the UTF-8 that Arrow promises."""
    import pyarrow as pa

    if not (is_text(array.type) or is_bytes(array.type)):
        return decoded(_array_cells(array))
    try:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    except (pa.ArrowException, UnicodeDecodeError):
        return np.fromiter(array.cast(pa.large_binary()).to_pylist(), object, len(array))


def _uuid_texts(cells: Cells) -> Cells:
    def texts(entries: Array) -> Array:
        written = (None if entry is None else str(UUID(bytes=entry)) for entry in entries)
        return np.fromiter(written, object, len(entries))

    if isinstance(cells, Coded):
        return Coded(texts(cells.entries), cells.positions)
    return texts(cells)


def is_text(kind: object) -> bool:
    """Whether cells of an Arrow type are read as text."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_bytes(kind: object) -> bool:
    """Whether cells of an Arrow type are bytes, which are read as text."""
    from pyarrow import types

    tests = (types.is_binary, types.is_large_binary, types.is_binary_view)
    return any(test(kind) for test in (*tests, types.is_fixed_size_binary))


def is_number(kind: object) -> bool:
    """Whether cells of an Arrow type are read as numbers."""
    from pyarrow import types

    tests = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)
    return any(test(kind) for test in tests)


def is_days(kind: object) -> bool:
    """Whether cells of an Arrow type are dates, or times of a date."""
    from pyarrow import types

    return bool(types.is_date(kind) or types.is_timestamp(kind))
