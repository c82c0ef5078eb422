"""How many cells of a table do not fit their declarations, by reason: for the curator only.

The counts are exact, without noise, and not private. Only ``dpmodels codebook check --rows`` calls
this module, and prints that statement with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.column_roles import canonical_id
from dpmodels.dates import Date
from dpmodels.design.columns import are_missing, as_written, read_rows
from dpmodels.frames import RowSource
from dpmodels.frames.protocol import decoded
from dpmodels.variables import Categorical, Variable


@dataclass(frozen=True)
class Misfits:
    """The cells of one column that do not fit: each counts once."""

    bounds: tuple[float, float] = (-np.inf, np.inf)
    missing: int = 0  # Empty, or a declared code for a missing value
    not_readable: int = 0  # Not a number, or not a date
    unknown_level: int = 0
    outside: int = 0  # Outside the bounds

    @property
    def total(self) -> int:
        """Number of cells that do not fit."""
        return self.missing + self.not_readable + self.unknown_level + self.outside

    def plus(self, by_field: Mapping[str, NDArray[np.bool_]]) -> Misfits:
        """Return the counts with further cells, by the field that counts them."""
        sums = {name: getattr(self, name) + int(cells.sum()) for name, cells in by_field.items()}
        return replace(self, **sums)


@dataclass(frozen=True)
class TableMisfits:
    """The cells of a table that do not fit, by column."""

    columns: Mapping[str, Misfits]
    n_rows: int
    n_fitting: int  # Rows all of whose cells fit


def count_misfits(source: RowSource, book: Codebook, ids: Sequence[str]) -> TableMisfits:
    """Read a table once and count what does not fit a codebook, ids among it."""
    columns = {name: Misfits(_bounds(variable)) for name, variable in book.items()}
    columns |= {name: Misfits() for name in ids}
    n_rows = n_fitting = 0
    for chunk in source.chunks(tuple(columns), read_rows(len(columns))):
        misfits = np.zeros(len(next(iter(chunk.values()))), dtype=bool)
        for name, counts in columns.items():
            cells = decoded(chunk[name])
            if name in book:
                variable = book[name]
                values = as_written(Codebook({"x": variable}), {"x": cells})["x"]
                unread = np.isnan(values)
                missing = np.zeros(len(values), dtype=bool)
                missing[unread] = are_missing(variable, cells[unread])
                misread = "unknown_level" if isinstance(variable, Categorical) else "not_readable"
                outside = (values < counts.bounds[0]) | (values > counts.bounds[1])
                by_field = {"missing": missing, misread: unread & ~missing, "outside": outside}
            else:
                keys = map(canonical_id, np.ma.getdata(cells).tolist())
                is_missing = [key in ("", *book.missing_ids(name)) for key in keys]
                masked = np.ma.getmaskarray(cells)
                by_field = {"missing": np.asarray(masked | np.array(is_missing, dtype=bool))}
            columns[name] = counts.plus(by_field)
            misfits = np.logical_or.reduce([misfits, *by_field.values()])
        n_rows += len(misfits)
        n_fitting += int((~misfits).sum())
    return TableMisfits(columns, n_rows, n_fitting)


def _bounds(variable: Variable) -> tuple[float, float]:
    if isinstance(variable, Categorical):
        return -np.inf, np.inf
    return variable.days if isinstance(variable, Date) else (variable.lower, variable.upper)
