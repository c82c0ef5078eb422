"""The printed report of a histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.report import Report, Row, Section, count
from dpmodels.results.table_report import SHOWN_COLUMNS, SHOWN_ROWS, counts_report, crossed, listed
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from dpmodels.results.hist import HistResult

BAR = 20


def hist_report(fit: HistResult) -> Report:
    """Lay out bins as a table of strings: of one group with bars, of several side by side."""
    facts = fit.call.tables[0]
    groups = facts.cells // facts.shape[-1]
    if groups == 1:
        section = _with_bars(fit)
    elif groups <= SHOWN_COLUMNS:
        section = crossed(fit.table, upright=True)
    else:
        section = listed(fit.table)
    return counts_report(fit.table, "Private histogram", (section,), tuple(_notes(fit)))


def _with_bars(fit: HistResult) -> Section:
    """Print each bin's rows, their noise interval, share and a bar as long as the bin is high."""
    own = listed(fit.table)
    heights = fit.counts.to_numpy().ravel() / np.diff(fit.breaks)
    pairs = zip(own.rows, _bars(heights), strict=False)
    rows = tuple(Row(row.label, (*row.cells[:3], bar)) for row, bar in pairs)
    return Section(own.title, (*own.columns[:3], ""), rows)


def _bars(heights: Floats) -> list[str]:
    """Draw bars, the highest of full length; where nothing is high there are none."""
    most = float(heights.max())
    lengths = np.rint(BAR * heights / most) if most > 0 else np.zeros(len(heights))
    return [("#" * round(length)).ljust(BAR, ".") for length in lengths.tolist()]


def _notes(fit: HistResult) -> list[str]:
    notes = []
    hidden = len(fit.breaks) - 1 - SHOWN_ROWS
    if hidden > 0:
        notes.append(f"{count(hidden)} more bins: see counts, tidy() and plot().")
    if not np.allclose(np.diff(fit.breaks), fit.breaks[1] - fit.breaks[0], rtol=1e-6):
        notes.append("Bars: rows by unit, since the bins differ in width.")
    notes.append("Rows outside the breaks count as incomplete.")
    return notes
