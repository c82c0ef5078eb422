"""A histogram with the noise of each bin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.plots.style import BLUE, INK, axes_or_new, stamp_across
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def hist(
    breaks: Floats,
    counts: Floats,
    bars: Floats,
    label: str,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
) -> Axes:
    """Draw bins as bars from 0, each with its interval.

    Bins of unequal width are as high as they have rows by unit, so that areas
    compare.

    Parameters
    ----------
    breaks : ndarray, shape (bins + 1,)
        Ends of the bins.
    counts : ndarray, shape (bins,)
        Rows in each, not negative.
    bars : ndarray, shape (bins, 2)
        Lower and upper end of each interval.
    label : str
        What is counted; written under the axis.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    stamp : str, optional
        A warning written across the picture.
    """
    ax = axes_or_new(ax, (6.0, 3.6))
    widths = np.diff(breaks)
    equal = np.allclose(widths, widths[0], rtol=1e-6)
    unit = np.ones_like(widths) if equal else widths
    heights = counts / unit
    ax.bar(breaks[:-1], heights, widths, align="edge", color=BLUE, edgecolor="white", linewidth=0.6)
    middles = breaks[:-1] + widths / 2
    # A count held at 0 may lie outside the interval of the unbiased one.
    reach = np.vstack([counts - bars[:, 0], bars[:, 1] - counts]) / unit
    ax.errorbar(
        middles,
        heights,
        yerr=np.maximum(reach, 0.0),
        fmt="none",
        ecolor=INK,
        elinewidth=1.2,
        capsize=2.5,
    )
    ax.set_ylim(bottom=0)
    ax.set_xlabel(label, parse_math=False)
    ax.set_ylabel("rows" if equal else "rows by unit")
    return stamp_across(ax, stamp)
