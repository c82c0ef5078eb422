"""Points with intervals: estimates, coefficients of several models, ranges, maps of rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from dpmodels.plots import style
from dpmodels.plots.heat import row_names
from dpmodels.typing import Axes, Floats, Picture

if TYPE_CHECKING:
    from matplotlib.artist import Artist


# A choice: intervals longer than this multiple of the median leave the picture.
FAR: Final = 10.0
WIDER: Final = 1.5  # Of an axis with whole intervals, compared with that of cut ones
_TALLEST: Final = 24.0  # inches
_MARKS: Final = "os^DvP"
_LONGEST: Final = 40  # characters of a model's name in the legend
# Characters of a term, which shows levels whole, and inches of each one beyond the usual.
_LONGEST_TERM: Final = 80
_USUAL_TERM: Final = 24
_INCHES: Final = 0.08
_LEVEL: Final = re.compile(r"(.+)\[T\.(.+)\]", re.DOTALL)


class Intervals(NamedTuple):
    """Coefficients of one model: values (terms,), both intervals (terms, 2).

    nan if the model lacks the term; an interval that is not finite means not identified.
    """

    name: str
    values: Floats
    noise: Floats
    confidence: Floats


def coefficients(
    models: Sequence[Intervals],
    *,
    labels: Sequence[str],
    title: str,
    level: float = 0.95,
    ratio: bool = False,
    at: float | None = 0.0,
    lost: str = "not identified",
    across: str = "",
    **picture: Unpack[Picture],
) -> Axes:
    """Draw points with noise intervals (wide) and confidence intervals (thin), first at the top.

    With `ratio`, exponentials on a logarithmic axis. A line marks the value `at`; `lost` is the
    label of unidentified coefficients, `across` that of the axis of names.
    """
    is_single = len(models) == 1
    row_inches = 0.3 if is_single else 0.12 + 0.17 * len(models)
    rows = _rows(labels, grouped=1.3 + row_inches * 2 * len(labels) <= _TALLEST)
    width = 6.0 + _INCHES * max(max(map(len, rows.names)) - _USUAL_TERM, 0)
    height = min(1.3 + row_inches * len(rows.names), _TALLEST)
    ax = style.axes_or_new(picture.get("ax"), (width, height))
    left, right = _limits(models, at)
    if ratio:
        ax.set_xscale("log")
        ax.set_xlim(np.exp(left), np.exp(right))
        _ratio_ticks(ax, right - left)
    else:
        ax.set_xlim(left, right)
    if at is not None:
        ax.axvline(np.exp(at) if ratio else at, color=style.GREY, linewidth=0.9, zorder=0.5)
    width = 0.8 / len(models)
    for index, model in enumerate(models):
        positions = rows.positions + (index - (len(models) - 1) / 2) * width
        _model(ax, model, positions, number=None if is_single else index, ratio=ratio)
        _label_unidentified(ax, model, positions, lost, is_single=is_single)
    if not any(_identified(model).any() for model in models):
        ax.set_xticks([])
    ax.set_ylim(len(rows.names) - 0.4, -0.6)
    row_names(ax, rows.names)
    for at in sorted(set(range(len(rows.names))) - set(rows.positions)):
        ax.get_yticklabels()[at].set_fontweight("bold")
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(title, parse_math=False)
    ax.set_ylabel(across, parse_math=False)
    style.legend_above(ax, _keys(models, level))
    return style.finished(ax, _alt(models, labels, title, ratio, lost), picture)


class _Rows(NamedTuple):
    """Names of all rows, first at the top, and in which of them the terms stand."""

    names: tuple[str, ...]
    positions: Floats


def _rows(labels: Sequence[str], *, grouped: bool) -> _Rows:
    """Write the levels of a variable, where two or more follow each other, under its name."""
    levels = [_LEVEL.fullmatch(label) for label in labels]
    names: list[str] = []
    positions: list[int] = []
    full_names = style.short_names(labels, _LONGEST_TERM)
    for variable, terms in groupby(range(len(labels)), lambda i: (m := levels[i]) and m[1]):
        at = list(terms)
        texts = [full_names[i] for i in at]
        if grouped and variable is not None and len(at) > 1:
            names += style.short_names([variable], _LONGEST_TERM)
            of_variable = [match[2] for i in at if (match := levels[i])]
            texts = list(style.short_names(of_variable, _LONGEST_TERM))
        positions += range(len(names), len(names) + len(at))
        names += texts
    return _Rows(tuple(names), np.array(positions, dtype=np.float64))


def _identified(model: Intervals) -> np.ndarray:
    return np.isfinite(model.values) & np.isfinite(model.noise).all(axis=1)


def _ratios(logarithms: Floats) -> Floats:
    """Return exponentials, finite also for infinite intervals."""
    return np.asarray(np.exp(np.clip(logarithms, -700, 700)))


def _limits(models: Sequence[Intervals], at: float | None) -> tuple[float, float]:
    """Return axis limits: all points, and all intervals but extremely long ones."""
    models_and_masks = [(model, _identified(model)) for model in models]
    line = [] if at is None else [at]
    parts, offset_parts = [np.array(line)], []
    for model, identified in models_and_masks:
        ends, values = np.hstack([model.noise, model.confidence]), model.values[identified]
        parts.append(values)
        offset_parts.append(ends[identified] - values[:, None])
    points, offsets = np.concatenate(parts), np.concatenate(offset_parts)
    offsets[~np.isfinite(offsets)] = 0.0
    longest = np.sort(np.abs(offsets).max(axis=1))
    longest_drawn = FAR * float(longest[len(offsets) // 2]) if len(offsets) else 0.0
    if len(offsets) and longest[-1] <= 2 * longest_drawn:
        longest_drawn = max(longest_drawn, float(longest[-1]))
    uncut = points[len(line) :, None] + offsets
    cut = points[len(line) :, None] + np.clip(offsets, -longest_drawn, longest_drawn)
    coordinates = np.append(points, cut)
    if coordinates.size and np.ptp(np.append(points, uncut)) <= WIDER * np.ptp(coordinates):
        coordinates = np.append(points, uncut)
    low, high = (coordinates.min(), coordinates.max()) if coordinates.size else (0.0, 1.0)
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _model(
    ax: Axes, model: Intervals, positions: Floats, *, number: int | None, ratio: bool
) -> None:
    """Draw one model at its positions, alone or with the colour and mark of its number."""
    identified = _identified(model)
    transform = _ratios if ratio else np.asarray
    colour = style.BLUE if number is None else style.SERIES[number % len(style.SERIES)]
    left, right = ax.get_xlim()
    thin, thick = (1.3, 6.0) if number is None else (1.0, 4.0)
    line = style.INK if number is None else colour
    for interval, linewidth, shade, alpha, zorder in (
        (model.confidence, thin, line, 1.0, 2.1),
        (model.noise, thick, colour, 0.45, 2.0),
    ):
        closed = identified & np.isfinite(interval).all(axis=1)
        low, up = np.clip(transform(interval[closed]), left, right).T
        segments = ax.hlines(positions[closed], low, up, color=shade, linewidth=linewidth)
        segments.set(alpha=alpha, zorder=zorder)
        if linewidth == thin:
            _ends(ax, (low, up), positions[closed], shade)
    if not identified.any():
        return
    mark = "|" if number is None else _MARKS[number % len(_MARKS)]
    size, width, edge = (11, 1.8, style.INK) if number is None else (5, 0.8, "white")
    values = transform(model.values[identified])
    (points,) = ax.plot(values, positions[identified], mark, color=line, markersize=size, zorder=4)
    points.set(markeredgewidth=width, markeredgecolor=edge)


def _label_unidentified(
    ax: Axes, model: Intervals, positions: Floats, lost: str, *, is_single: bool
) -> None:
    """Label unidentified coefficients; of several models not the terms that one lacks."""
    for position in positions[~_identified(model) & (is_single | ~np.isnan(model.values))]:
        middle = (0.5, position)
        annotation = ax.annotate(lost, middle, xycoords=("axes fraction", "data"), ha="center")
        size = style.FONT - 2 * (not is_single)
        annotation.set(color=style.MUTED, fontsize=size, fontstyle="italic", va="center")
        annotation.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
        annotation.set_zorder(1.5)


def _ends(ax: Axes, endpoints: tuple[Floats, Floats], positions: Floats, colour: str) -> None:
    """Draw the caps of intervals, or arrows if they leave the picture."""
    for coordinates, limit, arrow in zip(endpoints, ax.get_xlim(), "<>", strict=True):
        outside = coordinates == limit
        for mask, mark in ((~outside, "|"), (outside, arrow)):
            if mask.any():
                (marks,) = ax.plot(coordinates[mask], positions[mask], mark, color=colour)
                marks.set(clip_on=False, zorder=2, markersize=5)


def _ratio_ticks(ax: Axes, width: float) -> None:
    from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullLocator

    long = width > np.log(8)
    subs = (1.0, 2.0, 5.0) if width < np.log(1e3) else (1.0,)
    ax.xaxis.set_major_locator(LogLocator(subs=subs) if long else MaxNLocator(6))
    ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    ax.xaxis.set_minor_locator(NullLocator())


def _keys(models: Sequence[Intervals], level: float) -> list[Artist]:
    from matplotlib.lines import Line2D

    is_single = len(models) == 1
    colour = style.BLUE if is_single else style.MUTED
    marks = [Line2D([], [], color=colour, linewidth=6, alpha=0.45, label=f"{level:.0%} noise")]
    if not _only_noise(models):
        label = f"{level:.0%} noise and sampling"
        marks.append(Line2D([], [], color=style.INK, linewidth=1.3, label=label))
    if is_single:
        stroke = Line2D([], [], color=style.INK, marker="|", linestyle="", label="estimate")
        stroke.set(markersize=11, markeredgewidth=1.8)
        return [stroke, *marks]
    names = style.short_names([model.name for model in models], _LONGEST)
    for index, name in enumerate(names):
        mark = Line2D([], [], marker=_MARKS[index % len(_MARKS)], linestyle="", label=name)
        mark.set(color=style.SERIES[index % len(style.SERIES)], markersize=5)
        marks.insert(index, mark)
    return [*marks]


def _only_noise(models: Sequence[Intervals]) -> bool:
    return all(np.isnan(model.confidence).all() for model in models)


def _alt(
    models: Sequence[Intervals], labels: Sequence[str], title: str, ratio: bool, lost: str
) -> str:
    """Describe the picture: estimates and confidence intervals."""
    transform = _ratios if ratio else np.asarray
    parts, kind = [], "noise" if _only_noise(models) else "confidence"
    for model in models:
        intervals = model.noise if kind == "noise" else model.confidence
        present = np.flatnonzero(~np.isnan(model.values) | (len(models) == 1)).tolist()
        texts = [lost] * len(labels)
        for at in np.flatnonzero(_identified(model)).tolist():
            texts[at] = style.between(*transform(np.array([model.values[at], *intervals[at]])))
        listing = style.listed([labels[at] for at in present], [texts[at] for at in present])
        parts.append(f"{model.name}: {listing}".removeprefix(": "))
    return f"{title}. Estimates and {kind} intervals: " + ". ".join(parts)


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
    **picture: Unpack[Picture],
) -> Axes:
    """Draw mean scores (divisions,) with standard errors; filled where `near_best`."""
    ax = style.axes_or_new(picture.get("ax"), (6.4, 3.8))
    # Points few enough to be read over the stamp lie above it.
    order = np.argsort(places, kind="stable")
    ax.plot(places[order], score[order], color=style.GREY, linewidth=1.2, zorder=3)
    style.error_bars(ax, places, score, yerr=se, zorder=4)
    not_best = np.arange(len(score)) != best
    groups = (
        ("best", ~not_best, style.VERMILION, style.VERMILION),
        ("not clearly worse", near_best & not_best, style.BLUE, style.BLUE),
        ("worse", ~near_best & not_best, "white", style.BLUE),
    )
    for label, mask, face, edge in groups:
        if mask.any():
            points = ax.scatter(places[mask], score[mask], s=42, zorder=5, label=label)
            points.set(facecolor=face, edgecolor=edge, linewidth=1.3)
    upward = len(labels) > MOST_ACROSS or max(map(len, labels)) > 6
    ax.set_xticks(places, list(labels), rotation=90 if upward else 0)
    ax.set_xlabel(across, parse_math=False)
    ax.set_ylabel(up, parse_math=False)
    legend: style.Keywords = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 3}
    legend |= {"handletextpad": 0.2, "columnspacing": 1.2, "borderaxespad": 0.2}
    ax.legend(frameon=False, fontsize=style.FONT, **legend)
    alt = f"{up} by {across}: {style.listed(labels, map(style.number, score))}"
    alt = f"Points with standard errors: {alt}. Best: {labels[best]}"
    return style.finished(ax, alt, picture)


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
    **picture: Unpack[Picture],
) -> Axes:
    """Draw noisy counts of cells near an estimated range; below `noise` they may be only noise."""
    ax = style.axes_or_new(picture.get("ax"), (6.4, 3.6))
    margin = MARGIN * (estimated[1] - estimated[0])
    low, high = max(estimated[0] - margin, declared[0]), min(estimated[1] + margin, declared[1])
    in_view = (ends[1:] > low) & (ends[:-1] < high)
    starts, stops = np.maximum(ends[:-1], low)[in_view], np.minimum(ends[1:], high)[in_view]
    shown_counts = counts[in_view]
    colours = np.where(shown_counts > noise, style.BLUE, style.GREY)
    widths, shades = stops - starts, colours.tolist()
    ax.bar(
        starts, shown_counts, widths, align="edge", color=shades, edgecolor="white", linewidth=0.4
    )
    ax.axhspan(-noise, noise, color=style.GREY, alpha=0.2, linewidth=0, zorder=0)
    for end in estimated:
        ax.axvline(end, color=style.VERMILION, linewidth=1.6)
    padding = 0.02 * (high - low)
    ax.set_xlim(low - padding, high + padding)
    ax.set_xlabel(label, parse_math=False)
    ax.set_ylabel("rows in each cell, noisy")
    texts = [f"{interval[0]:,.10g} to {interval[1]:,.10g}" for interval in (estimated, declared)]
    ax.set_title(f"found {texts[0]}; declared {texts[1]}", fontsize="medium", loc="left")
    alt = f"Noisy counts of {label} by cell, and two ranges: found {texts[0]}; declared {texts[1]}"
    return style.finished(ax, alt, picture)


# A two-dimensional histogram in colours; cells that may be only noise are blank.

_MAP = "viridis_r"  # few rows pale, many dark
_SIDE = 6.2  # inches


def plane(
    ends: Sequence[Floats],
    density: Floats,
    names: Sequence[str],
    *,
    counted: str,
    **picture: Unpack[Picture],
) -> Axes:
    """Draw counts of cells with edges `ends`, the first variable along the horizontal axis.

    `density` has the shape (first, second), nan for blank cells. The colour scale is logarithmic.
    """
    ax = style.axes_or_new(picture.get("ax"), (_SIDE + 0.8, _SIDE))
    from matplotlib import colors

    released, (lowest, highest) = density[~np.isnan(density)], (1.0, 1.0)
    if released.size:
        lowest, highest = float(released.min()), float(released.max())
    norm = colors.LogNorm(lowest, max(highest, 1.01 * lowest))
    mesh = ax.pcolormesh(ends[0], ends[1], density.T, cmap=_MAP, norm=norm, rasterized=True)
    bar = ax.figure.colorbar(mesh, ax=ax, shrink=0.6, aspect=24)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=style.FONT, labelcolor=style.INK, length=0)
    bar.set_label(f"{counted} by cell", color=style.INK, fontsize=style.FONT + 1)
    ax.set_xlabel(names[0], parse_math=False)
    ax.set_ylabel(names[1], parse_math=False)
    ax.set_xlim(ends[0][0], ends[0][-1])
    ax.set_ylim(ends[1][0], ends[1][-1])
    ax.set_title(
        "blank: indistinguishable from noise", fontsize=style.FONT, color=style.INK, loc="left"
    )
    alt = f"Map of {counted} by {names[0]} and {names[1]}, {released.size:,} cells not blank"
    if released.size:
        alt += f", {style.number(lowest)} to {style.number(highest)} {counted} by cell"
    return style.finished(ax, alt, picture)


# The eps of an answer, by the probability that it is a lie.

# The largest eps that is drawn, unless a device has more.
HIGHEST = 5.0


def response(lie: float, eps: float, levels: int, how: str, *, ax: Axes | None = None) -> Axes:
    """Draw the smallest eps for each probability of a lie, and one device.

    With `levels` answers the truth is identified if lies are rarer than ``(levels - 1)/levels``.
    """
    ax = style.axes_or_new(ax, (5.6, 3.6))
    top = max(HIGHEST, 1.2 * eps)
    end = 1 - 1 / levels
    lies = np.linspace(end / 500, end, 500)
    ax.plot(lies, np.log((1 - lies) * (levels - 1) / lies), color=style.BLUE, linewidth=1.6)
    ax.plot([lie, lie, 0], [0, eps, eps], color=style.GREY, linewidth=0.8, linestyle="--")
    ax.plot([lie], [eps], marker="o", color=style.VERMILION)
    text = f"{how}: lie {lie:.3g}, eps {eps:.3g}"
    label = ax.annotate(text, (lie, eps), (6, 6), textcoords="offset points", parse_math=False)
    label.set(color=style.INK, fontsize="small")
    ax.set_xlim(0, end)
    ax.set_ylim(0, top)
    ax.set_xlabel("probability that an answer is a lie")
    ax.set_ylabel("eps of an answer")
    alt = f"Line, eps of an answer by the probability that it is a lie; {how}: {lie:.3g}, {eps:.3g}"
    return style.finished(ax, alt=alt)


# Estimates with their intervals: the default picture of a result.


def estimates(
    values: Floats,
    noise: Floats,
    confidence: Floats,
    *,
    labels: Sequence[str],
    title: str,
    level: float = 0.95,
    **picture: Unpack[Picture],
) -> Axes:
    """Draw values (rows,) with both intervals (rows, 2), first at the top.

    Without noise intervals there are points alone, and the axis says so.
    """
    if not np.isnan(noise).all():
        model = Intervals("", values, noise, confidence)
        return coefficients([model], labels=labels, title=title, level=level, **picture)
    ax = style.axes_or_new(picture.get("ax"), (6.0, min(1.3 + 0.3 * len(labels), _TALLEST)))
    ax.axvline(0.0, color=style.GREY, linewidth=0.9, zorder=0.5)
    positions = np.arange(len(labels))
    ax.scatter(values, positions, s=34, color=style.BLUE, zorder=3)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    row_names(ax, style.short_names(labels))
    ax.tick_params(axis="y", length=0)
    title = f"{title}, without intervals"
    ax.set_xlabel(title, parse_math=False)
    return style.finished(
        ax, f"{title}: {style.listed(labels, map(style.number, values))}", picture
    )
