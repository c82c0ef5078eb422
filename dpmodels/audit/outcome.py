"""One line of a table of audits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmodels.audit.result import AuditResult


@dataclass(frozen=True)
class Outcome:
    """What one audit of many came to.

    Attributes
    ----------
    name : str
        What was audited.
    faulty : bool
        Whether it is there to be flagged.
    eps, delta : float
        The guarantee that is claimed.
    eps_lower : float
        What is lost at least, at the claim's delta, by any law.
    eps_gaussian : float
        The same if the noise is Gaussian, nan where that is not claimed.
    detectable : float
        The smallest eps that so many runs would flag four times in five, under
        the attack that tells most; infinite if none.
    runs : int
        On each side.
    seconds : float
        By the clock.
    verdict : {"consistent", "VIOLATION"}
    """

    name: str
    faulty: bool
    eps: float
    delta: float
    eps_lower: float
    eps_gaussian: float
    detectable: float
    runs: int
    seconds: float
    verdict: str

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
