"""Arrow arrays as numpy arrays: views where there is nothing missing."""

from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.convert import MISSING, plain


def arrow_cells(column: Any) -> NDArray[Any]:
    """Give the n cells of an Arrow array or chunked array, shape (n,).

    Numbers as numbers (with nulls: float, NaN for null), logical values as bool (with nulls:
    objects), dates and times as numpy's days, text, bytes, decimals, UUIDs and dictionary-encoded
    cells as objects, None for null. Other types (durations, lists, structures) are all NaN.
    """
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return _array_cells(column)
    if column.num_chunks == 1:
        return _array_cells(column.chunk(0))
    return np.concatenate([*map(_array_cells, column.chunks)] or [np.empty(0)])


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
    if is_number(kind) or is_bytes(kind) or types.is_null(kind):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if is_days(kind):
        return _days(array)
    return np.full(len(array), MISSING)


def _days(array: Any) -> NDArray[Any]:
    """Days; of times in a zone those of the zone, or of UTC where nobody knows the zone."""
    import pyarrow as pa
    from pyarrow import compute, types

    if types.is_timestamp(array.type) and array.type.tz is not None:
        try:
            array = compute.local_timestamp(array)
        except pa.ArrowException:
            array = array.cast(pa.timestamp(array.type.unit))
    return np.asarray(array.to_numpy(zero_copy_only=False)).astype("datetime64[D]")


def _dictionary_cells(array: Any) -> NDArray[Any]:
    labels = np.append(_array_cells(array.dictionary).astype(object), [None])
    return np.asarray(labels[array.indices.cast("int64").fill_null(-1).to_numpy()])


def _text_cells(array: Any) -> NDArray[Any]:
    """Text; Arrow does not promise that the bytes of a text column are UTF-8."""
    import pyarrow as pa

    try:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    except (pa.ArrowException, UnicodeDecodeError):
        raw = array.cast(pa.large_binary()).to_pylist()
    texts = (None if cell is None else plain(cell) for cell in raw)
    return np.fromiter(texts, object, len(raw))


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
