"""The printed report of divisions of a budget."""

from __future__ import annotations

from dpmodels.privacy import ApproxDP
from dpmodels.privacy.spent import capacity
from dpmodels.report import Fact, Report, Row, Section, signif_uncertain
from dpmodels.results.base import STAMP, report_of
from dpmodels.results.split import SplitResult


@report_of.register
def split_report(made: SplitResult) -> Report:
    """Lay out the divisions as tables of strings."""
    asked, table = made.question, made.table
    rows = []
    for number, line in enumerate(table.to_dict("records")):
        mark = " *" if line["best"] else " =" if line["near"] else ""
        cells = (
            *(f"{capacity(budget).amount:.3g}" for budget in made.divisions[number]),
            signif_uncertain(line["score"], line["score_se"]),
            f"{line['score_se']:.2g}",
            "-" if line["best"] else signif_uncertain(line["behind"], line["behind_se"]),
            "-" if line["best"] else f"{line['behind_se']:.2g}",
        )
        rows.append(Row(made.labels[number] + mark, cells))
    currency = capacity(asked.guarantee).unit
    heads = (*(f"{stage} {currency}" for stage in asked.stages), "score", "se", "behind", "se")
    return Report(
        title="A budget divided between stages, nothing spent",
        facts=_facts(made),
        sections=(Section("Shares " + " : ".join(asked.stages), heads, tuple(rows)),),
        notes=_notes(made),
        stamp=STAMP,
    )


def _facts(made: SplitResult) -> tuple[Fact, ...]:
    asked = made.question
    return (
        ("Recipe", asked.recipe),
        ("Guarantee", asked.guarantee.describe()),
        ("Stages", ", ".join(asked.stages)),
        ("Neighbours", asked.adjacency.describe()),
        ("Runs", f"{asked.repeats} of each division"),
        ("Best", f"the {asked.best} mean score"),
    )


def _notes(made: SplitResult) -> tuple[str, ...]:
    asked = made.question
    notes = [
        "* best mean score. = not told apart from it: the 95% interval of the difference, from "
        "runs with the same random words, reaches 0."
        + (" The runs do not tell any division from any other." if _all_near(made) else ""),
        "behind: how much worse the mean score is than the best one, which is a little too good, "
        "having been chosen. se: of the runs on these rows; other rows differ by more.",
    ]
    if isinstance(asked.guarantee, ApproxDP):
        notes.append(f"Every stage has the whole delta. {_composition(made)}")
    notes.append(
        "The scores depend on the rows without any guarantee: rows have to be public or simulated."
    )
    return tuple(notes)


def _all_near(made: SplitResult) -> bool:
    return len(made.shares) > 1 and bool(made.table["near"].all())


def _composition(made: SplitResult) -> str:
    """Say how the stages' eps make up the whole."""
    whole = capacity(made.question.guarantee).amount
    if sum(capacity(own).amount for own in made.divisions[0]) <= whole * (1 + 1e-6):
        return (
            "Their eps add up to the whole one: open the ledger with pure=, the eps of the stages "
            "without Gaussian noise."
        )
    return (
        "Stages of Gaussian noise share 1/m^2 of their joint multiplier m, which is exact: their "
        "eps add up to more than the whole one. Stages of other noise share eps."
    )
