"""Bounds and levels of a table whose rows are public: a census, a published survey, simulations."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any, Final

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.typing import IntoSeries

from dpmodels.arguments import between
from dpmodels.dictionaries.draft import Draft
from dpmodels.dictionaries.entry import PUBLIC_ROWS, Entry
from dpmodels.errors import CodebookError, FrameError

# A choice: a column of more texts holds names or ids.
_MOST_LEVELS: Final = 1_000


def from_public(data: Any, widen: float = 0.1) -> Draft:
    """Return a draft of bounds and levels from public rows, marked as such in each label."""
    fraction = between(
        "widen", widen, 0, 100, ", the share of its range that a range is widened by"
    )
    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError:
        raise FrameError(
            f"a public sample of type {type(data).__name__}: expected a DataFrame of public rows"
        ) from None
    entries: dict[str, Entry] = {}
    for name in frame.columns:
        if not isinstance(name, str) or name in entries:
            raise CodebookError(f"the sample's column {name!r} has no unique text name: rename it")
        entries[name] = _sampled_entry(frame[name], fraction)
    return Draft(
        entries, f"a public sample of {len(frame):,} rows, ranges widened by {fraction:.0%}"
    )


def _sampled_entry(column: nw.Series[IntoSeries], widen: float) -> Entry:
    if column.dtype == nw.Boolean:
        return Entry("boolean", label=PUBLIC_ROWS)
    if column.dtype in (nw.Date, nw.Datetime):
        return _days(column.drop_nulls(), widen)
    if column.dtype.is_numeric():
        return _numbers(column, widen)
    if column.dtype in (nw.Categorical, nw.Enum):
        levels = tuple(column.cat.get_categories().to_list())
    else:
        levels = tuple(
            sorted({cell for cell in column.drop_nulls().to_list() if type(cell) is str})
        )
    listed = levels if len(levels) <= _MOST_LEVELS else ()
    return Entry("categorical", levels=listed, label=PUBLIC_ROWS)


def _numbers(column: nw.Series[IntoSeries], widen: float) -> Entry:
    numbers = column.drop_nulls().cast(nw.Float64).to_numpy()
    numbers = numbers[np.isfinite(numbers)]
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)
    if not low < high:
        return Entry("numeric", label=PUBLIC_ROWS)
    kind = "integer" if (numbers == np.floor(numbers)).all() else "numeric"
    if kind == "integer" and 0 <= low <= high <= 1:
        return Entry(kind, 0, 1, label=PUBLIC_ROWS)
    lower, upper = low - widen * (high - low), high + widen * (high - low)
    lower = max(lower, 0.0) if low >= 0 else lower
    if kind == "integer":
        return Entry(kind, math.floor(lower), math.ceil(upper), label=PUBLIC_ROWS)
    return Entry(kind, lower, upper, label=PUBLIC_ROWS)


def _days(column: nw.Series[IntoSeries], widen: float) -> Entry:
    days = column.to_numpy().astype("datetime64[D]")
    if len(set(days)) < 2:
        return Entry("date", label=PUBLIC_ROWS)
    low, high = days.min().item(), days.max().item()
    margin = timedelta(math.ceil(widen * (high - low).days))
    return Entry("date", low - margin, high + margin, label=PUBLIC_ROWS)
