"""Quantiles of groups, a row each: marks on a line, with intervals where they were bought."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpmodels.plots.heat import row_names
from dpmodels.plots.names import short_names
from dpmodels.plots.style import (
    BLUE,
    FONT,
    GREY,
    INK,
    MUTED,
    PALE,
    axes_or_new,
    finished,
    legend_above,
)
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS: Final = ("<", "o", ">", "s", "^", "D", "v", "P")
_TALLEST: Final = 24.0  # inches


def quantiles(
    values: Floats,
    ends: Floats,
    *,
    probs: Sequence[float],
    groups: Sequence[str],
    title: str,
    across: str = "",
    level: float | None = None,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw quantiles of shape (groups, probs), and their intervals (groups, probs, 2)."""
    step = 0.34 if level is None else 0.2 + 0.12 * len(probs)
    ax = axes_or_new(ax, (6.0, min(1.4 + step * len(groups), _TALLEST)))
    from matplotlib.lines import Line2D

    places = np.arange(len(groups), dtype=np.float64)
    known = np.asarray(np.isfinite(values).all(axis=1))
    ax.hlines(places, values.min(axis=1), values.max(axis=1), color=PALE, linewidth=7.0, zorder=1)
    keys: list[Line2D] = []
    for at, prob in enumerate(probs):
        away = 0.0 if level is None else (at - (len(probs) - 1) / 2) * 0.7 / len(probs)
        low, high = ends[known, at].T
        ax.hlines(places[known] + away, low, high, color=INK, linewidth=1.2, zorder=2)
        look: dict[str, Any] = {"marker": _MARKS[at % len(_MARKS)], "color": BLUE, "linestyle": ""}
        look |= {"markeredgecolor": "white", "markersize": 6.5}
        if known.any():
            ax.plot(values[known, at], places[known] + away, **look, zorder=3)
        keys.append(Line2D([], [], label=f"{100 * prob:g}%", **look))
    for place in places[~known]:
        middle = (0.5, place)
        told = ax.annotate("too few rows", middle, xycoords=("axes fraction", "data"), ha="center")
        told.set(color=MUTED, fontsize=FONT, fontstyle="italic", va="center")
    if level is not None:
        label = f"{level:.0%} noise and sampling"
        keys.append(Line2D([], [], color=INK, linewidth=1.2, label=label))
    ax.set_ylim(len(groups) - 0.4, -0.6)
    row_names(ax, short_names(groups))
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", color=GREY, alpha=0.15, linewidth=0.5)
    ax.set_xlabel(title, parse_math=False)
    ax.set_ylabel(across, parse_math=False)
    legend_above(ax, keys)
    own = [
        ", ".join(f"{100 * prob:g}% {number(one)}" for prob, one in zip(probs, row, strict=True))
        if there
        else "too few rows"
        for row, there in zip(values, known.tolist(), strict=True)
    ]
    return finished(ax, stamp, caption, f"Quantiles, {title}: {listed(groups, own)}")
