"""A planned analysis: predicted errors of its calls, and their parts of the budget."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.arguments import option, real
from dpmodels.errors import ArgumentError, BudgetError, quoted
from dpmodels.planning.noise_curve import Form
from dpmodels.privacy import ZCDP, Adjacency, ApproxDP, Event, Guarantee, PureDP, resolve_budget
from dpmodels.privacy.events import all_gaussian
from dpmodels.privacy.spent import capacity
from dpmodels.report import Fact, Report, Row, Section, count, signif
from dpmodels.report.notes import Rank
from dpmodels.results.base import Printed, report_of
from dpmodels.sessions.call import AMOUNTS, Call, Calls
from dpmodels.typing import Floats
from dpmodels.verbs import documented

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_CALLS: Final = 100
_WRITE: Final = (
    '[dp.call.mean("wage ~ sex"), ("lm", "wage ~ age + sex")], or a dict of them by name'
)


def named_calls(calls: object) -> dict[str, Call]:
    """Return calls by name: the keys of a mapping, or their verbs, numbered if repeated."""
    if isinstance(calls, Mapping):
        if not all(isinstance(name, str) and name for name in calls):
            raise ArgumentError(f"calls=: expected names that are strings; write {_WRITE}")
        written = {name: call.read(value) for name, value in calls.items()}
    elif isinstance(calls, str | Call) or not isinstance(calls, Iterable):
        raise ArgumentError(f"calls of type {type(calls).__name__}: write {_WRITE}")
    else:
        counts, written = Counter[str](), {}
        for entry in [call.read(value) for value in calls]:
            counts[entry.name] += 1
            number = counts[entry.name]
            written[entry.name if number == 1 else f"{entry.name} {number}"] = entry
    if not 1 <= len(written) <= MOST_CALLS:
        raise ArgumentError(f"{len(written)} calls: expected 1 to {MOST_CALLS}; write {_WRITE}")
    return written


@dataclass(frozen=True)
class Target:
    """Upper limit of a call's standard error, or of the share of noise in the variance."""

    kind: str  # "se" or "noise"
    level: float

    def describe(self) -> str:
        """Describe the target."""
        word = "total se" if self.kind == "se" else "share of noise"
        return f"{word} at most {self.level:g}"


def targets_of(targets: object, names: Sequence[str]) -> dict[str, tuple[Target, ...]]:
    """Read targets, of all calls or by name."""
    write = 'write targets={"noise": 0.5}, or by call targets={"mean": {"se": 0.2}}'
    if targets is None:
        return {}
    if not isinstance(targets, Mapping) or not targets:
        raise ArgumentError(f"targets of type {type(targets).__name__}: {write}")
    if set(targets) <= {"se", "noise"}:
        targets = dict.fromkeys(names, targets)
    result = {}
    for name, levels in targets.items():
        if name not in names:
            raise ArgumentError(
                f"targets: {quoted(name)} is not a call; calls are {', '.join(names)}"
            )
        if not isinstance(levels, Mapping) or not levels or not set(levels) <= {"se", "noise"}:
            raise ArgumentError(f"targets of {name}: {write}")
        for kind, value in levels.items():
            if not 0 < real(value) < (1 if kind == "noise" else math.inf):
                expected = "a share between 0 and 1" if kind == "noise" else "a positive number"
                raise ArgumentError(
                    f"targets of {name}: {kind}={quoted(value)}, expected {expected}"
                )
        result[name] = tuple(Target(kind, real(level)) for kind, level in levels.items())
    return result


def weights_of(by_name: object, names: Sequence[str]) -> Floats:
    """Read weights by name, 1 by default."""
    if by_name is None:
        return np.ones(len(names))
    write = 'write weights={"mean": 2}, a positive number by call'
    if not isinstance(by_name, Mapping) or not set(by_name) <= set(names):
        raise ArgumentError(f"weights={quoted(by_name)}: {write}; calls are {', '.join(names)}")
    weights = np.array([real(by_name.get(name, 1)) for name in names])
    if not (weights > 0).all():
        raise ArgumentError(f"weights={quoted(by_name)}: {write}")
    return weights


@dataclass(frozen=True)
class Budgeting:
    """The total guarantee, and the form of each call's part."""

    guarantee: Guarantee
    calls: Mapping[str, Call]

    @property
    def left(self) -> Guarantee:
        """The guarantee less the deltas that calls spend."""
        guarantee = self.guarantee
        if not isinstance(guarantee, ApproxDP):
            return guarantee
        spent = math.fsum(self._spent(name) for name in self.calls)
        if spent >= guarantee.delta:
            raise BudgetError(
                f"the deltas of calls add up to {spent:g}, of {guarantee.delta:g} in total: "
                "write smaller ones, such as a hundredth of it"
            )
        return replace(guarantee, delta=guarantee.delta - spent)

    def form(self, name: str) -> Form:
        """Return a function from an amount to a call's guarantee."""
        call, guarantee = self.calls[name], self.guarantee
        stated = self.stated_budget(name)
        if stated is not None:
            return lambda amount: stated
        if isinstance(guarantee, ZCDP):
            return ZCDP
        delta = self._spent(name) or (self.left.delta if isinstance(self.left, ApproxDP) else 0.0)
        if call.options.get("delta") == 0:
            delta = 0.0
        return (lambda amount: ApproxDP(amount, delta)) if delta else PureDP

    def stated_budget(self, name: str) -> Guarantee | None:
        """Return a call's stated budget."""
        options = self.calls[name].options
        if options.get("share") is not None or isinstance(options.get("eps"), str):
            raise BudgetError(
                f"{name}: a plan divides the budget; leave the share out, or write an amount, "
                "eps=0.2"
            )
        eps, budget = options.get("eps"), options.get("budget")
        if eps is None and budget is None:
            return None
        remaining = self.left.delta if isinstance(self.left, ApproxDP) else 0.0
        delta = options.get("delta", remaining if budget is None else 0.0)
        return resolve_budget(eps, delta, budget)

    def _spent(self, name: str) -> float:
        call, guarantee = self.calls[name], self.guarantee
        delta = call.options.get("delta")
        if not call.spends_delta:
            if delta is not None and delta != 0 and call.silent:
                raise BudgetError(
                    f"{name}: delta={quoted(delta)} without a budget: leave it out, as Gaussian "
                    "noise uses the total delta, or write delta=0 for noise without delta"
                )
            return 0.0
        if delta is None and isinstance(guarantee, ApproxDP):
            raise BudgetError(
                f"{name} spends its delta, and {guarantee.delta:.3g} would leave none for "
                f"Gaussian noise: write delta={guarantee.delta / 100:.3g}, or another part of it"
            )
        return real(delta) if isinstance(guarantee, ApproxDP) else 0.0


# ``call``: the verbs, which describe a call without running it.

call: Final = Calls()


# Probability from which a figure counts as identified: a choice.
LIKELY: Final = 0.95


@dataclass(frozen=True, eq=False)
class PlanRequest:
    """The inputs of a plan: public facts and assumed rows."""

    guarantee: Guarantee  # Of all calls together
    adjacency: Adjacency
    n_rows: int
    assumed: str  # Description of the assumed rows
    subset: str | None
    targets: Mapping[str, tuple[Target, ...]]
    weights: Floats
    best: str  # Objective: the "worst" loss, or the "mean" loss
    over: str  # Which figure represents a call: the "median" or the "worst"
    solved: str  # "eps" or "n" if that was solved for, else empty


class PlanLine(NamedTuple):
    """Predicted errors of one call."""

    name: str
    call: Call
    guarantee: Guarantee  # Its recommended part
    mechanism: str
    events: tuple[Event, ...]
    figure: str  # The one that represents the call
    figures: int  # How many there are
    sampling: float  # Standard errors of that figure
    noise: float
    total: float
    ratio: float  # Total over sampling
    identified: float  # Mean probability that a figure is
    share: float = 0.0  # Of the total budget
    even: float = 0.0  # The ratio if all had equal parts
    needs: float = 0.0  # Smallest tried budget that identifies its figures


@dataclass(frozen=True, repr=False, eq=False)
class AnalysisPlan(Printed):
    """Predicted errors of an analysis, and a division of its budget; nothing was read or spent.

    Attributes
    ----------
    figures : DataFrame
        One row per call and figure: ``name``, ``figure``; its ``value`` on the
        assumed rows; standard errors of ``sampling`` and ``noise``, and
        ``total``; ``ratio``, total over sampling; ``identified``, the
        probability that a release identifies it.
    pure : float
        Total eps of the calls without Gaussian noise, if others have it, for
        the session: ``dp.session(..., pure=plan.pure)``.
    """

    request: PlanRequest
    lines: tuple[PlanLine, ...]
    figures: pd.DataFrame
    budget_curve: pd.DataFrame
    rows_curve: pd.DataFrame
    pure: float

    @property
    def table(self) -> pd.DataFrame:
        """One row per call, at the recommended division.

        Columns: its ``name`` and ``call``; its ``mechanism``; its budget in
        ``eps`` or ``rho`` and its ``share``; the ``figure`` that represents it
        with standard errors of ``sampling`` and ``noise``, and the ``total``;
        ``ratio``, total over sampling; ``noise_share``, the share of noise in
        the variance; ``rows_factor``, by which more rows would compensate for
        the noise; ``even``, the ratio under an equal division; ``identified``,
        the mean probability that a figure is; ``needs``, the smallest tried
        budget at which that is very likely, or nan.
        """
        return pd.DataFrame([self._row(line) for line in self.lines])

    def _row(self, line: PlanLine) -> dict[str, object]:
        amount, errors = capacity(line.guarantee), ("figure", "sampling", "noise", "total", "ratio")
        return {
            **{"name": line.name, "call": repr(line.call), "mechanism": line.mechanism},
            **{amount.unit: amount.amount, "share": line.share},
            **{name: getattr(line, name) for name in errors},
            **{"noise_share": 1 - line.ratio**-2, "rows_factor": line.ratio**2},
            **{name: getattr(line, name) for name in ("even", "identified", "needs")},
        }

    @property
    def budgets(self) -> dict[str, Guarantee]:
        """Recommended guarantees by name, for ``budget=`` of each verb."""
        return {line.name: line.guarantee for line in self.lines}

    @property
    def calls(self) -> list[Call]:
        """The calls with their budgets, those without Gaussian noise first, for a session."""
        ordered = sorted(self.lines, key=lambda line: all_gaussian(line.events))
        return [_with_budget(line) for line in ordered]

    @property
    def words(self) -> dict[str, str]:
        """The calls as code, by name."""
        return {line.name: _written(_with_budget(line)) for line in self.lines}

    def curve(self, along: str = "budget") -> pd.DataFrame:
        """Return the errors of the calls at other budgets or numbers of rows.

        Parameters
        ----------
        along : {"budget", "n"}
            The total budget, divided in the same proportions, or the number of rows.

        Returns
        -------
        DataFrame
            ``name``; ``eps``, ``rho`` or ``n``; ``ratio``, the standard error over that without
            privacy.
        """
        by_budget = option("along", along, ("budget", "n")) == "budget"
        return (self.budget_curve if by_budget else self.rows_curve).copy()

    def tidy(self) -> pd.DataFrame:
        """Return one row per call and figure."""
        return self.figures.copy()

    def glance(self) -> pd.DataFrame:
        """Return one row about the plan."""
        request, table = self.request, self.table
        total = capacity(request.guarantee)
        row = {
            "calls": len(table),
            "n": request.n_rows,
            total.unit: total.amount,
            "delta": total.delta,
            "adjacency": request.adjacency.name,
            "ratio_worst": table["ratio"].max(),
            "ratio_mean": table["ratio"].mean(),
            "even_worst": table["even"].max(),
            "even_mean": table["even"].mean(),
            "identified_least": table["identified"].min(),
        }
        return pd.DataFrame([row])

    @documented
    def plot(self, along: str = "budget", ax: Axes | None = None) -> Axes:
        """Draw the errors of the calls against the total budget, or the number of rows.

        Parameters
        ----------
        along : {"budget", "n"}
            As for :meth:`curve`.
        """
        from dpmodels.plots.bars import ratios

        table, request = self.curve(along), self.request
        x_column = str(table.columns[1])
        lines = {
            str(name): group[[x_column, "ratio"]].to_numpy(dtype=np.float64)
            for name, group in table.groupby("name", sort=False)
        }
        planned = float(request.n_rows) if x_column == "n" else capacity(request.guarantee).amount
        x_labels = {"n": "rows", "eps": "eps of all calls", "rho": "rho of all calls"}
        labels = x_labels[x_column], "standard error over that without privacy"
        return ratios(lines, planned, labels, ax=ax)

    def __repr__(self) -> str:
        worst = max(line.ratio for line in self.lines)
        return (
            f"<AnalysisPlan of {len(self.lines)} calls, n = {self.request.n_rows:,}, "
            f"{self.request.guarantee.describe()}: errors up to {worst:.3g} times those without "
            "privacy, nothing spent>"
        )


def _written(call: Call) -> str:
    budget = call.options.get("budget")
    if budget is None:
        return repr(call)
    options = {option: value for option, value in call.options.items() if value is not budget}
    return f"{repr(replace(call, options=options))[:-1]}, budget=dp.{budget})"


def _with_budget(line: PlanLine) -> Call:
    options = {
        option: value
        for option, value in line.call.options.items()
        if option not in (*AMOUNTS, "delta")
    }
    guarantee, amount = line.guarantee, capacity(line.guarantee)
    if amount.unit == "rho":
        return replace(line.call, options={**options, "budget": guarantee})
    options["eps"] = amount.amount
    if isinstance(guarantee, ApproxDP):
        options["delta"] = guarantee.delta
    elif "delta" in line.call.options:
        options["delta"] = line.call.options["delta"]
    return replace(line.call, options=options)


# The printed report of a planned analysis.


@report_of.register
def analysis_report(plan: AnalysisPlan) -> Report:
    """Lay out a planned analysis as tables of strings."""
    unit = capacity(plan.request.guarantee).unit
    heads = (unit, "mechanism", "sampling", "noise", "total", "ratio", "even", "identified")
    rows = tuple(Row(line.name, _cells(line)) for line in plan.lines)
    code = tuple(map(Row, plan.words.values()))
    sections = Section("Call", heads, rows), _curve(plan), Section("Calls as code", (), code)
    title = "Analysis planned, nothing read, nothing spent"
    return Report(title, _facts(plan), sections, _notes(plan))


def _cells(line: PlanLine) -> tuple[str, ...]:
    errors = map(_error, (line.sampling, line.noise, line.total, line.ratio, line.even))
    amount = signif(capacity(line.guarantee).amount, 3)
    return (amount, line.mechanism, *errors, f"{100 * line.identified:.0f}%")


def _error(value: float) -> str:
    return signif(value, 3) if math.isfinite(value) else "-"


def _curve(plan: AnalysisPlan) -> Section:
    table = plan.budget_curve
    unit = str(table.columns[1])
    amounts = table[unit].unique()
    heads = tuple(f"{unit} {amount:.3g}" for amount in amounts)
    ratios = {line.name: table.loc[table["name"] == line.name, "ratio"] for line in plan.lines}
    rows = tuple(Row(name, tuple(map(_error, values))) for name, values in ratios.items())
    return Section("Ratio by total budget", heads, rows)


def _weak(line: PlanLine) -> str:
    unit = capacity(line.guarantee).unit
    if math.isfinite(line.needs):
        return f"{line.name}, which needs about {unit} = {signif(line.needs, 2)}"
    return f"{line.name}, for which no {unit} suffices: use more rows or fewer terms"


def _facts(plan: AnalysisPlan) -> tuple[Fact, ...]:
    request = plan.request
    n = count(request.n_rows) + (" (guessed)" if not request.adjacency.n_public else "")
    solved = {"n": "least n found", "eps": "least eps found"}
    facts: tuple[Fact, ...] = (
        ("Guarantee", request.guarantee.describe()),
        ("Rows", n),
        ("Neighbours", request.adjacency.describe()),
        ("Guess", request.assumed),
    )
    facts += (("Subset", request.subset),) if request.subset else ()
    facts += tuple(
        (name, "; ".join(target.describe() for target in targets))
        for name, targets in request.targets.items()
    )
    return facts + ((("Solved", solved[request.solved]),) if request.solved else ())


def _notes(plan: AnalysisPlan) -> tuple[str, ...]:
    request = plan.request
    figure = "median" if request.over == "median" else "worst"
    objective = "largest ratio" if request.best == "worst" else "geometric mean of the ratios"
    assumed = "All of it depends on the assumed rows; no private data were read."
    subject = ", subject to the targets" * bool(request.targets)
    notes = [
        *Rank.TARGET(assumed),
        f"sampling, noise, total: expected standard errors of the {figure} figure of each call; "
        "ratio: total over sampling; even: the ratio under an equal division.",
        *Rank.DETAIL(f"The division minimises the {objective}{subject}."),
    ]
    weak = [_weak(line) for line in plan.lines if line.identified < LIKELY]
    if weak:
        notes += Rank.IDENTIFIED(
            "identified: probability that a release identifies a figure. Some will not be "
            f"identified: {'; '.join(weak)}."
        )
    if plan.pure:
        notes.append(
            f"Open the session with pure={plan.pure:.10g}, the eps of calls without Gaussian "
            "noise; the calls can then run in any order."
        )
    return tuple(notes)
