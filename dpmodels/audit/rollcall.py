"""All audits of the package, or of the exhibits, and the table they come to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import pandas as pd

from dpmodels.audit.every import EVERY, Audited
from dpmodels.audit.exhibits import CORRECT, EXHIBITS, Exhibit
from dpmodels.audit.joint import JOINT, JointLine
from dpmodels.audit.outcome import Outcome
from dpmodels.audit.rollcall_report import rollcall_report
from dpmodels.audit.verb import audit

if TYPE_CHECKING:
    from dpmodels.results.summary import Summary

# Of each audit of something that keeps its claim: of many none is to be flagged by chance.
SMALL: Final = 1 - 1e-6
FULL: Final = 1 - 2e-4
EXHIBIT: Final = 0.95


@dataclass(frozen=True, repr=False)
class RollCall:
    """Many audits and what they were expected to say.

    Attributes
    ----------
    title : str
        What was audited.
    confidence : float
        Of each audit of something that keeps its claim.
    lines : tuple of Outcome
        One an audit.
    """

    title: str
    confidence: float
    lines: tuple[Outcome, ...]

    @property
    def expected(self) -> bool:
        """Whether every line says what it should."""
        return all(line.expected for line in self.lines)

    def tidy(self) -> pd.DataFrame:
        """Return one row an audit."""
        return pd.DataFrame([asdict(line) | {"expected": line.expected} for line in self.lines])

    def summary(self) -> Summary:
        """Return the printed table."""
        from dpmodels.results.summary import Summary

        return Summary(rollcall_report(self.title, self.confidence, self.lines))

    def __repr__(self) -> str:
        return self.summary().as_text()


def call_the_roll(
    lines: Sequence[Audited | JointLine] = (*EVERY, *JOINT), *, full: bool = False
) -> RollCall:
    """Audit mechanisms, verbs and protocols between sites.

    Parameters
    ----------
    lines : sequence of Audited or JointLine
        Which; by default all there are.
    full : bool
        As many releases as a full audit takes, minutes for all; else seconds.

    Returns
    -------
    RollCall

    Examples
    --------
    >>> made = call_the_roll([line for line in EVERY if "dp_table" in line.name])
    >>> made.expected, made.lines[0].name, made.lines[0].runs
    (True, 'dp_table geometric (eps)', 1000)
    """
    made, confidence = [], FULL if full else SMALL
    for line in lines:
        runs = line.full if full else line.small
        start = time.perf_counter()
        found = audit(line.verb, line.pair, runs=runs, confidence=confidence)
        made.append(Outcome.of(line.name, found, time.perf_counter() - start))
    size = "at full size" if full else "small"
    return RollCall(f"Audits of the package, {size}", confidence, tuple(made))


def call_the_exhibits() -> RollCall:
    """Audit every exhibit, and its twin without the fault."""
    made = []
    for name, exhibit in EXHIBITS.items():
        made += [
            _exhibited(name, exhibit, EXHIBIT, faulty=True),
            _exhibited(f"{name}, mended", CORRECT[name], FULL, faulty=False),
        ]
    return RollCall("Audits of the exhibits", FULL, tuple(made))


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
