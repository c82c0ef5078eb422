"""The printed report of a comparison of mechanisms."""

from __future__ import annotations

import math

import pandas as pd

from dpmodels.report import Fact, Report, Row, Section, count, signif, signif_uncertain
from dpmodels.results.base import report_of
from dpmodels.results.comparison import Comparison

HEADS = ("energy", "error", "relative", "numerics")


@report_of.register
def comparison_report(made: Comparison) -> Report:
    """Lay out a comparison as tables of strings."""
    lines = made.predicted.to_dict("records")
    rows = tuple(
        Row(
            f"{line['mechanism']} *" if line["note"] == "baseline" else str(line["mechanism"]),
            (
                _uncertain(line["energy"], line["energy_se"]),
                _uncertain(line["frobenius"], line["frobenius_se"]),
                signif(line["relative"], 2),
                str(line["numerics"]),
            ),
        )
        for line in lines
    )
    return Report(
        title="Mechanisms compared, nothing spent",
        facts=_facts(made),
        sections=(Section("Predicted, best first", HEADS, rows),) if rows else (),
        notes=_notes(made),
    )


def _uncertain(value: float, se: float) -> str:
    """Print a mean to the digits of its standard error, at most four."""
    return signif(value, 3) if math.isnan(se) else signif_uncertain(value, max(se, value / 1000))


def _facts(made: Comparison) -> tuple[Fact, ...]:
    asked = made.question
    how = {"range": "range", "sd": "sd (correlation)", None: "none"}[asked.scale]
    centred = "centred" if asked.center else "not centred"
    return (
        ("Formula", asked.formula),
        ("Guarantee", asked.guarantee.describe()),
        ("Rows", f"{count(asked.rows)} (assumed)"),
        ("Neighbours", asked.adjacency.describe()),
        ("Variables", f"{asked.columns}, {centred}, scale = {how}"),
        ("Components", str(asked.components)),
        ("Spectrum", f"{asked.spectrum} (assumed)"),
        ("Row length", f"{signif(asked.row_length, 2)} of {signif(asked.row_norm, 3)} (assumed)"),
    )


def _notes(made: Comparison) -> tuple[str, ...]:
    asked, whole = made.question, made.question.components == made.question.columns
    order = "by the error, since all components are kept" if whole else "by energy"
    notes = [
        f"Simulated on invented rows, releases of each: {asked.repeats}. No data were read. What "
        "is assumed about rows is a guess; so is what follows from it.",
        "energy: share of the variance along the wanted components that the released ones "
        "capture. error: Frobenius norm, in squared row norms; relative: over that of the "
        f"covariance. Sorted {order}.",
    ]
    shown = made.predicted
    if (shown["note"] == "baseline").any():
        notes.append("* baseline: looks at no row. What does no better is of no use.")
    if asked.scale == "sd":
        notes.append("Before the division by standard deviations: of columns scaled by range.")
    absent = made.table[made.table["energy"].isna()]
    return (*notes, *_absent(absent))


def _absent(absent: pd.DataFrame) -> list[str]:
    """Say once for each reason which mechanisms it keeps out."""
    reasons: dict[str, list[str]] = {}
    for name, note in zip(absent["mechanism"], absent["note"], strict=True):
        reasons.setdefault(note, []).append(name)
    return [f"Not listed: {', '.join(names)}: {reason}." for reason, names in reasons.items()]
