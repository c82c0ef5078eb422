"""Noisy counts of levels with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.plots.names import short_names
from dpmodels.plots.style import BLUE, GREY, INK, axes_or_new, stamp_across

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Levels that fit a picture: a choice.
SHOWN = 40


def levels(
    table: pd.DataFrame,
    label: str,
    threshold: int,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
) -> Axes:
    """Draw a bar a level, the most frequent at the top, and the threshold that all are above.

    `table` has the columns ``level, count, noise_low, noise_high``; of more than 40 the others are
    left out.
    """
    if not len(table):
        raise NotAvailable("plot() is not available: no level was found; see found_with()")
    own = table.sort_values("count", ascending=False, kind="stable").head(SHOWN)
    counts = own["count"].to_numpy()
    ends = np.vstack([counts - own["noise_low"], own["noise_high"] - counts])
    places = np.arange(len(own))
    ax = axes_or_new(ax, (6.0, 1.2 + 0.26 * len(own)))
    ax.barh(places, counts, height=0.62, color=BLUE)
    ax.errorbar(
        counts,
        places,
        xerr=np.maximum(ends, 0.0),
        fmt="none",
        ecolor=INK,
        elinewidth=1.2,
        capsize=2.5,
    )
    ax.axvline(threshold, color=GREY, linewidth=1.2, linestyle="--")
    ax.set_yticks(places, short_names([str(level) for level in own["level"]]))
    for tick in ax.get_yticklabels():
        tick.set_parse_math(False)
    ax.set_ylim(len(own) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.set_xlabel("rows, noisy; none below the dashed line is released")
    ax.set_title(label, fontsize="medium", loc="left", parse_math=False)
    return stamp_across(ax, stamp)
