"""The trade-off picture: false negatives against false positives, claimed and measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.audit.claim import Claim
from dpmodels.plots.style import BLUE, FONT, INK, PALE, VERMILION, finished
from dpmodels.plots.trade_off import RATES, square_of_rates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Rates = tuple[float, float]  # of false positives and of false negatives


def trade_off(
    claim: Claim,
    title: str,
    *,
    rates: Sequence[Rates],
    boxes: Sequence[tuple[Rates, Rates]],
    events: Sequence[Rates],
    refuted: Sequence[bool],
    ax: Axes | None = None,
) -> Axes:
    """Draw the claimed trade-off curve, the region below it, and the measured points."""
    ax, coins = square_of_rates(ax)
    least = claim.misses(RATES)
    ax.fill_between(RATES, 0, least, color=PALE, linewidth=0, zorder=0)
    ax.plot(RATES, least, color=INK, linewidth=1.4, zorder=2)
    _points(ax, rates, boxes)
    _events(ax, events, refuted)
    ax.set_title(title, fontsize=FONT + 1, color=INK, pad=8)
    _legend(ax, coins, any(refuted))
    return finished(ax, alt=f"Trade-off curve of a claim and points measured: {title}")


def _points(ax: Axes, rates: Sequence[Rates], boxes: Sequence[tuple[Rates, Rates]]) -> None:
    """Draw the points of the best score with the boxes that hold together."""
    from matplotlib.patches import Rectangle

    for (left, right), (low, high) in boxes:
        box = Rectangle((left, low), right - left, high - low, zorder=3)
        box.set(facecolor=BLUE, alpha=0.25, linewidth=0)
        ax.add_patch(box)
    ax.plot(
        *np.array(rates).reshape(-1, 2).T,
        color=BLUE,
        marker="o",
        markersize=3,
        linewidth=0.8,
        zorder=4,
    )


def _events(ax: Axes, events: Sequence[Rates], refuted: Sequence[bool]) -> None:
    """Mark the events that the verdict rests on."""
    for (alarms, misses), flagged in zip(events, refuted, strict=True):
        colour = VERMILION if flagged else BLUE
        ax.plot(
            [alarms],
            [misses],
            marker="D",
            markersize=6,
            markerfacecolor="white",
            markeredgecolor=colour,
            markeredgewidth=1.4,
            linestyle="",
            zorder=5,
            clip_on=False,
        )


def _legend(ax: Axes, coins: Line2D, refuted: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    tested = Line2D([], [], linestyle="", marker="D", label="counted event")
    tested.set(markerfacecolor="white", markeredgecolor=VERMILION if refuted else BLUE)
    ax.legend(
        handles=[
            coins,
            Line2D([], [], color=INK, linewidth=1.4, label="claimed: no event below"),
            Patch(facecolor=PALE, label="excluded by the claim"),
            Line2D([], [], color=BLUE, marker="o", markersize=3, linewidth=0.8, label="measured"),
            tested,
        ],
        loc="upper right",
        frameon=False,
        fontsize=FONT,
        labelcolor=INK,
    )
