"""The printed report of counts over time."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpmodels.report import Report, Row, Section, count, signif
from dpmodels.report.notes import Rank
from dpmodels.reports.header import closing, complete_text, counted_as, described_header, omitted
from dpmodels.results.base import report_of
from dpmodels.results.series import SeriesResult
from dpmodels.typing import Integers

# Most lines of a group, and groups of a page: choices.
SHOWN_LINES = 26
SHOWN_SERIES = 6


@report_of.register
def series_report(fit: SeriesResult) -> Report:
    """Lay out counts and running totals as tables of strings, by runs of periods if many."""
    what = counted_as(fit.release.adjacency)
    groups, public = fit._groups, fit.release.rows is not None
    sds = [float(table["noise_sd"].max()) for table in (fit.window(1), fit.running())]
    all_of = float(fit.running()["noise_sd"].iloc[-1]) * math.sqrt(groups.cells)
    sd = fit.release.noise_sd if public else all_of
    return Report(
        title="Private counts over time",
        facts=(
            *described_header(
                fit.call, fit.release, complete_text(fit.ncomplete, sd, fit.release.rows, what)
            ),
            ("Protects", protected(fit)),
            ("Time", f"{fit._facts.factors[-1]}{_by(fit)}, {len(fit.periods):,} periods"),
            ("Noise sd", f"{signif(sds[0], 2)} a period, totals up to {signif(sds[1], 2)}"),
        ),
        sections=tuple(_section(fit, place) for place in range(min(groups.cells, SHOWN_SERIES))),
        notes=(
            *omitted(SHOWN_SERIES, groups.cells, "groups", "totals and tidy()"),
            *_notes(fit),
            *closing(fit.call, fit.release),
        ),
        stamp=fit.stamp,
    )


def _by(fit: SeriesResult) -> str:
    return "" if fit.by is None else f" by {fit.by}"


def protected(fit: SeriesResult) -> str:
    """Return the unit of protection."""
    adjacency = fit.release.adjacency
    if adjacency.counts_persons:
        return "one person, as one event"
    if adjacency.person is not None:
        return f"one person, at most {count(adjacency.places)} events"
    return (
        "one event (a row)"
        if adjacency.places == 1
        else f"any {count(adjacency.places)} events (rows)"
    )


def _section(fit: SeriesResult, place: int) -> Section:
    """Print a line for each run of periods: its count, and the running total at its end."""
    size = len(fit.periods)
    width = -(-size // SHOWN_LINES)
    stops = np.append(np.arange(width, size, width), size)
    starts = np.append(0, stops[:-1])
    inside, totals = (_of_group(fit, first, stops, place) for first in (starts, 0 * starts))
    rows = tuple(
        Row(_period(fit, *run), (*_cells(row), *_cells(total_row)))
        for run, row, total_row in zip(
            zip(starts.tolist(), stops.tolist(), strict=True),
            inside.to_dict("records"),
            totals.to_dict("records"),
            strict=True,
        )
    )
    label = fit._groups.labels[place] if fit._groups.factors else fit._facts.factors[-1]
    what = counted_as(fit.release.adjacency).capitalize()
    return Section(label, (what, "95% noise int.", "Total", "95% noise int."), rows)


def _of_group(fit: SeriesResult, starts: Integers, stops: Integers, place: int) -> pd.DataFrame:
    return fit._summed(starts, stops, 0.95).iloc[place * len(stops) : (place + 1) * len(stops)]


def _period(fit: SeriesResult, start: int, stop: int) -> str:
    names = fit._facts.levels[-1]
    return str(names[start]) if stop - start == 1 else f"{names[start]} .. {names[stop - 1]}"


def _cells(row: dict[object, float]) -> tuple[str, str]:
    return count(row["count"]), f"[{count(row['noise_low'])}, {count(row['noise_high'])}]"


def _notes(fit: SeriesResult) -> list[str]:
    width = -(-len(fit.periods) // SHOWN_LINES)
    lines = f"Each line is {width} periods; for single ones use counts or tidy()."
    return [
        *Rank.IDENTIFIED(lines) * (width > 1),
        *Rank.DETAIL(
            "Counts are nonnegative integers that add up to the totals, computed from the unbiased "
            "ones in released.",
            "For intervals of time use between(start, end) or window(periods).",
        ),
        *Rank.TARGET(
            "Rows without a time, with a day outside the declared ones, or whose event is not true "
            "count as incomplete."
        ),
        "Noise intervals are privacy noise only; for expected numbers of events use conf_int().",
    ]
