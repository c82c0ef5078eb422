"""The printed report of what analyses will tell."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from dpmodels.report import Fact, Report, Row, Section, count, signif
from dpmodels.results.base import report_of
from dpmodels.results.power import SELDOM, UNEVEN, PowerResult

_HEADS = ("effect", "std. err.", "noise sd", "sampling", "power", "identified", "no noise", "price")
_SOLVED = {"n": "rows", "eps": "eps", "effect": "smallest effects", "power": "power"}


@report_of.register
def power_report(made: PowerResult) -> Report:
    """Lay out what is expected as tables of strings."""
    cells = made.table.groupby("cell", sort=False)
    sections = tuple(
        Section(_title(own), _HEADS, tuple(map(_row, own.to_dict("records")))) for _, own in cells
    )
    return Report(
        title=f"What dp_{made.question.verb} will tell, nothing read or spent",
        facts=_facts(made),
        sections=sections,
        notes=_notes(made),
    )


def _title(cell: pd.DataFrame) -> str:
    rows, eps = int(cell["n"].iloc[0]), float(cell["eps"].iloc[0])
    return f"n = {count(rows)}" + ("" if math.isnan(eps) else f", eps = {eps:.3g}")


def _row(line: dict[Any, Any]) -> Row:
    cells = (
        "-" if math.isnan(line["power"]) else signif(line["effect"], 3),
        signif(line["std_error"], 3),
        signif(line["noise_sd"], 3),
        signif(line["sampling_se"], 3),
        _share(line["power"]),
        f"{100 * line['identified']:.0f}%",
        _share(line["without_noise"]),
        f"{line['price']:.3g} x" if math.isfinite(line["price"]) else "-",
    )
    return Row(str(line["term"]), cells)


def _share(power: float) -> str:
    """Print a power to the two digits that the simulation leaves at the most."""
    if math.isnan(power):
        return "-"
    return f"{power:.2f}" if power < 0.995 else ">.99"


def _facts(made: PowerResult) -> tuple[Fact, ...]:
    asked = made.question
    target = "" if math.isnan(asked.target) else f" for power {asked.target:g}"
    return (
        ("Formula", asked.formula),
        ("Solved for", _SOLVED[asked.solved] + target),
        ("Guarantee", asked.guarantee),
        ("Neighbours", asked.adjacency.describe()),
        ("Test", f"{asked.tested}, level {asked.alpha:g}"),
        ("Rows guessed", asked.guess),
    )


def _error(made: PowerResult) -> str:
    error = made.table["power_se"].max()
    if not error > 0.01:
        return "the simulation itself leaves powers within one or two hundredths"
    return f"the simulation itself leaves powers a standard error of {error:.1g} at the most"


def _notes(made: PowerResult) -> tuple[str, ...]:
    asked = made.question
    notes = [f"Mechanism: {one}" for one in dict.fromkeys(asked.mechanisms)]
    notes += [
        "std. err.: the median that the table will print; noise sd: of the noise in it; sampling: "
        "without noise. identified: how often a release has a standard error of the term; power "
        "counts the others as not rejected.",
        "no noise: power of as many rows without privacy; price: how many times the rows it takes "
        "for the same standard error, or power where there is none.",
        f"All is simulated from the guess, and off where that is; {_error(made)}.",
    ]
    seldom = made.table[made.table["identified"] < SELDOM]
    if len(seldom):
        instead = (
            "solve for eps or n by giving a power, such as power=0.8, and leaving it out"
            if math.isnan(asked.enough)
            else f"about eps = {asked.enough:.2g} is needed, or more rows"
        )
        notes.append(f"Very likely no standard errors of {_terms(seldom)} here: {instead}.")
    uneven = made.table[made.table["se_high"] > UNEVEN * made.table["se_low"]]
    if len(uneven):
        notes.append(
            f"Standard errors of {_terms(uneven)} differ more than twofold from release to "
            "release: see se_low and se_high in the table."
        )
    return tuple(notes)


def _terms(lines: pd.DataFrame) -> str:
    return ", ".join(dict.fromkeys(map(str, lines["term"])))
