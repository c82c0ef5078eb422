"""The style of all pictures: colours, axes, names, stamp, caption, alternative text."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Sequence
from itertools import takewhile
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from dpmodels.errors import ArgumentError, NotAvailable, quoted
from dpmodels.typing import Axes, DataArray, Picture

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.patheffects import AbstractPathEffect
    from matplotlib.text import Text

# Keywords of matplotlib, which checks them.
Keywords = dict[str, Any]


# Blue, vermilion and greys: distinguishable with every common colour blindness
# (Okabe and Ito 2008, Color Universal Design).
INK = "#333333"
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREY = "#8A8A8A"
PALE = "#E4E4E4"
MUTED = "#666666"  # for text: contrast of 5.7 to 1 with white
SERIES = (BLUE, VERMILION, "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
FONT = 9.0  # points
SMALL = 8.0  # points of captions

# Alternative texts by axes.
_DESCRIPTIONS: Final[WeakKeyDictionary[object, str]] = WeakKeyDictionary()


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Take the axes given, or make a new pyplot figure of ``size`` inches."""
    try:
        importlib.import_module("matplotlib")
    except ImportError as error:
        raise NotAvailable('pictures need matplotlib: pip install "dpmodels[plot]"') from error
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots(figsize=size, layout="constrained")
    if not hasattr(ax, "spines"):
        raise ArgumentError(f"ax={quoted(ax)}: expected matplotlib Axes, as from plt.subplots()")
    return quiet(ax)


def quiet(ax: Axes) -> Axes:
    """Thin grey left and bottom spines, small ticks; nothing global changes."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(GREY)
        spine.set_linewidth(0.8)
    ax.tick_params(color=GREY, labelcolor=INK, labelsize=FONT, width=0.8, length=3)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(INK)
        axis.label.set_fontsize(FONT + 1)
    return ax


def few_ticks(ax: Axes) -> None:
    """Limit the ticks so that numbers of six digits and dates fit."""
    from matplotlib.dates import AutoDateLocator
    from matplotlib.ticker import MaxNLocator

    locator = ax.xaxis.get_major_locator()
    if isinstance(locator, MaxNLocator):
        locator.set_params(nbins=5)
    elif isinstance(locator, AutoDateLocator):
        locator.maxticks = dict.fromkeys(locator.maxticks, 6)


def legend_above(ax: Axes, marks: Sequence[Artist]) -> None:
    """Draw a legend above the axes, in as many columns as fit."""
    widths = [0.58 * FONT * len(str(mark.get_label())) + 42 for mark in marks]
    cell = ax.get_subplotspec()
    fraction = len(cell.colspan) / cell.get_gridspec().ncols if cell else 1.0
    available = 72 * fraction * ax.figure.bbox.width / ax.figure.dpi
    columns = len(marks) if sum(widths) < available else max(1, int(available / max(widths)))
    look: Keywords = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2}
    look |= {"frameon": False, "fontsize": FONT, "labelcolor": INK}
    look |= {"handletextpad": 0.5, "columnspacing": 1.2}
    legend = ax.legend(handles=list(marks), ncols=min(len(marks), columns), **look)
    literal(legend.get_texts())


def literal(texts: Iterable[Text]) -> None:
    """Print dollar signs of names as they are."""
    for text in texts:
        text.set_parse_math(False)


def error_bars(
    ax: Axes,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    xerr: npt.ArrayLike | None = None,
    yerr: npt.ArrayLike | None = None,
    zorder: float = 2.0,
) -> None:
    """Draw intervals about points, with caps."""
    look: Keywords = {"fmt": "none", "ecolor": INK, "elinewidth": 1.2, "capsize": 2.5}
    ax.errorbar(x, y, yerr, xerr, zorder=zorder, **look)


def box_inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes."""
    box = ax.get_window_extent()
    dpi = ax.figure.dpi
    return box.width / dpi, box.height / dpi


def halo(points: float) -> list[AbstractPathEffect]:
    """White around letters, so that they read over lines and colours."""
    from matplotlib import patheffects

    return [patheffects.withStroke(linewidth=points, foreground="white")]


def stamp_across(ax: Axes, stamp: str | None) -> Axes:
    """Write a warning across the picture, over its shapes and under its words."""
    if stamp is None:
        return ax
    width, height = box_inches(ax)
    height = max(min(height, ax.figure.bbox.height / ax.figure.dpi - 1.2), 0.3)
    turn = math.degrees(math.asin(min(0.75 * height / width, 0.309)))
    size = min(72 * width / (0.72 * len(stamp)), 54 * height)
    text = ax.text(0.5, 0.5, stamp, transform=ax.transAxes, ha="center", va="center", color=INK)
    text.set(fontsize=max(8.0, size), fontweight="bold", alpha=0.4, rotation=round(turn))
    text.set(zorder=2.9, path_effects=halo(3.0), parse_math=False)
    return ax


def finished(ax: Axes, alt: str = "", picture: Picture | None = None) -> Axes:
    """Stamp a picture, write its caption below it, store its alternative text.

    The last step of every picture. The text has only released or public numbers.
    """
    shown: Picture = picture or {}
    stamp, caption = shown.get("stamp"), shown.get("caption")
    stamp_across(ax, stamp)
    if caption:
        _under(ax.figure, caption)
    _DESCRIPTIONS[ax] = ". ".join(part.strip(" .") for part in (stamp, alt, caption) if part) + "."
    return ax


def alt_text(ax: Axes) -> str:
    """Return the alternative text of a picture, with its main numbers.

    Parameters
    ----------
    ax : matplotlib Axes
        As a ``plot`` method returns them.

    Raises
    ------
    ArgumentError
        If dpmodels did not draw them.
    """
    description = _DESCRIPTIONS.get(ax)
    if description is None:
        raise ArgumentError("alt_text(): expected axes that a plot() of dpmodels returned")
    return description


def _under(figure: Figure | SubFigure, caption: str) -> None:
    """Add a caption under all axes of a figure, once; reserve space if no layout engine does."""
    wrapped = fill(caption, int(72 * figure.bbox.width / figure.dpi / (0.54 * SMALL)))
    existing = figure.get_supxlabel()
    if wrapped in existing:
        return
    text = f"{existing}\n{wrapped}" if existing else wrapped
    figure.supxlabel(text, x=0.01, ha="left", fontsize=SMALL, color=MUTED, parse_math=False)
    if figure.get_layout_engine() is None:
        room = (1.3 * SMALL * (wrapped.count("\n") + 1) + 3) * figure.dpi / 72 / figure.bbox.height
        figure.subplots_adjust(bottom=min(figure.subplotpars.bottom + room, 0.6))


# Numbers in alternative texts.

# A choice: items that are listed one by one.
MOST = 12


def number(value: float) -> str:
    """Print a number in three digits.

    >>> number(0.12345), number(1234567.0), number(float("nan"))
    ('0.123', '1,230,000', 'not reported')
    """
    if np.isnan(value):
        return "not reported"
    rounded = float(f"{float(value):.3g}")
    return f"{rounded:,.0f}" if 100 <= abs(rounded) < 1e15 else f"{rounded:g}"


def between(value: float, low: float, high: float) -> str:
    """Print a number with the ends of its interval, where it has any.

    >>> between(1, 0.5, 1.5), between(1, float("-inf"), 2)
    ('1 (0.5 to 1.5)', '1')
    """
    ends = f" ({number(low)} to {number(high)})" if np.isfinite([low, high]).all() else ""
    return f"{number(value)}{ends}"


def listed(names: Sequence[object], texts: Iterable[str]) -> str:
    """List names with their texts, only the first of many.

    >>> listed(["a", "b"], ["1", "2"])
    'a 1; b 2'
    """
    parts = [f"{name} {text}" for name, text in zip(names, texts, strict=True)]
    omitted = [f"and {len(parts) - MOST} more"] if len(parts) > MOST else []
    return "; ".join(parts[:MOST] + omitted)


# Names on pictures, short and distinct, and the labelled tables that they come from.

_DOTS = "..."
_HEAD = 4  # first characters kept of names that differ in the middle


def short_names(names: Sequence[str], max_length: int = 24) -> tuple[str, ...]:
    """Names with the middle of long ones left out, still all distinct.

    At most `max_length` characters, at least 16. Names that would be equal show where they differ,
    or end with a number.
    """
    full = [" ".join(name.split()) for name in names]
    short = [_without_middle(name, max_length) for name in full]
    for form in {short_name for short_name in short if short.count(short_name) > 1}:
        positions = [i for i, short_name in enumerate(short) if short_name == form]
        distinct = _distinguished([full[i] for i in positions], max_length)
        for i, name in zip(positions, distinct, strict=True):
            short[i] = name
    return tuple(
        f"{short_name[: max_length - 5]} #{short[:i].count(short_name) + 1}"
        if short.count(short_name) > 1
        else short_name
        for i, short_name in enumerate(short)
    )


def thinned(count: int, capacity: float) -> range:
    """Positions of the ticks to label, equally spaced, at most ``capacity`` of them."""
    step = max(1, -(-count // max(1, int(capacity))))
    return range(0, count, step)


def _without_middle(name: str, max_length: int) -> str:
    if len(name) <= max_length:
        return name
    head = (max_length - len(_DOTS) + 1) // 2
    return name[:head] + _DOTS + name[len(name) - (max_length - len(_DOTS) - head) :]


def _distinguished(names: Sequence[str], max_length: int) -> list[str]:
    """Show each name from the first character where they differ."""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    start = len(list(same))
    stop = start + max_length - _HEAD - 2 * len(_DOTS)
    return [name[:_HEAD] + _DOTS + name[start:stop] + _DOTS for name in names]


def labels(table: DataArray, dim: str) -> list[str]:
    """List the labels along a dimension."""
    return [str(value) for value in np.asarray(table.coords[dim])]


def positions(labels: Sequence[str], chosen: Sequence[int | str]) -> list[int]:
    """Positions of components given by position (0 is the first) or by name."""
    indices = []
    for name in chosen:
        index = labels.index(name) if isinstance(name, str) and name in labels else name
        if isinstance(index, str) or not -len(labels) <= index < len(labels):
            raise ArgumentError(
                f"component {name!r} is not in the table: write a position below {len(labels)} "
                f"or one of {', '.join(labels[:6])}{', ...' if len(labels) > 6 else ''}"
            )
        indices.append(int(index) % len(labels))
    return indices
