"""What a budget was spent on, one release after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpmodels.plots.heat import row_names
from dpmodels.plots.names import short_names
from dpmodels.plots.style import (
    BLUE,
    GREY,
    INK,
    VERMILION,
    axes_or_new,
    finished,
    legend_above,
)
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How charges of each kind look; hatched ones are told apart in grey.
LOOKS: Final[Mapping[str, dict[str, Any]]] = {
    "released": {"facecolor": BLUE, "edgecolor": "white"},
    "planned": {"facecolor": BLUE, "edgecolor": "white"},
    "charged": {"facecolor": GREY, "edgecolor": "white", "hatch": "////"},
    "void": {"facecolor": "white", "edgecolor": GREY},
    "does not fit": {"facecolor": VERMILION, "edgecolor": "white", "hatch": "xxxx"},
}
_TALLEST: Final = 12.0  # inches


def spending(
    ends: Floats,
    states: Sequence[str],
    whole: float,
    *,
    labels: Sequence[str],
    unit: str,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw what was spent before and after each charge, shape (charges, 2), against the whole."""
    ax = axes_or_new(ax, (6.4, min(1.4 + 0.28 * len(labels), _TALLEST)))
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    places = np.arange(len(labels), dtype=np.float64)
    keys: list[Line2D | Patch] = []
    for state, look in LOOKS.items():
        own = np.array([one == state for one in states], dtype=bool)
        if own.any():
            low, high = ends[own].T
            ax.barh(places[own], high - low, left=low, height=0.66, linewidth=0.6, **look)
            keys.append(Patch(label=state, **look))
    ax.axvline(whole, color=INK, linewidth=1.4, linestyle=(0, (4, 2)))
    keys.append(Line2D([], [], color=INK, linewidth=1.4, linestyle=(0, (4, 2)), label="budget"))
    ax.set_xlim(0.0, 1.04 * max(whole, float(ends.max(initial=0.0))))
    ax.set_ylim(max(len(labels), 1) - 0.4, -0.6)
    row_names(ax, short_names(labels, most=28)) if labels else ax.set_yticks([])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"{unit} spent, all together", parse_math=False)
    legend_above(ax, keys)
    told = [f"{state}, {number(end)}" for state, end in zip(states, ends[:, 1], strict=True)]
    alt = f"Bars, {unit} spent after each of {len(labels)} charges, of {number(whole)}"
    return finished(ax, stamp, caption, ": ".join(filter(None, (alt, listed(labels, told)))))
