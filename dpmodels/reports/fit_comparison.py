"""The printed report of a comparison of regressions' mechanisms."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from dpmodels.report import Fact, Report, Row, Section, count, signif, signif_uncertain
from dpmodels.reports.comparison import not_listed
from dpmodels.results.base import report_of
from dpmodels.results.fit_comparison import FitComparison

HEADS = ("error typical", "error worst", "excess typical", "excess worst", "identified", "numerics")


@report_of.register
def fit_comparison_report(made: FitComparison) -> Report:
    """Lay out a comparison of regressions as tables of strings."""
    shown, sections = made.predicted, tuple[Section, ...]()
    if len(shown):
        rows = tuple(_row(made, line) for line in shown.to_dict("records"))
        sections = (Section("Predicted, best first", HEADS, rows), _by_shape(made))
    like = tuple(
        Row(str(line["shape"]), (str(line["like"]),)) for line in made.shapes.to_dict("records")
    )
    return Report(
        title="Mechanisms of a regression compared, nothing spent",
        facts=_facts(made),
        sections=(*sections, Section("Shapes of rows", ("numbers",), like)),
        notes=_notes(made),
    )


def _row(made: FitComparison, line: dict[Hashable, Any]) -> Row:
    cells = []
    for name in ("error", "excess"):
        value, se = line[name], line[f"{name}_se"]
        known = not math.isnan(se) and se > 0
        cells.append(signif_uncertain(value, max(se, value / 1000)) if known else signif(value, 3))
        cells.append(signif(line[f"{name}_worst"], 3))
    cells.append(f"{100 * line['identified']:.0f}%")
    return Row(made.label(line["mechanism"]), (*cells, str(line["numerics"])))


def _by_shape(made: FitComparison) -> Section:
    wide = made.by_shape.pivot_table("error", "mechanism", "shape", sort=False, dropna=False)
    names = [name for name in made.predicted["mechanism"] if name in wide.index]
    rows = [
        Row(made.label(name), tuple(_number(value) for value in wide.loc[name])) for name in names
    ]
    rows.append(Row("auto / best", tuple(_number(made.behind[name]) for name in wide.columns)))
    return Section("Error by shape", tuple(map(str, wide.columns)), tuple(rows))


def _number(value: float) -> str:
    return "open" if math.isnan(value) else signif(value, 3)


def _facts(made: FitComparison) -> tuple[Fact, ...]:
    asked = made.question
    norm = "the codebook's longest" if asked.row_norm is None else signif(asked.row_norm, 3)
    listed = ", ".join(signif(length, 2) for length in asked.row_lengths)
    spread = f"numbers with sds of {listed} half ranges" if listed else "five shapes"
    return (
        ("Formula", asked.formula),
        ("Family", asked.family),
        ("Guarantee", asked.guarantee.describe()),
        ("Rows", f"{count(asked.rows)} (assumed)"),
        ("Neighbours", asked.adjacency.describe()),
        ("Terms", f"{asked.columns}, row norm {norm}"),
        ("Spectrum", f"{asked.spectrum} (assumed)"),
        ("Rows like", spread),
    )


def _notes(made: FitComparison) -> tuple[str, ...]:
    asked = made.question
    worst = made.behind.max()
    behind = ""
    if not math.isnan(worst):
        typical = signif(float(made.behind.median()), 3)
        behind = (
            f" Its error is {typical} times that of the best, {signif(float(worst), 3)} at worst."
        )
    return (
        f'mechanism="auto" takes {made.auto.mechanism}: {made.auto.reason}{behind}',
        f"Simulated on invented rows, releases of each on each shape: {asked.repeats}. No data "
        "were read. What is assumed about rows is a guess; so is what follows from it.",
        "error: root mean square over the slopes of what separates the estimate from that without "
        "privacy, in its standard errors: at 1 the noise doubles the variance. excess: part of the "
        "explained deviance that is lost; 1 is no better than a constant. identified: slopes with "
        "standard errors. typical: the median over the shapes; worst: on the worst of them. "
        "open: rows of that shape leave a slope open without noise too.",
        *not_listed(made.table[~made.table["fits"]]),
    )
