"""Points with intervals: coefficients, and scores of divisions of a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpmodels.errors import ArgumentError
from dpmodels.plots.names import short_names
from dpmodels.plots.style import BLUE, FONT, GREY, INK, PALE, VERMILION, axes_or_new, stamp_across
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def coefficients(
    values: npt.ArrayLike,
    noise: npt.ArrayLike,
    confidence: npt.ArrayLike,
    *,
    labels: Sequence[str],
    title: str,
    ax: Axes | None = None,
    stamp: str | None = None,
) -> Axes:
    """Draw points with intervals, the first at the top.

    `values` has the shape (coefficients,), both intervals (coefficients, 2);
    where their ends are infinite the coefficient is said to be not identified.
    """
    points, inner, outer = (
        np.asarray(one, dtype=np.float64) for one in (values, noise, confidence)
    )
    if not points.shape == (len(labels),) == inner.shape[:1] == outer.shape[:1]:
        raise ArgumentError(f"{points.shape} coefficients for {len(labels)} labels")
    drawn = axes_or_new(ax, (6.0, 1.1 + 0.3 * len(labels)))
    places = np.arange(len(labels), dtype=np.float64)
    known = np.isfinite(inner).all(axis=1)
    drawn.axvline(0, color=PALE, linewidth=1.0, zorder=0)
    for ends, width, colour in ((outer, 1.2, INK), (inner, 4.0, BLUE)):
        there = known & np.isfinite(ends).all(axis=1)
        drawn.hlines(places[there], *ends[there].T, color=colour, linewidth=width)
    # A stroke, that does not hide an interval shorter than a dot.
    drawn.plot(points[known], places[known], "|", color=INK, markersize=11, markeredgewidth=1.6)
    for place in places[~known]:
        drawn.text(0, place, "not identified", color=GREY, fontsize=FONT, ha="center", va="center")
    drawn.set_yticks(places, short_names(labels))
    for tick in drawn.get_yticklabels():
        tick.set_parse_math(False)
    drawn.set_ylim(len(labels) - 0.4, -0.6)
    drawn.tick_params(axis="y", length=0)
    drawn.set_xlabel(title, parse_math=False)
    return stamp_across(drawn, stamp)


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
    return stamp_across(ax, stamp)
