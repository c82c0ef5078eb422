"""Power against rows, eps or effects, with that of the same rows without noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpmodels.plots.style import GREY, SERIES, axes_or_new, finished
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Lines are told apart by marks where they are grey.
_MARKS = "os^DvP"


def curves(
    lines: Sequence[tuple[str, Floats]],
    *,
    across: str,
    logarithmic: bool,
    ax: Axes | None = None,
) -> Axes:
    """Draw lines of a label and places, power, power without noise and shares that are identified.

    Open points stand where less than half of the releases have a standard error.
    """
    ax = axes_or_new(ax, (6.4, 3.8))
    for place, (label, line) in enumerate(lines):
        places, power, plain, identified = line
        colour = SERIES[place % len(SERIES)]
        ax.plot(places, plain, color=colour, linewidth=1.0, linestyle=":", alpha=0.8)
        mark = _MARKS[place % len(_MARKS)]
        (drawn,) = ax.plot(places, power, color=colour, linewidth=1.5, label=label)
        drawn.set(marker=mark, markevery=[], markersize=4.5)  # shown in the legend alone
        seldom = identified < 0.5
        for own, face in ((~seldom, colour), (seldom, "white")):
            ax.plot(
                places[own],
                power[own],
                linestyle="none",
                marker=mark,
                markersize=4.5,
                color=colour,
                markerfacecolor=face,
            )
    ax.plot([], [], color=GREY, linewidth=1.0, linestyle=":", label="without noise")
    if logarithmic:
        ax.set_xscale("log")
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel(across)
    ax.set_ylabel("power")
    ax.legend(frameon=False, fontsize=8)
    told = listed([label for label, _ in lines], (number(line[1][-1]) for _, line in lines))
    return finished(ax, alt=f"Power by {across}. At the last of them: {told}")
