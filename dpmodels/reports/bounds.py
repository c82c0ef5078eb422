"""The printed report of private bounds."""

from __future__ import annotations

import pandas as pd

from dpmodels.dates import text_of_day
from dpmodels.report import Report, Row, Section, count, signif
from dpmodels.report.notes import Rank
from dpmodels.reports.header import (
    LOST,
    SHOWN_GROUPS,
    SHOWN_VARIABLES,
    closing,
    counted_as,
    omitted,
    opening,
    shared_facts,
)
from dpmodels.results.base import report_of
from dpmodels.results.bounds import BoundsResult, FoundBounds
from dpmodels.results.call import TableCall
from dpmodels.results.levels import FEWEST, LevelsResult


@report_of.register
def bounds_report(fit: BoundsResult) -> Report:
    """Lay out released and declared bounds as a table of strings."""
    sds = ", then ".join(signif(sd, 2) for sd in fit.release.noise_sds)
    return Report(
        title="Private bounds",
        facts=(
            *opening(fit.call, fit.release),
            *shared_facts(fit.release),
            ("Variables", count(len(fit.names))),
            ("Cell noise", f"sd {sds}"),
        ),
        sections=(_section(fit),),
        notes=(*_notes(fit), *closing(fit.call, fit.release)),
        stamp=fit.stamp,
    )


def _section(fit: BoundsResult) -> Section:
    """One line per variable: released and declared range, and the share outside with its noise."""
    heads = ("Found", "Declared", "% beyond", "95% noise int.")
    intervals = fit.noise_int().to_numpy()
    rows = []
    lines = zip(fit.call.tables, fit.found.values(), intervals, strict=True)
    for facts, bounds, (low, high) in list(lines)[:SHOWN_VARIABLES]:
        shares = (LOST, LOST)
        if bounds.cells:
            share = 100 * min(max(bounds.outside / max(bounds.rows, 1.0), 0.0), 1.0)
            shares = (f"{share:.1f}", f"[{100 * low:.1f}, {100 * high:.1f}]")
        rows.append(Row(facts.measured, (_found_range(facts, bounds), _range(facts), *shares)))
    return Section("Bounds", heads, tuple(rows))


def _found_range(facts: TableCall, bounds: FoundBounds) -> str:
    return _range_text(facts, bounds.lower, bounds.upper) if bounds.is_narrowed else "as declared"


def _range(facts: TableCall) -> str:
    steps = f" by {facts.step:,.10g}" if facts.step and not facts.date else ""
    return _range_text(facts, facts.lower, facts.upper) + steps


def _range_text(facts: TableCall, lower: float, upper: float) -> str:
    if facts.date:
        return f"{text_of_day(lower)} to {text_of_day(upper)}"
    return f"{lower:,.10g} to {upper:,.10g}"


def _notes(fit: BoundsResult) -> tuple[str, ...]:
    some_declared = not all(bounds.is_narrowed for bounds in fit.found.values())
    declared_note = Rank.IDENTIFIED(
        "As declared: too few rows exceed the noise, or their range is hardly shorter."
    )
    return (
        *omitted(SHOWN_VARIABLES, len(fit.names), "variables", "tidy()"),
        *declared_note * some_declared,
        *Rank.TARGET(
            "Fits with these bounds clip the rows beyond; tails below the noise were extrapolated "
            "from the bulk of the rows."
        ),
        "% beyond: noisy share of complete rows in cells outside the bounds; its interval is "
        "privacy noise only.",
        "codebook is the declared one with these bounds: it is public, and using it costs no "
        "budget.",
    )


# The printed report of private levels.


@report_of.register
def levels_report(fit: LevelsResult) -> Report:
    """Lay out levels with their noisy counts as tables of strings, one per variable."""
    release = fit.release
    table, what = fit.tidy(), counted_as(release.adjacency)
    return Report(
        title="Private levels",
        facts=(
            *opening(fit.call, release),
            *shared_facts(release),
            (
                "Cell noise",
                f"scale {signif(release.scale / fit.unit, 2)}, at most {_threshold(fit)}",
            ),
            ("Found", f"95% of levels with {count(fit.found_with())} {what}"),
        ),
        sections=tuple(
            _levels_section(name, table[table["variable"] == name], what) for name in fit.names
        ),
        notes=(*_levels_notes(fit), *closing(fit.call, release)),
        stamp=fit.stamp,
    )


def _threshold(fit: LevelsResult) -> str:
    return count(fit.release.most / fit.unit)


def _levels_section(name: str, table: pd.DataFrame, what: str) -> Section:
    """One line per level."""
    columns = ["level", "estimate", "noise_low", "noise_high"]
    rows = tuple(
        Row(str(level), (count(noisy), f"[{count(low)}, {count(high)}]"))
        for level, noisy, low, high in table[columns].head(SHOWN_GROUPS).itertuples(index=False)
    )
    heads = (what.capitalize(), "95% noise int.")
    return Section(name, heads, rows or (Row("(none found)", ("", "")),))


def _levels_notes(fit: LevelsResult) -> tuple[str, ...]:
    hidden = sum(max(len(levels) - SHOWN_GROUPS, 0) for levels in fit.release.levels)
    few = [name for name, levels in fit.levels.items() if len(levels) < FEWEST]
    listed = ", ".join(few)
    return (
        *omitted(0, hidden, "levels", "levels and tidy()"),
        *Rank.IDENTIFIED(f"codebook omits {listed}: fewer than two levels were released.")
        * bool(few),
        f"A level is released if its noisy count exceeds {_threshold(fit)}; a level with a single "
        "row does so with probability at most delta.",
        *Rank.TARGET("Rows with other levels are incomplete where the codebook is used."),
        "Noise intervals are for the number of rows of a level, given that it was released.",
    )
