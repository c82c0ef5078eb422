"""A planned analysis: predicted errors of its calls, and their parts of the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.arguments import option
from dpmodels.planning.targets import Target
from dpmodels.privacy import Adjacency, ApproxDP, Event, Guarantee
from dpmodels.privacy.events import all_gaussian
from dpmodels.privacy.spent import capacity
from dpmodels.report import Fact, Report, Row, Section, count, signif
from dpmodels.report.notes import Rank
from dpmodels.results.base import Printed, report_of
from dpmodels.sessions.call import AMOUNTS, Call
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        return {
            "name": line.name,
            "call": repr(line.call),
            "mechanism": line.mechanism,
            capacity(line.guarantee).unit: capacity(line.guarantee).amount,
            "share": line.share,
            **{name: getattr(line, name) for name in ("figure", "sampling", "noise", "total")},
            "ratio": line.ratio,
            "noise_share": 1 - line.ratio**-2,
            "rows_factor": line.ratio**2,
            "even": line.even,
            "identified": line.identified,
            "needs": line.needs,
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

    def plot(self, along: str = "budget", ax: Axes | None = None) -> Axes:
        """Draw the errors of the calls against the total budget, or the number of rows.

        Parameters
        ----------
        along : {"budget", "n"}
            As for :meth:`curve`.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
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
        return ratios(
            lines, planned, (x_labels[x_column], "standard error over that without privacy"), ax=ax
        )

    def __repr__(self) -> str:
        worst = max(line.ratio for line in self.lines)
        return (
            f"<AnalysisPlan of {len(self.lines)} calls, n = {self.request.n_rows:,}, "
            f"{self.request.guarantee.describe()}: errors up to {worst:.3g} times those without "
            "privacy, nothing spent>"
        )


def _written(call: Call) -> str:
    """Return a call as code, with its budget."""
    budget = call.options.get("budget")
    if budget is None:
        return repr(call)
    bare = replace(
        call,
        options={option: value for option, value in call.options.items() if value is not budget},
    )
    return f"{repr(bare)[:-1]}, budget=dp.{budget})"


def _with_budget(line: PlanLine) -> Call:
    """Return a call with its recommended budget."""
    options = {
        option: value
        for option, value in line.call.options.items()
        if option not in (*AMOUNTS, "delta")
    }
    guarantee = line.guarantee
    amount = capacity(guarantee)
    if amount.unit == "rho":
        return replace(line.call, options={**options, "budget": guarantee})
    stated = {"delta": line.call.options["delta"]} if "delta" in line.call.options else {}
    delta = {"delta": guarantee.delta} if isinstance(guarantee, ApproxDP) else stated
    return replace(line.call, options={**options, "eps": amount.amount, **delta})


# The printed report of a planned analysis.


@report_of.register
def analysis_report(plan: AnalysisPlan) -> Report:
    """Lay out a planned analysis as tables of strings."""
    unit = capacity(plan.request.guarantee).unit
    heads = (unit, "mechanism", "sampling", "noise", "total", "ratio", "even", "identified")
    rows = tuple(Row(line.name, _cells(line)) for line in plan.lines)
    code = tuple(Row(source) for source in plan.words.values())
    return Report(
        title="Analysis planned, nothing read, nothing spent",
        facts=_facts(plan),
        sections=(
            Section("Call", heads, rows),
            _curve(plan),
            Section("Calls as code", (), code),
        ),
        notes=_notes(plan),
    )


def _cells(line: PlanLine) -> tuple[str, ...]:
    return (
        signif(capacity(line.guarantee).amount, 3),
        line.mechanism,
        *(_error(error) for error in (line.sampling, line.noise, line.total)),
        _error(line.ratio),
        _error(line.even),
        f"{100 * line.identified:.0f}%",
    )


def _error(value: float) -> str:
    return signif(value, 3) if math.isfinite(value) else "-"


def _curve(plan: AnalysisPlan) -> Section:
    """Return the ratios at several total budgets."""
    table = plan.budget_curve
    unit = str(table.columns[1])
    amounts = table[unit].unique()
    heads = tuple(f"{unit} {amount:.3g}" for amount in amounts)
    ratios = {line.name: table.loc[table["name"] == line.name, "ratio"] for line in plan.lines}
    rows = tuple(Row(name, tuple(map(_error, values))) for name, values in ratios.items())
    return Section("Ratio by total budget", heads, rows)


def _weak(line: PlanLine) -> str:
    """Say what would identify a call's figures."""
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
