"""Points with intervals: scores of divisions of a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpmodels.plots.style import BLUE, FONT, GREY, INK, VERMILION, axes_or_new, finished
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Labels of more divisions than this are written upwards.
MOST_ACROSS = 11


def divisions(
    score: Floats,
    se: Floats,
    *,
    places: Floats,
    labels: Sequence[str],
    best: int,
    near: npt.NDArray[np.bool_],
    across: str,
    up: str,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw mean scores (divisions,) with standard errors; filled where `near`, else hollow."""
    ax = axes_or_new(ax, (6.4, 3.8))
    # Points few enough to be read over the stamp lie above it.
    order = np.argsort(places, kind="stable")
    ax.plot(places[order], score[order], color=GREY, linewidth=1.2, zorder=3)
    ax.errorbar(
        places, score, yerr=se, fmt="none", ecolor=INK, elinewidth=1.2, capsize=2.5, zorder=4
    )
    rest = np.arange(len(score)) != best
    groups = (
        ("best", ~rest, VERMILION, VERMILION),
        ("not told apart from it", near & rest, BLUE, BLUE),
        ("behind it", ~near & rest, "white", BLUE),
    )
    for label, own, face, edge in groups:
        if own.any():
            ax.scatter(
                places[own],
                score[own],
                s=42,
                facecolor=face,
                edgecolor=edge,
                linewidth=1.3,
                zorder=5,
                label=label,
            )
    upward = len(labels) > MOST_ACROSS or max(map(len, labels)) > 6
    ax.set_xticks(places, list(labels), rotation=90 if upward else 0)
    ax.set_xlabel(across, parse_math=False)
    ax.set_ylabel(up, parse_math=False)
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=3,
        frameon=False,
        fontsize=FONT,
        handletextpad=0.2,
        columnspacing=1.2,
        borderaxespad=0.2,
    )
    alt = f"Points with standard errors: {up} by {across}: {listed(labels, map(number, score))}"
    return finished(ax, stamp, caption, f"{alt}. Best: {labels[best]}")
