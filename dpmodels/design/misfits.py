"""How many cells of a table do not fit their declarations, by reason: for the curator only.

The counts are exact, without noise, and not private. Only ``dpmodels codebook check --rows`` calls
this module, and prints that statement with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.dates import Date
from dpmodels.design.columns import as_written, read_rows
from dpmodels.frames import RowSource, to_codes
from dpmodels.frames.convert import plain
from dpmodels.person_ids import canonical_id
from dpmodels.variables import Categorical, Variable


@dataclass
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


@dataclass
class TableMisfits:
    """The cells of a table that do not fit, by column."""

    columns: dict[str, Misfits]
    n_rows: int = 0
    n_fitting: int = 0  # Rows all of whose cells fit


def count_misfits(source: RowSource, book: Codebook, ids: Sequence[str]) -> TableMisfits:
    """Read a table once and count what does not fit a codebook, ids among it."""
    columns = {name: Misfits(_bounds(variable)) for name, variable in book.items()}
    result = TableMisfits({**columns, **{name: Misfits() for name in ids}})
    names = tuple(result.columns)
    for chunk in source.chunks(names, read_rows(len(names))):
        fits = np.ones(len(next(iter(chunk.values()))), dtype=bool)
        for name, counts in result.columns.items():
            if name in book:
                fits &= _fits(book[name], chunk[name], counts)
            else:
                fits &= _ids_fit(chunk[name], book.missing_ids(name), counts)
        result.n_rows += len(fits)
        result.n_fitting += int(fits.sum())
    return result


def _fits(variable: Variable, cells: NDArray[Any], counts: Misfits) -> NDArray[np.bool_]:
    """Add the cells of a chunk to the counts; return which fit."""
    values = as_written(Codebook({"x": variable}), {"x": cells})["x"]
    unread = np.isnan(values)
    missing = np.zeros(len(values), dtype=bool)
    missing[unread] = _are_missing(variable, cells[unread])
    misread = "unknown_level" if isinstance(variable, Categorical) else "not_readable"
    lower, upper = counts.bounds
    outside = (values < lower) | (values > upper)
    counts.missing += int(missing.sum())
    setattr(counts, misread, getattr(counts, misread) + int((unread & ~missing).sum()))
    counts.outside += int(outside.sum())
    return ~unread & ~outside


def _are_missing(variable: Variable, cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether cells without a value are empty or have a declared code; others are misread."""
    coded = to_codes(cells, variable.missing) >= 0
    masked, values = np.ma.getmaskarray(cells), np.ma.getdata(cells)
    blank = [isinstance(text, str) and not text.strip() for text in map(plain, values.tolist())]
    return np.asarray(coded | masked | pd.isna(values) | np.array(blank, dtype=bool))


def _ids_fit(cells: NDArray[Any], codes: Sequence[str], counts: Misfits) -> NDArray[np.bool_]:
    masked = np.ma.getmaskarray(cells)
    ids = map(canonical_id, np.ma.getdata(cells).tolist())
    missing = masked | np.array([key in ("", *codes) for key in ids], dtype=bool)
    counts.missing += int(missing.sum())
    return np.asarray(~missing)


def _bounds(variable: Variable) -> tuple[float, float]:
    """Return the range of a number or of days; levels have none."""
    if isinstance(variable, Categorical):
        return -np.inf, np.inf
    return variable.days if isinstance(variable, Date) else (variable.lower, variable.upper)
