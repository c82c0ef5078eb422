"""Names of types for all subpackages."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

# Types of libraries that are imported where they are first used: for annotations alone.
if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from xarray import DataArray as DataArray
    from xarray import Dataset as Dataset
else:
    Axes = DataArray = Dataset = object

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Numbers of one type, whichever it is; and integers of Python, of any size.
Scalars = NDArray[np.generic]
Objects = NDArray[np.object_]
# Positions in another array, and which of its entries are meant.
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
# Integers or floats, which functions treat alike.
Numbers = NDArray[Any]
# Exact sums: integers of 64 bits where those suffice, else objects, integers of Python.
Exact = NDArray[Any]
# Cells of any type: whoever reads them checks what they are.
Array = NDArray[Any]
# A value of JSON or TOML, or a part of one: whoever reads it checks what it takes.
Plain = Any
# The value of an argument of a verb, under its name: the verb checks it.
Option = Any
# Columns of a table by name, as pandas takes them: arrays, lists, or a value for all its lines.
TableColumns = dict[str, Any]
# A line of a table as pandas gives it, by column.
TableLine = Mapping[Hashable, Any]
# A table of any kind that can be read, or a mapping of columns: frames check what it is.
Table = object
AnyPath = str | PathLike[str]
# Codes a public table as columns of a design.
Coder = Callable[[object], Floats]


class Picture(TypedDict, total=False):
    """Where a picture is drawn, and what stands on it and below it."""

    ax: Axes | None
    stamp: str | None
    caption: str | None
