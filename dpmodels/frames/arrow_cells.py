"""Arrow arrays as numpy arrays: views where there is nothing missing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.cell import MISSING, plain


def arrow_cells(column: Any) -> NDArray[Any]:
    """Give the cells of an Arrow array.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
        n cells of any Arrow type.

    Returns
    -------
    ndarray, shape (n,)
        Numbers as numbers (with nulls: float, NaN for null), logical values as bool
        (with nulls: objects), text, bytes, decimals and dictionary-encoded cells as
        objects, None for null. Types that are neither numbers nor text (dates,
        durations, lists, structures) are all NaN.
    """
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return _array_cells(column)
    if column.num_chunks == 1:
        return _array_cells(column.chunk(0))
    return np.concatenate([np.empty(0), *map(_array_cells, column.chunks)])


def kind_of(arrow_type: Any) -> str:
    """Name what cells of an Arrow type are read as.

    Examples
    --------
    >>> import pyarrow as pa
    >>> kind_of(pa.int8()), kind_of(pa.dictionary(pa.int8(), pa.string())), kind_of(pa.date32())
    ('numbers', 'text', 'date32[day]')
    """
    import pyarrow as pa
    from pyarrow import types

    if isinstance(arrow_type, pa.BaseExtensionType):
        return kind_of(arrow_type.storage_type)
    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if _is_number(arrow_type):
        return "numbers"
    return "text" if _is_text(arrow_type) or _is_bytes(arrow_type) else str(arrow_type)


def _array_cells(array: Any) -> NDArray[Any]:
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _array_cells(array.storage)
    if types.is_dictionary(kind):
        return _dictionary_cells(array)
    if _is_text(kind):
        return _text_cells(array)
    if _is_number(kind) or _is_bytes(kind) or types.is_null(kind):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    return np.full(len(array), MISSING)


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


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_bytes(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
    )
