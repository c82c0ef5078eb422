"""Lines of several things against one number, and where it is now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from dpmodels.plots.names import short_names
from dpmodels.plots.style import FONT, GREY, INK, PALE, SERIES, axes_or_new, finished
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# So many lines are told apart by colour; the others are grey.
_COLOURS: Final = (*SERIES[:2], INK, *SERIES[2:4], SERIES[5])
_MARKS: Final = ("o", "s", "^", "D", "v", "P")


def ratios(
    lines: Mapping[str, Floats], at: float, labels: tuple[str, str], *, ax: Axes | None = None
) -> Axes:
    """Draw lines of points, shape (points, 2), on scales of powers; `at` is marked."""
    ax = axes_or_new(ax, (6.4, 3.8))
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    ax.axvline(at, color=PALE, linewidth=6.0, zorder=0)
    ax.axhline(1.0, color=GREY, linewidth=0.8, zorder=1)
    for each, (name, points) in enumerate(
        zip(short_names(list(lines)), lines.values(), strict=True)
    ):
        known = np.isfinite(points).all(axis=1)
        colour = _COLOURS[each] if each < len(_COLOURS) else GREY
        mark = _MARKS[each % len(_MARKS)]
        ax.plot(
            *points[known].T, color=colour, linewidth=1.3, marker=mark, markersize=4, label=name
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    places = np.unique(np.concatenate([points[:, 0] for points in lines.values()]))
    ax.set_xticks(places, [f"{place:,.6g}" for place in places])
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0)))
    ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
    ax.set_xlabel(labels[0], parse_math=False)
    ax.set_ylabel(labels[1], parse_math=False)
    legend = ax.legend(frameon=False, fontsize=FONT, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for text in legend.get_texts():
        text.set_parse_math(False)
    told = listed(list(lines), (number(points[-1, 1]) for points in lines.values()))
    return finished(ax, alt=f"Lines, {labels[1]} by {labels[0]}. At the last of them: {told}")
