"""Coloured cells with names beside them, and a symmetric matrix drawn in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.plots.names import labels, short_names, thinned
from dpmodels.plots.style import FONT, INK, MUTED, SMALL, axes_or_new, box_inches, finished
from dpmodels.plots.words import MOST, listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

# Smaller parts of the largest size are as good as white: a choice.
FAINT = 0.15
MARKED = 4_000  # cells of which those below 0 are marked
WRITTEN = 120  # cells that still have room for their values
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # of red, green, blue: ITU-R BT.709
_SMALLEST = 5.5  # points of a readable name
_MAP = "RdBu"  # red under 0, blue over it, as the bars


def reach(numbers: Floats) -> float:
    """Return the largest size of a finite number, 1 where there is none above 0."""
    return float(np.max(np.abs(numbers[np.isfinite(numbers)]), initial=0.0)) or 1.0


def two_decimals(value: float) -> str:
    """Print a number below 1 in size; no -0.00."""
    return f"{round(value, 2) + 0.0:.2f}"


def cells(
    ax: Axes,
    numbers: Floats,
    largest: float,
    label: str,
    written: Callable[[float], str] = two_decimals,
) -> AxesImage:
    """Colour cells, write their values where they are few, else draw a colour bar.

    `numbers` has the shape (rows, columns); colours end at `largest` on both
    sides of 0, and cells that are nan stay empty.
    """
    image = ax.imshow(
        numbers, cmap=_MAP, vmin=-largest, vmax=largest, aspect="auto", interpolation="none"
    )
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    if numbers.size > WRITTEN:
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, aspect=24)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=FONT, labelcolor=INK, length=0)
        bar.set_label(label, color=INK, fontsize=FONT + 1)
        if _marked(ax, numbers, largest):
            bar.ax.set_title("\u2212: below 0", color=MUTED, fontsize=SMALL)
        return image
    shades = image.to_rgba(numbers)[..., :3] @ _LUMINANCE
    for (i, j), value in np.ndenumerate(numbers):
        if np.isfinite(value):
            colour = "white" if shades[i, j] < 0.5 else INK
            ax.text(j, i, written(value), ha="center", va="center", color=colour, fontsize=FONT)
    return image


def _marked(ax: Axes, numbers: Floats, largest: float) -> bool:
    """Mark cells clearly below 0 by a minus, as in grey they look like those above."""
    if numbers.size > MARKED:
        return False
    inches = np.divide(box_inches(ax), numbers.shape[::-1])
    size = float(np.clip(30 * inches.min(), 2.0, 8.0))
    below = numbers < -FAINT * largest
    for own, colour in ((numbers < -0.5 * largest, "white"), (numbers >= -0.5 * largest, INK)):
        rows, columns = np.nonzero(own & below)
        if rows.size:
            ax.plot(columns, rows, "_", color=colour, markersize=size, markeredgewidth=0.9)
    return bool(below.any())


def heads(ax: Axes, names: Sequence[str]) -> None:
    """Write names over the columns, thinned where too many."""
    room = 72 * box_inches(ax)[0] / (0.62 * FONT * (max(map(len, names)) + 1))
    ticks = thinned(len(names), room)
    ax.set_xticks(list(ticks), [names[j] for j in ticks], parse_math=False)


def upright_heads(ax: Axes, names: Sequence[str]) -> None:
    """Write names over the columns from bottom to top, smaller or thinned where many."""
    ticks, size = _fitting(len(names), 72 * box_inches(ax)[0])
    shown = [names[j] for j in ticks]
    ax.set_xticks(list(ticks), shown, rotation=90, fontsize=size, parse_math=False)


def row_names(ax: Axes, names: Sequence[str]) -> None:
    """Write names at the rows, smaller where many, thinned where too many."""
    ticks, size = _fitting(len(names), 72 * box_inches(ax)[1])
    ax.set_yticks(list(ticks), [names[i] for i in ticks], fontsize=size, parse_math=False)


def _fitting(count: int, length: float) -> tuple[range, float]:
    """Return which lines of text to write along a length in points, and how large."""
    points = length / count
    size = min(FONT, points / 1.15) if points / 1.15 >= _SMALLEST else FONT - 1
    return thinned(count, length / (1.12 * size)), size


_CELL = 0.52  # inches of a cell that holds its value
_SIDE = 6.2  # inches of many cells


def heat(
    table: xr.DataArray,
    *,
    label: str = "Correlation",
    largest: float | None = None,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw a labelled square matrix as coloured cells.

    Colours end at `largest` on both sides of 0, by default at the largest number.
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
    return finished(ax, stamp, caption, _told(numbers, names, label))


def _told(numbers: Floats, names: Sequence[str], label: str) -> str:
    """Say which entries off the diagonal are largest."""
    first, second = np.triu_indices(len(names), 1)
    sizes = np.nan_to_num(np.abs(numbers[first, second]))
    largest = np.argsort(-sizes, kind="stable")[:MOST]
    pairs = [f"{names[first[k]]} and {names[second[k]]}" for k in largest]
    values = [number(numbers[first[k], second[k]]) for k in largest]
    more = f". Largest: {listed(pairs, values)}" if pairs else ""
    return f"{label} matrix of {len(names)} columns{more}"


def _labels(table: xr.DataArray) -> list[str]:
    if len(table.dims) == 2 and table.size:
        rows, columns = (labels(table, str(dim)) for dim in table.dims)
        if rows == columns:
            return rows
    raise ArgumentError(
        f"the table has dimensions {tuple(map(str, table.dims))} of {table.shape}: give a "
        "non-empty square DataArray with the same labels on both sides"
    )


def _three_digits(value: float) -> str:
    """Print a number of any size in at most eight characters."""
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e5 or value == 0 else f"{value:.1e}"
