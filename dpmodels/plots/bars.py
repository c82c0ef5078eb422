"""Bars with error bars: panels of quantities, histograms, ranked candidates, ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.plots import style
from dpmodels.typing import Axes, Floats, Picture

# A choice: most bins that are drawn as bars with error bars.
SEPARATE = 60


class Panel(NamedTuple):
    """One quantity of all items compared: `values` and `errors` of shape (items,).

    nan if missing. Values below 0 are not drawn, nor is 0 on a logarithmic axis. `marks`, of the
    same shape, are a second value each.
    """

    title: str
    values: npt.ArrayLike
    errors: npt.ArrayLike
    log: bool = False
    marks: npt.ArrayLike | None = None


def bars(
    panels: Sequence[Panel],
    *,
    labels: Sequence[str],
    pale: Sequence[bool] | None = None,
    axes: Sequence[Axes] | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> tuple[Axes, ...]:
    """Draw panels of horizontal bars side by side, the first item at the top, grey if `pale`."""
    panel_axes = _axes(len(panels), len(labels), axes)
    positions = np.arange(len(labels), dtype=np.float64)
    colours = [style.GREY if grey else style.BLUE for grey in (pale or [False] * len(labels))]
    for ax, panel in zip(panel_axes, panels, strict=True):
        _panel(ax, panel, positions, colours)
        ax.set_yticks(
            positions, style.short_names(labels) if ax is panel_axes[0] else [""] * len(labels)
        )
        style.literal(ax.get_yticklabels())
        values, errors = (np.asarray(x, dtype=np.float64) for x in (panel.values, panel.errors))
        text = style.listed(labels, map(style.between, values, values - errors, values + errors))
        style.finished(ax, f"Bars, {panel.title}: {text}", {"stamp": stamp, "caption": caption})
    return panel_axes


def one_panel(panel: Panel, labels: Sequence[str], **picture: Unpack[Picture]) -> Axes:
    """Draw a panel by itself."""
    ax, stamp, caption = picture.get("ax"), picture.get("stamp"), picture.get("caption")
    axes = None if ax is None else [ax]
    return bars([panel], labels=labels, axes=axes, stamp=stamp, caption=caption)[0]


def _axes(n_panels: int, n_bars: int, axes: Sequence[Axes] | None) -> tuple[Axes, ...]:
    if axes is None:
        first = style.axes_or_new(None, (4.2 * n_panels, 1.1 + 0.28 * n_bars))
        figure = first.figure
        first.remove()
        axes = np.atleast_1d(figure.subplots(1, n_panels)).tolist()
    if len(axes) != n_panels:
        raise ArgumentError(
            f"axes has {len(axes)} entries for {n_panels} panels: give one for each panel"
        )
    return tuple(style.axes_or_new(ax, (0, 0)) for ax in axes)


def _panel(ax: Axes, panel: Panel, positions: Floats, colours: list[str]) -> None:
    values = np.asarray(panel.values, dtype=np.float64)
    errors = np.nan_to_num(np.asarray(panel.errors, dtype=np.float64))
    drawable = np.isfinite(values) & (values > 0 if panel.log else values >= 0)
    start = 0.0
    if panel.log:
        ax.set_xscale("log")
        # A third of the smallest value.
        start = float(np.min(values[drawable])) / 3 if drawable.any() else 0.1
    marks = np.asarray([] if panel.marks is None else panel.marks, dtype=np.float64)
    upper_ends = np.concatenate([values[drawable] + errors[drawable], marks[np.isfinite(marks)]])
    largest = float(np.max(upper_ends, initial=0.0))
    end = max(1.05 * largest, 1e-12)
    ax.set_xlim(start, 1.5 * max(largest, 3 * start) if panel.log else end)
    (lines,) = ax.plot(marks, positions[: len(marks)], "|", color=style.VERMILION, zorder=3)
    lines.set(markersize=9, markeredgewidth=2)
    lower = np.minimum(errors, values - start)[drawable]
    values, errors, rows = values[drawable], errors[drawable], positions[drawable]
    ax.barh(rows, values - start, left=start, height=0.62, color=np.array(colours)[drawable])
    style.error_bars(ax, values, rows, xerr=np.vstack([lower, errors]))
    ax.set_ylim(len(positions) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(panel.title, parse_math=False)


def hist(
    breaks: Floats,
    counts: Floats,
    bars: Floats,
    label: str,
    *,
    counted: str = "rows",
    **picture: Unpack[Picture],
) -> Axes:
    """Draw a histogram with intervals `bars`, shape (bins, 2); unequal bins as rows per unit.

    Many bins are drawn as steps with a band.
    """
    ax = style.axes_or_new(picture.get("ax"), (6.0, 3.6))
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    widths = np.diff(breaks)
    equal = np.allclose(widths, widths[0], rtol=1e-6)
    unit = np.ones_like(widths) if equal else widths
    heights = counts / unit
    # A count clipped at 0 may lie outside the interval of the unbiased one.
    interval_lengths = np.maximum(np.vstack([counts - bars[:, 0], bars[:, 1] - counts]), 0.0) / unit
    is_dense = len(counts) > SEPARATE
    if is_dense:
        ends = (heights - interval_lengths[0], heights + interval_lengths[1])
        low, high = (np.append(edges, edges[-1]) for edges in ends)
        ax.fill_between(breaks, low, high, step="post", color=style.GREY, alpha=0.5, linewidth=0)
        ax.stairs(heights, breaks, color=style.BLUE, linewidth=1.2)
    else:
        starts, blue = breaks[:-1], style.BLUE
        ax.bar(starts, heights, widths, align="edge", color=blue, edgecolor="white", linewidth=0.6)
        style.error_bars(ax, breaks[:-1] + widths / 2, heights, yerr=interval_lengths)
    ax.set_ylim(bottom=0)
    mark = Line2D([], [], color=style.INK, marker="|", linestyle="", label="noise interval")
    style.legend_above(
        ax, [Patch(color=style.GREY, alpha=0.5, label="noise band") if is_dense else mark]
    )
    style.few_ticks(ax)
    ax.set_xlabel(label, parse_math=False)
    ax.set_ylabel(counted if equal else f"{counted} per unit")
    mode = int(np.argmax(counts))
    alt = (
        f"Histogram of {label} in {len(counts)} bins from {style.number(breaks[0])} to "
        f"{style.number(breaks[-1])}. Most {counted} from {style.number(breaks[mode])} to "
        f"{style.number(breaks[mode + 1])}: {style.between(counts[mode], *bars[mode])}"
    )
    return style.finished(ax, alt, picture)


# Horizontal bars, the first at the top, with the intervals of their noise.

# Bars that fit a picture: a choice.
MOST_RANKED = 40


def ranked(
    names: Sequence[str],
    values: Floats,
    ends: tuple[Floats, Floats],
    label: str,
    *,
    empty: str,
    lower_limit: float | None = None,
    title: str = "",
    **picture: Unpack[Picture],
) -> Axes:
    """Draw bars for the first 40 names, and a line at `lower_limit`.

    NotAvailable with the message `empty` if there are no names.
    """
    if not len(names):
        raise NotAvailable(f"plot() is not available: {empty}")
    first_bars = slice(MOST_RANKED)
    values, (low, high) = values[first_bars], (endpoint[first_bars] for endpoint in ends)
    positions = np.arange(len(values))
    ax = style.axes_or_new(picture.get("ax"), (6.0, 1.2 + 0.26 * len(values)))
    ax.barh(positions, values, height=0.62, color=style.BLUE)
    style.error_bars(ax, values, positions, xerr=np.maximum([values - low, high - values], 0.0))
    if lower_limit is not None:
        ax.axvline(lower_limit, color=style.GREY, linewidth=1.2, linestyle="--")
    ax.set_yticks(positions, style.short_names(names[first_bars]))
    style.literal(ax.get_yticklabels())
    ax.set_ylim(len(positions) - 0.4, -0.6)
    if (low >= 0).all():
        ax.set_xlim(left=0)
    ax.set_xlabel(label, parse_math=False)
    ax.set_title(title, fontsize="medium", loc="left", parse_math=False)
    text = style.listed(names[first_bars], map(style.between, values, low, high))
    return style.finished(ax, f"Bars, {title or label}: {text}", picture)


# Lines of ratios against one parameter, with its current value.

# Colours of the first lines; the others are grey.
_COLOURS: Final = (*style.SERIES[:2], style.INK, *style.SERIES[2:4], style.SERIES[5])
_MARKS: Final = ("o", "s", "^", "D", "v", "P")


def ratios(
    lines: Mapping[str, Floats], at: float, labels: tuple[str, str], *, ax: Axes | None = None
) -> Axes:
    """Draw lines of points, shape (points, 2), on logarithmic axes; `at` is marked."""
    ax = style.axes_or_new(ax, (6.4, 3.8))
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    ax.axvline(at, color=style.PALE, linewidth=6.0, zorder=0)
    ax.axhline(1.0, color=style.GREY, linewidth=0.8, zorder=1)
    names = style.short_names(list(lines))
    for index, points in enumerate(lines.values()):
        finite = np.isfinite(points).all(axis=1)
        colour = _COLOURS[index] if index < len(_COLOURS) else style.GREY
        (line,) = ax.plot(*points[finite].T, color=colour, linewidth=1.3, label=names[index])
        line.set(marker=_MARKS[index % len(_MARKS)], markersize=4)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticks = np.unique(np.concatenate([points[:, 0] for points in lines.values()]))
    ax.set_xticks(ticks, [f"{tick:,.6g}" for tick in ticks])
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0)))
    ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
    ax.set_xlabel(labels[0], parse_math=False)
    ax.set_ylabel(labels[1], parse_math=False)
    legend = ax.legend(
        frameon=False, fontsize=style.FONT, loc="upper left", bbox_to_anchor=(1.0, 1.0)
    )
    style.literal(legend.get_texts())
    last_values = style.listed(
        list(lines), (style.number(points[-1, 1]) for points in lines.values())
    )
    alt = f"Lines, {labels[1]} by {labels[0]}. At the last of them: {last_values}"
    return style.finished(ax, alt)
