"""A distribution function as steps, with bands for these rows and for the population."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.plots.style import BLUE, GREY, PALE, axes_or_new, few_ticks, finished
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points that a line is drawn through: a choice, more than a picture has pixels.
POINTS = 4_000


def distribution(
    breaks: Floats,
    shares: Floats,
    bands: Floats,
    label: str,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw shares up to the upper end of each bin, and bands, shape (4, bins), of two kinds.

    The first two rows are the ends for these rows, the last two those for the population. Between
    breaks rows are taken to lie evenly.
    """
    ax = axes_or_new(ax, (6.0, 3.6))
    shown = np.unique(np.linspace(0, len(breaks) - 1, POINTS).astype(int))
    at = breaks[shown]
    line, *ends = (np.append(0.0, own)[shown] for own in (shares, *bands))
    ax.fill_between(at, ends[2], ends[3], color=PALE, linewidth=0, label="population")
    ax.fill_between(at, ends[0], ends[1], color=GREY, alpha=0.6, linewidth=0, label="noise")
    ax.plot(at, line, color=BLUE, linewidth=1.2)
    ax.set_ylim(-0.02, 1.02)
    few_ticks(ax)
    ax.set_xlabel(label, parse_math=False)
    ax.set_ylabel("share of rows up to there")
    if not np.isnan(bands).all():
        ax.legend(frameon=False, fontsize=8, loc="lower right")
    quarters = (0.25, 0.5, 0.75)
    reached = [at[min(np.searchsorted(line, one), len(at) - 1)] for one in quarters]
    told = listed([f"{one:.0%} of rows up to" for one in quarters], map(number, reached))
    return finished(ax, stamp, caption, f"Distribution function of {label} with bands: {told}")
