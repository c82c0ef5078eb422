"""Horizontal bars, the first at the top, with the intervals of their noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.errors import NotAvailable
from dpmodels.plots.names import short_names
from dpmodels.plots.style import BLUE, GREY, INK, axes_or_new, finished
from dpmodels.plots.words import between, listed
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bars that fit a picture: a choice.
SHOWN = 40


def ranked(
    names: Sequence[str],
    values: Floats,
    ends: tuple[Floats, Floats],
    label: str,
    *,
    empty: str,
    least: float | None = None,
    title: str = "",
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw a bar for each name, the first 40 of them, and what all of them are above.

    NotAvailable with the words `empty` where there is none.
    """
    if not len(names):
        raise NotAvailable(f"plot() is not available: {empty}")
    shown = slice(SHOWN)
    values, (low, high) = values[shown], (end[shown] for end in ends)
    places = np.arange(len(values))
    ax = axes_or_new(ax, (6.0, 1.2 + 0.26 * len(values)))
    ax.barh(places, values, height=0.62, color=BLUE)
    ax.errorbar(
        values,
        places,
        xerr=np.maximum([values - low, high - values], 0.0),
        fmt="none",
        ecolor=INK,
        elinewidth=1.2,
        capsize=2.5,
    )
    if least is not None:
        ax.axvline(least, color=GREY, linewidth=1.2, linestyle="--")
    ax.set_yticks(places, short_names(names[shown]))
    for tick in ax.get_yticklabels():
        tick.set_parse_math(False)
    ax.set_ylim(len(places) - 0.4, -0.6)
    if (low >= 0).all():
        ax.set_xlim(left=0)
    ax.set_xlabel(label, parse_math=False)
    ax.set_title(title, fontsize="medium", loc="left", parse_math=False)
    alt = f"Bars, {title or label}: {listed(names[shown], map(between, values, low, high))}"
    return finished(ax, stamp, caption, alt)
