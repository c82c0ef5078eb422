"""Points with intervals: estimates, ranges, answers, divisions of a budget; maps of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpmodels.plots.coefficients import Intervals, coefficients
from dpmodels.plots.heat import row_names
from dpmodels.plots.style import (
    BLUE,
    FONT,
    GREY,
    INK,
    VERMILION,
    axes_or_new,
    finished,
    listed,
    number,
    short_names,
)
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
    near_best: npt.NDArray[np.bool_],
    across: str,
    up: str,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw mean scores (divisions,) with standard errors; filled where `near_best`."""
    ax = axes_or_new(ax, (6.4, 3.8))
    # Points few enough to be read over the stamp lie above it.
    order = np.argsort(places, kind="stable")
    ax.plot(places[order], score[order], color=GREY, linewidth=1.2, zorder=3)
    ax.errorbar(
        places, score, yerr=se, fmt="none", ecolor=INK, elinewidth=1.2, capsize=2.5, zorder=4
    )
    not_best = np.arange(len(score)) != best
    groups = (
        ("best", ~not_best, VERMILION, VERMILION),
        ("not clearly worse", near_best & not_best, BLUE, BLUE),
        ("worse", ~near_best & not_best, "white", BLUE),
    )
    for label, mask, face, edge in groups:
        if mask.any():
            ax.scatter(
                places[mask],
                score[mask],
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


# An estimated range beside the declared one, with its noisy counts.

# A choice: the margin on each side, as a multiple of the range's length.
MARGIN = 0.6


def ranges(
    ends: Floats,
    counts: Floats,
    noise: float,
    estimated: tuple[float, float],
    declared: tuple[float, float],
    label: str,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw noisy counts of cells near an estimated range; below `noise` they may be only noise."""
    ax = axes_or_new(ax, (6.4, 3.6))
    margin = MARGIN * (estimated[1] - estimated[0])
    low, high = max(estimated[0] - margin, declared[0]), min(estimated[1] + margin, declared[1])
    in_view = (ends[1:] > low) & (ends[:-1] < high)
    starts, stops = np.maximum(ends[:-1], low)[in_view], np.minimum(ends[1:], high)[in_view]
    shown_counts = counts[in_view]
    colours = np.where(shown_counts > noise, BLUE, GREY)
    ax.bar(
        starts,
        shown_counts,
        stops - starts,
        align="edge",
        color=colours.tolist(),
        edgecolor="white",
        linewidth=0.4,
    )
    ax.axhspan(-noise, noise, color=GREY, alpha=0.2, linewidth=0, zorder=0)
    for end in estimated:
        ax.axvline(end, color=VERMILION, linewidth=1.6)
    padding = 0.02 * (high - low)
    ax.set_xlim(low - padding, high + padding)
    ax.set_xlabel(label, parse_math=False)
    ax.set_ylabel("rows in each cell, noisy")
    texts = [f"{interval[0]:,.10g} to {interval[1]:,.10g}" for interval in (estimated, declared)]
    ax.set_title(f"found {texts[0]}; declared {texts[1]}", fontsize="medium", loc="left")
    alt = f"Noisy counts of {label} by cell, and two ranges: found {texts[0]}; declared {texts[1]}"
    return finished(ax, stamp, caption, alt)


# A two-dimensional histogram in colours; cells that may be only noise are blank.

_MAP = "viridis_r"  # few rows pale, many dark
_SIDE = 6.2  # inches


def plane(
    ends: Sequence[Floats],
    density: Floats,
    names: Sequence[str],
    *,
    counted: str,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw counts of cells with edges `ends`, the first variable along the horizontal axis.

    `density` has the shape (first, second), nan for blank cells. The colour scale is logarithmic.
    """
    ax = axes_or_new(ax, (_SIDE + 0.8, _SIDE))
    from matplotlib import colors

    released = density[~np.isnan(density)]
    lowest, highest = (
        (float(released.min()), float(released.max())) if released.size else (1.0, 1.0)
    )
    norm = colors.LogNorm(lowest, max(highest, 1.01 * lowest))
    mesh = ax.pcolormesh(ends[0], ends[1], density.T, cmap=_MAP, norm=norm, rasterized=True)
    bar = ax.figure.colorbar(mesh, ax=ax, shrink=0.6, aspect=24)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=FONT, labelcolor=INK, length=0)
    bar.set_label(f"{counted} by cell", color=INK, fontsize=FONT + 1)
    ax.set_xlabel(names[0], parse_math=False)
    ax.set_ylabel(names[1], parse_math=False)
    ax.set_xlim(ends[0][0], ends[0][-1])
    ax.set_ylim(ends[1][0], ends[1][-1])
    ax.set_title(
        "blank: indistinguishable from noise",
        fontsize=FONT,
        color=INK,
        loc="left",
        parse_math=False,
    )
    alt = f"Map of {counted} by {names[0]} and {names[1]}, {released.size:,} cells not blank"
    if released.size:
        alt += f", {number(released.min())} to {number(released.max())} {counted} by cell"
    return finished(ax, stamp, caption, alt)


# The eps of an answer, by the probability that it is a lie.

# The largest eps that is drawn, unless a device has more.
HIGHEST = 5.0


def response(lie: float, eps: float, levels: int, how: str, *, ax: Axes | None = None) -> Axes:
    """Draw the smallest eps for each probability of a lie, and one device.

    With `levels` answers the truth is identified if lies are rarer than ``(levels - 1)/levels``.
    """
    ax = axes_or_new(ax, (5.6, 3.6))
    top = max(HIGHEST, 1.2 * eps)
    end = 1 - 1 / levels
    lies = np.linspace(end / 500, end, 500)
    ax.plot(lies, np.log((1 - lies) * (levels - 1) / lies), color=BLUE, linewidth=1.6)
    ax.plot([lie, lie, 0], [0, eps, eps], color=GREY, linewidth=0.8, linestyle="--")
    ax.plot([lie], [eps], marker="o", color=VERMILION)
    ax.annotate(
        f"{how}: lie {lie:.3g}, eps {eps:.3g}",
        (lie, eps),
        xytext=(6, 6),
        textcoords="offset points",
        color=INK,
        fontsize="small",
        parse_math=False,
    )
    ax.set_xlim(0, end)
    ax.set_ylim(0, top)
    ax.set_xlabel("probability that an answer is a lie")
    ax.set_ylabel("eps of an answer")
    alt = f"Line, eps of an answer by the probability that it is a lie; {how}: {lie:.3g}, {eps:.3g}"
    return finished(ax, alt=alt)


# Estimates with their intervals: the default picture of a result.

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
        model = Intervals("", values, noise, confidence)
        return coefficients(
            [model], labels=labels, title=title, level=level, ax=ax, stamp=stamp, caption=caption
        )
    ax = axes_or_new(ax, (6.0, min(1.3 + 0.3 * len(labels), _TALLEST)))
    ax.axvline(0.0, color=GREY, linewidth=0.9, zorder=0.5)
    positions = np.arange(len(labels))
    ax.scatter(values, positions, s=34, color=BLUE, zorder=3)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    row_names(ax, short_names(labels))
    ax.tick_params(axis="y", length=0)
    title = f"{title}, without intervals"
    ax.set_xlabel(title, parse_math=False)
    return finished(ax, stamp, caption, f"{title}: {listed(labels, map(number, values))}")
