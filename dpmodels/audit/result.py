"""The result of an audit, and the printed reports of one audit and of many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from dpmodels.audit.claim import Claim, Counts
from dpmodels.errors import NotAvailable
from dpmodels.plots.curves import RATES, square_of_rates
from dpmodels.plots.style import BLUE, FONT, INK, PALE, VERMILION, finished
from dpmodels.privacy import adjacency, gaussian_eps
from dpmodels.privacy.budget import AdjacencyName
from dpmodels.report import Fact, Report, Row, Section, count, signif
from dpmodels.report.notes import Rank
from dpmodels.results.base import Printed, report_of
from dpmodels.verbs import documented

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
        return self._bound_of("mu", 'a Gaussian claim: dp.audit(..., law="gaussian")')

    @property
    def rho_lower(self) -> float:
        """Lower bound of rho, for a zCDP claim.

        Raises
        ------
        NotAvailable
            For any other claim.
        """
        return self._bound_of("rho", "a zCDP claim: budget=dp.ZCDP(rho)")

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

    def _bound_of(self, unit: str, needed: str) -> float:
        if self.claim.unit != unit:
            raise NotAvailable(f"{unit}_lower needs {needed}")
        return self._bound(unit)

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
                **asdict(event.counts),
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

    @documented
    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the claimed trade-off curve and the measured points.

        Raises
        ------
        NotAvailable
            If matplotlib is not installed.
        """
        return trade_off(self, ax)

    def __repr__(self) -> str:
        return (
            f"<AuditResult {self.verdict}: claimed {self.claim.describe()}; measured eps at least "
            f"{self.eps_lower:.3g}, {self.runs:,} runs a side>"
        )


# The trade-off picture: misses against false alarms, claimed and measured.


def trade_off(result: AuditResult, ax: Axes | None) -> Axes:
    """Draw the claimed trade-off curve, the region below it, and the measured points."""
    ax, coins = square_of_rates(ax)
    claimed, title = result.claim.misses(RATES), f"{result.claim.describe()}: {result.verdict}"
    ax.fill_between(RATES, 0, claimed, color=PALE, linewidth=0, zorder=0)
    ax.plot(RATES, claimed, color=INK, linewidth=1.4, zorder=2)
    _points(ax, result.points)
    for event in result.events:
        colour = VERMILION if event.refuted else BLUE
        (mark,) = ax.plot(*event.counts.rates, "D", markersize=6, zorder=5, clip_on=False)
        mark.set(markerfacecolor="white", markeredgecolor=colour, markeredgewidth=1.4)
    ax.set_title(title, fontsize=FONT + 1, color=INK, pad=8)
    _legend(ax, coins, refuted=result.verdict == "VIOLATION")
    return finished(ax, alt=f"Trade-off curve of a claim and points measured: {title}")


def _points(ax: Axes, points: Sequence[Point]) -> None:
    from matplotlib.patches import Rectangle

    for point in points:
        (left, right), (low, high) = point.alarms_int, point.misses_int
        box = Rectangle((left, low), right - left, high - low, zorder=3)
        box.set(facecolor=BLUE, alpha=0.25, linewidth=0)
        ax.add_patch(box)
    rates = np.array([(point.alarms, point.misses) for point in points]).reshape(-1, 2).T
    ax.plot(*rates, color=BLUE, marker="o", markersize=3, linewidth=0.8, zorder=4)


def _legend(ax: Axes, coins: Line2D, *, refuted: bool) -> None:
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


@dataclass(frozen=True)
class Outcome:
    """The outcome of one audit of many."""

    name: str
    faulty: bool  # whether it should be flagged
    eps: float  # claimed, with delta
    delta: float
    eps_lower: float  # lower bound at the claim's delta, for any noise
    eps_gaussian: float  # lower bound if the noise is Gaussian, nan where that is not claimed
    detectable: float  # the smallest eps detected with power 0.8
    runs: int  # on each table
    seconds: float  # wall time
    verdict: str  # "consistent" or "VIOLATION"

    @property
    def expected(self) -> bool:
        """Whether exactly the faulty recipes were flagged."""
        return self.faulty == (self.verdict == "VIOLATION")

    @classmethod
    def of(cls, name: str, result: AuditResult, seconds: float, *, faulty: bool = False) -> Outcome:
        """Return the outcome of an audit."""
        gaussian = result.claim.unit == "mu"
        return cls(
            name=name,
            faulty=faulty,
            eps=result.eps_claimed,
            delta=result.claim.delta,
            eps_lower=result.eps_lower,
            eps_gaussian=result.eps_gaussian if gaussian else math.nan,
            detectable=result.claim.of(result.reach.smallest).eps,
            runs=result.runs,
            seconds=seconds,
            verdict=result.verdict,
        )


@dataclass(frozen=True, repr=False)
class AuditTable(Printed):
    """The outcomes of many audits."""

    title: str
    confidence: float  # of each audit of a correct recipe
    outcomes: tuple[Outcome, ...]

    @property
    def expected(self) -> bool:
        """Whether every outcome is as expected."""
        return all(outcome.expected for outcome in self.outcomes)

    def tidy(self) -> pd.DataFrame:
        """Return one row per audit."""
        return pd.DataFrame(
            [asdict(outcome) | {"expected": outcome.expected} for outcome in self.outcomes]
        )

    def __repr__(self) -> str:
        return self.summary().as_text()


MANY_HEADS: Final = ("claimed", "at least", "by mu", "detectable", "runs", "seconds", "verdict")
HEADS: Final = ("claimed", "at least", "p-value", "test", "false alarms", "misses")


@report_of.register
def audit_report(result: AuditResult) -> Report:
    """Lay out an audit as tables of strings."""
    rows = tuple(map(_event_row, result.events))
    return Report(
        title=f"Privacy audit: {result.verdict}",
        facts=_facts(result),
        sections=(Section("Events counted", HEADS, rows),) if rows else (),
        notes=_notes(result),
    )


def _event_row(event: CountedEvent) -> Row:
    labels = {"eps": "eps, any noise", "mu": "mu, Gaussian", "rho": "rho, zCDP"}
    counts, floor = event.counts, event.error / 49
    cells = (
        signif(event.claim.value, 3),
        _bound(event.bound),
        "< " + signif(floor, 1) if event.p_value < floor else signif(event.p_value, 2),
        event.score,
        f"{count(counts.alarms)} of {count(counts.rows_runs)}",
        f"{count(counts.misses)} of {count(counts.neighbour_runs)}",
    )
    return Row(labels[event.claim.unit] + (" *" if event.refuted else ""), cells)


def _facts(result: AuditResult) -> tuple[Fact, ...]:
    return (
        ("Claim", result.claim.describe()),
        ("Verdict", result.verdict),
        ("Neighbours", adjacency(result.adjacency).describe()),
        ("Confidence", f"{100 * result.confidence:g}%"),
        ("Pair", result.pair or "as given"),
        ("Runs", f"{count(result.runs)} a side, {count(result.counted)} counted"),
    )


def _notes(result: AuditResult) -> tuple[str, ...]:
    error = signif(1 - result.confidence, 2)
    notes = []
    if result.verdict == "VIOLATION":
        notes.append(
            "* the claim is refuted: a correct release is flagged with probability "
            f"{error} at most, over all tests."
        )
    else:
        notes.append(
            "Consistent: this attack did not refute the claim on this pair, which proves nothing. "
            f"A correct release is flagged with probability {error} at most."
        )
    if any(event.claim.unit == "eps" for event in result.events):
        delta = f"delta = {result.claim.delta:g}"
        notes.append(f"at least: simultaneous lower bounds of the privacy loss; eps at {delta}.")
        notes += Rank.DETAIL(
            "False alarms and misses: errors of an adversary who attributes the release to the "
            "neighbour."
        )
    if result.claim.unit == "mu" and result.mu_lower > 0:
        notes.append(
            f"If the noise is Gaussian, the bound on mu implies an eps of at least "
            f"{signif(result.eps_gaussian, 3)}."
        )
    if any(event.refuted and event.score == "low bits" for event in result.events):
        notes.append(
            "low bits: the position of the lowest bit of a floating-point release distinguishes "
            "the tables: add integer noise on a public lattice."
        )
        notes += Rank.DETAIL(
            'To audit the distribution of the real numbers only, write numerics="idealised".'
        )
    limits = (notes[0], *(finding.words for finding in result.findings))
    return (*Rank.GUARANTEE(*limits), *notes[1:], _reach(result))


def _reach(result: AuditResult) -> str:
    unit, reach = result.claim.unit, result.reach
    if math.isinf(reach.smallest):
        return f"These runs cannot show any {unit} above {signif(reach.largest, 3)}."
    return (
        f"Under the strongest attack these runs detect a true {unit} of "
        f"{signif(reach.smallest, 3)} with power 0.8, and cannot show any above "
        f"{signif(reach.largest, 3)}."
    )


@report_of.register
def table_report(table: AuditTable) -> Report:
    """Lay out many audits as a table of strings."""
    lines = table.outcomes
    rows = tuple(Row(line.name, _outcome_cells(line)) for line in lines)
    return Report(
        title=table.title,
        facts=(
            ("Audits", count(len(lines))),
            ("As expected", count(sum(line.expected for line in lines))),
            ("Seconds", signif(sum(line.seconds for line in lines), 3)),
            ("False alarms", f"at rate {1 - table.confidence:.0e} at most, each"),
        ),
        sections=(Section("Audited (eps)", MANY_HEADS, rows),) if rows else (),
        notes=_many_notes(lines),
    )


def _outcome_cells(line: Outcome) -> tuple[str, ...]:
    return (
        signif(line.eps, 3),
        _bound(line.eps_lower),
        "" if math.isnan(line.eps_gaussian) else _bound(line.eps_gaussian),
        "-" if math.isinf(line.detectable) else signif(line.detectable, 3),
        count(line.runs),
        signif(line.seconds, 2),
        line.verdict + ("" if line.expected else " *"),
    )


def _bound(value: float) -> str:
    return signif(value, 3) if value > 0 else "-"


def _many_notes(lines: Sequence[Outcome]) -> tuple[str, ...]:
    notes = [
        "at least: lower bound of the actual eps, at the claim's delta, for any noise; a dash: no "
        "positive bound.",
        "by mu: the bound by mu, where Gaussian noise is claimed.",
        "detectable: the smallest eps that these runs detect with power 0.8 under the strongest "
        "attack; a dash if none is detectable.",
    ]
    if not all(line.expected for line in lines):
        notes.append("* not as expected: a correct recipe was flagged, or a faulty one was not.")
    return tuple(notes)
