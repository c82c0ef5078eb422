"""Sorted p-values and the line that a step-up procedure holds them against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.plots.style import BLUE, GREY, VERMILION, axes_or_new, finished
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The least p-value that is drawn where it is: a choice.
LEAST = 1e-16


def step_up(
    p_values: Floats,
    rejected: NDArray[Any],
    cut_offs: Floats,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw sorted p-values, smallest first, and the cut-off of each rank."""
    ax = axes_or_new(ax, (6.4, 4.2))
    ranks = np.arange(1, len(p_values) + 1)
    heights = -np.log10(np.maximum(p_values, LEAST))
    lines = -np.log10(cut_offs[: len(ranks)])
    looks = ((rejected, BLUE, BLUE, "rejected"), (~rejected, GREY, "white", "not rejected"))
    for own, colour, face, label in looks:
        if own.any():
            (drawn,) = ax.plot(ranks[own], heights[own], "o", color=colour, label=label)
            drawn.set(markersize=4.5, markerfacecolor=face)
    ax.plot(ranks, lines, color=VERMILION, linewidth=1.4, label="cut-off")
    ax.set_xlabel("rank of the p-value")
    ax.set_ylabel(r"$-\log_{10}$ p-value")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize="small")
    alt = f"Sorted p-values and their cut-offs: {int(rejected.sum())} of {len(ranks)} rejected"
    return finished(ax, stamp, caption, alt)
