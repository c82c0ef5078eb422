"""Three pictures of a study: errors in a cell, errors against signal, truth beside an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError
from dpmodels.plots.style import (
    BLUE,
    FONT,
    GREY,
    INK,
    PALE,
    SERIES,
    VERMILION,
    axes_or_new,
    finished,
    quiet,
)
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = "os^DvP*X<>"
_COLOURS = (*SERIES, INK, GREY)


def three_axes(axes: Sequence[Axes] | None) -> tuple[Axes, ...]:
    """Take three axes, or make a figure of them."""
    if axes is None:
        first = axes_or_new(None, (15.0, 4.4))
        figure = first.figure
        first.remove()
        axes = list(figure.subplots(1, 3))
    if len(axes) != 3:
        raise ArgumentError(f"axes has {len(axes)} entries: give three")
    return tuple(axes)


def errors(
    names: Sequence[str],
    found: Floats,
    title: str,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
) -> Axes:
    """Draw errors of shape (names, repeats), the least mean at the top: runs, means, 95 %."""
    ax = axes_or_new(ax, (6.0, 1.1 + 0.3 * len(names)))
    order = np.argsort(found.mean(axis=1), kind="stable")
    for place, at in enumerate(order):
        own = found[at][found[at] > 0]
        ax.plot(own, np.full(own.size, place), "|", color=PALE, markersize=9, zorder=1)
        if own.size:
            ax.plot(found[at].mean(), place, "o", color=BLUE, markersize=6, zorder=3)
            ax.plot(np.quantile(found[at], 0.95), place, "|", color=INK, markersize=11)
    ax.set_xscale("log")
    ax.set_yticks(range(len(names)), [names[at] for at in order])
    for tick in ax.get_yticklabels():
        tick.set_parse_math(False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlabel("error: mean, 95th percentile, runs")
    ax.set_title(title, fontsize=FONT + 1, color=INK, parse_math=False)
    told = listed([names[at] for at in order], map(number, found[order].mean(axis=1)))
    return finished(ax, stamp, alt=f"Errors of algorithms, {title}. Means: {told}")


def signal(
    lines: pd.DataFrame,
    names: Sequence[str],
    title: str,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
) -> Axes:
    """Draw mean errors against eps times scale, a line an algorithm."""
    ax = axes_or_new(ax, (6.0, 4.0))
    for at, name in enumerate(names):
        own = lines[lines["algorithm"] == name]
        across = (own["eps"] * own["scale"]).to_numpy()
        order = np.argsort(across, kind="stable")
        ax.plot(
            across[order],
            own["mean"].to_numpy()[order],
            color=_COLOURS[at % len(_COLOURS)],
            marker=_MARKS[at % len(_MARKS)],
            markersize=5,
            linewidth=1.2,
            label=name,
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("eps x scale")
    ax.set_ylabel("mean error")
    ax.set_title(title, fontsize=FONT + 1, color=INK, parse_math=False)
    _named(ax)
    alt = f"Mean errors against eps times scale, {title}, of {', '.join(names)}"
    return finished(ax, stamp, alt=alt)


def beside(
    truth: Floats,
    answer: Floats,
    name: str,
    title: str,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
) -> Axes:
    """Draw a true table, of one axis as steps, and an answer over it; of two, their difference."""
    ax = axes_or_new(ax, (6.0, 4.0))
    if truth.ndim == 2 and truth.shape == answer.shape:
        most = float(np.abs(answer - truth).max()) or 1.0
        image = ax.imshow((answer - truth).T, origin="lower", cmap="RdBu", vmin=-most, vmax=most)
        ax.figure.colorbar(image, ax=ax, label="released less true")
    else:
        ax.plot(truth.ravel(), color=INK, linewidth=1.4, drawstyle="steps-mid", label="true")
        drawn = answer.ravel()
        ax.plot(drawn, color=VERMILION, linewidth=0.9, drawstyle="steps-mid", label=name, alpha=0.8)
        _named(ax)
        ax.set_xlabel("cell")
        quiet(ax)
    ax.set_title(f"{name}, {title}", fontsize=FONT + 1, color=INK, parse_math=False)
    return finished(ax, stamp, alt=f"True table beside that released by {name}, {title}")


def _named(ax: Axes) -> None:
    for text in ax.legend(frameon=False, fontsize=FONT - 1).get_texts():
        text.set_parse_math(False)
