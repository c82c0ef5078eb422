"""A planned analysis: what its calls will tell, and their parts of the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.arguments import word
from dpmodels.planning.targets import Target
from dpmodels.privacy import Adjacency, ApproxDP, Event, GaussianEvent, Guarantee
from dpmodels.privacy.spent import capacity
from dpmodels.report import Fact, Report, Row, Section, count, signif
from dpmodels.results.base import Printed, report_of
from dpmodels.sessions.call import AMOUNTS, Call
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# The chance from which a figure is counted as identified: a choice.
SURE: Final = 0.95


@dataclass(frozen=True, eq=False)
class PlanQuestion:
    """What an analysis is planned for: public facts and a guess."""

    guarantee: Guarantee  # Of all calls together
    adjacency: Adjacency
    rows: int
    guess: str  # What rows are like, in words
    subset: str | None
    targets: Mapping[str, tuple[Target, ...]]
    weights: Floats
    best: str  # What is made small: the "worst" call, or their "mean"
    over: str  # Which figure stands for a call: the "median" or the "worst"
    solved: str  # "eps" or "n" where it was looked for, else empty


class PlanLine(NamedTuple):
    """What one call will tell."""

    name: str
    call: Call
    guarantee: Guarantee  # Its recommended part
    mechanism: str
    events: tuple[Event, ...]
    figure: str  # What stands for it
    figures: int  # How many there are
    sampling: float  # Standard errors of that figure
    noise: float
    total: float
    ratio: float  # Of the total to sampling
    identified: float  # Mean chance that a figure is
    share: float = 0.0  # Of the whole
    even: float = 0.0  # The ratio if all had equal parts
    needs: float = 0.0  # A budget that identifies its figures: the one it has, where that does


@dataclass(frozen=True, repr=False, eq=False)
class AnalysisPlan(Printed):
    """Predicted errors of an analysis, and a division of its budget; nothing was read or spent.

    Attributes
    ----------
    figures : DataFrame
        One row a call and figure: ``name``, ``figure``; its ``value`` for the
        guessed rows; standard errors of ``sampling`` and ``noise``, and
        ``total``; ``ratio``, total over sampling; ``identified``, the chance
        that a release tells anything of it.
    pure : float
        The eps of calls without Gaussian noise beside calls with it, which a
        ledger of the whole has to keep: ``dp.Ledger(..., pure=plan.pure)``.
    """

    question: PlanQuestion
    lines: tuple[PlanLine, ...]
    figures: pd.DataFrame
    budget_curve: pd.DataFrame
    rows_curve: pd.DataFrame
    pure: float

    @property
    def table(self) -> pd.DataFrame:
        """One row a call, at the recommended division.

        Columns: its ``name`` and ``call``; the ``mechanism`` taken; its budget
        in ``eps`` or ``rho`` and its ``share``; the ``figure`` that stands for
        it with standard errors of ``sampling`` and ``noise``, and the
        ``total``; ``ratio``, total over sampling; ``noise_share``, of the
        total's square; ``rows_factor``, how many times the rows would make up
        for the noise, if it were sampling; ``even``, the ratio if all had
        equal parts; ``identified``, the mean chance that a figure is, and
        ``needs``, a budget of the call at which that is very likely: the one it
        has, where that is enough; nan where none that was tried is.
        """
        return pd.DataFrame([self._row(one) for one in self.lines])

    def _row(self, one: PlanLine) -> dict[str, object]:
        return {
            "name": one.name,
            "call": repr(one.call),
            "mechanism": one.mechanism,
            capacity(one.guarantee).unit: capacity(one.guarantee).amount,
            "share": one.share,
            **{name: getattr(one, name) for name in ("figure", "sampling", "noise", "total")},
            "ratio": one.ratio,
            "noise_share": 1 - one.ratio**-2,
            "rows_factor": one.ratio**2,
            "even": one.even,
            "identified": one.identified,
            "needs": one.needs,
        }

    @property
    def budgets(self) -> dict[str, Guarantee]:
        """Recommended guarantees by name: the word ``budget`` of each verb."""
        return {one.name: one.guarantee for one in self.lines}

    @property
    def calls(self) -> list[Call]:
        """The calls with their budgets, those without Gaussian noise first, for a session."""
        late = sorted(self.lines, key=lambda one: _gaussian(one.events))
        return [_with_budget(one) for one in late]

    @property
    def words(self) -> dict[str, str]:
        """The calls as they would be written, by name."""
        return {one.name: _written(_with_budget(one)) for one in self.lines}

    def curve(self, along: str = "budget") -> pd.DataFrame:
        """Return the errors of the calls with more and less.

        Parameters
        ----------
        along : {"budget", "n"}
            The whole budget, divided in the same proportions, or the number of rows.

        Returns
        -------
        DataFrame
            ``name``; ``eps``, ``rho`` or ``n``; ``ratio``, the standard error over that without
            privacy.
        """
        budget = word("along", along, ("budget", "n")) == "budget"
        return (self.budget_curve if budget else self.rows_curve).copy()

    def tidy(self) -> pd.DataFrame:
        """Return one row a call and figure."""
        return self.figures.copy()

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole."""
        asked, table = self.question, self.table
        whole = capacity(asked.guarantee)
        row = {
            "calls": len(table),
            "n": asked.rows,
            whole.unit: whole.amount,
            "delta": whole.delta,
            "adjacency": asked.adjacency.name,
            "ratio_worst": table["ratio"].max(),
            "ratio_mean": table["ratio"].mean(),
            "even_worst": table["even"].max(),
            "even_mean": table["even"].mean(),
            "identified_least": table["identified"].min(),
        }
        return pd.DataFrame([row])

    def plot(self, along: str = "budget", ax: Axes | None = None) -> Axes:
        """Draw the errors of the calls against the whole budget, or the number of rows.

        Parameters
        ----------
        along : {"budget", "n"}
            As for :meth:`curve`.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        from dpmodels.plots.bars import ratios

        table, asked = self.curve(along), self.question
        across = str(table.columns[1])
        lines = {
            str(name): own[[across, "ratio"]].to_numpy(dtype=np.float64)
            for name, own in table.groupby("name", sort=False)
        }
        at = float(asked.rows) if across == "n" else capacity(asked.guarantee).amount
        words = {"n": "rows", "eps": "eps of all calls", "rho": "rho of all calls"}
        return ratios(lines, at, (words[across], "standard error over that without privacy"), ax=ax)

    def __repr__(self) -> str:
        worst = max(one.ratio for one in self.lines)
        return (
            f"<AnalysisPlan of {len(self.lines)} calls, n = {self.question.rows:,}, "
            f"{self.question.guarantee.describe()}: errors up to {worst:.3g} times those without "
            "privacy, nothing spent>"
        )


def _written(call: Call) -> str:
    """Return a call as it would be written, its budget too."""
    own = call.words.get("budget")
    if own is None:
        return repr(call)
    bare = replace(call, words={word: said for word, said in call.words.items() if said is not own})
    return f"{repr(bare)[:-1]}, budget=dp.{own})"


def _gaussian(events: tuple[Event, ...]) -> bool:
    return all(isinstance(event, GaussianEvent) for event in events)


def _with_budget(one: PlanLine) -> Call:
    """Return a call with its part, as it would be written."""
    words = {word: own for word, own in one.call.words.items() if word not in (*AMOUNTS, "delta")}
    own = one.guarantee
    amount = capacity(own)
    if amount.unit == "rho":
        return replace(one.call, words={**words, "budget": own})
    kept = {"delta": one.call.words["delta"]} if "delta" in one.call.words else {}
    delta = {"delta": own.delta} if isinstance(own, ApproxDP) else kept
    return replace(one.call, words={**words, "eps": amount.amount, **delta})


# The printed report of a planned analysis.


@report_of.register
def analysis_report(made: AnalysisPlan) -> Report:
    """Lay out a planned analysis as tables of strings."""
    unit = capacity(made.question.guarantee).unit
    heads = (unit, "mechanism", "sampling", "noise", "total", "ratio", "even", "identified")
    rows = tuple(Row(one.name, _cells(one)) for one in made.lines)
    written = tuple(Row(own) for own in made.words.values())
    return Report(
        title="Analysis planned, nothing read, nothing spent",
        facts=_facts(made),
        sections=(
            Section("Call", heads, rows),
            _curve(made),
            Section("Calls, as they are written", (), written),
        ),
        notes=_notes(made),
    )


def _cells(one: PlanLine) -> tuple[str, ...]:
    return (
        signif(capacity(one.guarantee).amount, 3),
        one.mechanism,
        *(_error(own) for own in (one.sampling, one.noise, one.total)),
        _error(one.ratio),
        _error(one.even),
        f"{100 * one.identified:.0f}%",
    )


def _error(own: float) -> str:
    return signif(own, 3) if math.isfinite(own) else "-"


def _curve(made: AnalysisPlan) -> Section:
    """Return the ratios at several whole budgets."""
    table = made.budget_curve
    unit = str(table.columns[1])
    amounts = table[unit].unique()
    heads = tuple(f"{unit} {amount:.3g}" for amount in amounts)
    ratios = {one.name: table.loc[table["name"] == one.name, "ratio"] for one in made.lines}
    rows = tuple(Row(name, tuple(map(_error, own))) for name, own in ratios.items())
    return Section("Ratio, by whole budget", heads, rows)


def _weak(one: PlanLine) -> str:
    """Say of a call what would identify its figures."""
    unit = capacity(one.guarantee).unit
    if math.isfinite(one.needs):
        return f"{one.name}, which needs about {unit} = {signif(one.needs, 2)} of its own"
    return f"{one.name}, for which no {unit} is enough: more rows, or fewer terms, are needed"


def _facts(made: AnalysisPlan) -> tuple[Fact, ...]:
    asked = made.question
    n = count(asked.rows) + (" (guessed)" if not asked.adjacency.n_public else "")
    found = {"n": "least n found", "eps": "least eps found"}
    facts: tuple[Fact, ...] = (
        ("Guarantee", asked.guarantee.describe()),
        ("Rows", n),
        ("Neighbours", asked.adjacency.describe()),
        ("Guess", asked.guess),
    )
    facts += (("Subset", asked.subset),) if asked.subset else ()
    facts += tuple(
        (name, "; ".join(own.describe() for own in targets))
        for name, targets in asked.targets.items()
    )
    return facts + ((("Solved", found[asked.solved]),) if asked.solved else ())


def _notes(made: AnalysisPlan) -> tuple[str, ...]:
    asked = made.question
    figure = "median" if asked.over == "median" else "worst"
    least = "largest ratio" if asked.best == "worst" else "geometric mean of the ratios"
    notes = [
        f"sampling, noise, total: expected standard errors of the {figure} figure of each call; "
        "ratio: total over sampling, the price of privacy; even: the ratio if all calls had equal "
        "parts.",
        f"Divided so that the {least} is least"
        + (", once targets are met." if asked.targets else "."),
    ]
    weak = [_weak(one) for one in made.lines if one.identified < SURE]
    if weak:
        notes.append(
            "identified: the chance that a release tells anything of a figure. Some will be blank "
            f"of {'; '.join(weak)}."
        )
    if made.pure:
        notes.append(
            f"Open the ledger with pure={made.pure:.10g}, the eps of calls without Gaussian "
            "noise; then calls may be made in any order."
        )
    notes.append("All of it is as good as the guess; nothing in it comes from private rows.")
    return tuple(notes)
