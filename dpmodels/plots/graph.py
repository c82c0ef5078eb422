"""A graph of names on a circle, its edges as wide as they are strong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.plots.style import (
    BLUE,
    FONT,
    GREY,
    INK,
    axes_or_new,
    finished,
    listed,
    number,
    short_names,
)
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Widths of the weakest and of the strongest edge, in points.
THIN, WIDE = 0.6, 7.0


def graph(
    names: Sequence[str],
    edges: Sequence[tuple[int, int]],
    strengths: Floats,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw names around a circle and edges between them; names without an edge are grey.

    `edges` are pairs of positions in `names`, `strengths` theirs, from 0 to 1.
    """
    ax = axes_or_new(ax, (6.4, 5.6))
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / max(len(names), 1)
    x, y = np.cos(angles), np.sin(angles)
    largest = max(float(strengths.max()), 1e-12) if len(strengths) else 1.0
    for (first, second), strength in zip(edges, strengths, strict=True):
        ax.plot(
            x[[first, second]],
            y[[first, second]],
            color=BLUE,
            linewidth=THIN + (WIDE - THIN) * float(strength) / largest,
            alpha=0.55,
            solid_capstyle="round",
            zorder=2,
        )
    joined = {i for pair in edges for i in pair}
    for i, name in enumerate(short_names(names)):
        color = INK if i in joined else GREY
        ax.plot(x[i], y[i], "o", color=color, markersize=6, zorder=4)
        side = "center" if abs(x[i]) < 0.15 else "left" if x[i] > 0 else "right"
        height = "center" if abs(y[i]) < 0.85 else "bottom" if y[i] > 0 else "top"
        ax.text(
            1.08 * x[i],
            1.08 * y[i],
            name,
            ha=side,
            va=height,
            fontsize=FONT,
            color=color,
            zorder=5,
            parse_math=False,
        )
    ax.set_xlim(-1.9, 1.9)
    ax.set_ylim(-1.3, 1.3)
    ax.set_aspect("equal")
    ax.set_axis_off()
    pairs = [f"{names[first]} and {names[second]}" for first, second in edges]
    alt = f"Graph of {len(names)} columns with {len(edges)} edges"
    return finished(ax, stamp, caption, f"{alt}: {listed(pairs, map(number, strengths))}")
