"""Survival curves with bands for these rows and for the population, and numbers at risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpmodels.plots.style import BLUE, FONT, GREY, INK, VERMILION, axes_or_new, few_ticks
from dpmodels.plots.style import stamp_across as stamped
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's, and lines that tell them apart in grey.
COLOURS = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", INK)
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
# Numbers at risk that have room below.
TICKS = 6


class Drawn(NamedTuple):
    """One curve: its name, and what is told at each time."""

    name: str
    columns: Mapping[str, Floats]


def curves(
    drawn: Sequence[Drawn],
    label: str,
    *,
    steps: bool,
    risk: bool,
    ax: Axes | None = None,
    stamp: str | None = None,
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
            label=own.name or "all rows",
        )
        ax.plot(times[-1:], level[-1:], "|", color=colour, markersize=9)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlim(left=0)
    few_ticks(ax)
    ax.set_xlabel(label, parse_math=False)
    ax.set_ylabel("survival")
    _legend(ax, drawn)
    if risk:
        _at_risk(ax, drawn)
    return stamped(ax, stamp)


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


def _at_risk(ax: Axes, drawn: Sequence[Drawn]) -> None:
    """Write how many rows are at risk below the times, a line a curve."""
    times = max((own.columns["time"] for own in drawn), key=len)
    shown = times[:: -(-len(times) // TICKS)] if len(times) else times
    ax.set_xticks(shown)
    across = ax.get_xaxis_transform()
    ax.annotate(
        "at risk",
        (0, 0),
        (0, -44),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=FONT,
        color=INK,
    )
    for place, own in enumerate(drawn):
        colour, height = COLOURS[place % len(COLOURS)], -58 - 13 * place
        known = dict(zip(own.columns["time"].tolist(), own.columns["n_risk"], strict=True))
        for time in shown.tolist():
            if time in known:
                ax.annotate(
                    f"{int(known[time]):,}",
                    (time, 0),
                    (0, height),
                    xycoords=across,
                    textcoords="offset points",
                    ha="center",
                    fontsize=FONT - 1,
                    color=colour,
                )
