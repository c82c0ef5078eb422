"""One quiet look for every picture: colours, axes, stamp."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from dpmodels.errors import NotAvailable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patheffects import AbstractPathEffect

# Blue, vermilion and greys: told apart with every common colour blindness
# (Okabe and Ito 2008, Color Universal Design).
INK = "#333333"
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREY = "#8A8A8A"
PALE = "#E4E4E4"
FONT = 9.0  # points


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Take the axes given, or make a new pyplot figure of ``size`` inches."""
    try:
        importlib.import_module("matplotlib")
    except ImportError as error:
        raise NotAvailable('pictures need matplotlib: pip install "dpmodels[plot]"') from error
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots(figsize=size, layout="constrained")
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
    """Leave room below the axes for numbers of six digits and for days."""
    from matplotlib.dates import AutoDateLocator
    from matplotlib.ticker import MaxNLocator

    locator = ax.xaxis.get_major_locator()
    if isinstance(locator, MaxNLocator):
        locator.set_params(nbins=5)
    elif isinstance(locator, AutoDateLocator):
        locator.maxticks = dict.fromkeys(locator.maxticks, 6)


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
    width, _ = box_inches(ax)
    ax.text(
        0.5,
        0.5,
        stamp,
        transform=ax.transAxes,
        rotation=18,
        ha="center",
        va="center",
        fontsize=max(8.0, 72 * width / (0.72 * len(stamp))),
        fontweight="bold",
        color=INK,
        alpha=0.6,
        zorder=2.9,
        path_effects=halo(3.0),
        parse_math=False,
    )
    return ax
