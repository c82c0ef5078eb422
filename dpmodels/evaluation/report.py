"""The printed report of a study."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from dpmodels.evaluation.recipe import WORKLOADS, smallest_p
from dpmodels.evaluation.study import Study
from dpmodels.report import Fact, Report, Row, Section, count, signif
from dpmodels.report.notes import Rank
from dpmodels.results.base import report_of
from dpmodels.typing import TableLine

# Most cells in the table of errors.
_MOST_CELLS: Final = 24


@report_of.register
def study_report(study: Study) -> Report:
    """Lay out a study as tables of strings."""
    sections = (_overall(study), *_by_cell(study))
    return Report(
        title="Algorithms compared on public or simulated tables",
        facts=_facts(study),
        sections=sections,
        notes=_notes(study),
    )


def _facts(study: Study) -> tuple[Fact, ...]:
    data = study.data
    counted = study.settings.error in WORKLOADS
    return (
        ("Error", f"{study.settings.error}: {study.settings.about}"),
        ("Tables", ", ".join(dict.fromkeys(data["table"].to_numpy()))),
        ("Scales", ", ".join(count(scale) for scale in dict.fromkeys(data["scale"].to_numpy()))),
        ("Domains", ", ".join(dict.fromkeys(data["domain"].to_numpy())) or "rows"),
        ("eps", ", ".join(f"{eps:g}" for eps in dict.fromkeys(data["eps"].to_numpy()))),
        ("Repeats", f"{study.settings.repeats} in each of {data.sizes['cell']} cells"),
        ("Neighbours", "add or remove one row" if counted else "as each recipe says"),
    )


def _overall(study: Study) -> Section:
    covers = study.settings.error == "coverage"
    heads = ["regret", "worst", "competitive", "p95/mean"]
    heads += ["coverage"] if covers else ["bias share", "biased in"]
    heads += ["consistent", "same eps x scale"]
    rows = [_row(line, covers=covers) for line in study.table.to_dict("records")]
    marked = [
        Row(row.label + (" *" if row.label in study.settings.baselines else ""), row.cells)
        for row in rows
    ]
    return Section("Algorithm", tuple(heads), tuple(marked))


def _row(line: TableLine, *, covers: bool) -> Row:
    bias = "-" if math.isnan(line["bias"]) else f"{max(line['bias'], 0.0):.0%}"
    middle = (
        (signif(line["coverage"], 3),) if covers else (bias, f"{line['biased']} of {line['cells']}")
    )
    cells = (
        signif(line["regret"], 3),
        signif(line["regret_worst"], 3),
        f"{line['competitive']} of {line['cells']}",
        f"{line['p95']:.2f}",
        *middle,
        {None: "-", True: "yes", False: "NO"}[line["consistent"]],
        _ends(line["ratio_low"], line["ratio_high"])
        + (" NO" if line["exchangeable"] is False else ""),
    )
    return Row(str(line["algorithm"]), cells)


def _ends(low: float, high: float) -> str:
    """Print an interval of a ratio to hundredths."""
    if math.isnan(low):
        return "-"
    texts = [f"{end:.2f}" if 0.01 <= end < 100 else signif(end, 2) for end in (low, high)]
    return f"[{', '.join(texts)}]"


def _by_cell(study: Study) -> tuple[Section, ...]:
    lines = study.tidy()
    cells = study.data.sizes["cell"]
    if cells > _MOST_CELLS:
        return ()
    names = study.table["algorithm"].tolist()
    plus = np.where(lines["competitive"], " +", "")
    texts = np.array([signif(mean, 2) for mean in lines["mean"]], dtype=object) + plus
    by = {name: texts[lines["algorithm"] == name] for name in names}
    rows = tuple(
        Row(label, tuple(by[name][cell] for name in names))
        for cell, label in enumerate(_labels(study))
    )
    return (Section("Mean error in each cell", tuple(names), rows),)


def _labels(study: Study) -> list[str]:
    texts: dict[str, Callable[[object], str]] = {
        "table": str,
        "domain": str,
        "scale": lambda scale: f"{scale:,}",
        "eps": lambda eps: f"eps {eps:g}",
    }
    labels = {
        name: [text(value) for value in study.data[name].to_numpy()] for name, text in texts.items()
    }
    columns = [column for name, column in labels.items() if name == "table" or len(set(column)) > 1]
    return [", ".join(filter(None, parts)) for parts in zip(*columns, strict=True)]


def _notes(study: Study) -> tuple[str, ...]:
    notes = [
        "regret: mean error over the smallest of any algorithm in the cell, geometric mean over "
        "cells; p95: 95th percentile over repeats.",
        "competitive: not worse than the best by a paired t-test at 5% over the number of other "
        "algorithms.",
    ]
    if study.settings.error != "coverage":
        few = smallest_p(study.settings.repeats) > 0.05 / study.data["bias_p"].size
        notes += Rank.DETAIL(
            "bias share: share of the squared error that remains in the mean of many releases; "
            "biased: significant at 5% over the number of tests."
        )
        if few:
            notes += Rank.IDENTIFIED("biased: too few repeats for a significant bias.")
    else:
        notes.append(
            "Errors are widths. An algorithm is not competitive in cells where its intervals "
            "contain significantly less than 95% of the values."
        )
    notes += [
        *Rank.DETAIL(
            "consistent: the error vanishes as eps grows.",
            "same eps x scale: interval of the ratio of errors with ten times the rows and a tenth "
            "of eps; NO: beyond 10%, which a delta may cause.",
        ),
        *Rank.GUARANTEE(
            "Rows were drawn from public or simulated tables; no budget was charged. This does not "
            "check that a recipe satisfies its eps; use dp.audit."
        ),
    ]
    if study.data.sizes["cell"] > _MOST_CELLS:
        notes += Rank.DETAIL("Errors by cell: tidy().")
    else:
        notes += Rank.IDENTIFIED("+ competitive in the cell.")
    if study.settings.baselines:
        notes += Rank.IDENTIFIED("* baseline. An algorithm must do better to be useful.")
    return tuple(notes)
