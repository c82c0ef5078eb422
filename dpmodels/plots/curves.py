"""Curves: power, values over time, distributions, paths, survival, trade-offs of errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from dpmodels.plots.style import (
    BLUE,
    FONT,
    GREY,
    INK,
    MUTED,
    PALE,
    SERIES,
    SMALL,
    VERMILION,
    Keywords,
    axes_or_new,
    between,
    few_ticks,
    finished,
    listed,
    literal,
    number,
    short_names,
)
from dpmodels.typing import Axes, Floats, Numbers, Picture

if TYPE_CHECKING:
    from matplotlib.lines import Line2D


# Marks distinguish lines in greyscale.
_MARKS = "os^DvP"


def curves(
    lines: Sequence[tuple[str, Floats]], *, across: str, logarithmic: bool, ax: Axes | None = None
) -> Axes:
    """Draw curves of a label and positions, power, power without noise, and fraction identified.

    At open points less than half of the releases have a standard error.
    """
    ax = axes_or_new(ax, (6.4, 3.8))
    for index, (label, line) in enumerate(lines):
        positions, power, noiseless, identified = line
        colour = SERIES[index % len(SERIES)]
        ax.plot(positions, noiseless, color=colour, linewidth=1.0, linestyle=":", alpha=0.8)
        mark = _MARKS[index % len(_MARKS)]
        (handle,) = ax.plot(positions, power, color=colour, linewidth=1.5, label=label)
        handle.set(marker=mark, markevery=[], markersize=4.5)  # shown in the legend alone
        seldom = identified < 0.5
        for mask, face in ((~seldom, colour), (seldom, "white")):
            (points,) = ax.plot(positions[mask], power[mask], mark, color=colour, markersize=4.5)
            points.set_markerfacecolor(face)
    ax.plot([], [], color=GREY, linewidth=1.0, linestyle=":", label="without noise")
    if logarithmic:
        ax.set_xscale("log")
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel(across)
    ax.set_ylabel("power")
    ax.legend(frameon=False, fontsize=8)
    text = listed([label for label, _ in lines], (number(line[1][-1]) for _, line in lines))
    return finished(ax, alt=f"Power by {across}. At the last of them: {text}")


# A line over time with the band of its noise.


def band(
    times: NDArray[np.generic],
    values: Floats,
    ends: Floats,
    labels: tuple[str, str],
    **picture: Unpack[Picture],
) -> Axes:
    """Draw values over times from 0, with the band `ends`, shape (times, 2)."""
    ax = axes_or_new(picture.get("ax"), (6.4, 3.4))
    if times.dtype == object:
        times = times.astype(str)
    ax.fill_between(times, ends[:, 0], ends[:, 1], color=BLUE, alpha=0.22, linewidth=0)
    ax.plot(times, values, color=BLUE, linewidth=1.3)
    ax.set_ylim(bottom=0)
    ax.margins(x=0.01)
    few_ticks(ax)
    ax.set_xlabel(labels[0], parse_math=False)
    ax.set_ylabel(labels[1], parse_math=False)
    texts = map(between, values, *ends.T)
    alt = f"Line with its noise band: {labels[1]} by {labels[0]}: {listed(times.tolist(), texts)}"
    return finished(ax, alt, picture)


# A distribution function as steps, with bands for these rows and for the population.

# A choice: points of a line, more than a picture has pixels.
POINTS = 4_000


def distribution(
    breaks: Floats, shares: Floats, bands: Floats, label: str, **picture: Unpack[Picture]
) -> Axes:
    """Draw shares up to the upper end of each bin, and two bands, shape (4, bins).

    The first two lines of `bands` are limits for these rows, the last two for the population. Rows
    of a bin are taken as uniform.
    """
    ax = axes_or_new(picture.get("ax"), (6.0, 3.6))
    points = np.unique(np.linspace(0, len(breaks) - 1, POINTS).astype(int))
    breaks_shown = breaks[points]
    line, *ends = (np.append(0.0, heights)[points] for heights in (shares, *bands))
    ax.fill_between(breaks_shown, ends[2], ends[3], color=PALE, linewidth=0, label="population")
    low, high = ends[:2]
    ax.fill_between(breaks_shown, low, high, color=GREY, alpha=0.6, linewidth=0, label="noise")
    ax.plot(breaks_shown, line, color=BLUE, linewidth=1.2)
    ax.set_ylim(-0.02, 1.02)
    few_ticks(ax)
    ax.set_xlabel(label, parse_math=False)
    ax.set_ylabel("cumulative share of rows")
    if not np.isnan(bands).all():
        ax.legend(frameon=False, fontsize=8, loc="lower right")
    quarters = (0.25, 0.5, 0.75)
    quantiles = breaks_shown[np.minimum(np.searchsorted(line, quarters), len(line) - 1)]
    text = listed([f"{quarter:.0%} of rows up to" for quarter in quarters], map(number, quantiles))
    return finished(ax, f"Distribution function of {label} with bands: {text}", picture)


# Slopes by penalty.

# A choice: the largest lines are coloured and named; others are grey.
NAMED = 12


def paths(
    penalties: Floats,
    slopes: Floats,
    names: Sequence[str],
    labels: tuple[str, str],
    *,
    mark: float = float("nan"),
    **picture: Unpack[Picture],
) -> Axes:
    """Draw slopes, shape (penalties, names), over penalties, and a line at the penalty `mark`."""
    positive = penalties > 0
    penalties, slopes = penalties[positive], slopes[positive]
    ax = axes_or_new(picture.get("ax"), (6.8, 4.0))
    ax.set_xscale("log")
    largest = np.argsort(-np.abs(slopes).max(axis=0, initial=0.0), kind="stable")[:NAMED]
    colours = {int(index): SERIES[i % len(SERIES)] for i, index in enumerate(largest)}
    ax.axhline(0, color=GREY, linewidth=0.8)
    for index in range(len(names)):
        style = "-" if index in colours and list(colours).index(index) < len(SERIES) else "--"
        colour = colours.get(index, GREY)
        ax.plot(penalties, slopes[:, index], color=colour, linewidth=1.3, linestyle=style)
    if np.isfinite(mark) and mark > 0:
        ax.axvline(mark, color=INK, linewidth=1.0, linestyle=":")
        at = ("data", "axes fraction")
        text = ax.annotate("noise", (mark, 1.0), (3, -9), at, "offset points", color=MUTED)
        text.set_fontsize(SMALL)
    ax.invert_xaxis()
    ax.set_xlabel(labels[0], parse_math=False)
    ax.set_ylabel(labels[1], parse_math=False)
    if len(penalties):
        _name(ax, [(names[at], float(slopes[-1, at]), colour) for at, colour in colours.items()])
    end_texts = map(number, slopes[-1]) if len(penalties) else ("not drawn" for _ in names)
    alt = f"Lines, {labels[1]} by penalty; at the smallest penalty: {listed(names, end_texts)}"
    if np.isfinite(mark):
        alt += f". Below a penalty of {number(mark)} slopes cannot be distinguished from noise"
    return finished(ax, alt, picture)


def _name(ax: Axes, lines: list[tuple[str, float, str]]) -> None:
    """Write names at the right ends of lines, without overlap."""
    lines = sorted(lines, key=lambda line: line[1])
    low, high = ax.get_ylim()
    gap = 0.05 * (high - low)
    heights = [value for _, value, _ in lines]
    for index in range(1, len(heights)):
        heights[index] = max(heights[index], heights[index - 1] + gap)
    excess, names = max(heights[-1] - high, 0.0), short_names([line[0] for line in lines])
    for height, name, (_, _, colour) in zip(heights, names, lines, strict=True):
        anchor, at = (1.0, height - excess), ("axes fraction", "data")
        text = ax.annotate(name, anchor, (4, 0), at, "offset points", color=colour, va="center")
        text.set(fontsize=SMALL, parse_math=False, annotation_clip=False)


# Trade-off curves: false-negative rates against false-positive rates.

# False-positive rates at which curves are drawn: denser where they are steep.
RATES: Final[Floats] = np.concatenate(
    [[0.0], np.geomspace(1e-6, 0.02, 60), np.linspace(0.02, 1, 240)[1:]]
)
_DASHES: Final = ("-", (0, (6, 2)), "-.", ":")
_SIZE: Final = (4.8, 4.6)


def square_of_rates(ax: Axes | None) -> tuple[Axes, Line2D]:
    """Return axes for error rates, with the line of coin-flipping."""
    ax = axes_or_new(ax, _SIZE)
    (coins,) = ax.plot([0, 1], [1, 0], color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    coins.set_label("coin-flipping")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel("False-positive rate")
    ax.set_ylabel("False-negative rate")
    return ax, coins


def trade_offs(
    curves: Floats, labels: Sequence[str], level: tuple[float, Floats], **picture: Unpack[Picture]
) -> Axes:
    """Draw curves over `RATES`, shape (curves, rates), with the points at one level."""
    ax, _ = square_of_rates(picture.get("ax"))
    from matplotlib import colormaps

    alpha, points = level
    colours = colormaps["cividis"](np.linspace(0.05, 0.8, len(curves)))
    for index, (curve, label) in enumerate(zip(curves, labels, strict=True)):
        point, colour, dashes = points[index], colours[index], _DASHES[index % len(_DASHES)]
        ax.plot(RATES, curve, color=colour, linestyle=dashes, linewidth=1.6, label=label, zorder=2)
        ax.plot([alpha], [point], marker="o", markersize=4, color=colour, zorder=3, clip_on=False)
    ax.axvline(alpha, color=GREY, linewidth=0.6, zorder=0)
    legend: Keywords = {"handlelength": 2.4, "labelspacing": 0.3, "borderaxespad": 0}
    legend |= {"frameon": False, "fontsize": FONT - 1, "labelcolor": INK}
    ax.legend(loc="upper right", **legend)
    text = listed(labels, map(number, points))
    what = f"Smallest false-negative rate at a false-positive rate of {alpha:g}"
    return finished(ax, f"Trade-off curves. {what}: {text}", picture)


# Survival curves with bands for these rows and for the population, and numbers at risk.

# Colours of Okabe and Ito, and line styles that distinguish them in greyscale.
COLOURS = (*SERIES[:4], SERIES[5], INK)
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
# A choice: numbers at risk that fit below.
TICKS = 6


class Drawn(NamedTuple):
    """One curve: its name, and its columns over time."""

    name: str
    columns: Mapping[str, Floats]


def survival_curves(
    curves: Sequence[Drawn], label: str, *, steps: bool, risk: bool, **picture: Unpack[Picture]
) -> Axes:
    """Draw survival, in `steps` or linear between the times.

    The darker band is the noise of these rows, the paler one includes sampling. A curve stops at
    its last released time.
    """
    risk_inches = 0.22 * (len(curves) + 1.5) * risk
    ax = axes_or_new(picture.get("ax"), (6.4, 3.8 + risk_inches))
    for index, curve in enumerate(curves):
        colour, line = COLOURS[index % len(COLOURS)], LINES[index % len(LINES)]
        times = np.append(0.0, curve.columns["time"])
        level, *ends = (
            np.append(1.0, curve.columns[name])
            for name in ("estimate", "noise_low", "noise_high", "conf_low", "conf_high")
        )
        for low, high, alpha in ((ends[2], ends[3], 0.14), (ends[0], ends[1], 0.32)):
            area = ax.fill_between(times, low, high, step="post" if steps else None, color=colour)
            area.set(alpha=alpha, linewidth=0)
        label_text = (curve.name or "all rows") + ": not reported" * (len(times) == 1)
        (drawn_line,) = ax.plot(times, level, color=colour, linestyle=line, label=label_text)
        drawn_line.set(linewidth=1.6, drawstyle="steps-post" if steps else "default")
        ax.plot(times[-1:], level[-1:], "|", color=colour, markersize=9)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlim(left=0)
    few_ticks(ax)
    ax.set_xlabel(label, parse_math=False)
    ax.set_ylabel("survival")
    _legend(ax, curves)
    if risk:
        _at_risk(ax, curves, steps=steps)
    texts = [number(np.append(np.nan, curve.columns["estimate"])[-1]) for curve in curves]
    names = [curve.name or "all rows" for curve in curves]
    text = listed(names, texts)
    alt = f"Survival curves by {label} with bands. Survival at the last time: {text}"
    return finished(ax, alt, picture)


def _legend(ax: Axes, curves: Sequence[Drawn]) -> None:
    from matplotlib.patches import Patch

    lines, names = ax.get_legend_handles_labels()
    lines += [Patch(color=GREY, alpha=alpha) for alpha in (0.75, 0.3)]
    names += ["noise", "noise and sampling"]
    is_high_at_end = all(curve.columns["estimate"][-1:].sum() > 0.5 for curve in curves)
    legend = ax.legend(
        lines, names, frameon=False, fontsize=8, loc="lower left" if is_high_at_end else "best"
    )
    literal(legend.get_texts())


def _at_risk(ax: Axes, curves: Sequence[Drawn], *, steps: bool) -> None:
    """Write how many rows are at risk below the times, a line for each curve.

    They are at risk in the interval that begins at a time, or at the time if intervals have one
    value.
    """
    n_risk_by_curve = [_risks(curve, steps=steps) for curve in curves]
    times = sorted(set().union(*n_risk_by_curve))
    ticks = times[:: -(-len(times) // TICKS)] if times else times
    ax.set_xticks(ticks)
    across = ax.get_xaxis_transform()
    text_style: Keywords = {"textcoords": "offset points", "fontsize": FONT}
    text_style["annotation_clip"] = False
    ax.annotate("at risk", (0, 0), (0, -44), xycoords="axes fraction", color=INK, **text_style)
    for index, n_risk in enumerate(n_risk_by_curve):
        colour, height = COLOURS[index % len(COLOURS)], -58 - 13 * index
        for time in (tick for tick in ticks if tick in n_risk):
            text = f"{n_risk[time]:,}"
            ax.annotate(
                text, (time, 0), (0, height), across, ha="center", color=colour, **text_style
            )


def _risks(curve: Drawn, *, steps: bool) -> dict[float, int]:
    ends = np.asarray(curve.columns["time"], dtype=float)
    times = ends if steps else np.append(0.0, ends)[: len(ends)]
    return dict(zip(times.tolist(), map(int, curve.columns["n_risk"]), strict=True))


# Sorted p-values and the line that a step-up procedure compares them with.

# A choice: smaller p-values are drawn at this value.
LEAST = 1e-16


def step_up(
    p_values: Floats, rejected: Numbers, cut_offs: Floats, **picture: Unpack[Picture]
) -> Axes:
    """Draw sorted p-values, smallest first, and the cut-off of each rank."""
    ax = axes_or_new(picture.get("ax"), (6.4, 4.2))
    ranks = np.arange(1, len(p_values) + 1)
    heights = -np.log10(np.maximum(p_values, LEAST))
    lines = -np.log10(cut_offs[: len(ranks)])
    looks = ((rejected, BLUE, BLUE, "rejected"), (~rejected, GREY, "white", "not rejected"))
    for mask, colour, face, label in looks:
        if mask.any():
            (points,) = ax.plot(ranks[mask], heights[mask], "o", color=colour, label=label)
            points.set(markersize=4.5, markerfacecolor=face)
    ax.plot(ranks, lines, color=VERMILION, linewidth=1.4, label="cut-off")
    ax.set_xlabel("rank of the p-value")
    ax.set_ylabel(r"$-\log_{10}$ p-value")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize="small")
    alt = f"Sorted p-values and their cut-offs: {int(rejected.sum())} of {len(ranks)} rejected"
    return finished(ax, alt, picture)
