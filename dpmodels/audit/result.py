"""The result of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpmodels.audit.claim import Claim, Counts
from dpmodels.errors import NotAvailable
from dpmodels.plots.curves import RATES, square_of_rates
from dpmodels.plots.style import BLUE, FONT, INK, PALE, VERMILION, finished
from dpmodels.privacy import gaussian_eps
from dpmodels.privacy.budget import AdjacencyName
from dpmodels.results.base import Printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


@dataclass(frozen=True)
class Finding:
    """A remark, not a verdict: only rates of events can refute a claim.

    Attributes
    ----------
    kind : str
        ``"raised"``, ``"not finite"``, ``"shape"``, ``"constant"``,
        ``"repeats"``, ``"few runs"`` or ``"no test"``.
    words : str
        The observation in one sentence.
    """

    kind: str
    words: str


@dataclass(frozen=True)
class CountedEvent:
    """An event chosen on some runs and counted on others."""

    claim: Claim  # the tested claim
    score: str  # the event is a score above a threshold
    counts: Counts
    error: float  # rate of the test and of the bound
    p_value: float  # of the claim
    bound: float  # lower bound of the claim's number; 0 if the counts rule out none

    @property
    def refuted(self) -> bool:
        """Whether the counts rule the claim out."""
        return self.p_value <= self.error


@dataclass(frozen=True)
class Reach:
    """What an audit with this number of runs can detect, in the claim's unit."""

    largest: float  # the largest possible lower bound
    # True value detected with power 0.8 under the strongest attack, else infinity.
    smallest: float


@dataclass(frozen=True)
class Point:
    """A point of the measured trade-off curve, and intervals for its two rates.

    The intervals of all points are simultaneous, with the audit's confidence.
    """

    alarms: float  # false alarm rate
    misses: float  # miss rate
    alarms_int: tuple[float, float]
    misses_int: tuple[float, float]


@dataclass(frozen=True, repr=False, eq=False)
class AuditResult(Printed):
    """A verdict on a claim, and lower bounds of the actual privacy loss.

    Attributes
    ----------
    claim : Claim
        The tested claim.
    pair : str
        Name of the pair of tables.
    adjacency : {"replace", "add-remove"}
        How its tables differ.
    runs, counted : int
        Runs on each table, and the runs used for counting events.
    confidence : float
        Simultaneous confidence of the verdict and all bounds.
    events : tuple of CountedEvent
        One for each kind of bound.
    findings : tuple of Finding
        Remarks.
    reach : Reach
        What the audit can detect.
    points : tuple of Point
        Points of the measured trade-off curve.
    """

    claim: Claim
    pair: str
    adjacency: AdjacencyName
    runs: int
    counted: int
    confidence: float
    events: tuple[CountedEvent, ...]
    findings: tuple[Finding, ...]
    reach: Reach
    points: tuple[Point, ...]

    @property
    def verdict(self) -> str:
        """Either "consistent" or "VIOLATION"."""
        return "VIOLATION" if any(event.refuted for event in self.events) else "consistent"

    @property
    def eps_claimed(self) -> float:
        """The claimed eps, at the claim's delta."""
        return self.claim.eps

    @property
    def eps_lower(self) -> float:
        """Lower bound of eps at the claim's delta, for any noise."""
        return self._bound("eps")

    @property
    def mu_lower(self) -> float:
        """Lower bound of mu, for a Gaussian claim.

        Raises
        ------
        NotAvailable
            For any other claim.
        """
        if self.claim.unit != "mu":
            raise NotAvailable('mu_lower needs a Gaussian claim: dp.audit(..., law="gaussian")')
        return self._bound("mu")

    @property
    def rho_lower(self) -> float:
        """Lower bound of rho, for a zCDP claim.

        Raises
        ------
        NotAvailable
            For any other claim.
        """
        if self.claim.unit != "rho":
            raise NotAvailable("rho_lower needs a zCDP claim: budget=dp.ZCDP(rho)")
        return self._bound("rho")

    @property
    def eps_gaussian(self) -> float:
        """The eps implied by `mu_lower`, if the noise is Gaussian.

        Raises
        ------
        NotAvailable
            If no Gaussian curve was claimed.
        """
        mu = self.mu_lower
        return gaussian_eps(self.claim.delta, 1 / mu) if mu > 0 else 0.0

    def _bound(self, unit: str) -> float:
        return max((event.bound for event in self.events if event.claim.unit == unit), default=0.0)

    def tidy(self) -> pd.DataFrame:
        """Return one row per event: its claim, counts and bounds."""
        rows = [
            {
                "unit": event.claim.unit,
                "claimed": event.claim.value,
                "lower": event.bound,
                "p_value": event.p_value,
                "error": event.error,
                "test": event.score,
                "alarms": event.counts.alarms,
                "rows_runs": event.counts.rows_runs,
                "misses": event.counts.misses,
                "neighbour_runs": event.counts.neighbour_runs,
            }
            for event in self.events
        ]
        return pd.DataFrame(rows)

    def glance(self) -> pd.DataFrame:
        """Return one row: the verdict and its basis."""
        line = {
            "verdict": self.verdict,
            "eps_claimed": self.eps_claimed,
            "eps_lower": self.eps_lower,
            "delta": self.claim.delta,
            "confidence": self.confidence,
            "runs": self.runs,
            "pair": self.pair,
            "adjacency": self.adjacency,
            "test": self.events[0].score if self.events else "",
            "detectable": self.reach.smallest,
            "findings": len(self.findings),
        }
        return pd.DataFrame([line])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the claimed trade-off curve and the measured points.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Raises
        ------
        NotAvailable
            If matplotlib is not installed.
        """
        return trade_off(
            self.claim,
            f"{self.claim.describe()}: {self.verdict}",
            rates=[(point.alarms, point.misses) for point in self.points],
            boxes=[(point.alarms_int, point.misses_int) for point in self.points],
            events=[event.counts.rates for event in self.events],
            refuted=[event.refuted for event in self.events],
            ax=ax,
        )

    def __repr__(self) -> str:
        return (
            f"<AuditResult {self.verdict}: claimed {self.claim.describe()}; measured eps at least "
            f"{self.eps_lower:.3g}, {self.runs:,} runs a side>"
        )


# The trade-off picture: misses against false alarms, claimed and measured.

Rates = tuple[float, float]  # of false alarms and of misses


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
    claimed = claim.misses(RATES)
    ax.fill_between(RATES, 0, claimed, color=PALE, linewidth=0, zorder=0)
    ax.plot(RATES, claimed, color=INK, linewidth=1.4, zorder=2)
    _points(ax, rates, boxes)
    _events(ax, events, refuted)
    ax.set_title(title, fontsize=FONT + 1, color=INK, pad=8)
    _legend(ax, coins, any(refuted))
    return finished(ax, alt=f"Trade-off curve of a claim and points measured: {title}")


def _points(ax: Axes, rates: Sequence[Rates], boxes: Sequence[tuple[Rates, Rates]]) -> None:
    """Draw the points of the best score with simultaneous confidence boxes."""
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
    """Mark the events of the verdict."""
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
