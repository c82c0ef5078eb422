"""Checks of a user-supplied mechanism on artificial rows: invariants, and an audit.

Each invariant fails for a correct mechanism with probability 1e-6 at most; the audit flags it with
probability 1e-4 at most.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import product
from typing import Final, cast

import numpy as np
from scipy import stats

from dpmodels.arguments import integer
from dpmodels.audit.coupled import coupled
from dpmodels.audit.result import AuditResult
from dpmodels.audit.verb import audit
from dpmodels.codebook import Codebook
from dpmodels.errors import BudgetError, DPModelsError
from dpmodels.mechanisms import CovarianceMechanism
from dpmodels.mechanisms.protocol import Facts
from dpmodels.mechanisms.user_supplied import UserSupplied, record_passed, require_mechanism
from dpmodels.models.moments import dp_cov
from dpmodels.noise import seeded, source
from dpmodels.privacy import ZCDP, AdjacencyName, ApproxDP, Guarantee, PureDP, adjacency
from dpmodels.results.cov import CovResult
from dpmodels.typing import Floats

_ALARM: Final = 1e-6
_RUNS: Final = 4_000  # Releases whose noise is compared with the plan: a choice
_GUARANTEES: Final = (PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1), ApproxDP(0.1, 1e-9), ZCDP(10.0))
_RELATIONS: Final[tuple[AdjacencyName, ...]] = ("replace", "add-remove")
_FACTS: Final = Facts(2, adjacency("replace"), centred=True)


@dataclass(frozen=True, eq=False)
class MechanismCheck:
    """The checks of a user-supplied mechanism, and why the last one failed, if it did.

    Attributes
    ----------
    name : str
        Name of the mechanism.
    checks : tuple of str
        Names of the checks, up to the first that failed.
    reason : str
        Why the check failed; empty if it passed.
    audit : AuditResult or None
        None if a check failed before it.
    """

    name: str
    checks: tuple[str, ...]
    reason: str
    audit: AuditResult | None

    @property
    def verdict(self) -> str:
        """Either "passed" or "convicted"."""
        return "convicted" if self.reason else "passed"

    def __str__(self) -> str:
        proved = "tested on artificial rows, which can refute a claim but not prove it"
        return (
            f"Check of the user-supplied mechanism {self.name!r}: {self.verdict}\n"
            f"Checks: {', '.join(self.checks)}\n{self.reason or proved}"
        )


def checked_mechanism(mechanism: object, runs: int) -> MechanismCheck:
    """Run all checks that :func:`dpmodels.mechanisms.check` describes, the audit last."""
    runs = integer("runs", runs, 1_000, 10**7)
    strategy = UserSupplied(require_mechanism(mechanism))
    reason, checks, result = "", [], None
    try:
        for invariant in (plan, noise, sensitivity):
            checks.append(invariant.__name__)
            reason = reason or invariant(strategy)
        if not reason:
            checks.append("audit")
            result = audit(_recipe(strategy), runs=runs, confidence=1 - 1e-4)
            if result.verdict != "consistent":
                reason = f"the audit refutes the claim: eps is {result.eps_lower:.3g} or more"
    except DPModelsError as error:
        reason = str(error)
    if not reason:
        record_passed(strategy.mechanism)
    return MechanismCheck(strategy.mechanism.name, tuple(checks), reason, result)


def plan(strategy: UserSupplied) -> str:
    """Check that plans for many public facts have enough noise and are reproducible."""
    for columns, relation, centred in product((1, 2, 7), _RELATIONS, (True, False)):
        facts = Facts(columns, adjacency(relation), centred=centred)
        for guarantee in _supported(strategy, facts):
            if len({repr(strategy.plan(facts, guarantee)) for _ in range(2)}) > 1:
                return "plan() returns different noise for the same facts and guarantee"
    return ""


def noise(strategy: UserSupplied) -> str:
    """Compare the added noise with the plan, for several moments."""
    tables = (np.diag([9.0, 4.0, 2.0]), np.zeros((3, 3)), 1e6 * np.eye(3))
    return next(filter(None, (_noise_at(strategy, exact) for exact in tables)), "")


def _noise_at(strategy: UserSupplied, exact: Floats) -> str:
    planned, stream = strategy.plan(_FACTS, _supported(strategy)[0]), source()
    first, second = (strategy.released(exact, planned, seeded(1)) for _ in range(2))
    if not np.array_equal(first, second):
        return "release() draws random numbers other than by draw()"
    upper = np.triu_indices(3)
    sds = strategy.planned(planned)[upper]
    releases = (strategy.released(exact, planned, stream) for _ in range(_RUNS))
    errors = np.array([(release - exact)[upper] for release in releases]) / sds
    # Sums of squared normal numbers are chi-square, sums of absolute Laplace numbers gamma.
    gaussian = strategy.mechanism.law == "gaussian"
    sums = (errors**2 if gaussian else np.abs(errors)).sum(axis=0)
    law = stats.chi2(_RUNS) if gaussian else stats.gamma(_RUNS, scale=math.sqrt(0.5))
    level = _ALARM / (4 * len(sds))
    if (sums < law.ppf(level)).any() or (sums > law.isf(level)).any():
        sd_ratios = np.sqrt((errors**2).mean(axis=0))
        small = "too little noise: " if sd_ratios.min() < 1 else ""
        return (
            f"release() does not add the planned noise: {small}its standard deviations are "
            f"{sd_ratios.min():.2g} to {sd_ratios.max():.2g} times the planned ones"
        )
    # The smallest eigenvalue of independent entries is near 1; a bound for subgaussian entries,
    # with an allowance for Laplace noise.
    margin = (math.sqrt(len(sds)) + 2 * math.sqrt(-2 * math.log(level))) / math.sqrt(_RUNS)
    if np.linalg.eigvalsh(errors.T @ errors / _RUNS)[0] < (1 - margin) ** 2:
        return "the noise of different moments is not independent: some combination has less"
    return ""


def sensitivity(strategy: UserSupplied) -> str:
    """Check the sensitivity by releasing neighbours with the same noise."""
    for relation in _RELATIONS:
        result = coupled(_recipe(strategy, relation))
        if result.verdict != "consistent" or result.findings:
            return f"neighbours differ by more than the planned noise allows: {result.worst}"
    return ""


def _recipe(
    strategy: UserSupplied, relation: AdjacencyName = "replace"
) -> functools.partial[CovResult]:
    return functools.partial(
        dp_cov,
        "~ a + b",
        codebook=Codebook.uniform(["a", "b"], (-1, 1)),
        budget=_supported(strategy)[0],
        adjacency=relation,
        mechanism=cast("CovarianceMechanism", strategy),
    )


def _supported(strategy: UserSupplied, facts: Facts = _FACTS) -> tuple[Guarantee, ...]:
    """Return the guarantees with a plan; BudgetError without any."""
    supported = []
    for guarantee in _GUARANTEES:
        try:
            strategy.plan(facts, guarantee)
        except BudgetError:
            continue
        supported.append(guarantee)
    if not supported:
        raise BudgetError(f"plan() refuses every guarantee, {_GUARANTEES[1].describe()} among them")
    return tuple(supported)
