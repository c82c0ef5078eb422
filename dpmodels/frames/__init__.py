"""Rows of any supported source, as blocks of columns.

`open_rows` takes what the user has (a data frame, a mapping of columns, a structured array, a
Parquet or CSV path, an iterable of such tables) and gives a `RowSource`: column names first, rows
later, block by block. `to_float`, `to_days` and `to_codes` turn a column of a block into numbers,
days or level indices.

This subpackage reads private rows. Two invariants hold in every file of it:

* nothing it raises, warns or prints depends on a cell, only on container types, column names and
  the existence of files;
* the converted value of a cell depends on that cell alone, never on another row and never on a
  dtype that the cells of other rows forced upon the column.

pandas, polars and pyarrow are imported only where the data need them.
"""

from dpmodels.frames.columns import require, require_declared
from dpmodels.frames.convert import concatenated, to_codes, to_days, to_float
from dpmodels.frames.open import no_rows, open_rows
from dpmodels.frames.progress import progress
from dpmodels.frames.protocol import RowSource

__all__ = [
    "RowSource",
    "concatenated",
    "no_rows",
    "open_rows",
    "progress",
    "require",
    "require_declared",
    "to_codes",
    "to_days",
    "to_float",
]
