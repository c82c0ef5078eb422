"""Coefficients with two intervals each, of one model or of several beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.plots.heat import row_names
from dpmodels.plots.style import (
    BLUE,
    FONT,
    GREY,
    INK,
    MUTED,
    SERIES,
    axes_or_new,
    between,
    finished,
    legend_above,
    listed,
    short_names,
)
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Intervals so many times as long as half of the others go on outside the picture: a choice.
FAR: Final = 10.0
_TALLEST: Final = 24.0  # inches
_MARKS: Final = "os^DvP"
_LONGEST: Final = 40  # characters of a model's name in the legend


class Intervals(NamedTuple):
    """Coefficients of one model: values (terms,), both intervals (terms, 2).

    nan where the model has no such term; an interval that is not finite says that it is not
    identified.
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
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw points with noise intervals (wide) and confidence intervals (thin), first at the top.

    With `ratio` exponentials of them, on a logarithmic axis about 1. They are held against a line
    `at` a value, if there is one; `lost` is said of those without ends, `across` beside the names.
    """
    for own in models:
        if (
            not own.values.shape
            == (len(labels),)
            == own.noise.shape[:1]
            == own.confidence.shape[:1]
        ):
            raise ArgumentError(f"{own.values.shape} coefficients for {len(labels)} labels")
    one = len(models) == 1
    step = 0.3 if one else 0.12 + 0.17 * len(models)
    ax = axes_or_new(ax, (6.0, min(1.3 + step * len(labels), _TALLEST)))
    left, right = _limits(models, at)
    if ratio:
        ax.set_xscale("log")
        ax.set_xlim(np.exp(left), np.exp(right))
        _ratio_ticks(ax, right - left)
    else:
        ax.set_xlim(left, right)
    if at is not None:
        ax.axvline(np.exp(at) if ratio else at, color=GREY, linewidth=0.9, zorder=0.5)
    width = 0.8 / len(models)
    for number, own in enumerate(models):
        places: Floats = (
            np.arange(len(labels), dtype=np.float64) + (number - (len(models) - 1) / 2) * width
        )
        _model(ax, own, places, number=None if one else number, ratio=ratio)
        _say(ax, own, places, lost, one=one)
    if not any(_known(own).any() for own in models):
        ax.set_xticks([])
    ax.set_ylim(len(labels) - 0.4, -0.6)
    row_names(ax, short_names(labels))
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(title, parse_math=False)
    ax.set_ylabel(across, parse_math=False)
    legend_above(ax, _keys(models, level))
    return finished(ax, stamp, caption, _alt(models, labels, title, ratio, lost))


def _known(own: Intervals) -> np.ndarray:
    return np.isfinite(own.values) & np.isfinite(own.noise).all(axis=1)


def _ratios(logarithms: Floats) -> Floats:
    """Return exponentials, of intervals without end too."""
    return np.asarray(np.exp(np.clip(logarithms, -700, 700)))


def _limits(models: Sequence[Intervals], at: float | None) -> tuple[float, float]:
    """Set ends of the axis: all points, and intervals but those far longer than the others."""
    drawn = [(own, _known(own)) for own in models]
    line = [] if at is None else [at]
    points = np.concatenate([line, *(own.values[known] for own, known in drawn)])
    away = np.concatenate(
        [
            np.hstack([own.noise, own.confidence])[known] - own.values[known, None]
            for own, known in drawn
        ]
    )
    away[~np.isfinite(away)] = 0.0
    longest = np.sort(np.abs(away).max(axis=1))
    far = FAR * float(longest[len(away) // 2]) if len(away) else 0.0
    far = max(far, float(longest[-1])) if len(away) and longest[-1] <= 2 * far else far
    ends = points[len(line) :, None] + np.clip(away, -far, far)
    drawn_at = np.append(points, ends)
    low, high = (drawn_at.min(), drawn_at.max()) if drawn_at.size else (0.0, 1.0)
    space = 0.05 * (high - low) or 1.0
    return float(low - space), float(high + space)


def _model(ax: Axes, own: Intervals, places: Floats, *, number: int | None, ratio: bool) -> None:
    """Draw one model at its places, by itself or with the colour and mark of its number."""
    known = _known(own)
    turned = _ratios if ratio else np.asarray
    colour = BLUE if number is None else SERIES[number % len(SERIES)]
    left, right = ax.get_xlim()
    thin, thick = (1.3, 6.0) if number is None else (1.0, 4.0)
    line = INK if number is None else colour
    for ends, wide, shade in ((own.confidence, thin, line), (own.noise, thick, colour)):
        there = known & np.isfinite(ends).all(axis=1)
        low, up = np.clip(turned(ends[there]), left, right).T
        drawn = ax.hlines(places[there], low, up, color=shade, linewidth=wide)
        drawn.set(alpha=1.0 if wide == thin else 0.45, zorder=2.1 if wide == thin else 2.0)
        if wide == thin:
            _ends(ax, (low, up), places[there], shade)
    if not known.any():
        return
    mark = "|" if number is None else _MARKS[number % len(_MARKS)]
    size, edge = (11, 1.8) if number is None else (5, 0.8)
    ax.plot(
        turned(own.values[known]),
        places[known],
        mark,
        color=INK if number is None else colour,
        markersize=size,
        markeredgewidth=edge,
        markeredgecolor=INK if number is None else "white",
        zorder=4,
    )


def _say(ax: Axes, own: Intervals, places: Floats, lost: str, *, one: bool) -> None:
    """Write of which nothing is told; of a model beside others not of terms that it lacks."""
    for place in places[~_known(own) & (one | ~np.isnan(own.values))]:
        middle = (0.5, place)
        said = ax.annotate(lost, middle, xycoords=("axes fraction", "data"), ha="center")
        said.set(color=MUTED, fontsize=FONT - 2 * (not one), fontstyle="italic", va="center")
        said.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
        said.set_zorder(1.5)


def _ends(ax: Axes, ends: tuple[Floats, Floats], places: Floats, colour: str) -> None:
    """Close intervals by caps, or by an arrow where they go on outside."""
    for own, edge, arrow in zip(ends, ax.get_xlim(), "<>", strict=True):
        outside = own == edge
        for there, mark in ((~outside, "|"), (outside, arrow)):
            if there.any():
                drawn = ax.plot(own[there], places[there], mark, color=colour, markersize=5)
                drawn[0].set(clip_on=False, zorder=2)


def _ratio_ticks(ax: Axes, width: float) -> None:
    """Label powers of ten and simple numbers between them; equal steps on a short axis."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullLocator

    long = width > np.log(8)
    subs = (1.0, 2.0, 5.0) if width < np.log(1e3) else (1.0,)
    ax.xaxis.set_major_locator(LogLocator(subs=subs) if long else MaxNLocator(6))
    ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    ax.xaxis.set_minor_locator(NullLocator())


def _keys(models: Sequence[Intervals], level: float) -> list[Artist]:
    """Return what the legend shows."""
    from matplotlib.lines import Line2D

    one = len(models) == 1
    colour = BLUE if one else MUTED
    marks = [
        Line2D([], [], color=colour, linewidth=6, alpha=0.45, label=f"{level:.0%} noise"),
    ]
    if not _of_noise(models):
        both = f"{level:.0%} noise and sampling"
        marks.append(Line2D([], [], color=INK, linewidth=1.3, label=both))
    if one:
        stroke = Line2D([], [], color=INK, marker="|", linestyle="", label="estimate")
        stroke.set(markersize=11, markeredgewidth=1.8)
        return [stroke, *marks]
    names = short_names([own.name for own in models], _LONGEST)
    for number, name in enumerate(names):
        mark = Line2D([], [], marker=_MARKS[number % len(_MARKS)], linestyle="", label=name)
        mark.set(color=SERIES[number % len(SERIES)], markersize=5)
        marks.insert(number, mark)
    return [*marks]


def _of_noise(models: Sequence[Intervals]) -> bool:
    """Whether there are noise intervals alone."""
    return all(np.isnan(own.confidence).all() for own in models)


def _alt(
    models: Sequence[Intervals], labels: Sequence[str], title: str, ratio: bool, lost: str
) -> str:
    """Say what is drawn, with estimates and confidence intervals."""
    turned = _ratios if ratio else np.asarray
    parts, kind = [], "noise" if _of_noise(models) else "confidence"
    for own in models:
        known, there = _known(own), ~np.isnan(own.values) | (len(models) == 1)
        ends_of = own.noise if kind == "noise" else own.confidence
        told = [
            between(*turned(np.array([value, *ends]))) if good else lost
            for value, ends, good in zip(own.values, ends_of, known, strict=True)
        ]
        names = [name for name, here in zip(labels, there, strict=True) if here]
        kept = [one for one, here in zip(told, there, strict=True) if here]
        parts.append(f"{own.name}: {listed(names, kept)}".removeprefix(": "))
    return f"{title}. Estimates and {kind} intervals: " + ". ".join(parts)
