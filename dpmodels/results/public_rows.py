"""Public rows given to a fit: a warning counts those outside the codebook."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.arguments import boolean
from dpmodels.codebook import Codebook
from dpmodels.dates import Date
from dpmodels.errors import NotAvailable, OutsideWarning, shorten, warn
from dpmodels.formula.coding import RowCoder, on_steps
from dpmodels.formula.values import Columns
from dpmodels.typing import Coder, Floats
from dpmodels.variables import Numeric


@dataclass(frozen=True)
class PublicRows:
    """Columns of public rows within the codebook's bounds, nan elsewhere."""

    coder: RowCoder
    columns: Columns
    outside: NDArray[np.bool_]  # rows with a number or a day beyond its bounds

    @cached_property
    def coded(self) -> Floats:
        """The columns of the design, shape (columns, rows), nan where a row is incomplete."""
        return self.coder.coded(self.columns)

    @property
    def offset(self) -> Floats:
        """What the linear predictor has beside the terms, shape (rows,)."""
        return self.coder.offset(self.columns)

    @property
    def counted(self) -> str:
        """How many rows are complete and within the bounds, as text."""
        n_complete, n_rows = int(np.isfinite(self.coded).all(axis=0).sum()), len(self.outside)
        plural = "s" * (n_complete != 1)
        remainder = f" of the {n_rows:,} given, the others incomplete or outside the bounds"
        return f"{n_complete:,} public row{plural}{remainder * (n_complete < n_rows)}"

    def linear(self, params: Floats) -> Floats:
        """Return the linear predictor; the first coefficient may be an intercept."""
        n_intercepts = len(params) - len(self.coded)
        linear = params[:n_intercepts].sum() + params[n_intercepts:] @ self.coded
        return np.asarray(linear if self.coder.known is None else linear + self.offset)


def require_coder(coder: Coder | None) -> RowCoder:
    """Return the row coder; NotAvailable if the formula has no terms."""
    if isinstance(coder, RowCoder):
        return coder
    raise NotAvailable(
        "the formula has no terms to code rows by: the prediction for every row is "
        "params['Intercept']"
    )


def public_rows(coder: Coder | None, newdata: object, *, clip: bool) -> PublicRows:
    """Read public rows; those outside the bounds are nan and counted in a warning, or clipped.

    ArgumentError says where a cell is neither missing nor what the codebook declares.
    """
    clips, coder = boolean("clip", clip), require_coder(coder)
    coders = [part for part in (coder, coder.known) if part is not None and part.design.names]
    book = Codebook({name: v for part in coders for name, v in part.design.codebook.items()})
    reads = [part.read(newdata, require_read=True) for part in coders]
    values_by_name = {name: values for read in reads for name, values in read.items()}
    columns: dict[str, Floats] = {}
    beyond: dict[str, NDArray[np.bool_]] = {}
    for name, values in values_by_name.items():
        low, high = bounds(book, name)
        beyond[name] = (values < low) | (values > high)
        clipped = np.clip(values, low, high)
        columns[name] = clipped if clips else np.where(beyond[name], np.nan, clipped)
    outside = np.logical_or.reduce(list(beyond.values()))
    if outside.any() and not clips:
        _warn(outside, beyond)
    return PublicRows(coder, on_steps(book, columns), outside)


def index_of(newdata: object) -> pd.Index | None:
    """Return the index of a pandas frame, that predictions keep."""
    return newdata.index if isinstance(newdata, pd.DataFrame) else None


def bounds(book: Codebook, name: str) -> tuple[float, float]:
    """Return the public range of a variable's numbers; without end for codes of levels."""
    match book[name]:
        case Numeric(lower=lower, upper=upper):
            return float(lower), float(upper)
        case Date(days=days):
            return days
    return -np.inf, np.inf


def _warn(outside: NDArray[np.bool_], beyond: dict[str, NDArray[np.bool_]]) -> None:
    counts = (f"{name}: {mask.sum():,}" for name, mask in beyond.items() if mask.any())
    warn(
        f"{outside.sum():,} of {len(outside):,} public rows lie outside the codebook's bounds "
        f"({shorten(', '.join(counts), 200)}): their results are nan. Write clip=True to clip "
        "them to the bounds, as the rows of the fit were",
        OutsideWarning,
    )
