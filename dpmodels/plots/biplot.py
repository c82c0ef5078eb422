"""Principal components as a biplot and a scree plot, and a graph of names on a circle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np
import numpy.typing as npt

from dpmodels.errors import ArgumentError
from dpmodels.plots.style import (
    BLUE,
    FONT,
    GREY,
    INK,
    MUTED,
    PALE,
    Keywords,
    axes_or_new,
    between,
    box_inches,
    finished,
    halo,
    labels,
    listed,
    number,
    positions,
    short_names,
    thinned,
)
from dpmodels.typing import Axes, DataArray, Floats, Picture

if TYPE_CHECKING:
    from matplotlib.transforms import Bbox


_Tips = Floats  # (variables, 2)
_Tip = Floats  # (2,)
_WIDTH = 5.6  # inches
_OFFSETS = (4.0, 11.0, 18.0)  # points between the tip of an arrow and its name
_ALONG = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0)  # parts of an arrow to keep clear of
_TURNS = (0.0, 0.4, -0.4, 0.8, -0.8, 1.2, -1.2, 1.6, -1.6)  # radians off the arrow's direction


def biplot(
    table: DataArray,
    sdev: Floats,
    *,
    components: tuple[int | str, int | str] = (0, 1),
    marked: Collection[int | str] = (),
    spread: npt.ArrayLike | None = None,
    note: str = "",
    **picture: Unpack[Picture],
) -> Axes:
    """Draw each variable as an arrow, loading times standard deviation.

    About its tip an ellipse whose half axes are the roots of the eigenvalues of `spread`,
    shape (variables, 2, 2), if that is given.

    References
    ----------
    Gabriel, K. R. (1971). The biplot graphic display of matrices with
    application to principal component analysis. Biometrika 58(3), 453-467.
    """
    heads = labels(table, "component")
    chosen = positions(heads, components)
    if len(set(chosen)) != 2:
        raise ArgumentError("a biplot shows two different components: write components=(0, 1)")
    below_floor = positions(heads, tuple(marked))
    tips = np.asarray(table, dtype=np.float64)[:, chosen] * sdev[chosen]
    finite = np.flatnonzero(np.isfinite(tips).all(axis=1))
    tips = tips[finite]
    variables = short_names(labels(table, "variable"))
    spreads = np.zeros((len(tips), 2, 2))
    if spread is not None:
        spreads = np.asarray(spread, dtype=np.float64)[finite]
    limits = _limits(tips, np.sqrt(spreads[:, [0, 1], [0, 1]]))
    width, height = np.diff(limits, axis=1)[:, 0]
    ax = axes_or_new(picture.get("ax"), (_WIDTH, 1.2 + (_WIDTH - 0.8) * height / width))
    ax.set(xlim=limits[0], ylim=limits[1])
    for axis, j in ((ax.xaxis, chosen[0]), (ax.yaxis, chosen[1])):
        floor = " (below the noise floor)" if j in below_floor else ""
        axis.set_label_text(heads[j] + floor, parse_math=False)
    ax.set_aspect("equal", adjustable="box")
    ax.axhline(0, color=PALE, linewidth=0.8, zorder=0)
    ax.axvline(0, color=PALE, linewidth=0.8, zorder=0)
    _ellipses(ax, tips, spreads)
    look = {"arrowstyle": "-|>", "color": BLUE, "linewidth": 1.0, "mutation_scale": 8}
    for x, y in tips:
        ax.annotate("", (x, y), (0, 0), arrowprops={**look, "shrinkA": 0, "shrinkB": 0})
    names = [variables[i] for i in finite]
    left_out = _label(ax, tips, names)
    if left_out:
        omission = f"{left_out} of {len(names)} names left out where they would overlap"
        note = f"{omission}\n{note}" if note else omission
    ax.set_title(note, fontsize=FONT - 1, color=MUTED, loc="left")
    points = [f"({number(x)}, {number(y)})" for x, y in tips]
    alt = f"Biplot of {heads[chosen[0]]} and {heads[chosen[1]]}. Arrows: {listed(names, points)}"
    return finished(ax, alt, picture)


def _limits(tips: _Tips, radii: _Tips) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return both axis limits: origin, arrows, names; neither axis under half the other."""
    low = (tips - radii).min(axis=0, initial=0.0)
    high = (tips + radii).max(axis=0, initial=0.0)
    span = float(np.max(high - low)) or 1.0
    pad = 0.2 * span + np.maximum(0.25 * span - (high - low) / 2, 0.0)
    (left, bottom), (right, top) = low - pad, high + pad
    return (float(left), float(right)), (float(bottom), float(top))


def _ellipses(ax: Axes, tips: _Tips, spreads: Floats) -> None:
    from matplotlib.patches import Ellipse

    for tip, spread in zip(tips, spreads, strict=True):
        if spread.any():
            values, vectors = np.linalg.eigh(spread)
            short, long = 2 * np.sqrt(np.maximum(values, 0.0))
            angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
            ellipse = Ellipse((float(tip[0]), float(tip[1])), long, short, angle=angle, zorder=1)
            ellipse.set(facecolor=BLUE, alpha=0.18, edgecolor=INK, linewidth=0.5)
            ax.add_patch(ellipse)


def _label(ax: Axes, tips: _Tips, names: Sequence[str]) -> int:
    """Put each name near its tip without overlap; return how many names are left out."""
    ax.figure.canvas.draw()  # the layout must be fixed before texts are measured
    heads = [_boxes(ax, tip, [1.0]) for tip in tips]
    shafts = [_boxes(ax, tip, _ALONG) for tip in tips]
    name_boxes: list[Bbox] = []
    left_out = 0
    for i in np.argsort(-np.hypot(*tips.T), kind="stable"):
        forbidden = name_boxes + [box for k, boxes in enumerate(heads) if k != i for box in boxes]
        crossed = [box for k, boxes in enumerate(shafts) if k != i for box in boxes]
        box = _write(ax, tips[i], names[i], (forbidden + crossed, forbidden))
        if box is None:
            left_out += 1
        else:
            name_boxes.append(box)
    return left_out


def _write(ax: Axes, tip: _Tip, name: str, obstacle_lists: Iterable[Sequence[Bbox]]) -> Bbox | None:
    """Write a name at the first free position; return its box, or None.

    ``obstacle_lists`` are the boxes to avoid, the strictest list first.
    """
    frame = ax.get_window_extent()
    anchor = (float(tip[0]), float(tip[1]))
    text = ax.annotate(name, anchor, (0.0, 0.0), textcoords="offset points", parse_math=False)
    text.set(fontsize=FONT, color=INK, path_effects=halo(2.0))
    along = float(np.arctan2(tip[1], tip[0]))
    polar = [(distance, along + turn) for distance in _OFFSETS for turn in _TURNS]
    for obstacles in obstacle_lists:
        for x, y in (
            (distance * np.cos(turn), distance * np.sin(turn)) for distance, turn in polar
        ):
            text.set_position((x, y))
            text.set_horizontalalignment("left" if x > 1 else "right" if x < -1 else "center")
            text.set_verticalalignment("bottom" if y > 1 else "top" if y < -1 else "center")
            box = text.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1
            inside = inside and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not box.count_overlaps(obstacles):
                return box
    text.remove()
    return None


def _boxes(ax: Axes, tip: _Tip, parts: Sequence[float]) -> list[Bbox]:
    """Small boxes on an arrow at these parts of its length."""
    from matplotlib.transforms import Bbox

    centres = ax.transData.transform(np.outer(parts, tip))
    return [Bbox.from_extents(x - 3, y - 3, x + 3, y + 3) for x, y in centres]


_SIZE = (6.4, 3.8)


def scree(
    heights: Floats,
    *,
    lower: Floats,
    upper: Floats,
    floor: float,
    labels: Sequence[str],
    **picture: Unpack[Picture],
) -> Axes:
    """Draw the variance of each component, its noise interval, the noise floor.

    References
    ----------
    Cattell, R. B. (1966). The scree test for the number of factors.
    Multivariate Behavioral Research 1(2), 245-276.
    """
    ax = axes_or_new(picture.get("ax"), _SIZE)
    d = len(labels)
    small = d > 60
    positions = np.arange(1.0, d + 1)
    below_floor = heights < floor
    ax.plot(positions, heights, color=GREY, linewidth=0.8, zorder=2)
    _intervals(ax, positions, lower, upper, width=0.7 if small else 1.6)
    size = 8 if small else 30
    hollow: Keywords = {"facecolors": "white", "edgecolors": GREY}
    hollow |= {"linewidths": 0.7 if small else 1.4, "label": "under"}
    for mask, look in ((~below_floor, {"color": BLUE, "label": "over"}), (below_floor, hollow)):
        ax.scatter(positions[mask], heights[mask], size, zorder=4, clip_on=False, **look)
    _height_limits(ax, heights, upper, floor)
    _floor(ax, floor)
    _legend(ax, under=bool(np.any(below_floor)))
    _names(ax, labels)
    ax.set_ylabel("Variance")
    text = listed(labels, map(between, heights, lower, upper))
    alt = f"Scree plot, variances of {d} components: {text}. Noise floor: {number(floor)}"
    return finished(ax, alt, picture)


def _intervals(ax: Axes, positions: Floats, lower: Floats, upper: Floats, width: float) -> None:
    """Draw intervals over the points and wider than them, so that short ones are visible."""
    finite = np.isfinite(lower) & np.isfinite(upper)
    ax.vlines(
        positions[finite], lower[finite], upper[finite], colors=INK, linewidth=width, zorder=5
    )
    if positions.size <= 60:
        for endpoints in (lower, upper):
            ax.scatter(positions[finite], endpoints[finite], 120, marker="_", color=INK, zorder=5)


def _height_limits(ax: Axes, heights: Floats, upper: Floats, floor: float) -> None:
    """From 0, or from the lowest negative value, with space above."""
    tops = np.concatenate([heights, upper, [floor]])
    top = float(np.max(tops[np.isfinite(tops)], initial=0.0))
    bottom = float(np.min(heights[np.isfinite(heights)], initial=0.0))
    if bottom < 0:
        ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
        bottom -= 0.05 * (top - bottom)
    ax.set_ylim(bottom, 1.12 * top if top > bottom else 1.0)
    d = heights.size
    ax.set_xlim(1 - max(0.5, 0.02 * d), d + max(0.5, 0.02 * d))


def _floor(ax: Axes, floor: float) -> None:
    ax.axhspan(ax.get_ylim()[0], floor, color=PALE, alpha=0.6, linewidth=0, zorder=0)
    ax.axhline(floor, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    at = ("axes fraction", "data")
    text = ax.annotate("noise floor", (1, floor), (4, 0), at, "offset points", color=INK)
    text.set(ha="left", va="center", fontsize=FONT)


def _legend(ax: Axes, *, under: bool) -> None:
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], color=INK, marker="|", linestyle="", label="noise interval")]
    if under:
        hollow = Line2D([], [], color=GREY, marker="o", linestyle="", label="below the noise floor")
        hollow.set_markerfacecolor("white")
        marks.append(hollow)
    look: Keywords = {"frameon": False, "fontsize": FONT, "labelcolor": INK, "ncols": 2}
    look |= {"bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2, "handletextpad": 0.2}
    ax.legend(handles=marks, loc="lower right", **look)


def _names(ax: Axes, labels: Sequence[str]) -> None:
    short = short_names(labels, max_length=12)
    room = 72 * box_inches(ax)[0] / (0.55 * FONT * (max(map(len, short)) + 1))
    ticks = thinned(len(labels), room)
    ax.set_xticks([i + 1 for i in ticks], [short[i] for i in ticks], parse_math=False)


# A graph of names on a circle, its edges as wide as they are strong.

# Widths of the weakest and of the strongest edge, in points.
THIN, WIDE = 0.6, 7.0


def graph(
    names: Sequence[str],
    edges: Sequence[tuple[int, int]],
    strengths: Floats,
    **picture: Unpack[Picture],
) -> Axes:
    """Draw names around a circle and edges between them; names without an edge are grey.

    `edges` are pairs of positions in `names`, `strengths` theirs, from 0 to 1.
    """
    ax = axes_or_new(picture.get("ax"), (6.4, 5.6))
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / max(len(names), 1)
    x, y = np.cos(angles), np.sin(angles)
    largest = max(float(strengths.max()), 1e-12) if len(strengths) else 1.0
    for (first, second), strength in zip(edges, strengths, strict=True):
        width = THIN + (WIDE - THIN) * float(strength) / largest
        ends = [first, second]
        (edge,) = ax.plot(x[ends], y[ends], color=BLUE, linewidth=width, alpha=0.55, zorder=2)
        edge.set_solid_capstyle("round")
    joined = {i for pair in edges for i in pair}
    for i, name in enumerate(short_names(names)):
        color = INK if i in joined else GREY
        ax.plot(x[i], y[i], "o", color=color, markersize=6, zorder=4)
        side = "center" if abs(x[i]) < 0.15 else "left" if x[i] > 0 else "right"
        height = "center" if abs(y[i]) < 0.85 else "bottom" if y[i] > 0 else "top"
        text = ax.text(1.08 * x[i], 1.08 * y[i], name, ha=side, va=height, parse_math=False)
        text.set(fontsize=FONT, color=color, zorder=5)
    ax.set_xlim(-1.9, 1.9)
    ax.set_ylim(-1.3, 1.3)
    ax.set_aspect("equal")
    ax.set_axis_off()
    pairs = [f"{names[first]} and {names[second]}" for first, second in edges]
    alt = f"Graph of {len(names)} columns with {len(edges)} edges"
    return finished(ax, f"{alt}: {listed(pairs, map(number, strengths))}", picture)
