"""The printed report of private levels."""

from __future__ import annotations

import pandas as pd

from dpmodels.report import Report, Row, Section, count, signif
from dpmodels.reports.counted import counted_as
from dpmodels.reports.header import SHOWN_GROUPS, closing, more, opening, shared_facts
from dpmodels.results.base import report_of
from dpmodels.results.levels import FEWEST, LevelsResult


@report_of.register
def levels_report(fit: LevelsResult) -> Report:
    """Lay out levels with their noisy counts as tables of strings, one a variable."""
    release = fit.release
    table, what = fit.tidy(), counted_as(release.adjacency)
    return Report(
        title="Private levels",
        facts=(
            *opening(fit.call, release),
            *shared_facts(release),
            ("Cell noise", f"scale {signif(release.scale / fit.unit, 2)}, at most {_most(fit)}"),
            ("Found", f"95% of levels with {count(fit.found_with())} {what}"),
        ),
        sections=tuple(
            _section(name, table[table["variable"] == name], what) for name in fit.names
        ),
        notes=(*_notes(fit), *closing(fit.call, release)),
        stamp=fit.stamp,
    )


def _most(fit: LevelsResult) -> str:
    return count(fit.release.most / fit.unit)


def _section(name: str, table: pd.DataFrame, what: str) -> Section:
    """One line a level."""
    columns = ["level", "estimate", "noise_low", "noise_high"]
    rows = tuple(
        Row(str(level), (count(noisy), f"[{count(low)}, {count(high)}]"))
        for level, noisy, low, high in table[columns].head(SHOWN_GROUPS).itertuples(index=False)
    )
    heads = (what.capitalize(), "95% noise int.")
    return Section(name, heads, rows or (Row("(none found)", ("", "")),))


def _notes(fit: LevelsResult) -> tuple[str, ...]:
    hidden = sum(max(len(own) - SHOWN_GROUPS, 0) for own in fit.release.levels)
    few = [name for name, own in fit.levels.items() if len(own) < FEWEST]
    left = ", ".join(few)
    return (
        *more(0, hidden, "levels", "levels and tidy()"),
        *(f"Fewer than two levels of {left} were found: codebook has none." for _ in few[:1]),
        f"A level is released if its count exceeds {_most(fit)} with its noise, which "
        "one with a single row does with a probability within delta. Of others nothing is told: "
        "their rows count as incomplete wherever the codebook is used.",
        "The noise interval is of the rows of a level, given that it was released.",
    )
