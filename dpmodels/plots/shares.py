"""Shares by cell as bars, of one factor or of two beside each other, with two intervals each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpmodels.plots.heat import row_names
from dpmodels.plots.names import short_names
from dpmodels.plots.style import GREY, INK, SERIES, axes_or_new, finished, legend_above
from dpmodels.plots.words import between, listed
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# So many bars beside each other are told apart, by colour and, in grey, by their hatching.
SERIES_SHOWN: Final = len(SERIES)
_HATCHES: Final = ("", "////", "....", "xxxx", "\\\\\\\\", "oo")
_TALLEST: Final = 24.0  # inches


def shares(
    values: Floats,
    noise: Floats,
    confidence: Floats,
    *,
    rows: Sequence[str],
    series: Sequence[str],
    title: str,
    across: str = "",
    level: float = 0.95,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw a bar for each of `values`, shape (rows, series), a group of them a row.

    Noise intervals, shape (rows, series, 2), are wide and grey, confidence intervals thin; either
    may be nan.
    """
    count = len(series)
    ax = axes_or_new(ax, (6.0, min(1.3 + (0.14 + 0.2 * count) * len(rows), _TALLEST)))
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    high, keys = 0.8 / count, []
    for number in range(count):
        places = np.arange(len(rows)) + (number - (count - 1) / 2) * high
        colour, hatch = SERIES[number % len(SERIES)], _HATCHES[number % len(_HATCHES)]
        look: dict[str, Any] = {
            "facecolor": colour,
            "alpha": 0.55,
            "hatch": hatch,
            "edgecolor": "white",
        }
        ax.barh(places, values[:, number], 0.92 * high, linewidth=0.0, zorder=1, **look)
        for ends, wide, shade in ((noise, 4.5, GREY), (confidence, 1.2, INK)):
            low, up = np.maximum(ends[:, number], 0.0).T
            there = np.isfinite(low) & np.isfinite(up)
            ax.hlines(places[there], low[there], up[there], color=shade, linewidth=wide, zorder=2)
            for end in (low, up) if wide < 2 and there.any() else ():
                ax.plot(end[there], places[there], "|", color=INK, markersize=5, zorder=2)
        keys.append(Patch(label=short_names(series)[number], linewidth=0.0, **look))
    ax.set_ylim(len(rows) - 0.45, -0.55)
    ax.set_xlim(left=0.0)
    row_names(ax, short_names(rows))
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(title, parse_math=False)
    ax.set_ylabel(across, parse_math=False)
    marks: list[Line2D | Patch] = [*keys] if count > 1 else []
    if np.isfinite(noise).any():
        marks.append(Line2D([], [], color=GREY, linewidth=4.5, label=f"{level:.0%} noise"))
    if np.isfinite(confidence).any():
        both = f"{level:.0%} noise and sampling"
        marks.append(Line2D([], [], color=INK, linewidth=1.2, label=both))
    if marks:
        legend_above(ax, marks)
    names = [", ".join(filter(None, (row, own))) for row in rows for own in series]
    ends = np.where(np.isfinite(confidence), confidence, noise).reshape(-1, 2)
    told = listed(names, map(between, values.ravel(), *ends.T))
    return finished(ax, stamp, caption, f"Bars, {title}: {told}")
