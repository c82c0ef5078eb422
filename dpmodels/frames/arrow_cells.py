"""Arrow arrays as numpy arrays: views where there is nothing missing."""

from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.convert import MISSING, concatenated


def arrow_cells(column: Any) -> NDArray[Any]:
    """Give the n cells of an Arrow array or chunked array, shape (n,).

    Numbers as numbers (integers with nulls: masked, as floats would lose digits; other numbers: NaN
    for null), logical values as bool (with nulls: objects), dates and times as numpy's, text,
    bytes, decimals, UUIDs and dictionary-encoded cells as objects, None for null. Other types
    (durations, lists, structures) are all NaN.
    """
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return _array_cells(column)
    if column.num_chunks == 1:
        return _array_cells(column.chunk(0))
    return concatenated([*map(_array_cells, column.chunks)])


def _array_cells(array: Any) -> NDArray[Any]:
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        cells = _array_cells(array.storage)
        return _uuid_texts(cells) if kind.extension_name == "arrow.uuid" else cells
    if types.is_dictionary(kind):
        return _dictionary_cells(array)
    if is_text(kind):
        return _text_cells(array)
    if types.is_integer(kind) and array.null_count:
        filled = array.fill_null(0).to_numpy(zero_copy_only=False)
        return np.ma.MaskedArray(filled, array.is_null().to_numpy(zero_copy_only=False))
    if is_number(kind) or is_bytes(kind) or types.is_null(kind):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if is_days(kind):
        return _times(array)
    return np.full(len(array), MISSING)


def _times(array: Any) -> NDArray[Any]:
    """Dates and times; those in a zone are local, or in UTC where the zone is unknown."""
    import pyarrow as pa
    from pyarrow import compute, types

    if types.is_timestamp(array.type) and array.type.tz is not None:
        try:
            array = compute.local_timestamp(array)
        except pa.ArrowException:
            array = array.cast(pa.timestamp(array.type.unit))
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _dictionary_cells(array: Any) -> NDArray[Any]:
    """Look cells up; an index that a damaged file puts outside the dictionary is missing."""
    values = _array_cells(array.dictionary)
    last = len(values)
    labels = np.fromiter((*np.ma.getdata(values), None), object, last + 1)
    labels[:last][np.ma.getmaskarray(values)] = None
    codes = array.indices.cast("int64", safe=False).fill_null(last).to_numpy()
    return np.asarray(labels[np.where((codes < 0) | (codes > last), last, codes)])


def _text_cells(array: Any) -> NDArray[Any]:
    """Text, or the bytes of all cells where one is not UTF-8, which Arrow does not promise."""
    import pyarrow as pa

    try:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    except (pa.ArrowException, UnicodeDecodeError):
        return np.fromiter(array.cast(pa.large_binary()).to_pylist(), object, len(array))


def _uuid_texts(cells: NDArray[Any]) -> NDArray[Any]:
    texts = (None if cell is None else str(UUID(bytes=cell)) for cell in cells)
    return np.fromiter(texts, object, len(cells))


def is_text(kind: Any) -> bool:
    """Whether cells of an Arrow type are read as text."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_bytes(kind: Any) -> bool:
    """Whether cells of an Arrow type are bytes, which are read as text."""
    from pyarrow import types

    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def is_number(kind: Any) -> bool:
    """Whether cells of an Arrow type are read as numbers."""
    from pyarrow import types

    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
    )


def is_days(kind: Any) -> bool:
    """Whether cells of an Arrow type are dates, or times of a date."""
    from pyarrow import types

    return bool(types.is_date(kind) or types.is_timestamp(kind))
