"""Scales of noise against how often a chain stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from dpmodels.plots.style import BLUE, GREY, INK, PALE, VERMILION, axes_or_new, finished
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def scales(
    stays: Floats,
    values: Floats,
    levels: Mapping[str, float],
    labels: tuple[str, str],
    *,
    within: tuple[float, float] | None = None,
    mark: tuple[str, float] | None = None,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw a scale against a probability on a logarithmic axis, with named levels beside it.

    `within` is shaded, the class that was assumed; `mark` is the scale that was used.
    """
    ax = axes_or_new(ax, (6.4, 3.8))
    if within is not None:
        low, high = within
        ax.axvspan(low - 0.002, high + 0.002, color=PALE, linewidth=0, zorder=0)
        middle = (low + high) / 2
        told = ax.annotate("class", (middle, 0.02), xycoords=("data", "axes fraction"), ha="center")
        told.set_fontsize(8)
    ax.plot(stays, values, color=BLUE, linewidth=1.6)
    for name, level in levels.items():
        ax.axhline(level, color=GREY, linewidth=1.0, linestyle="--")
        _named(ax, name, level, INK, "right")
    if mark is not None:
        ax.axhline(mark[1], color=VERMILION, linewidth=1.2)
        _named(ax, *mark, VERMILION, "left")
    ax.set_yscale("log")
    ax.margins(x=0.01, y=0.12)
    ax.set_xlabel(labels[0], parse_math=False)
    ax.set_ylabel(labels[1], parse_math=False)
    named = dict([*levels.items(), *([] if mark is None else [mark])])
    alt = f"Line, {labels[1]} by {labels[0]}: {listed(list(named), map(number, named.values()))}"
    return finished(ax, stamp, caption, alt)


def _named(ax: Axes, name: str, level: float, color: str, side: Literal["left", "right"]) -> None:
    """Write a name above a level, at one side."""
    at = (0.01 if side == "left" else 0.99, level)
    told = ax.annotate(
        name, at, (0, 3), ("axes fraction", "data"), "offset points", color=color, ha=side
    )
    told.set_fontsize(8)
