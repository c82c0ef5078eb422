"""Many audits, and what each came to."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import pandas as pd

from dpmodels.audit.result import AuditResult
from dpmodels.results.base import Printed


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
    def of(cls, name: str, found: AuditResult, seconds: float, *, faulty: bool = False) -> Outcome:
        """Take from an audit what the table shows."""
        gaussian = found.claim.unit == "mu"
        return cls(
            name=name,
            faulty=faulty,
            eps=found.eps_claimed,
            delta=found.claim.delta,
            eps_lower=found.eps_lower,
            eps_gaussian=found.eps_gaussian if gaussian else math.nan,
            detectable=found.claim.of(found.reach.smallest).eps,
            runs=found.runs,
            seconds=seconds,
            verdict=found.verdict,
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
        return all(one.expected for one in self.outcomes)

    def tidy(self) -> pd.DataFrame:
        """Return one row an audit."""
        return pd.DataFrame([asdict(one) | {"expected": one.expected} for one in self.outcomes])

    def __repr__(self) -> str:
        return self.summary().as_text()
