"""Coloured cells with names beside them: matrices, loadings, quantiles, shares, budgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Unpack

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.plots.style import (
    BLUE,
    FONT,
    GREY,
    INK,
    MOST,
    MUTED,
    PALE,
    SERIES,
    SMALL,
    VERMILION,
    Keywords,
    axes_or_new,
    between,
    box_inches,
    finished,
    labels,
    legend_above,
    listed,
    number,
    positions,
    short_names,
    thinned,
)
from dpmodels.typing import Axes, DataArray, Floats, Picture

if TYPE_CHECKING:
    from matplotlib.image import AxesImage


# A choice: cells below this fraction of the largest value look white.
FAINT = 0.15
MARKED = 4_000  # most cells of which negative ones are marked
WRITTEN = 120  # most cells that show their values
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # of red, green, blue: ITU-R BT.709
_SMALLEST = 5.5  # points of a readable name
_MAP = "RdBu"  # red under 0, blue over it, as the bars


def reach(numbers: Floats) -> float:
    """Return the largest finite absolute value, or 1 if all are 0."""
    return float(np.max(np.abs(numbers[np.isfinite(numbers)]), initial=0.0)) or 1.0


def two_decimals(value: float) -> str:
    """Format a number of absolute value below 1, without -0.00."""
    return f"{round(value, 2) + 0.0:.2f}"


def cells(
    ax: Axes,
    numbers: Floats,
    largest: float,
    label: str = "Correlation",
    written: Callable[[float], str] = two_decimals,
) -> AxesImage:
    """Colour cells, write their values where they are few, else draw a colour bar.

    `numbers` has the shape (rows, columns); colours end at `largest` on both
    sides of 0, and cells that are nan stay empty.
    """
    image = ax.imshow(
        numbers, cmap=_MAP, vmin=-largest, vmax=largest, aspect="auto", interpolation="none"
    )
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    if numbers.size > WRITTEN:
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, aspect=24)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=FONT, labelcolor=INK, length=0)
        bar.set_label(label, color=INK, fontsize=FONT + 1)
        if _marked(ax, numbers, largest):
            bar.ax.set_title("\u2212: below 0", color=MUTED, fontsize=SMALL)
        return image
    shades = image.to_rgba(numbers)[..., :3] @ _LUMINANCE
    for (i, j), value in np.ndenumerate(numbers):
        if np.isfinite(value):
            colour = "white" if shades[i, j] < 0.5 else INK
            ax.text(j, i, written(value), ha="center", va="center", color=colour, fontsize=FONT)
    return image


def _marked(ax: Axes, numbers: Floats, largest: float) -> bool:
    """Mark clearly negative cells by a minus: in greyscale they look like positive ones."""
    if numbers.size > MARKED:
        return False
    inches = np.divide(box_inches(ax), numbers.shape[::-1])
    size = float(np.clip(30 * inches.min(), 2.0, 8.0))
    below = numbers < -FAINT * largest
    is_dark = numbers < -0.5 * largest
    for shade_mask, colour in ((is_dark, "white"), (~is_dark, INK)):
        rows, columns = np.nonzero(shade_mask & below)
        if rows.size:
            ax.plot(columns, rows, "_", color=colour, markersize=size, markeredgewidth=0.9)
    return bool(below.any())


def heads(ax: Axes, names: Sequence[str]) -> None:
    """Write names over the columns, thinned where too many."""
    room = 72 * box_inches(ax)[0] / (0.62 * FONT * (max(map(len, names)) + 1))
    ticks = thinned(len(names), room)
    ax.set_xticks(list(ticks), [names[j] for j in ticks], parse_math=False)


def row_names(ax: Axes, names: Sequence[str]) -> None:
    """Write names at the rows, smaller where many, thinned where too many."""
    ticks, size = _fitting(len(names), 72 * box_inches(ax)[1])
    ax.set_yticks(list(ticks), [names[i] for i in ticks], fontsize=size, parse_math=False)


def _fitting(count: int, length: float) -> tuple[range, float]:
    """Return which lines of text to write along a length in points, and how large."""
    points = length / count
    size = min(FONT, points / 1.15) if points / 1.15 >= _SMALLEST else FONT - 1
    return thinned(count, length / (1.12 * size)), size


_CELL = 0.52  # inches of a cell that holds its value
_SIDE = 6.2  # inches of many cells


def heat(
    table: DataArray,
    *,
    label: str = "Correlation",
    largest: float | None = None,
    **picture: Unpack[Picture],
) -> Axes:
    """Draw a labelled square matrix as coloured cells.

    Colours end at `largest` on both sides of 0, by default at the largest number.
    """
    names = labels(table, str(table.dims[0]))
    numbers = np.asarray(table, dtype=np.float64)
    largest = reach(numbers) if largest is None else largest
    few = numbers.size <= WRITTEN
    side = _CELL * len(names) if few else _SIDE
    short = short_names(names, max_length=28)
    margin = 0.3 + 0.075 * max(map(len, short))
    ax = axes_or_new(picture.get("ax"), (margin + side + (0.1 if few else 1.0), margin + side))
    cells(ax, numbers, largest, label, two_decimals if largest <= 1 else _three_digits)
    row_names(ax, short)
    ticks, size = _fitting(len(short), 72 * box_inches(ax)[0])
    heads_shown = [short[j] for j in ticks]
    ax.set_xticks(list(ticks), heads_shown, rotation=90, fontsize=size, parse_math=False)
    return finished(ax, _matrix_text(numbers, names, label), picture)


def _matrix_text(numbers: Floats, names: Sequence[str], label: str) -> str:
    first, second = np.triu_indices(len(names), 1)
    sizes = np.nan_to_num(np.abs(numbers[first, second]))
    largest = np.argsort(-sizes, kind="stable")[:MOST]
    pairs = [f"{names[first[k]]} and {names[second[k]]}" for k in largest]
    values = [number(numbers[first[k], second[k]]) for k in largest]
    largest_text = f". Largest: {listed(pairs, values)}" if pairs else ""
    return f"{label} matrix of {len(names)} columns{largest_text}"


def _three_digits(value: float) -> str:
    """Print a number of any size in at most eight characters."""
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e5 or value == 0 else f"{value:.1e}"


# Loadings as a heat map, or as bars for one component.

# A choice: loadings of a component, and components, in the description.
MOST_DESCRIBED = 5


def loadings(
    table: DataArray,
    *,
    components: Sequence[int | str] | None = None,
    note: str = "",
    **picture: Unpack[Picture],
) -> Axes:
    """Draw loadings of components, by position or name: a heat map of several, bars of one.

    Those that are nan stay blank, which `note` explains.
    """
    component_names = labels(table, "component")
    chosen = list(range(len(component_names)))
    if components is not None:
        chosen = positions(component_names, components)
    if not chosen:
        raise ArgumentError("components=[]: expected positions or names, such as [0, 1]")
    numbers = np.asarray(table, dtype=np.float64)[:, chosen]
    variables = short_names(labels(table, "variable"), max_length=28)
    rows, columns = numbers.shape
    width = 2.8 + min(0.62 * columns, 8.0) if columns > 1 else 5.0
    ax = axes_or_new(picture.get("ax"), (width, max(1.6, min(0.9 + 0.24 * rows, 12.0))))
    largest = reach(numbers)
    if columns == 1:
        _bars(ax, numbers[:, 0], largest, component_names[chosen[0]])
        ax.set_xlabel("\n".join(filter(None, (ax.get_xlabel(), note))), parse_math=False)
    else:
        cells(ax, numbers, largest, "Loading")
        heads(ax, [component_names[j] for j in chosen])
        ax.set_xlabel(note, fontsize=SMALL, color=MUTED, parse_math=False)
    row_names(ax, variables)
    text = _loadings_text(numbers, labels(table, "variable"), component_names, chosen)
    return finished(ax, text, picture)


def _loadings_text(
    numbers: Floats, variables: Sequence[str], component_names: Sequence[str], chosen: Sequence[int]
) -> str:
    parts = []
    for column, index in zip(numbers.T, chosen, strict=True):
        order = np.argsort(-np.nan_to_num(np.abs(column)), kind="stable")[:MOST_DESCRIBED]
        finite = [i for i in order if np.isfinite(column[i])]
        text = listed([variables[i] for i in finite], (number(column[i]) for i in finite))
        parts.append(f"{component_names[index]}: {text or 'none'}")
    return f"Loadings of {len(variables)} variables. Largest on {'. '.join(parts[:MOST_DESCRIBED])}"


def _bars(ax: Axes, values: Floats, largest: float, head: str) -> None:
    colours = np.where(values < 0, VERMILION, BLUE).tolist()
    ax.barh(np.arange(values.size), values, color=colours, height=0.6)
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.spines["left"].set_visible(False)
    ax.set_xlim(-1.08 * largest, 1.08 * largest)
    ax.set_ylim(values.size - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"Loading on {head}", parse_math=False)


# Quantiles of groups, a row each: marks on a line, with intervals where they were paid for.

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
    **picture: Unpack[Picture],
) -> Axes:
    """Draw quantiles of shape (groups, probs), and their intervals (groups, probs, 2)."""
    step = 0.34 if level is None else 0.2 + 0.12 * len(probs)
    ax = axes_or_new(picture.get("ax"), (6.0, min(1.4 + step * len(groups), _TALLEST)))
    from matplotlib.lines import Line2D

    positions = np.arange(len(groups), dtype=np.float64)
    available = np.asarray(np.isfinite(values).all(axis=1))
    ends_of_lines = values.min(axis=1), values.max(axis=1)
    ax.hlines(positions, *ends_of_lines, color=PALE, linewidth=7.0, zorder=1)
    keys: list[Line2D] = []
    for index, prob in enumerate(probs):
        offset = 0.0 if level is None else (index - (len(probs) - 1) / 2) * 0.7 / len(probs)
        low, high = ends[available, index].T
        ax.hlines(positions[available] + offset, low, high, color=INK, linewidth=1.2, zorder=2)
        look: Keywords = {"marker": _MARKS[index % len(_MARKS)], "color": BLUE, "linestyle": ""}
        look |= {"markeredgecolor": "white", "markersize": 6.5}
        if available.any():
            ax.plot(values[available, index], positions[available] + offset, **look, zorder=3)
        keys.append(Line2D([], [], label=f"{100 * prob:g}%", **look))
    for position in positions[~available]:
        at = ("axes fraction", "data")
        annotation = ax.annotate("too few rows", (0.5, position), xycoords=at, ha="center")
        annotation.set(color=MUTED, fontsize=FONT, fontstyle="italic", va="center")
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
    texts = ["too few rows"] * len(groups)
    for group in np.flatnonzero(available).tolist():
        pairs = zip(probs, values[group], strict=True)
        texts[group] = ", ".join(f"{100 * prob:g}% {number(value)}" for prob, value in pairs)
    return finished(ax, f"Quantiles, {title}: {listed(groups, texts)}", picture)


# Shares by cell as bars, of one factor or of two beside each other, with two intervals each.

# Most bars beside each other: colour and, in greyscale, hatching distinguish them.
SERIES_SHOWN: Final = len(SERIES)
_HATCHES: Final = ("", "////", "....", "xxxx", "\\\\\\\\", "oo")


def shares(
    values: Floats,
    noise: Floats,
    confidence: Floats,
    *,
    rows: Sequence[str],
    series: Sequence[str],
    title: str,
    across: str = "",
    level: float = 0.95,
    **picture: Unpack[Picture],
) -> Axes:
    """Draw a bar for each of `values`, shape (rows, series), grouped by row.

    Noise intervals, shape (rows, series, 2), are wide and grey, confidence intervals thin; either
    may be nan.
    """
    count = len(series)
    height = min(1.3 + (0.14 + 0.2 * count) * len(rows), _TALLEST)
    ax = axes_or_new(picture.get("ax"), (6.0, height))
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    bar_height, keys = 0.8 / count, []
    for index in range(count):
        positions = np.arange(len(rows)) + (index - (count - 1) / 2) * bar_height
        colour, hatch = SERIES[index % len(SERIES)], _HATCHES[index % len(_HATCHES)]
        look: Keywords = {"facecolor": colour, "alpha": 0.55, "hatch": hatch, "edgecolor": "white"}
        ax.barh(positions, values[:, index], 0.92 * bar_height, linewidth=0.0, zorder=1, **look)
        for ends, linewidth, shade in ((noise, 4.5, GREY), (confidence, 1.2, INK)):
            low, up = np.maximum(ends[:, index], 0.0).T
            finite = np.isfinite(low) & np.isfinite(up)
            at, spans = positions[finite], (low[finite], up[finite])
            ax.hlines(at, *spans, color=shade, linewidth=linewidth, zorder=2)
            for endpoint in (low, up) if linewidth < 2 and finite.any() else ():
                ax.plot(endpoint[finite], positions[finite], "|", color=INK, markersize=5, zorder=2)
        keys.append(Patch(label=short_names(series)[index], linewidth=0.0, **look))
    ax.set_ylim(len(rows) - 0.45, -0.55)
    ax.set_xlim(left=0.0)
    row_names(ax, short_names(rows))
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(title, parse_math=False)
    ax.set_ylabel(across, parse_math=False)
    marks: list[Line2D | Patch] = [*keys] if count > 1 else []
    if np.isfinite(noise).any():
        marks.append(Line2D([], [], color=GREY, linewidth=4.5, label=f"{level:.0%} noise"))
    if np.isfinite(confidence).any():
        label = f"{level:.0%} noise and sampling"
        marks.append(Line2D([], [], color=INK, linewidth=1.2, label=label))
    if marks:
        legend_above(ax, marks)
    names = [", ".join(filter(None, (row, name))) for row in rows for name in series]
    ends = np.where(np.isfinite(confidence), confidence, noise).reshape(-1, 2)
    text = listed(names, map(between, values.ravel(), *ends.T))
    return finished(ax, f"Bars, {title}: {text}", picture)


# What a budget was spent on, one release after the other.

# Styles of charges by state; hatching distinguishes them in greyscale.
LOOKS: Final[Mapping[str, Keywords]] = {
    "released": {"facecolor": BLUE, "edgecolor": "white"},
    "planned": {"facecolor": BLUE, "edgecolor": "white"},
    "charged": {"facecolor": GREY, "edgecolor": "white", "hatch": "////"},
    "void": {"facecolor": "white", "edgecolor": GREY},
    "does not fit": {"facecolor": VERMILION, "edgecolor": "white", "hatch": "xxxx"},
}
_SPENDING_TALLEST: Final = 12.0  # inches


def spending(
    ends: Floats,
    states: Sequence[str],
    total: float,
    *,
    labels: Sequence[str],
    unit: str,
    **picture: Unpack[Picture],
) -> Axes:
    """Draw the budget spent before and after each charge, shape (charges, 2), and its total."""
    names = short_names(labels, max_length=60)  # Calls as they were written
    width = 4.4 + 0.07 * max(map(len, ("", *names)))
    ax = axes_or_new(picture.get("ax"), (width, min(1.4 + 0.28 * len(labels), _SPENDING_TALLEST)))
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    positions = np.arange(len(labels), dtype=np.float64)
    keys: list[Line2D | Patch] = []
    for state, look in LOOKS.items():
        in_state = np.array([charge_state == state for charge_state in states], dtype=bool)
        if in_state.any():
            low, high = ends[in_state].T
            ax.barh(positions[in_state], high - low, left=low, height=0.66, linewidth=0.6, **look)
            keys.append(Patch(label=state, **look))
    ax.axvline(total, color=INK, linewidth=1.4, linestyle=(0, (4, 2)))
    keys.append(Line2D([], [], color=INK, linewidth=1.4, linestyle=(0, (4, 2)), label="budget"))
    ax.set_xlim(0.0, 1.04 * max(total, float(ends.max(initial=0.0))))
    ax.set_ylim(max(len(labels), 1) - 0.4, -0.6)
    row_names(ax, names) if labels else ax.set_yticks([])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"{unit} spent, all together", parse_math=False)
    legend_above(ax, keys)
    texts = [f"{state}, {number(end)}" for state, end in zip(states, ends[:, 1], strict=True)]
    alt = f"Bars, {unit} spent after each of {len(labels)} charges, of {number(total)}"
    return finished(ax, ": ".join(filter(None, (alt, listed(labels, texts)))), picture)


# Scales of noise against the probability that a chain stays.


def scales(
    stays: Floats,
    values: Floats,
    levels: Mapping[str, float],
    labels: tuple[str, str],
    *,
    within: tuple[float, float] | None = None,
    mark: tuple[str, float] | None = None,
    **picture: Unpack[Picture],
) -> Axes:
    """Draw a scale against a probability on a logarithmic axis, with named levels beside it.

    `within` is shaded, the class that was assumed; `mark` is the scale that was used.
    """
    ax = axes_or_new(picture.get("ax"), (6.4, 3.8))
    if within is not None:
        low, high = within
        ax.axvspan(low - 0.002, high + 0.002, color=PALE, linewidth=0, zorder=0)
        middle = (low + high) / 2
        at = ("data", "axes fraction")
        ax.annotate("class", (middle, 0.02), xycoords=at, ha="center").set_fontsize(8)
    ax.plot(stays, values, color=BLUE, linewidth=1.6)
    for name, level in levels.items():
        ax.axhline(level, color=GREY, linewidth=1.0, linestyle="--")
        _level_label(ax, name, level, INK, "right")
    if mark is not None:
        ax.axhline(mark[1], color=VERMILION, linewidth=1.2)
        _level_label(ax, *mark, VERMILION, "left")
    ax.set_yscale("log")
    ax.margins(x=0.01, y=0.12)
    ax.set_xlabel(labels[0], parse_math=False)
    ax.set_ylabel(labels[1], parse_math=False)
    lines = dict([*levels.items(), *([] if mark is None else [mark])])
    alt = f"Line, {labels[1]} by {labels[0]}: {listed(list(lines), map(number, lines.values()))}"
    return finished(ax, alt, picture)


def _level_label(
    ax: Axes, name: str, level: float, color: str, side: Literal["left", "right"]
) -> None:
    anchor = (0.01 if side == "left" else 0.99, level)
    annotation = ax.annotate(
        name, anchor, (0, 3), ("axes fraction", "data"), "offset points", color=color, ha=side
    )
    annotation.set_fontsize(8)
