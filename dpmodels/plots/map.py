"""Counts of a plane as colours, blank where noise alone may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.plots.style import FONT, INK, axes_or_new, finished
from dpmodels.plots.words import number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAP = "viridis_r"  # few rows pale, many dark
_SIDE = 6.2  # inches


def plane(
    ends: Sequence[Floats],
    density: Floats,
    names: Sequence[str],
    *,
    counted: str,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw counts by cell between ends along both axes, the first to the right.

    `density` has the shape (first, second), and nan what stays blank. Colours are of a logarithmic
    scale.
    """
    ax = axes_or_new(ax, (_SIDE + 0.8, _SIDE))
    from matplotlib import colors

    told = density[~np.isnan(density)]
    least, most = (float(told.min()), float(told.max())) if told.size else (1.0, 1.0)
    norm = colors.LogNorm(least, max(most, 1.01 * least))
    mesh = ax.pcolormesh(ends[0], ends[1], density.T, cmap=_MAP, norm=norm, rasterized=True)
    bar = ax.figure.colorbar(mesh, ax=ax, shrink=0.6, aspect=24)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=FONT, labelcolor=INK, length=0)
    bar.set_label(f"{counted} by cell", color=INK, fontsize=FONT + 1)
    ax.set_xlabel(names[0], parse_math=False)
    ax.set_ylabel(names[1], parse_math=False)
    ax.set_xlim(ends[0][0], ends[0][-1])
    ax.set_ylim(ends[1][0], ends[1][-1])
    ax.set_title(
        "blank: not told from noise", fontsize=FONT, color=INK, loc="left", parse_math=False
    )
    alt = f"Map of {counted} by {names[0]} and {names[1]}, {told.size:,} cells not blank"
    if told.size:
        alt += f", {number(told.min())} to {number(told.max())} {counted} by cell"
    return finished(ax, stamp, caption, alt)
