"""Curves: power, values over time, distributions, paths, survival, trade-offs of errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    axes_or_new,
    between,
    few_ticks,
    finished,
    listed,
    number,
    short_names,
)
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


# Lines are told apart by marks where they are grey.
_MARKS = "os^DvP"


def curves(
    lines: Sequence[tuple[str, Floats]],
    *,
    across: str,
    logarithmic: bool,
    ax: Axes | None = None,
) -> Axes:
    """Draw lines of a label and places, power, power without noise and shares that are identified.

    Open points stand where less than half of the releases have a standard error.
    """
    ax = axes_or_new(ax, (6.4, 3.8))
    for place, (label, line) in enumerate(lines):
        places, power, plain, identified = line
        colour = SERIES[place % len(SERIES)]
        ax.plot(places, plain, color=colour, linewidth=1.0, linestyle=":", alpha=0.8)
        mark = _MARKS[place % len(_MARKS)]
        (drawn,) = ax.plot(places, power, color=colour, linewidth=1.5, label=label)
        drawn.set(marker=mark, markevery=[], markersize=4.5)  # shown in the legend alone
        seldom = identified < 0.5
        for own, face in ((~seldom, colour), (seldom, "white")):
            ax.plot(
                places[own],
                power[own],
                linestyle="none",
                marker=mark,
                markersize=4.5,
                color=colour,
                markerfacecolor=face,
            )
    ax.plot([], [], color=GREY, linewidth=1.0, linestyle=":", label="without noise")
    if logarithmic:
        ax.set_xscale("log")
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel(across)
    ax.set_ylabel("power")
    ax.legend(frameon=False, fontsize=8)
    told = listed([label for label, _ in lines], (number(line[1][-1]) for _, line in lines))
    return finished(ax, alt=f"Power by {across}. At the last of them: {told}")


# A line over time with the band of its noise.


def band(
    times: NDArray[np.generic],
    values: Floats,
    ends: Floats,
    labels: tuple[str, str],
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw values over times from 0, and between `ends`, shape (times, 2), a band."""
    ax = axes_or_new(ax, (6.4, 3.4))
    if times.dtype == object:
        times = times.astype(str)
    ax.fill_between(times, ends[:, 0], ends[:, 1], color=BLUE, alpha=0.22, linewidth=0)
    ax.plot(times, values, color=BLUE, linewidth=1.3)
    ax.set_ylim(bottom=0)
    ax.margins(x=0.01)
    few_ticks(ax)
    ax.set_xlabel(labels[0], parse_math=False)
    ax.set_ylabel(labels[1], parse_math=False)
    told = map(between, values, *ends.T)
    alt = f"Line with its noise band: {labels[1]} by {labels[0]}: {listed(times.tolist(), told)}"
    return finished(ax, stamp, caption, alt)


# A distribution function as steps, with bands for these rows and for the population.

# Points that a line is drawn through: a choice, more than a picture has pixels.
POINTS = 4_000


def distribution(
    breaks: Floats,
    shares: Floats,
    bands: Floats,
    label: str,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw shares up to the upper end of each bin, and bands, shape (4, bins), of two kinds.

    The first two rows are the ends for these rows, the last two those for the population. Between
    breaks rows are taken to lie evenly.
    """
    ax = axes_or_new(ax, (6.0, 3.6))
    shown = np.unique(np.linspace(0, len(breaks) - 1, POINTS).astype(int))
    at = breaks[shown]
    line, *ends = (np.append(0.0, own)[shown] for own in (shares, *bands))
    ax.fill_between(at, ends[2], ends[3], color=PALE, linewidth=0, label="population")
    ax.fill_between(at, ends[0], ends[1], color=GREY, alpha=0.6, linewidth=0, label="noise")
    ax.plot(at, line, color=BLUE, linewidth=1.2)
    ax.set_ylim(-0.02, 1.02)
    few_ticks(ax)
    ax.set_xlabel(label, parse_math=False)
    ax.set_ylabel("share of rows up to there")
    if not np.isnan(bands).all():
        ax.legend(frameon=False, fontsize=8, loc="lower right")
    quarters = (0.25, 0.5, 0.75)
    reached = [at[min(np.searchsorted(line, one), len(at) - 1)] for one in quarters]
    told = listed([f"{one:.0%} of rows up to" for one in quarters], map(number, reached))
    return finished(ax, stamp, caption, f"Distribution function of {label} with bands: {told}")


# Slopes by penalty.

# A choice: lines that are named at their ends, those that reach furthest; others are grey.
NAMED = 12


def paths(
    penalties: Floats,
    slopes: Floats,
    names: Sequence[str],
    labels: tuple[str, str],
    *,
    mark: float = float("nan"),
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw slopes, shape (penalties, names), over penalties, and a line at the penalty `mark`."""
    shown = penalties > 0
    penalties, slopes = penalties[shown], slopes[shown]
    ax = axes_or_new(ax, (6.8, 4.0))
    ax.set_xscale("log")
    far = np.argsort(-np.abs(slopes).max(axis=0, initial=0.0), kind="stable")[:NAMED]
    colours = {int(at): SERIES[i % len(SERIES)] for i, at in enumerate(far)}
    ax.axhline(0, color=GREY, linewidth=0.8)
    for at in range(len(names)):
        style = "-" if at in colours and list(colours).index(at) < len(SERIES) else "--"
        ax.plot(
            penalties, slopes[:, at], color=colours.get(at, GREY), linewidth=1.3, linestyle=style
        )
    if np.isfinite(mark) and mark > 0:
        ax.axvline(mark, color=INK, linewidth=1.0, linestyle=":")
        ax.annotate(
            "noise",
            (mark, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -9),
            textcoords="offset points",
            fontsize=SMALL,
            color=MUTED,
        )
    ax.invert_xaxis()
    ax.set_xlabel(labels[0], parse_math=False)
    ax.set_ylabel(labels[1], parse_math=False)
    if len(penalties):
        _name(ax, [(names[at], float(slopes[-1, at]), own) for at, own in colours.items()])
    ends = map(number, slopes[-1]) if len(penalties) else ("not drawn" for _ in names)
    alt = f"Lines, {labels[1]} by penalty; at the least penalty: {listed(names, ends)}"
    if np.isfinite(mark):
        alt += f". Below a penalty of {number(mark)} slopes are not told from noise"
    return finished(ax, stamp, caption, alt)


def _name(ax: Axes, lines: list[tuple[str, float, str]]) -> None:
    """Write names to the right of where lines end, apart from each other."""
    lines = sorted(lines, key=lambda line: line[1])
    low, high = ax.get_ylim()
    gap = 0.05 * (high - low)
    places = [value for _, value, _ in lines]
    for at in range(1, len(places)):
        places[at] = max(places[at], places[at - 1] + gap)
    over = max(places[-1] - high, 0.0)
    for place, (name, (_, _, colour)) in zip(
        places, zip(short_names([line[0] for line in lines]), lines, strict=True), strict=True
    ):
        ax.annotate(
            name,
            (1.0, place - over),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=colour,
            annotation_clip=False,
            parse_math=False,
        )


# What tests may tell: rates of misses against rates of false alarms.

# Rates of false alarms at which curves are drawn: closer together where they are steep.
RATES: Final[Floats] = np.concatenate(
    [[0.0], np.geomspace(1e-6, 0.02, 60), np.linspace(0.02, 1, 240)[1:]]
)
_DASHES: Final = ("-", (0, (6, 2)), "-.", ":")
_SIZE: Final = (4.8, 4.6)


def square_of_rates(ax: Axes | None) -> tuple[Axes, Line2D]:
    """Take axes, or make new ones, for error rates; draw the line of coin-flipping."""
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
    curves: Floats,
    labels: Sequence[str],
    level: tuple[float, Floats],
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw curves over `RATES`, shape (curves, rates), with the points at one level."""
    ax, _ = square_of_rates(ax)
    from matplotlib import colormaps

    alpha, points = level
    colours = colormaps["cividis"](np.linspace(0.05, 0.8, len(curves)))
    for at, (curve, label) in enumerate(zip(curves, labels, strict=True)):
        point, colour, dashes = points[at], colours[at], _DASHES[at % len(_DASHES)]
        ax.plot(RATES, curve, color=colour, linestyle=dashes, linewidth=1.6, label=label, zorder=2)
        ax.plot([alpha], [point], marker="o", markersize=4, color=colour, zorder=3, clip_on=False)
    ax.axvline(alpha, color=GREY, linewidth=0.6, zorder=0)
    ax.legend(
        loc="upper right",
        frameon=False,
        fontsize=FONT - 1,
        labelcolor=INK,
        handlelength=2.4,
        labelspacing=0.3,
        borderaxespad=0,
    )
    told = listed(labels, map(number, points))
    alt = (
        f"Trade-off curves. Least false-negative rate at a false-positive rate of {alpha:g}: {told}"
    )
    return finished(ax, stamp, caption, alt)


# Survival curves with bands for these rows and for the population, and numbers at risk.

# Okabe and Ito's, and lines that tell them apart in grey.
COLOURS = (*SERIES[:4], SERIES[5], INK)
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
# Numbers at risk that have room below.
TICKS = 6


class Drawn(NamedTuple):
    """One curve: its name, and what is told at each time."""

    name: str
    columns: Mapping[str, Floats]


def survival_curves(
    drawn: Sequence[Drawn],
    label: str,
    *,
    steps: bool,
    risk: bool,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw the share beyond each time, in `steps` or evenly between the times.

    The darker band is of noise about these rows, the paler one for the population. A curve stops
    where it is told no more.
    """
    below = 0.22 * (len(drawn) + 1.5) * risk
    ax = axes_or_new(ax, (6.4, 3.8 + below))
    for place, own in enumerate(drawn):
        colour, line = COLOURS[place % len(COLOURS)], LINES[place % len(LINES)]
        times = np.append(0.0, own.columns["time"])
        level, *ends = (
            np.append(1.0, own.columns[name])
            for name in ("estimate", "noise_low", "noise_high", "conf_low", "conf_high")
        )
        for low, high, alpha in ((ends[2], ends[3], 0.14), (ends[0], ends[1], 0.32)):
            ax.fill_between(
                times,
                low,
                high,
                step="post" if steps else None,
                color=colour,
                alpha=alpha,
                linewidth=0,
            )
        ax.plot(
            times,
            level,
            color=colour,
            linestyle=line,
            linewidth=1.6,
            drawstyle="steps-post" if steps else "default",
            label=(own.name or "all rows") + ": not told" * (len(times) == 1),
        )
        ax.plot(times[-1:], level[-1:], "|", color=colour, markersize=9)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlim(left=0)
    few_ticks(ax)
    ax.set_xlabel(label, parse_math=False)
    ax.set_ylabel("survival")
    _legend(ax, drawn)
    if risk:
        _at_risk(ax, drawn, steps=steps)
    told = [number(np.append(np.nan, own.columns["estimate"])[-1]) for own in drawn]
    names = [own.name or "all rows" for own in drawn]
    alt = f"Survival curves by {label} with bands. Survival at the last time: {listed(names, told)}"
    return finished(ax, stamp, caption, alt)


def _legend(ax: Axes, drawn: Sequence[Drawn]) -> None:
    """Name the curves, and both bands in the colour of the first."""
    from matplotlib.patches import Patch

    lines, names = ax.get_legend_handles_labels()
    lines += [Patch(color=GREY, alpha=alpha) for alpha in (0.75, 0.3)]
    names += ["noise", "noise and sampling"]
    low = all(own.columns["estimate"][-1:].sum() > 0.5 for own in drawn)
    legend = ax.legend(lines, names, frameon=False, fontsize=8, loc="lower left" if low else "best")
    for text in legend.get_texts():
        text.set_parse_math(False)


def _at_risk(ax: Axes, drawn: Sequence[Drawn], *, steps: bool) -> None:
    """Write how many rows are at risk below the times, a line a curve.

    They are those of the interval that begins at a time or, where each holds one value, is it.
    """
    known = [_risks(own, steps=steps) for own in drawn]
    times = sorted(set().union(*known))
    shown = times[:: -(-len(times) // TICKS)] if times else times
    ax.set_xticks(shown)
    across = ax.get_xaxis_transform()
    below: dict[str, Any] = {
        "textcoords": "offset points",
        "fontsize": FONT,
        "annotation_clip": False,
    }
    ax.annotate("at risk", (0, 0), (0, -44), xycoords="axes fraction", color=INK, **below)
    for place, own in enumerate(known):
        colour, height = COLOURS[place % len(COLOURS)], -58 - 13 * place
        for time in (one for one in shown if one in own):
            ax.annotate(
                f"{own[time]:,}",
                (time, 0),
                (0, height),
                xycoords=across,
                ha="center",
                color=colour,
                **below,
            )


def _risks(own: Drawn, *, steps: bool) -> dict[float, int]:
    ends = np.asarray(own.columns["time"], dtype=float)
    times = ends if steps else np.append(0.0, ends)[: len(ends)]
    return dict(zip(times.tolist(), map(int, own.columns["n_risk"]), strict=True))


# Sorted p-values and the line that a step-up procedure holds them against.

# The least p-value that is drawn where it is: a choice.
LEAST = 1e-16


def step_up(
    p_values: Floats,
    rejected: NDArray[Any],
    cut_offs: Floats,
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw sorted p-values, smallest first, and the cut-off of each rank."""
    ax = axes_or_new(ax, (6.4, 4.2))
    ranks = np.arange(1, len(p_values) + 1)
    heights = -np.log10(np.maximum(p_values, LEAST))
    lines = -np.log10(cut_offs[: len(ranks)])
    looks = ((rejected, BLUE, BLUE, "rejected"), (~rejected, GREY, "white", "not rejected"))
    for own, colour, face, label in looks:
        if own.any():
            (drawn,) = ax.plot(ranks[own], heights[own], "o", color=colour, label=label)
            drawn.set(markersize=4.5, markerfacecolor=face)
    ax.plot(ranks, lines, color=VERMILION, linewidth=1.4, label="cut-off")
    ax.set_xlabel("rank of the p-value")
    ax.set_ylabel(r"$-\log_{10}$ p-value")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize="small")
    alt = f"Sorted p-values and their cut-offs: {int(rejected.sum())} of {len(ranks)} rejected"
    return finished(ax, stamp, caption, alt)
