"""The printed reports of one audit and of many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

import pandas as pd

from dpmodels.audit.result import AuditResult, CountedEvent
from dpmodels.privacy import adjacency
from dpmodels.report import Fact, Report, Row, Section, count, signif
from dpmodels.report.notes import Rank
from dpmodels.results.base import Printed, report_of


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
    rows = tuple(Row(_unit(event), _cells(event)) for event in result.events)
    return Report(
        title=f"Privacy audit: {result.verdict}",
        facts=_facts(result),
        sections=(Section("Events counted", HEADS, rows),) if rows else (),
        notes=_notes(result),
    )


def _unit(event: CountedEvent) -> str:
    labels = {"eps": "eps, any noise", "mu": "mu, Gaussian", "rho": "rho, zCDP"}
    return labels[event.claim.unit] + (" *" if event.refuted else "")


def _cells(event: CountedEvent) -> tuple[str, ...]:
    counts = event.counts
    floor = event.error / 49
    return (
        signif(event.claim.value, 3),
        signif(event.bound, 3) if event.bound > 0 else "-",
        "< " + signif(floor, 1) if event.p_value < floor else signif(event.p_value, 2),
        event.score,
        f"{count(counts.alarms)} of {count(counts.rows_runs)}",
        f"{count(counts.misses)} of {count(counts.neighbour_runs)}",
    )


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
