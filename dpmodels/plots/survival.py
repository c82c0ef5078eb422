"""Survival curves with bands for these rows and for the population, and numbers at risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpmodels.plots.style import FONT, GREY, INK, SERIES, axes_or_new, few_ticks, finished
from dpmodels.plots.words import listed, number
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's, and lines that tell them apart in grey.
COLOURS = (*SERIES[:4], SERIES[5], INK)
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
