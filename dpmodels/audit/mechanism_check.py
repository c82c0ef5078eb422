"""Invariants that a user-supplied mechanism has to keep, tried on made-up rows, and an audit.

A test that is right about a mechanism which keeps its claim fails with probability 1e-6 at most;
the audit flags it with probability 1e-4 at most.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from itertools import product
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from dpmodels.arguments import whole
from dpmodels.audit.pair import Pair
from dpmodels.audit.result import AuditResult
from dpmodels.audit.verb import audit
from dpmodels.codebook import Codebook
from dpmodels.errors import BudgetError, DPModelsError, shorten
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.mechanisms.user_supplied import (
    LAWS,
    NoiseSource,
    UserSupplied,
    record_passed,
    require_mechanism,
    sd_matrix,
)
from dpmodels.models.cov import dp_cov
from dpmodels.noise import source
from dpmodels.privacy import ZCDP, AdjacencyName, ApproxDP, Guarantee, PureDP, adjacency
from dpmodels.report import Report, Row, Section
from dpmodels.results.base import Printed, report_of
from dpmodels.typing import Floats

_ALARM: Final = 1e-6
_RUNS: Final = 4_000  # Releases whose noise is compared with the plan: a choice
_ROUNDING: Final = 1 + 1e-6
_GUARANTEES: Final[dict[str, tuple[Guarantee, ...]]] = {
    "gaussian": (ApproxDP(1.0, 1e-6), ZCDP(0.1), ApproxDP(0.1, 1e-9), ZCDP(10.0)),
    "laplace": (PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1), PureDP(0.1)),
}
_RELATIONS: Final[tuple[AdjacencyName, ...]] = ("replace", "add-remove")


@dataclass(frozen=True, repr=False, eq=False)
class MechanismCheck(Printed):
    """Whether a user-supplied mechanism passed its checks, and which it failed.

    Attributes
    ----------
    name : str
        The mechanism's.
    table : DataFrame
        One row a check: ``check``, ``passed``, ``reason``.
    audit : AuditResult or None
        None where an invariant failed before it.
    """

    name: str
    table: pd.DataFrame
    audit: AuditResult | None

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return bool(self.table["passed"].all())

    @property
    def verdict(self) -> str:
        """Either "passed" or "convicted"."""
        return "passed" if self.passed else "convicted"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it was convicted; empty where it passed."""
        return tuple(self.table.loc[~self.table["passed"], "reason"])

    def __repr__(self) -> str:
        return f"<MechanismCheck {self.name!r}: {self.verdict}>"

    def __str__(self) -> str:
        return str(self.summary())


@report_of.register
def check_report(checked: MechanismCheck) -> Report:
    """Lay out a check as tables of strings."""
    lines = checked.table.itertuples(index=False)
    rows = tuple(Row(str(one[0]), ("passed" if one[1] else "convicted",)) for one in lines)
    if checked.passed:
        notes: tuple[str, ...] = (
            "The mechanism was tried on made-up rows. That refutes claims and proves none.",
        )
    else:
        notes = tuple(f"{reason[:1].upper()}{reason[1:]}." for reason in checked.reasons)
    facts = (("Mechanism", checked.name), ("Verdict", checked.verdict))
    return Report(
        title=f"Check of a user-supplied mechanism: {checked.verdict}",
        facts=facts,
        sections=(Section("Checks", ("verdict",), rows),),
        notes=notes,
    )


def checked_mechanism(mechanism: Any, runs: int) -> MechanismCheck:
    """Run all checks, as :func:`dpmodels.mechanisms.check` describes; the audit comes last."""
    runs = whole("runs", runs, 1_000, 10**7)
    # Options of an instance are checked as they are.
    own = require_mechanism(mechanism if isinstance(mechanism, type) else type(mechanism))
    strategy = UserSupplied(own if isinstance(mechanism, type) else mechanism)
    lines: list[tuple[str, bool, str]] = []
    for name, law in CHECKS.items():
        try:
            reason = law(strategy)
        except DPModelsError as error:
            reason = str(error)
        lines.append((name, not reason, reason))
        if reason and name == "plan":
            break
    result = None
    if all(passed for _, passed, _ in lines):
        result = _audited(strategy, runs)
        refuted = result.verdict != "consistent"
        bound = f"{result.eps_lower:.3g} or more, and {result.eps_claimed:.3g} is claimed"
        reason = f"the audit refutes the claim: eps is {bound}" if refuted else ""
        lines.append(("audit", not refuted, reason))
    table = pd.DataFrame(lines, columns=["check", "passed", "reason"])
    made = MechanismCheck(strategy.mechanism.name, table, result)
    if made.passed:
        record_passed(strategy.mechanism)
    return made


def _plan(strategy: UserSupplied) -> str:
    """Plan twice for many public facts: enough noise, the same both times."""
    accepted, refused = 0, ""
    law = strategy.mechanism.law
    for columns, relation, centred in product((1, 2, 7), _RELATIONS, (True, False)):
        facts = Facts(columns, adjacency(relation), centred=centred)
        for guarantee in _GUARANTEES[law]:
            try:
                plans = [strategy.plan(facts, guarantee) for _ in range(2)]
            except BudgetError as error:
                refused = str(error)
                continue
            accepted += 1
            if repr(plans[0]) != repr(plans[1]):  # As text, since nan stands for what is left out
                return "plan() answers the same facts and guarantee with different noise"
    return "" if accepted else f"plan() accepts no guarantee: {shorten(refused, 120)}"


def _repeat(strategy: UserSupplied) -> str:
    """Release twice without noise: the same, with the moments as they were."""
    plan, exact = _planned(strategy, "replace"), _moments(_circle()[:9])
    kept = exact.copy()
    first, again = (_silent(strategy, exact, plan) for _ in range(2))
    if not np.array_equal(exact, kept):
        return "release() changes the moments that it is given"
    if not np.array_equal(first, again):
        return "release() draws random numbers that are not of source="
    return ""


def _sensitivity(strategy: UserSupplied) -> str:
    """Compare neighbours by brute force with what the planned noise allows."""
    points = [*_circle(), None]  # None is an incomplete row
    for relation in _RELATIONS:
        plan = _planned(strategy, relation)
        scales = np.triu(sd_matrix(strategy.planned(plan), 2)) / strategy.law.sd
        power = 2 if strategy.mechanism.law == "gaussian" else 1
        event: Any = plan.events[0]
        most = 1 / event.multiplier
        for base in ([], points[:5]):
            answers = [_silent(strategy, _moments([*base, row]), plan) for row in points]
            starts = answers if relation == "replace" else [_silent(strategy, _moments(base), plan)]
            for one, other in product(starts, answers):
                apart = np.triu(one - other)[scales > 0] / scales[scales > 0]
                if float((np.abs(apart) ** power).sum() ** (1 / power)) > most * _ROUNDING:
                    return (
                        f"a neighbour under {relation!r} changes what noise is added to by more "
                        "than the planned noise allows"
                    )
    return ""


def _noise(strategy: UserSupplied) -> str:
    """Compare the noise that is added with the plan, whatever the moments are."""
    tables = (_moments(_circle()[:9]), _moments([]), 1e6 * np.eye(3))
    return next(filter(None, (_noise_at(strategy, exact) for exact in tables)), "")


def _noise_at(strategy: UserSupplied, exact: Floats) -> str:
    """Test that the noise has the planned standard deviations and is independent."""
    plan = _planned(strategy, "replace")
    stream, law = source(), strategy.mechanism.law
    middle, upper = _silent(strategy, exact, plan), np.triu_indices(3)
    releases = (
        strategy.released(exact.copy(), plan, NoiseSource(law, stream)) for _ in range(_RUNS)
    )
    sds = sd_matrix(strategy.planned(plan), 2)[upper]
    drawn = np.array([(release - middle)[upper] for release in releases]) / sds
    # The sum of squares of normal numbers has a chi-square law, that of Laplace's sizes a gamma.
    sums = (drawn**2).sum(axis=0) if law == "gaussian" else np.abs(drawn).sum(axis=0)
    known: Any = (
        stats.chi2(_RUNS) if law == "gaussian" else stats.gamma(_RUNS, scale=math.sqrt(0.5))
    )
    part = _ALARM / (4 * len(sds))
    if (sums < known.ppf(part)).any():
        worst = float(np.sqrt((drawn**2).mean(axis=0)).min())
        return f"the noise that is added is too small: {worst:.2g} of the planned noise"
    if (sums > known.isf(part)).any():
        worst = float(np.sqrt((drawn**2).mean(axis=0)).max())
        return f"the noise that is added is {worst:.2g} times the planned noise: errors are wrong"
    # Of independent entries the least eigenvalue is near 1; a bound for subgaussian entries, with
    # room for Laplace's.
    room = (math.sqrt(len(sds)) + 2 * math.sqrt(-2 * math.log(part))) / math.sqrt(_RUNS)
    if np.linalg.eigvalsh(drawn.T @ drawn / _RUNS)[0] < (1 - room) ** 2:
        return "the noise of different moments is not independent: some combination has less"
    return ""


CHECKS: Final[dict[str, Callable[[UserSupplied], str]]] = {
    "plan": _plan,
    "repeat": _repeat,
    "sensitivity": _sensitivity,
    "noise": _noise,
}


def _audited(strategy: UserSupplied, runs: int) -> AuditResult:
    """Attack a release of a small table, where a row moves from one end to the other."""
    names, rows = ["x0", "x1"], np.zeros((2, 20))
    neighbour = rows.copy()
    rows[:, -1], neighbour[:, -1] = (1.0, 1.0), (1.0, -1.0)
    given: Any = strategy
    recipe = functools.partial(
        dp_cov,
        "~ x0 + x1",
        codebook=Codebook.uniform(names, (-1, 1)),
        budget=next(one for one in _GUARANTEES[strategy.mechanism.law] if _takes(strategy, one)),
        mechanism=given,
    )
    one, other = (dict(zip(names, own, strict=True)) for own in (rows, neighbour))
    pair = Pair(one, other, name="a row turned by 90 degrees")
    return audit(recipe, pair, runs=runs, confidence=1 - 1e-4)


def _takes(strategy: UserSupplied, guarantee: Guarantee) -> bool:
    try:
        strategy.plan(Facts(2, adjacency("replace"), centred=True), guarantee)
    except BudgetError:
        return False
    return True


def _planned(strategy: UserSupplied, relation: AdjacencyName) -> Plan:
    facts = Facts(2, adjacency(relation), centred=True)
    taken = (one for one in _GUARANTEES[strategy.mechanism.law] if _takes(strategy, one))
    return strategy.plan(facts, next(taken))


def _circle() -> list[Floats]:
    angles = np.radians([0, 45, 90, 104.5, 135, 180, 225, 270, 315, 1])
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    return [*points, 0.3 * points[1], 0 * points[0]]


def _moments(rows: list[Any]) -> Floats:
    """Return the moments of rows of the unit ball, of which None is incomplete."""
    exact = np.zeros((3, 3))
    for row in rows:
        augmented = np.zeros(3) if row is None else np.array([1.0, *row])
        exact += np.outer(augmented, augmented)
    return exact


def _silent(strategy: UserSupplied, exact: Floats, plan: Plan) -> Floats:
    """Return what a release is without its noise."""
    assert all(map(math.isfinite, astuple(plan.steps)))
    return strategy.released(exact, plan, NoiseSource(strategy.mechanism.law, None))


assert set(_GUARANTEES) == set(LAWS)
