"""Coefficients with two intervals each, of one model or of several beside each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
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

# A choice: intervals longer than this multiple of the median leave the picture.
FAR: Final = 10.0
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
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw points with noise intervals (wide) and confidence intervals (thin), first at the top.

    With `ratio`, exponentials on a logarithmic axis. A line marks the value `at`; `lost` is the
    label of unidentified coefficients, `across` that of the axis of names.
    """
    for model in models:
        if (
            not model.values.shape
            == (len(labels),)
            == model.noise.shape[:1]
            == model.confidence.shape[:1]
        ):
            raise ArgumentError(f"{model.values.shape} coefficients for {len(labels)} labels")
    is_single = len(models) == 1
    row_inches = 0.3 if is_single else 0.12 + 0.17 * len(models)
    rows = _rows(labels, grouped=1.3 + row_inches * 2 * len(labels) <= _TALLEST)
    wider = _INCHES * max(max(map(len, rows.names)) - _USUAL_TERM, 0)
    ax = axes_or_new(ax, (6.0 + wider, min(1.3 + row_inches * len(rows.names), _TALLEST)))
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
    legend_above(ax, _keys(models, level))
    return finished(ax, stamp, caption, _alt(models, labels, title, ratio, lost))


class _Rows(NamedTuple):
    """Names of all rows, first at the top, and in which of them the terms stand."""

    names: tuple[str, ...]
    positions: Floats


def _rows(labels: Sequence[str], *, grouped: bool) -> _Rows:
    """Write the levels of a variable, where two or more follow each other, under its name."""
    levels = [_LEVEL.fullmatch(label) for label in labels]
    names: list[str] = []
    positions: list[int] = []
    full_names = short_names(labels, _LONGEST_TERM)
    for variable, terms in groupby(range(len(labels)), lambda i: (m := levels[i]) and m[1]):
        at = list(terms)
        texts = [full_names[i] for i in at]
        if grouped and variable is not None and len(at) > 1:
            names += short_names([variable], _LONGEST_TERM)
            of_variable = [match[2] for i in at if (match := levels[i])]
            texts = list(short_names(of_variable, _LONGEST_TERM))
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
    points = np.concatenate(
        [line, *(model.values[identified] for model, identified in models_and_masks)]
    )
    offsets = np.concatenate(
        [
            np.hstack([model.noise, model.confidence])[identified] - model.values[identified, None]
            for model, identified in models_and_masks
        ]
    )
    offsets[~np.isfinite(offsets)] = 0.0
    longest = np.sort(np.abs(offsets).max(axis=1))
    longest_drawn = FAR * float(longest[len(offsets) // 2]) if len(offsets) else 0.0
    longest_drawn = (
        max(longest_drawn, float(longest[-1]))
        if len(offsets) and longest[-1] <= 2 * longest_drawn
        else longest_drawn
    )
    endpoints = points[len(line) :, None] + np.clip(offsets, -longest_drawn, longest_drawn)
    coordinates = np.append(points, endpoints)
    low, high = (coordinates.min(), coordinates.max()) if coordinates.size else (0.0, 1.0)
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _model(
    ax: Axes, model: Intervals, positions: Floats, *, number: int | None, ratio: bool
) -> None:
    """Draw one model at its positions, alone or with the colour and mark of its number."""
    identified = _identified(model)
    transform = _ratios if ratio else np.asarray
    colour = BLUE if number is None else SERIES[number % len(SERIES)]
    left, right = ax.get_xlim()
    thin, thick = (1.3, 6.0) if number is None else (1.0, 4.0)
    line = INK if number is None else colour
    for interval, linewidth, shade in (
        (model.confidence, thin, line),
        (model.noise, thick, colour),
    ):
        closed = identified & np.isfinite(interval).all(axis=1)
        low, up = np.clip(transform(interval[closed]), left, right).T
        segments = ax.hlines(positions[closed], low, up, color=shade, linewidth=linewidth)
        segments.set(
            alpha=1.0 if linewidth == thin else 0.45, zorder=2.1 if linewidth == thin else 2.0
        )
        if linewidth == thin:
            _ends(ax, (low, up), positions[closed], shade)
    if not identified.any():
        return
    mark = "|" if number is None else _MARKS[number % len(_MARKS)]
    size, edge = (11, 1.8) if number is None else (5, 0.8)
    ax.plot(
        transform(model.values[identified]),
        positions[identified],
        mark,
        color=INK if number is None else colour,
        markersize=size,
        markeredgewidth=edge,
        markeredgecolor=INK if number is None else "white",
        zorder=4,
    )


def _label_unidentified(
    ax: Axes, model: Intervals, positions: Floats, lost: str, *, is_single: bool
) -> None:
    """Label unidentified coefficients; of several models not the terms that one lacks."""
    for position in positions[~_identified(model) & (is_single | ~np.isnan(model.values))]:
        middle = (0.5, position)
        annotation = ax.annotate(lost, middle, xycoords=("axes fraction", "data"), ha="center")
        annotation.set(
            color=MUTED, fontsize=FONT - 2 * (not is_single), fontstyle="italic", va="center"
        )
        annotation.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
        annotation.set_zorder(1.5)


def _ends(ax: Axes, endpoints: tuple[Floats, Floats], positions: Floats, colour: str) -> None:
    """Draw the caps of intervals, or arrows if they leave the picture."""
    for coordinates, limit, arrow in zip(endpoints, ax.get_xlim(), "<>", strict=True):
        outside = coordinates == limit
        for mask, mark in ((~outside, "|"), (outside, arrow)):
            if mask.any():
                marks = ax.plot(
                    coordinates[mask], positions[mask], mark, color=colour, markersize=5
                )
                marks[0].set(clip_on=False, zorder=2)


def _ratio_ticks(ax: Axes, width: float) -> None:
    """Label powers of ten and simple numbers between them; equal steps on a short axis."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullLocator

    long = width > np.log(8)
    subs = (1.0, 2.0, 5.0) if width < np.log(1e3) else (1.0,)
    ax.xaxis.set_major_locator(LogLocator(subs=subs) if long else MaxNLocator(6))
    ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    ax.xaxis.set_minor_locator(NullLocator())


def _keys(models: Sequence[Intervals], level: float) -> list[Artist]:
    """Return the entries of the legend."""
    from matplotlib.lines import Line2D

    is_single = len(models) == 1
    colour = BLUE if is_single else MUTED
    marks = [
        Line2D([], [], color=colour, linewidth=6, alpha=0.45, label=f"{level:.0%} noise"),
    ]
    if not _only_noise(models):
        label = f"{level:.0%} noise and sampling"
        marks.append(Line2D([], [], color=INK, linewidth=1.3, label=label))
    if is_single:
        stroke = Line2D([], [], color=INK, marker="|", linestyle="", label="estimate")
        stroke.set(markersize=11, markeredgewidth=1.8)
        return [stroke, *marks]
    names = short_names([model.name for model in models], _LONGEST)
    for index, name in enumerate(names):
        mark = Line2D([], [], marker=_MARKS[index % len(_MARKS)], linestyle="", label=name)
        mark.set(color=SERIES[index % len(SERIES)], markersize=5)
        marks.insert(index, mark)
    return [*marks]


def _only_noise(models: Sequence[Intervals]) -> bool:
    """Whether there are only noise intervals."""
    return all(np.isnan(model.confidence).all() for model in models)


def _alt(
    models: Sequence[Intervals], labels: Sequence[str], title: str, ratio: bool, lost: str
) -> str:
    """Describe the picture: estimates and confidence intervals."""
    transform = _ratios if ratio else np.asarray
    parts, kind = [], "noise" if _only_noise(models) else "confidence"
    for model in models:
        identified, present = _identified(model), ~np.isnan(model.values) | (len(models) == 1)
        intervals = model.noise if kind == "noise" else model.confidence
        texts = [
            between(*transform(np.array([value, *interval]))) if is_identified else lost
            for value, interval, is_identified in zip(
                model.values, intervals, identified, strict=True
            )
        ]
        names = [name for name, is_present in zip(labels, present, strict=True) if is_present]
        shown_texts = [text for text, is_present in zip(texts, present, strict=True) if is_present]
        parts.append(f"{model.name}: {listed(names, shown_texts)}".removeprefix(": "))
    return f"{title}. Estimates and {kind} intervals: " + ". ".join(parts)
