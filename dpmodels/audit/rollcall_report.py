"""The printed table of many audits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dpmodels.audit.outcome import Outcome
from dpmodels.report import Report, Row, Section, count, signif

HEADS: Final = ("claimed", "at least", "by mu", "detectable", "runs", "seconds", "verdict")


def rollcall_report(title: str, confidence: float, lines: Sequence[Outcome]) -> Report:
    """Lay out many audits as a table of strings."""
    rows = tuple(Row(line.name, _cells(line)) for line in lines)
    return Report(
        title=title,
        facts=(
            ("Audits", count(len(lines))),
            ("As expected", count(sum(line.expected for line in lines))),
            ("Seconds", signif(sum(line.seconds for line in lines), 3)),
            ("False alarms", f"at rate {1 - confidence:.0e} at most, each"),
        ),
        sections=(Section("Audited (eps)", HEADS, rows),) if rows else (),
        notes=_notes(lines),
    )


def _cells(line: Outcome) -> tuple[str, ...]:
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


def _notes(lines: Sequence[Outcome]) -> tuple[str, ...]:
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
