"""The printed report of the interpretation of guarantees."""

from __future__ import annotations

import math
from typing import Any

from dpmodels.privacy import GaussianEvent, PureDP
from dpmodels.report import Fact, Report, Row, Section, signif
from dpmodels.report.notes import Rank
from dpmodels.results.base import report_of
from dpmodels.results.interpretation import UNITS, ReadingResult

_TESTS = (
    "Power: how often a test detects that somebody is in the table, if its level is the rate of "
    "false detections. Advantage: largest power less level.",
    *Rank.DETAIL(
        "Posterior: probability of being in the table, after the release.",
        "The bounds hold for attackers who know everything else, and for any use of the release.",
    ),
)
_POPULATION = (
    *Rank.TARGET(
        "The bounds limit the effect of being in the table. Conclusions about the population apply "
        "to people in it or not: no guarantee prevents them."
    ),
    *Rank.DETAIL(
        "An association of smoking and a disease is such a conclusion about the population."
    ),
)


@report_of.register
def reading_report(result: ReadingResult) -> Report:
    """Lay out readings as tables of strings."""
    return Report(
        title="Guarantees interpreted as tests and as bets",
        facts=_facts(result),
        sections=tuple(_section(result, units) for units in UNITS),
        notes=_notes(result),
        stamp=result.stamp,
    )


def _facts(result: ReadingResult) -> tuple[Fact, ...]:
    local = "another truth, each respondent by itself"
    neighbours = local if result.local else result.adjacency.describe()
    whose = (("Of", result.of),) if result.of else ()
    return (
        *whose,
        ("Neighbours", neighbours),
        ("Level", f"{result.alpha:g}"),
        ("Prior", f"{result.prior:g}"),
    )


def _section(result: ReadingResult, units: int) -> Section:
    table = result.table[result.table["units"] == units]
    who: str = table["protected"].iloc[0]
    columns = [_cells(line) for line in table.to_dict("records")]
    names = (
        f"Power at level {result.alpha:g}",
        "Membership advantage",
        "Odds multiplied by",
        f"Posterior of prior {result.prior:g}",
        "and at least",
        "Lying probability",
    )
    rows = tuple(
        Row(name, cells)
        for name, cells in zip(names, zip(*columns, strict=True), strict=True)
        if set(cells) != {"-"}
    )
    return Section(f"{who[0].upper()}{who[1:]}, at most", result.labels, rows)


def _cells(line: dict[Any, Any]) -> tuple[str, ...]:
    mark = "" if line["holds"] == 1 else " *"
    odds = "no bound" if math.isinf(line["odds"]) else signif(line["odds"], 3)
    return (
        signif(line["power"], 3),
        signif(line["advantage"], 3),
        odds + mark,
        signif(line["posterior"], 3) + mark,
        signif(line["posterior_lower"], 3) + mark,
        signif(line["lie"], 3),
    )


def _notes(result: ReadingResult) -> tuple[str, ...]:
    notes = [*_TESTS, *_POPULATION]
    pure = all(isinstance(curve, PureDP) for curve in result.curves)
    if not pure:
        notes += Rank.GUARANTEE(
            f"* except for outputs of probability at most {result.alpha:g}: with a delta, zCDP or "
            "Gaussian noise there is no bound for all outputs."
        )
    if result.table["lie"].notna().any():
        less = "" if pure else ", except for delta"
        notes.append(
            f"Lying probability: of a randomized response to yes or no that is as private{less}."
        )
    if any(isinstance(curve, GaussianEvent) for curve in result.curves):
        notes += Rank.DETAIL(
            "Gaussian noise: bounds follow from the distribution of the noise, and are tighter "
            "than the guarantee."
        )
    notes += Rank.GUARANTEE(
        "So far: if neither calls nor stopping depended on earlier answers. In all: always."
        if result.spent
        else "For this release only: other releases of the same rows add to it."
    )
    return tuple(notes)
