"""The printed report of histograms of two numbers."""

from __future__ import annotations

import numpy as np

from dpmodels.report import Report, Section, count, signif
from dpmodels.reports.counted import counted_as
from dpmodels.reports.counts import reading, side_by_side
from dpmodels.reports.header import closing, complete_text, described_header, more
from dpmodels.results.base import report_of
from dpmodels.results.bins import Ranges
from dpmodels.results.call import TableCall
from dpmodels.results.plane import PlaneResult

# Runs of bins that a table has room for, down and across, and tables of groups: choices.
SHOWN_RUNS, SHOWN = (12, 6), 3
LEVEL = 0.95


@report_of.register
def plane_report(fit: PlaneResult) -> Report:
    """Lay out blocks of cells as tables of strings, one a group, with totals."""
    runs = fit.blocks(SHOWN_RUNS)
    total = fit.ordered.spread(np.ones(fit.cells), np.ones(())).squares
    sd = fit.release.noise_sd * float(np.sqrt(total))
    complete = complete_text(fit.ncomplete, sd, what=counted_as(fit.release.adjacency))
    facts = fit.call.tables[0]
    groups = TableCall(facts.factors[:-2], facts.levels[:-2])
    names = groups.labels if groups.factors else [""]
    return Report(
        title="Private histogram of two numbers",
        facts=(*described_header(fit.call, fit.release, complete), *_noise(fit, runs)),
        sections=tuple(
            _section(fit, runs, place, name) for place, name in enumerate(names[:SHOWN])
        ),
        notes=(
            *more(SHOWN, len(names), "groups", "counts and tidy()"),
            *_notes(fit, runs),
            reading(fit.release),
            *closing(fit.call, fit.release),
        ),
        stamp=fit.stamp,
    )


def _section(fit: PlaneResult, runs: tuple[Ranges, Ranges], place: int, name: str) -> Section:
    labels = [list(own.names(run)) for own, run in zip(fit.bins, runs, strict=True)]
    titles = (f"{name}: {fit.variables[0]}" if name else fit.variables[0], fit.variables[1])
    sums = fit.sums(runs, place, whole=True).astype(np.int64)
    return side_by_side(sums, titles, (labels[0], labels[1]))


def _noise(fit: PlaneResult, runs: tuple[Ranges, Ranges]) -> tuple[tuple[str, str], ...]:
    """Tell the noise of a cell, and of the blocks that are printed where these are of many."""
    cells = tuple(own.runs(bins) for own, bins in zip(fit.bins, fit.shape, strict=True))
    told = (("Cell noise", _within(fit, (cells[0], cells[1]))),)
    whole = all(len(own.start) == bins for own, bins in zip(runs, fit.shape, strict=True))
    return told if whole else (*told, ("Block noise", _within(fit, runs)))


def _within(fit: PlaneResult, runs: tuple[Ranges, Ranges]) -> str:
    sd, half = (signif(fit.noise_width(runs, level), 2) for level in (None, LEVEL))
    return f"sd {sd}, 95% within {half}"


def _notes(fit: PlaneResult, runs: tuple[Ranges, Ranges]) -> list[str]:
    notes = []
    along, across = (int((own.stop - own.start).max()) for own in runs)
    if along * across > 1:
        first, second = map(count, fit.shape)
        notes.append(
            f"{first} by {second} cells, shown in blocks of up to {count(along)} by "
            f"{count(across)}: see between(), counts, tidy() and plot()."
        )
    notes.append(
        "Values beyond the declared bounds were clipped to them, into the end bins where breaks "
        "reach the bounds; rows outside the breaks count as incomplete."
    )
    return notes
