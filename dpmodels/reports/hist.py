"""The printed report of histograms."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpmodels.postprocess.ordered import within
from dpmodels.postprocess.protocol import NO_WEIGHT
from dpmodels.report import Bar, Report, Row, Section, count, signif
from dpmodels.report.notes import Rank
from dpmodels.reports.counts import (
    SHOWN_COLUMNS,
    SHOWN_ROWS,
    joined_levels,
    listed,
    reading,
    rounding_note,
    side_by_side,
    with_shares,
)
from dpmodels.reports.header import (
    LOST,
    closing,
    complete_text,
    counted_as,
    described_header,
    omitted,
)
from dpmodels.results.base import report_of
from dpmodels.results.bins import Ranges
from dpmodels.results.call import TableCall
from dpmodels.results.hist import HistResult
from dpmodels.results.plane import PlaneResult
from dpmodels.typing import Floats

# Lines for runs of many bins: a choice.
RUNS = 32
LEVEL = 0.95
_ONE = np.ones(())
CLIPPED = Rank.TARGET(
    "Values beyond the declared bounds were clipped to them, into the end bins where breaks reach "
    "the bounds; rows outside the breaks count as incomplete."
)

RUNS_NOTE = (
    "Intervals hold for any rows within the runs of bins that were counted: those of a part of a "
    "run reach from none to all of its rows."
)


@report_of.register
def hist_report(fit: HistResult) -> Report:
    """Lay out bins, or runs of many bins, as a table of strings: of one group with bars."""
    groups, bins = fit._shape
    runs = fit.bins.runs(bins if bins <= SHOWN_ROWS else RUNS)
    sections = _one_group(fit, runs) if groups == 1 else (_by_group(fit, runs),)
    half = np.nan if fit.ordered.unlawful else fit.half(LEVEL)
    return Report(
        title="Private histogram",
        facts=(*described_header(fit.call, fit.release, _complete(fit)), *_noise(fit, half)),
        sections=sections,
        notes=(
            *_hist_notes(fit, runs),
            *_lost_note(fit, half),
            *_reading(fit),
            *closing(fit.call, fit.release),
        ),
        stamp=fit.stamp,
    )


def _complete(fit: HistResult) -> str:
    what = counted_as(fit.release.adjacency)
    if fit.ordered.unlawful:
        return f"{count(fit.ncomplete)} {what}"
    first, last = np.zeros(1, dtype=np.int64), np.full(1, fit._shape[1])
    total = within(fit.ordered, first, last, _ONE, _ONE, _ONE).squares[0]
    return complete_text(fit.ncomplete, fit.release.noise_sd * float(np.sqrt(total)), what=what)


def _noise(fit: HistResult, half: float) -> tuple[tuple[str, str], ...]:
    """Give the noise of a bin, and of ranges of bins if there are many."""
    if fit.ordered.unlawful:
        return ()
    bins = fit._shape[1]
    sd = signif(float(fit.noise_sd.max()), 2)
    cell = ("Cell noise", f"sd {sd}, 95% within {signif(half, 2)}")
    if bins <= SHOWN_ROWS:
        return (cell,)
    upto = fit.release.noise_sd * np.sqrt(fit.ordered.along(_ONE, _ONE, NO_WEIGHT).squares)
    mean, largest = (signif(float(value), 2) for value in (np.sqrt((upto**2).mean()), upto.max()))
    return cell, ("Range noise", f"sd {mean}, at most {largest}: bins from the first on")


def _one_group(fit: HistResult, runs: Ranges) -> tuple[Section, ...]:
    """Print the count, noise interval, share and bar of each line."""
    table = _lines(fit, runs, 0)
    listing = listed(fit.call.tables[0].factors[-1], fit.bins.names(runs), table, fit.release)
    heights = table["count"].to_numpy() / np.diff(fit.bins.at(np.append(runs.start, runs.stop[-1])))
    rows = tuple(
        Row(row.label, (*row.cells[:3], bar))
        for row, bar in zip(listing.rows, _bars(heights), strict=True)
    )
    section = Section(listing.title, (*listing.columns[:3], ""), rows)
    return (section, _quartiles(fit)) if fit._shape[1] > SHOWN_ROWS else (section,)


def _lines(fit: HistResult, runs: Ranges, group: int) -> pd.DataFrame:
    """Return a tidy table of the lines of one group."""
    bins = fit._shape[1]
    if len(runs.start) == bins and not fit.ordered.unlawful:
        table = with_shares(fit.tidy())
        return table.iloc[group * bins : (group + 1) * bins]
    return pd.DataFrame(fit.group(group).ranges(runs, LEVEL))


def _by_group(fit: HistResult, runs: Ranges) -> Section:
    """Print groups side by side, or below each other if they are many."""
    facts, names = fit.call.tables[0], list(fit.bins.names(runs))
    groups = joined_levels(facts.levels[:-1])
    titles = (facts.factors[-1], " / ".join(facts.factors[:-1]))
    if len(groups) <= SHOWN_COLUMNS:
        counts = fit.ordered.whole[:-1].reshape(fit._shape)
        sums = np.add.reduceat(counts, runs.start.astype(int), axis=1)
        return side_by_side(sums.T, titles, (names, groups))
    shown_groups = groups[: -(-SHOWN_ROWS // len(names))]
    tables = pd.concat([_lines(fit, runs, place) for place in range(len(shown_groups))])
    labels = [f"{group} / {name}" for group in shown_groups for name in names]
    title = " / ".join(titles[::-1])
    return listed(title, labels[:SHOWN_ROWS], tables.head(SHOWN_ROWS), fit.release)


def _reading(fit: HistResult) -> tuple[str, ...]:
    if not fit.ordered.unlawful:
        return reading(fit.release)
    note = rounding_note(fit.release, "the biased estimates, constant within a run,")
    return Rank.DETAIL(note)


def _bars(heights: Floats) -> list[Bar]:
    """Draw bars, the highest of full length."""
    highest = float(heights.max())
    shares = np.maximum(heights, 0.0) / highest if highest > 0 else np.zeros(len(heights))
    return [Bar(share) for share in shares.tolist()]


def _quartiles(fit: HistResult) -> Section:
    table = fit.quantile(level=LEVEL)
    rows = tuple(_quantile(row) for row in table.to_dict("records"))
    heads = ("estimate", "95% noise int.", "95% conf. int.")
    return Section(f"Quantiles of {fit.variable}", heads, rows)


def _quantile(row: dict[object, object]) -> Row:
    texts = {name: _value(value) for name, value in row.items()}
    noise, population = (
        LOST if LOST in (low, high) else f"[{low}, {high}]"
        for low, high in (
            (texts["noise_low"], texts["noise_high"]),
            (texts["conf_low"], texts["conf_high"]),
        )
    )
    return Row(f"{100 * float(str(row['prob'])):g}%", (texts["estimate"], noise, population))


def _value(value: object) -> str:
    """Print a number to six digits, a date as such."""
    if isinstance(value, pd.Timestamp | np.datetime64):
        return str(pd.Timestamp(value).date())
    number = float(str(value))
    return LOST if np.isnan(number) else f"{number:,.6g}"


def _lost_note(fit: HistResult, half: float) -> tuple[str, ...]:
    """Say which counts may be noise."""
    if fit.ordered.unlawful:
        return Rank.IDENTIFIED(RUNS_NOTE)
    some_small = bool((fit.ordered.cells <= half).any())
    note = f"Counts of single bins up to {half:.0f} may be noise alone."
    return Rank.IDENTIFIED(note) * some_small


def _hist_notes(fit: HistResult, runs: Ranges) -> list[str]:
    notes: list[str] = []
    bins, lines = fit._shape[1], len(runs.start)
    if lines < bins:
        run_length = int(runs.stop[0])
        notes += Rank.IDENTIFIED(
            f"{count(bins)} bins, shown in runs of {count(run_length)}: see between(), cdf(), "
            "quantile(), tidy() and plot()."
        )
    if not np.allclose(np.diff(fit.breaks), fit.breaks[1] - fit.breaks[0], rtol=1e-6):
        notes.append("Bars: rows per unit, as bins differ in width.")
    return [*notes, *CLIPPED]


# The printed report of histograms of two numbers.

# Most runs of bins in rows and columns, and tables of groups: choices.
SHOWN_RUNS, SHOWN = (12, 6), 3


@report_of.register
def plane_report(fit: PlaneResult) -> Report:
    """Lay out blocks of cells as tables of strings, one per group, with totals."""
    runs = fit.blocks(SHOWN_RUNS)
    what = counted_as(fit.release.adjacency)
    complete = f"{count(fit.ncomplete)} {what}"
    if not fit.ordered.unlawful:
        total = fit.ordered.spread(np.ones(fit.cells), np.ones(())).squares
        sd = fit.release.noise_sd * float(np.sqrt(total))
        complete = complete_text(fit.ncomplete, sd, what=what)
    facts = fit.call.tables[0]
    groups = TableCall(facts.factors[:-2], facts.levels[:-2])
    names = groups.labels if groups.factors else [""]
    return Report(
        title="Private histogram of two numbers",
        facts=(*described_header(fit.call, fit.release, complete), *_plane_noise(fit, runs)),
        sections=tuple(
            _section(fit, runs, place, name) for place, name in enumerate(names[:SHOWN])
        ),
        notes=(
            *omitted(SHOWN, len(names), "groups", "counts and tidy()"),
            *_notes(fit, runs),
            *(Rank.IDENTIFIED(RUNS_NOTE) if fit.ordered.unlawful else ()),
            *reading(fit.release),
            *closing(fit.call, fit.release),
        ),
        stamp=fit.stamp,
    )


def _section(fit: PlaneResult, runs: tuple[Ranges, Ranges], place: int, name: str) -> Section:
    labels = [list(axis_bins.names(run)) for axis_bins, run in zip(fit.bins, runs, strict=True)]
    titles = (f"{name}: {fit.variables[0]}" if name else fit.variables[0], fit.variables[1])
    sums = fit.sums(runs, place, whole=True).astype(np.int64)
    return side_by_side(sums, titles, (labels[0], labels[1]))


def _plane_noise(fit: PlaneResult, runs: tuple[Ranges, Ranges]) -> tuple[tuple[str, str], ...]:
    """Give the noise of a cell, and of the printed blocks of cells."""
    if fit.ordered.unlawful:
        return ()
    cells = tuple(axis_bins.runs(bins) for axis_bins, bins in zip(fit.bins, fit.shape, strict=True))
    facts = (("Cell noise", _within(fit, (cells[0], cells[1]))),)
    single_cells = all(len(run.start) == bins for run, bins in zip(runs, fit.shape, strict=True))
    return facts if single_cells else (*facts, ("Block noise", _within(fit, runs)))


def _within(fit: PlaneResult, runs: tuple[Ranges, Ranges]) -> str:
    sd, half = (signif(fit.noise_width(runs, level), 2) for level in (None, LEVEL))
    return f"sd {sd}, 95% within {half}"


def _notes(fit: PlaneResult, runs: tuple[Ranges, Ranges]) -> list[str]:
    notes: list[str] = []
    along, across = (int((run.stop - run.start).max()) for run in runs)
    if along * across > 1:
        first, second = map(count, fit.shape)
        notes += Rank.IDENTIFIED(
            f"{first} by {second} cells, shown in blocks of up to {count(along)} by "
            f"{count(across)}: see between(), counts, tidy() and plot()."
        )
    return [*notes, *CLIPPED]
