"""All audits of the package, or of the exhibits, and the table they come to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from dpmodels.audit.exhibits import CORRECT, EXHIBITS, Exhibit
from dpmodels.audit.joint import JOINT, JointAudited
from dpmodels.audit.outcome import AuditTable, Outcome
from dpmodels.audit.persons import PERSONS
from dpmodels.audit.registry import REGISTRY, Audited
from dpmodels.audit.verb import audit

# Of each audit of something that keeps its claim: of many none is to be flagged by chance.
SMALL: Final = 1 - 1e-6
FULL: Final = 1 - 2e-4
EXHIBIT: Final = 0.95


def run_all(
    lines: Sequence[Audited | JointAudited] = (*REGISTRY, *PERSONS, *JOINT), *, full: bool = False
) -> AuditTable:
    """Audit mechanisms, verbs and protocols between sites, all by default.

    A full audit takes minutes for all of them; a small one seconds.
    """
    made, confidence = [], FULL if full else SMALL
    for line in lines:
        runs = line.full if full else line.small
        start = time.perf_counter()
        found = audit(line.verb, line.pair, runs=runs, confidence=confidence)
        made.append(Outcome.of(line.name, found, time.perf_counter() - start))
    size = "at full size" if full else "small"
    return AuditTable(f"Audits of the package, {size}", confidence, tuple(made))


def run_exhibits() -> AuditTable:
    """Audit every exhibit, and its twin without the fault."""
    made = []
    for name, exhibit in EXHIBITS.items():
        made += [
            _exhibited(name, exhibit, EXHIBIT, faulty=True),
            _exhibited(f"{name}, mended", CORRECT[name], FULL, faulty=False),
        ]
    return AuditTable("Audits of the exhibits", FULL, tuple(made))


def _exhibited(name: str, exhibit: Exhibit, confidence: float, *, faulty: bool) -> Outcome:
    start = time.perf_counter()
    found = audit(
        exhibit.recipe,
        exhibit.pair,
        eps=exhibit.eps,
        delta=exhibit.delta,
        runs=exhibit.runs,
        confidence=confidence,
    )
    return Outcome.of(name, found, time.perf_counter() - start, faulty=faulty)
