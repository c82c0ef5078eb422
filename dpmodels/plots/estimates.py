"""Estimates with their intervals, whatever they are of: the picture of a result without its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.plots.coefficients import Intervals, coefficients
from dpmodels.plots.heat import row_names
from dpmodels.plots.names import short_names
from dpmodels.plots.style import BLUE, GREY, axes_or_new, finished
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TALLEST = 24.0  # inches


def estimates(
    values: Floats,
    noise: Floats,
    confidence: Floats,
    *,
    labels: Sequence[str],
    title: str,
    level: float = 0.95,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw values (rows,) with both intervals (rows, 2), first at the top.

    Without noise intervals there are points alone, and the axis says so.
    """
    if not np.isnan(noise).all():
        own = Intervals("", values, noise, confidence)
        return coefficients(
            [own], labels=labels, title=title, level=level, ax=ax, stamp=stamp, caption=caption
        )
    ax = axes_or_new(ax, (6.0, min(1.3 + 0.3 * len(labels), _TALLEST)))
    ax.axvline(0.0, color=GREY, linewidth=0.9, zorder=0.5)
    places = np.arange(len(labels))
    ax.scatter(values, places, s=34, color=BLUE, zorder=3)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    row_names(ax, short_names(labels))
    ax.tick_params(axis="y", length=0)
    title = f"{title}, without intervals"
    ax.set_xlabel(title, parse_math=False)
    return finished(ax, stamp, caption, f"{title}: {listed(labels, map(number, values))}")
