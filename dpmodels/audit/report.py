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
from dpmodels.results.base import Printed, report_of

# Many audits, and what each came to.


@dataclass(frozen=True)
class Outcome:
    """What one audit of many came to."""

    name: str
    faulty: bool  # whether it is there to be flagged
    eps: float  # claimed, with delta
    delta: float
    eps_lower: float  # what is lost at least, at the claim's delta, by any law
    eps_gaussian: float  # the same if the noise is Gaussian, nan where that is not claimed
    detectable: float  # the smallest eps that so many runs would flag four times in five
    runs: int  # on each side
    seconds: float  # by the clock
    verdict: str  # "consistent" or "VIOLATION"

    @property
    def expected(self) -> bool:
        """Whether what is wrong was flagged, and nothing else."""
        return self.faulty == (self.verdict == "VIOLATION")

    @classmethod
    def of(cls, name: str, result: AuditResult, seconds: float, *, faulty: bool = False) -> Outcome:
        """Take from an audit what the table shows."""
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
    """Many audits and what they were expected to say."""

    title: str  # what was audited
    confidence: float  # of each audit of something that keeps its claim
    outcomes: tuple[Outcome, ...]

    @property
    def expected(self) -> bool:
        """Whether every line says what it should."""
        return all(outcome.expected for outcome in self.outcomes)

    def tidy(self) -> pd.DataFrame:
        """Return one row an audit."""
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
            "* the claim is refuted: a release that keeps it is flagged with probability "
            f"{error} at most, all tests together."
        )
    else:
        notes.append(
            "Consistent: this attack did not refute the claim on this pair. That proves nothing; "
            f"a release that keeps its claim is flagged with probability {error} at most."
        )
    if any(event.claim.unit == "eps" for event in result.events):
        delta = f"delta = {result.claim.delta:g}"
        notes.append(
            f"at least: lower bounds of what is lost, which hold together; eps at {delta}. False "
            "alarms and misses: of the adversary, who calls the release the neighbour's."
        )
    if result.claim.unit == "mu" and result.mu_lower > 0:
        notes.append(
            f"If the noise is Gaussian, the bound of mu comes to an eps of at least "
            f"{signif(result.eps_gaussian, 3)}."
        )
    if any(event.refuted and event.score == "low bits" for event in result.events):
        notes.append(
            "low bits: where the lowest bit of a floating-point release lies tells the tables "
            "apart. Add integer noise on a public lattice; to audit the law of the real numbers "
            'alone, write numerics="idealised".'
        )
    notes.append(_reach(result))
    return (*notes, *(finding.words for finding in result.findings))


def _reach(result: AuditResult) -> str:
    unit, reach = result.claim.unit, result.reach
    if math.isinf(reach.smallest):
        return (
            f"So many runs show no {unit} above {signif(reach.largest, 3)}, whatever is released."
        )
    return (
        f"So many runs would flag a true {unit} of {signif(reach.smallest, 3)} four times in five, "
        f"under the attack that tells most, and show none above {signif(reach.largest, 3)}."
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
        "at least: lower bound of the eps that is really lost, at the claim's delta, whatever the "
        "law of the noise; by mu: the same by the bound of mu, where Gaussian noise is claimed. "
        "A dash: the runs bound nothing.",
        "detectable: the smallest eps that so many runs a side would flag four times in five, "
        "under the attack that tells most; a dash where none would be.",
    ]
    if not all(line.expected for line in lines):
        notes.append("* not as expected: what keeps its claim was flagged, or what breaks it not.")
    return tuple(notes)
