"""A symmetric matrix, such as correlations, as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.plots import tables
from dpmodels.plots.cells import WRITTEN, cells, reach, row_names, two_decimals, upright_heads
from dpmodels.plots.names import short_names
from dpmodels.plots.style import axes_or_new, stamp_across

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

_CELL = 0.52  # inches of a cell that holds its value
_SIDE = 6.2  # inches of many cells


def heat(
    table: xr.DataArray,
    *,
    label: str = "Correlation",
    largest: float | None = None,
    ax: Axes | None = None,
    stamp: str | None = None,
) -> Axes:
    """Draw a labelled square matrix as coloured cells.

    Parameters
    ----------
    table : DataArray, two dimensions of the same labels
        Such as correlations or covariances.
    label : str
        What the numbers are, at the colour bar.
    largest : float, optional
        Where the colours end on both sides of 0, above 0; by default the
        largest number.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    stamp : str, optional
        A warning to write across the picture.

    Returns
    -------
    matplotlib Axes
        Values are written into at most 100 cells; more have a colour bar.

    Raises
    ------
    ArgumentError
        If the table is not square with the same labels on both sides.
    NotAvailable
        If matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from xarray import DataArray
    >>> coords = {"variable": ["age", "educ"], "variable_": ["age", "educ"]}
    >>> table = DataArray([[1.0, -0.3], [-0.3, 1.0]], coords)
    >>> ax = heat(table, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts]
    ['1.00', '-0.30', '-0.30', '1.00']
    """
    names = _labels(table)
    numbers = np.asarray(table, dtype=np.float64)
    largest = reach(numbers) if largest is None else largest
    few = numbers.size <= WRITTEN
    side = _CELL * len(names) if few else _SIDE
    shown = short_names(names, most=28)
    margin = 0.3 + 0.075 * max(map(len, shown))
    ax = axes_or_new(ax, (margin + side + (0.1 if few else 1.0), margin + side))
    cells(ax, numbers, largest, label, two_decimals if largest <= 1 else _three_digits)
    row_names(ax, shown)
    upright_heads(ax, shown)
    return stamp_across(ax, stamp)


def _labels(table: xr.DataArray) -> list[str]:
    if len(table.dims) == 2 and table.size:
        rows, columns = (tables.names(table, str(dim)) for dim in table.dims)
        if rows == columns:
            return rows
    raise ArgumentError(
        f"the table has dimensions {tuple(map(str, table.dims))} of {table.shape}: give a "
        "non-empty square DataArray with the same labels on both sides"
    )


def _three_digits(value: float) -> str:
    """Print a number of any size in at most eight characters."""
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e5 or value == 0 else f"{value:.1e}"
