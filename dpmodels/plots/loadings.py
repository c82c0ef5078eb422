"""Loadings as a heat map, or as bars for one component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpmodels.plots import tables
from dpmodels.plots.names import short_names, thinned
from dpmodels.plots.style import (
    BLUE,
    FONT,
    GREY,
    INK,
    VERMILION,
    axes_or_new,
    box_inches,
    stamp_across,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

_WRITTEN = 120  # cells that still have room for their values
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # of red, green, blue: ITU-R BT.709
_SMALLEST = 5.5  # points of a readable name
_MAP = "RdBu"  # red under 0, blue over it, as the bars


def loadings(
    table: xr.DataArray,
    *,
    components: Sequence[int | str] | None = None,
    ax: Axes | None = None,
    stamp: str | None = None,
) -> Axes:
    """Draw loadings: a heat map of several components, bars of one.

    Parameters
    ----------
    table : DataArray, dimensions variable and component
        Loadings, usually within [-1, 1].
    components : sequence of int or str, optional
        Positions (0 is the first) or names; all by default.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    stamp : str, optional
        A warning to write across the picture.

    Returns
    -------
    matplotlib Axes
        The colours, or the horizontal axis of the bars, reach equally far on
        both sides of 0.

    Raises
    ------
    ArgumentError
        If the table has other dimensions or a component is not in it.
    NotAvailable
        If matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from xarray import DataArray
    >>> coords = {"variable": ["age", "educ"], "component": ["PC1", "PC2"]}
    >>> table = DataArray([[0.8, 0.6], [-0.6, 0.8]], coords)
    >>> ax = loadings(table, ax=Figure().subplots())
    >>> [name.get_text() for name in ax.get_yticklabels()]
    ['age', 'educ']
    """
    table = tables.ordered(table)
    heads = tables.names(table, "component")
    chosen = list(range(len(heads))) if components is None else tables.positions(heads, components)
    numbers = np.asarray(table, dtype=np.float64)[:, chosen]
    variables = short_names(tables.names(table, "variable"), most=28)
    rows, columns = numbers.shape
    width = 2.8 + min(0.62 * columns, 8.0) if columns > 1 else 5.0
    ax = axes_or_new(ax, (width, max(1.6, min(0.9 + 0.24 * rows, 12.0))))
    largest = float(np.max(np.abs(numbers[np.isfinite(numbers)]), initial=0.0)) or 1.0
    if columns == 1:
        _bars(ax, numbers[:, 0], largest, heads[chosen[0]])
    else:
        _heat(ax, numbers, largest, [heads[j] for j in chosen])
    _variables(ax, variables)
    return stamp_across(ax, stamp)


def _heat(ax: Axes, numbers: npt.NDArray[np.float64], largest: float, heads: Sequence[str]) -> None:
    rows, columns = numbers.shape
    image = ax.imshow(
        numbers, cmap=_MAP, vmin=-largest, vmax=largest, aspect="auto", interpolation="none"
    )
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    room = 72 * box_inches(ax)[0] / (0.62 * FONT * (max(map(len, heads)) + 1))
    ticks = thinned(columns, room)
    ax.set_xticks(list(ticks), [heads[j] for j in ticks], parse_math=False)
    if rows * columns > _WRITTEN:
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, aspect=24)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=FONT, labelcolor=INK, length=0)
        bar.set_label("Loading", color=INK, fontsize=FONT + 1)
        return
    shades = image.to_rgba(numbers)[..., :3] @ _LUMINANCE
    for (i, j), value in np.ndenumerate(numbers):
        if np.isfinite(value):
            colour = "white" if shades[i, j] < 0.5 else INK
            shown = f"{round(value, 2) + 0.0:.2f}"  # no -0.00
            ax.text(j, i, shown, ha="center", va="center", color=colour, fontsize=FONT)


def _bars(ax: Axes, values: npt.NDArray[np.float64], largest: float, head: str) -> None:
    colours = np.where(values < 0, VERMILION, BLUE).tolist()
    ax.barh(np.arange(values.size), values, color=colours, height=0.6)
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.spines["left"].set_visible(False)
    ax.set_xlim(-1.08 * largest, 1.08 * largest)
    ax.set_ylim(values.size - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"Loading on {head}", parse_math=False)


def _variables(ax: Axes, variables: Sequence[str]) -> None:
    """Names at the rows, smaller where many, thinned where too many."""
    points = 72 * box_inches(ax)[1] / len(variables)
    size = min(FONT, points / 1.15) if points / 1.15 >= _SMALLEST else FONT - 1
    ticks = thinned(len(variables), len(variables) * points / (1.12 * size))
    ax.set_yticks(list(ticks), [variables[i] for i in ticks], fontsize=size, parse_math=False)
