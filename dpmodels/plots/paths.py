"""Slopes by penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.plots.names import short_names
from dpmodels.plots.style import GREY, INK, MUTED, SERIES, SMALL, axes_or_new, finished
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A choice: lines that are named at their ends, those that reach furthest; others are grey.
NAMED = 12


def paths(
    penalties: Floats,
    slopes: Floats,
    names: Sequence[str],
    labels: tuple[str, str],
    *,
    mark: float = float("nan"),
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw slopes, shape (penalties, names), over penalties, and a line at the penalty `mark`."""
    shown = penalties > 0
    penalties, slopes = penalties[shown], slopes[shown]
    ax = axes_or_new(ax, (6.8, 4.0))
    ax.set_xscale("log")
    far = np.argsort(-np.abs(slopes).max(axis=0, initial=0.0), kind="stable")[:NAMED]
    colours = {int(at): SERIES[i % len(SERIES)] for i, at in enumerate(far)}
    ax.axhline(0, color=GREY, linewidth=0.8)
    for at in range(len(names)):
        style = "-" if at in colours and list(colours).index(at) < len(SERIES) else "--"
        ax.plot(
            penalties, slopes[:, at], color=colours.get(at, GREY), linewidth=1.3, linestyle=style
        )
    if np.isfinite(mark) and mark > 0:
        ax.axvline(mark, color=INK, linewidth=1.0, linestyle=":")
        ax.annotate(
            "noise",
            (mark, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -9),
            textcoords="offset points",
            fontsize=SMALL,
            color=MUTED,
        )
    ax.invert_xaxis()
    ax.set_xlabel(labels[0], parse_math=False)
    ax.set_ylabel(labels[1], parse_math=False)
    if len(penalties):
        _name(ax, [(names[at], float(slopes[-1, at]), own) for at, own in colours.items()])
    ends = map(number, slopes[-1]) if len(penalties) else ("not drawn" for _ in names)
    alt = f"Lines, {labels[1]} by penalty; at the least penalty: {listed(names, ends)}"
    if np.isfinite(mark):
        alt += f". Below a penalty of {number(mark)} slopes are not told from noise"
    return finished(ax, stamp, caption, alt)


def _name(ax: Axes, lines: list[tuple[str, float, str]]) -> None:
    """Write names to the right of where lines end, apart from each other."""
    lines = sorted(lines, key=lambda line: line[1])
    low, high = ax.get_ylim()
    gap = 0.05 * (high - low)
    places = [value for _, value, _ in lines]
    for at in range(1, len(places)):
        places[at] = max(places[at], places[at - 1] + gap)
    over = max(places[-1] - high, 0.0)
    for place, (name, (_, _, colour)) in zip(
        places, zip(short_names([line[0] for line in lines]), lines, strict=True), strict=True
    ):
        ax.annotate(
            name,
            (1.0, place - over),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=colour,
            annotation_clip=False,
            parse_math=False,
        )
