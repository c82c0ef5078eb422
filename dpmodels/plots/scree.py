"""The scree plot: variances of components with their noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpmodels.errors import ArgumentError
from dpmodels.plots.style import (
    BLUE,
    FONT,
    GREY,
    INK,
    PALE,
    axes_or_new,
    between,
    box_inches,
    finished,
    listed,
    number,
    short_names,
    thinned,
)
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (6.4, 3.8)


def scree(
    values: npt.ArrayLike,
    *,
    lower: npt.ArrayLike | None = None,
    upper: npt.ArrayLike | None = None,
    floor: float | None = None,
    labels: Sequence[str],
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw the variance of each component, its noise interval, the noise floor.

    References
    ----------
    Cattell, R. B. (1966). The scree test for the number of factors.
    Multivariate Behavioral Research 1(2), 245-276.
    """
    heights = _vector("values", values, len(labels))
    if (lower is None) != (upper is None):
        raise ArgumentError("one end of the noise intervals is missing: give lower and upper")
    ends = None
    if lower is not None and upper is not None:
        ends = (_vector("lower", lower, len(labels)), _vector("upper", upper, len(labels)))
    ax = axes_or_new(ax, _SIZE)
    d = len(labels)
    small = d > 60
    positions = np.arange(1.0, d + 1)
    below_floor = heights < floor if floor is not None else np.zeros(d, dtype=bool)
    ax.plot(positions, heights, color=GREY, linewidth=0.8, zorder=2)
    if ends is not None:
        _intervals(ax, positions, *ends, width=0.7 if small else 1.6)
    size = 8 if small else 30
    above_floor = ~below_floor
    ax.scatter(
        positions[above_floor],
        heights[above_floor],
        size,
        color=BLUE,
        zorder=4,
        clip_on=False,
        label="over",
    )
    ax.scatter(
        positions[below_floor],
        heights[below_floor],
        size,
        facecolors="white",
        edgecolors=GREY,
        linewidths=0.7 if small else 1.4,
        zorder=4,
        clip_on=False,
        label="under",
    )
    _limits(ax, heights, ends, floor)
    if floor is not None:
        _floor(ax, floor)
    _legend(ax, intervals=ends is not None, under=bool(np.any(below_floor)))
    _names(ax, labels)
    ax.set_ylabel("Variance")
    low, high = ends or (np.full(d, np.nan),) * 2
    text = listed(labels, map(between, heights, low, high))
    floor_text = "" if floor is None else f". Noise floor: {number(floor)}"
    alt = f"Scree plot, variances of {d} components: {text}{floor_text}"
    return finished(ax, stamp, caption, alt)


def _vector(name: str, values: npt.ArrayLike, length: int) -> Floats:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (length,) or length == 0:
        raise ArgumentError(
            f"{name} has shape {vector.shape} for {length} labels: give one number for each "
            "component"
        )
    return vector


def _intervals(
    ax: Axes,
    positions: Floats,
    lower: Floats,
    upper: Floats,
    width: float,
) -> None:
    """Draw intervals over the points and wider than them, so that short ones are visible."""
    finite = np.isfinite(lower) & np.isfinite(upper)
    ax.vlines(
        positions[finite], lower[finite], upper[finite], colors=INK, linewidth=width, zorder=5
    )
    if positions.size <= 60:
        for endpoints in (lower, upper):
            ax.scatter(positions[finite], endpoints[finite], 120, marker="_", color=INK, zorder=5)


def _limits(
    ax: Axes, heights: Floats, ends: tuple[Floats, Floats] | None, floor: float | None
) -> None:
    """From 0, or from the lowest negative value, with space above."""
    tops = [heights, np.array([0.0 if floor is None else floor])]
    tops += [] if ends is None else [ends[1]]
    heights_and_ends = np.concatenate(tops)
    top = float(np.max(heights_and_ends[np.isfinite(heights_and_ends)], initial=0.0))
    bottom = float(np.min(heights[np.isfinite(heights)], initial=0.0))
    if bottom < 0:
        ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
        bottom -= 0.05 * (top - bottom)
    ax.set_ylim(bottom, 1.12 * top if top > bottom else 1.0)
    d = heights.size
    ax.set_xlim(1 - max(0.5, 0.02 * d), d + max(0.5, 0.02 * d))


def _floor(ax: Axes, floor: float) -> None:
    """Shade a band from the bottom to the floor and name it beyond its right end."""
    ax.axhspan(ax.get_ylim()[0], floor, color=PALE, alpha=0.6, linewidth=0, zorder=0)
    ax.axhline(floor, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    ax.annotate(
        "noise floor",
        (1, floor),
        xycoords=("axes fraction", "data"),
        xytext=(4, 0),
        textcoords="offset points",
        ha="left",
        va="center",
        fontsize=FONT,
        color=INK,
    )


def _legend(ax: Axes, *, intervals: bool, under: bool) -> None:
    """Draw the legend above the axes."""
    from matplotlib.lines import Line2D

    marks = []
    if intervals:
        marks.append(Line2D([], [], color=INK, marker="|", linestyle="", label="noise interval"))
    if under:
        hollow = Line2D([], [], color=GREY, marker="o", linestyle="", label="below the noise floor")
        hollow.set_markerfacecolor("white")
        marks.append(hollow)
    if marks:
        ax.legend(
            handles=marks,
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            borderaxespad=0.2,
            ncols=2,
            frameon=False,
            fontsize=FONT,
            labelcolor=INK,
            handletextpad=0.2,
        )


def _names(ax: Axes, labels: Sequence[str]) -> None:
    short = short_names(labels, max_length=12)
    longest = max(map(len, short))
    n_ticks = 72 * box_inches(ax)[0] / (0.55 * FONT * (longest + 1))
    ticks = thinned(len(labels), n_ticks)
    ax.set_xticks([i + 1 for i in ticks], [short[i] for i in ticks], parse_math=False)
