"""Rows that are not private, given to a fit: what of them lies outside the codebook is said."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.arguments import truth
from dpmodels.codebook import Codebook
from dpmodels.dates import Date
from dpmodels.errors import NotAvailable, OutsideWarning, frames_up, shorten
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
    def counted(self) -> str:
        """How many rows are complete and within the bounds, in words."""
        known, given = int(np.isfinite(self.coded).all(axis=0).sum()), len(self.outside)
        others = f" of the {given:,} given, the others incomplete or outside the bounds"
        return f"{known:,} public row{'s' * (known != 1)}{others * (known < given)}"

    def linear(self, params: Floats) -> Floats:
        """Return the linear predictor; the first coefficient may be an intercept."""
        own = len(params) - len(self.coded)
        return np.asarray(params[:own].sum() + params[own:] @ self.coded)


def require_coder(coder: Coder | None) -> RowCoder:
    """Return what codes rows, or say that a formula has no terms to do so by."""
    if isinstance(coder, RowCoder):
        return coder
    raise NotAvailable(
        "there are no terms to code rows by, the formula has none: what the model tells of any row "
        "is params['Intercept']"
    )


def public_rows(coder: Coder | None, newdata: object, *, clip: bool) -> PublicRows:
    """Read public rows; those outside the bounds are nan and counted in a warning, or clipped."""
    held, coder = truth("clip", clip), require_coder(coder)
    book, written = coder.design.codebook, coder.read(newdata)
    columns: dict[str, Floats] = {}
    beyond: dict[str, NDArray[np.bool_]] = {}
    for name, values in written.items():
        low, high = bounds(book, name)
        beyond[name] = (values < low) | (values > high)
        kept = np.clip(values, low, high)
        columns[name] = kept if held else np.where(beyond[name], np.nan, kept)
    outside = np.logical_or.reduce(list(beyond.values()))
    if outside.any() and not held:
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
    named = (f"{name}: {own.sum():,}" for name, own in beyond.items() if own.any())
    warnings.warn(
        f"{outside.sum():,} of {len(outside):,} public rows lie outside the codebook's bounds "
        f"({shorten(', '.join(named), 200)}), of which the fit tells nothing: nan. To hold them in "
        "the bounds, as the rows of the fit were: clip=True",
        OutsideWarning,
        stacklevel=frames_up(),
    )
