"""The printed report of a planned analysis."""

from __future__ import annotations

import math

from dpmodels.planning.analysis import SURE, AnalysisPlan, PlanLine
from dpmodels.privacy.spent import capacity
from dpmodels.report import Fact, Report, Row, Section, count, signif
from dpmodels.results.base import report_of


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
