"""What tests may tell: rates of misses against rates of false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dpmodels.plots.style import FONT, GREY, INK, axes_or_new, finished
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Rates of false alarms at which curves are drawn: closer together where they are steep.
RATES: Final[Floats] = np.concatenate(
    [[0.0], np.geomspace(1e-6, 0.02, 60), np.linspace(0.02, 1, 240)[1:]]
)
_DASHES: Final = ("-", (0, (6, 2)), "-.", ":")
_SIZE: Final = (4.8, 4.6)


def square_of_rates(ax: Axes | None) -> tuple[Axes, Line2D]:
    """Take axes, or make new ones, for error rates; draw the line of coin-flipping."""
    ax = axes_or_new(ax, _SIZE)
    (coins,) = ax.plot([0, 1], [1, 0], color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    coins.set_label("coin-flipping")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel("False-positive rate")
    ax.set_ylabel("False-negative rate")
    return ax, coins


def trade_offs(
    curves: Floats,
    labels: Sequence[str],
    level: tuple[float, Floats],
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw curves over `RATES`, shape (curves, rates), with the points at one level."""
    ax, _ = square_of_rates(ax)
    from matplotlib import colormaps

    alpha, points = level
    colours = colormaps["cividis"](np.linspace(0.05, 0.8, len(curves)))
    for at, (curve, label) in enumerate(zip(curves, labels, strict=True)):
        point, colour, dashes = points[at], colours[at], _DASHES[at % len(_DASHES)]
        ax.plot(RATES, curve, color=colour, linestyle=dashes, linewidth=1.6, label=label, zorder=2)
        ax.plot([alpha], [point], marker="o", markersize=4, color=colour, zorder=3, clip_on=False)
    ax.axvline(alpha, color=GREY, linewidth=0.6, zorder=0)
    ax.legend(
        loc="upper right",
        frameon=False,
        fontsize=FONT - 1,
        labelcolor=INK,
        handlelength=2.4,
        labelspacing=0.3,
        borderaxespad=0,
    )
    told = listed(labels, map(number, points))
    alt = (
        f"Trade-off curves. Least false-negative rate at a false-positive rate of {alpha:g}: {told}"
    )
    return finished(ax, stamp, caption, alt)
