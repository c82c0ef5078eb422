"""Loadings as a heat map, or as bars for one component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.plots.heat import cells, heads, reach, row_names
from dpmodels.plots.names import labels, ordered, positions, short_names
from dpmodels.plots.style import BLUE, GREY, MUTED, SMALL, VERMILION, axes_or_new, finished
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

# Loadings of a component, and components, that words tell of: a choice.
SAID = 5


def loadings(
    table: xr.DataArray,
    *,
    components: Sequence[int | str] | None = None,
    note: str = "",
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw loadings of components, by position or name: a heat map of several, bars of one.

    Those that are nan stay blank, which `note` explains.
    """
    table = ordered(table)
    known = labels(table, "component")
    chosen = list(range(len(known))) if components is None else positions(known, components)
    numbers = np.asarray(table, dtype=np.float64)[:, chosen]
    variables = short_names(labels(table, "variable"), most=28)
    rows, columns = numbers.shape
    width = 2.8 + min(0.62 * columns, 8.0) if columns > 1 else 5.0
    ax = axes_or_new(ax, (width, max(1.6, min(0.9 + 0.24 * rows, 12.0))))
    largest = reach(numbers)
    if columns == 1:
        _bars(ax, numbers[:, 0], largest, known[chosen[0]])
        ax.set_xlabel("\n".join(filter(None, (ax.get_xlabel(), note))), parse_math=False)
    else:
        cells(ax, numbers, largest, "Loading")
        heads(ax, [known[j] for j in chosen])
        ax.set_xlabel(note, fontsize=SMALL, color=MUTED, parse_math=False)
    row_names(ax, variables)
    return finished(ax, stamp, caption, _told(numbers, labels(table, "variable"), known, chosen))


def _told(
    numbers: Floats, variables: Sequence[str], known: Sequence[str], chosen: Sequence[int]
) -> str:
    """Say the largest loadings of each component."""
    parts = []
    for column, place in zip(numbers.T, chosen, strict=True):
        order = np.argsort(-np.nan_to_num(np.abs(column)), kind="stable")[:SAID]
        there = [i for i in order if np.isfinite(column[i])]
        own = listed([variables[i] for i in there], (number(column[i]) for i in there))
        parts.append(f"{known[place]}: {own or 'none'}")
    return f"Loadings of {len(variables)} variables. Largest on {'. '.join(parts[:SAID])}"


def _bars(ax: Axes, values: Floats, largest: float, head: str) -> None:
    colours = np.where(values < 0, VERMILION, BLUE).tolist()
    ax.barh(np.arange(values.size), values, color=colours, height=0.6)
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.spines["left"].set_visible(False)
    ax.set_xlim(-1.08 * largest, 1.08 * largest)
    ax.set_ylim(values.size - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"Loading on {head}", parse_math=False)
