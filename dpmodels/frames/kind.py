"""What a column can hold, by the type that its container gives it."""

from enum import IntEnum
from typing import Any, Final, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from dpmodels.frames.arrow_cells import is_bytes, is_number, is_text

_NEITHER: Final = "mMV"


class Holds(IntEnum):
    """Cells of what sort a column can hold, fewest first."""

    NOTHING = 0
    """Neither numbers nor text."""
    WHOLE = 1
    """Whole numbers and logical values."""
    ANYTHING = 2
    """Numbers or text, or nobody knows before the cells are read."""


class Kind(NamedTuple):
    """What a column can hold, and the name of its type for messages.

    Not named are the types inside the type: the fields of a structure may have been keys in a row.
    """

    holds: Holds
    name: str = ""


ANY: Final = Kind(Holds.ANYTHING)


def kind_of(column: Any) -> Kind:
    """Tell from the type of a column, without a look at its cells, what it can hold.

    What is read cell by cell (sequences, objects, text, columns of unknown libraries) can hold
    anything.

    >>> import numpy as np
    >>> kind_of(np.array(["2020-01-01"], "M8[D]"))
    Kind(holds=<Holds.NOTHING: 0>, name='datetime64[D]')
    >>> kind_of([True, "F"]).holds.name
    'ANYTHING'
    """
    if nw.dependencies.is_narwhals_series(column):
        return kind_of(column.to_native())
    if nw.dependencies.is_polars_series(column):
        return _of_polars(column.dtype)
    pyarrow = nw.dependencies.get_pyarrow()
    if pyarrow is not None and isinstance(column, pyarrow.Array | pyarrow.ChunkedArray):
        return kind_of_arrow(column.type)
    return kind_of_dtype(getattr(column, "dtype", None))


def kind_of_dtype(dtype: Any) -> Kind:
    """Tell what a column of a dtype of numpy or pandas can hold.

    The nullable integers of pandas can hold anything: it gives their type to columns in which all
    cells are missing.
    """
    if isinstance(dtype, np.dtype):
        holds = Holds.NOTHING if dtype.kind in _NEITHER else Holds.ANYTHING
        return Kind(Holds.WHOLE if dtype.kind in "biu" else holds, dtype.name)
    pandas = nw.dependencies.get_pandas()
    if pandas is None:
        return ANY
    if isinstance(dtype, pandas.CategoricalDtype):
        return kind_of_dtype(dtype.categories.dtype) if dtype.categories is not None else ANY
    if isinstance(dtype, pandas.ArrowDtype):
        return kind_of_arrow(dtype.pyarrow_dtype)
    if isinstance(dtype, pandas.DatetimeTZDtype | pandas.PeriodDtype | pandas.IntervalDtype):
        return Kind(Holds.NOTHING, str(dtype))
    return ANY


def kind_of_arrow(arrow_type: Any) -> Kind:
    """Tell what a column of an Arrow type can hold; of a column of nulls nobody knows."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(arrow_type, pa.BaseExtensionType):
        return kind_of_arrow(arrow_type.storage_type)
    if types.is_dictionary(arrow_type):
        return kind_of_arrow(arrow_type.value_type)
    if types.is_integer(arrow_type) or types.is_boolean(arrow_type):
        return Kind(Holds.WHOLE, str(arrow_type))
    readable = (is_number, is_text, is_bytes, types.is_null)
    known = any(able(arrow_type) for able in readable)
    return Kind(Holds.ANYTHING if known else Holds.NOTHING, str(arrow_type).split("<")[0])


def _of_polars(dtype: Any) -> Kind:
    import polars as pl

    if dtype.is_integer() or dtype == pl.Boolean:
        return Kind(Holds.WHOLE, str(dtype))
    neither = dtype.is_temporal() or dtype.is_nested()
    return Kind(Holds.NOTHING if neither else Holds.ANYTHING, str(dtype.base_type()))
