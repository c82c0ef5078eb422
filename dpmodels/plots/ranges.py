"""A range that was found beside the declared one, with the counts that told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.plots.style import BLUE, GREY, VERMILION, axes_or_new, finished
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Lengths of the found range that are shown to each side of it: a choice.
MARGIN = 0.6


def ranges(
    ends: Floats,
    counts: Floats,
    noise: float,
    found: tuple[float, float],
    declared: tuple[float, float],
    label: str,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw noisy counts of cells near a found range; below `noise` they may be noise alone."""
    ax = axes_or_new(ax, (6.4, 3.6))
    margin = MARGIN * (found[1] - found[0])
    low, high = max(found[0] - margin, declared[0]), min(found[1] + margin, declared[1])
    near = (ends[1:] > low) & (ends[:-1] < high)
    starts, stops = np.maximum(ends[:-1], low)[near], np.minimum(ends[1:], high)[near]
    shown = counts[near]
    colours = np.where(shown > noise, BLUE, GREY)
    ax.bar(
        starts,
        shown,
        stops - starts,
        align="edge",
        color=colours.tolist(),
        edgecolor="white",
        linewidth=0.4,
    )
    ax.axhspan(-noise, noise, color=GREY, alpha=0.2, linewidth=0, zorder=0)
    for end in found:
        ax.axvline(end, color=VERMILION, linewidth=1.6)
    space = 0.02 * (high - low)
    ax.set_xlim(low - space, high + space)
    ax.set_xlabel(label, parse_math=False)
    ax.set_ylabel("rows in each cell, noisy")
    texts = [f"{one[0]:,.10g} to {one[1]:,.10g}" for one in (found, declared)]
    ax.set_title(f"found {texts[0]}; declared {texts[1]}", fontsize="medium", loc="left")
    alt = f"Noisy counts of {label} by cell, and two ranges: found {texts[0]}; declared {texts[1]}"
    return finished(ax, stamp, caption, alt)
