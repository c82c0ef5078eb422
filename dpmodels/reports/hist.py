"""The printed reports of ordered cells: histograms, series and survival curves."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd

from dpmodels.errors import NotAvailable, shorten
from dpmodels.postprocess.ordered import within
from dpmodels.postprocess.protocol import NO_WEIGHT, CellRanges
from dpmodels.report import Bar, Fact, Report, Row, Section, count, interval, signif, uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports import header
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
from dpmodels.results.base import report_of
from dpmodels.results.bins import Ranges
from dpmodels.results.call import TableCall
from dpmodels.results.hist import HistResult
from dpmodels.results.plane import PlaneResult
from dpmodels.results.series import SeriesResult
from dpmodels.results.survfit import SurvfitResult
from dpmodels.results.survival_curve import Curve
from dpmodels.results.weighted import WeightedHistResult
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
    sampled = fit.call.tables[0].sampled
    title = "Private histogram" if sampled is None else "Private weighted histogram"
    return header.released_report(
        fit,
        title,
        first=(("Complete", _complete(fit)),),
        facts=(*header.design_facts(fit.release, fit.call.tables[0]), *_noise(fit, half)),
        sections=sections,
        notes=(*_hist_notes(fit, runs), *_lost_note(fit, half), *_reading(fit)),
    )


def _complete(fit: HistResult) -> str:
    what = header.counted_as(fit.release.adjacency)
    if fit.ordered.unlawful:
        return f"{count(fit.ncomplete)} {what}"
    if isinstance(fit, WeightedHistResult):
        sd = fit.table.noise_sd(fit.call.tables[0].cells)
        return header.complete_text(fit.ncomplete, sd, what=header.WEIGHT)
    first, last = np.zeros(1, dtype=np.int64), np.full(1, fit._shape[1])
    total = within(fit.ordered, CellRanges(first, last, _ONE, _ONE, _ONE)).squares[0]
    return header.complete_text(
        fit.ncomplete, fit.release.noise_sd * float(np.sqrt(total)), what=what
    )


def _noise(fit: HistResult, half: float) -> tuple[tuple[str, str], ...]:
    if fit.ordered.unlawful:
        return ()
    bins = fit._shape[1]
    sd = signif(float(fit.noise_sd.max()), 2)
    cell = ("Cell noise", f"sd {sd}, 95% within {signif(half, 2)}")
    if bins <= SHOWN_ROWS or isinstance(fit, WeightedHistResult):
        return (cell,)
    upto = fit.release.noise_sd * np.sqrt(fit.ordered.along(_ONE, _ONE, NO_WEIGHT).squares)
    mean, largest = (signif(float(value), 2) for value in (np.sqrt((upto**2).mean()), upto.max()))
    return cell, ("Range noise", f"sd {mean}, at most {largest}: bins from the first on")


def _one_group(fit: HistResult, runs: Ranges) -> tuple[Section, ...]:
    """Print the count, noise interval, share and bar of each line."""
    table = _lines(fit, runs, 0)
    listing = listed(fit.call.tables[0].factors[-1], fit.bins.names(runs), table, fit.release)
    heights = table["count"].to_numpy() / np.diff(fit.bins.at(np.append(runs.start, runs.stop[-1])))
    pairs = zip(listing.rows, _bars(heights), strict=True)
    rows = tuple(Row(row.label, (*row.cells[:3], bar)) for row, bar in pairs)
    section = Section(listing.title, (*listing.columns[:3], ""), rows)
    if fit._shape[1] <= SHOWN_ROWS:
        return (section,)
    cells, lines = _exact if fit.bins.whole else _rounded, fit.quantile(level=LEVEL)
    rows = tuple(Row(f"{100 * row['prob']:g}%", cells(row)) for row in lines.to_dict("records"))
    heads = ("estimate", "95% noise int.", "95% conf. int.")
    return section, Section(f"Quantiles of {fit.variable}", heads, rows)


def _lines(fit: HistResult, runs: Ranges, group: int) -> pd.DataFrame:
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
    highest = float(heights.max())
    shares = np.maximum(heights, 0.0) / highest if highest > 0 else np.zeros(len(heights))
    return [Bar(share) for share in shares.tolist()]


def _rounded(row: dict[object, float]) -> tuple[str, ...]:
    """Print a quantile to the digits that its noise interval leaves."""
    low, high = row["noise_low"], row["noise_high"]
    estimate = uncertain((row["estimate"],), ((high - low) / 4,))
    return *estimate, interval(low, high), interval(row["conf_low"], row["conf_high"])


def _exact(row: dict[object, object]) -> tuple[str, ...]:
    """Print a quantile among whole numbers or days."""
    texts = {name: _value(value) for name, value in row.items()}
    ends = [(texts[f"{kind}_low"], texts[f"{kind}_high"]) for kind in ("noise", "conf")]
    intervals = (header.LOST if header.LOST in pair else f"[{', '.join(pair)}]" for pair in ends)
    return (texts["estimate"], *intervals)


def _value(value: object) -> str:
    """Print a number to six digits, a date as such."""
    if isinstance(value, pd.Timestamp | np.datetime64):
        return str(pd.Timestamp(value).date())
    number = float(str(value))
    return header.LOST if np.isnan(number) else f"{number:,.6g}"


def _lost_note(fit: HistResult, half: float) -> tuple[str, ...]:
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
    is_even = np.allclose(np.diff(fit.breaks), fit.breaks[1] - fit.breaks[0], rtol=1e-6)
    if fit._shape[0] == 1 and not is_even:
        notes.append("Bars: rows per unit, as bins differ in width.")
    return [*notes, *CLIPPED]


# The printed report of histograms of two numbers.

# Most runs of bins in rows and columns, and tables of groups: choices.
SHOWN_RUNS, SHOWN = (12, 6), 3


@report_of.register
def plane_report(fit: PlaneResult) -> Report:
    """Lay out blocks of cells as tables of strings, one per group, with totals."""
    runs = fit.blocks(SHOWN_RUNS)
    what = header.counted_as(fit.release.adjacency)
    complete = f"{count(fit.ncomplete)} {what}"
    if not fit.ordered.unlawful:
        total = fit.ordered.spread(np.ones(fit.cells), np.ones(())).squares
        sd = fit.release.noise_sd * float(np.sqrt(total))
        complete = header.complete_text(fit.ncomplete, sd, what=what)
    facts = fit.call.tables[0]
    groups = TableCall(facts.factors[:-2], facts.levels[:-2])
    names = groups.labels if groups.factors else [""]
    return header.released_report(
        fit,
        "Private histogram of two numbers",
        first=(("Complete", complete),),
        facts=_plane_noise(fit, runs),
        sections=tuple(_section(fit, runs, *group) for group in enumerate(names[:SHOWN])),
        notes=(
            *header.omitted(SHOWN, len(names), "groups", "counts and tidy()"),
            *_notes(fit, runs),
            *(Rank.IDENTIFIED(RUNS_NOTE) if fit.ordered.unlawful else ()),
            *reading(fit.release),
        ),
    )


def _section(fit: PlaneResult, runs: tuple[Ranges, Ranges], place: int, name: str) -> Section:
    labels = [list(axis_bins.names(run)) for axis_bins, run in zip(fit.bins, runs, strict=True)]
    titles = (f"{name}: {fit.variables[0]}" if name else fit.variables[0], fit.variables[1])
    sums = fit.sums(runs, place, whole=True).astype(np.int64)
    return side_by_side(sums, titles, (labels[0], labels[1]))


def _plane_noise(fit: PlaneResult, runs: tuple[Ranges, Ranges]) -> tuple[tuple[str, str], ...]:
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


# Most lines of a group, and groups of a page: choices.
SHOWN_LINES = 26
SHOWN_SERIES = 6


@report_of.register
def series_report(fit: SeriesResult) -> Report:
    """Lay out counts and running totals as tables of strings, by runs of periods if many."""
    groups, public = fit._facts.groups, fit.release.rows is not None
    sds = [float(table["noise_sd"].max()) for table in (fit.window(1), fit.running())]
    all_of = float(fit.running()["noise_sd"].iloc[-1]) * math.sqrt(groups.cells)
    sd = fit.release.noise_sd if public else all_of
    return header.released_report(
        fit,
        "Private counts over time",
        first=(("Complete", header.complete_rows(fit.release, fit.ncomplete, sd)),),
        facts=(
            ("Protects", protected(fit)),
            ("Time", f"{fit._facts.factors[-1]}{_by(fit)}, {len(fit.periods):,} periods"),
            ("Noise sd", f"{signif(sds[0], 2)} a period, totals up to {signif(sds[1], 2)}"),
        ),
        sections=tuple(map(partial(_series_section, fit), range(min(groups.cells, SHOWN_SERIES)))),
        notes=(
            *header.omitted(SHOWN_SERIES, groups.cells, "groups", "totals and tidy()"),
            *_series_notes(fit),
        ),
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
    if adjacency.places == 1:
        return "one event (a row)"
    return f"any {count(adjacency.places)} events (rows)"


def _series_section(fit: SeriesResult, place: int) -> Section:
    """Print a line for each run of periods: its count, and the running total at its end."""
    size = len(fit.periods)
    width = -(-size // SHOWN_LINES)
    stops = np.append(np.arange(width, size, width), size)
    starts = np.append(0, stops[:-1])
    group = slice(place * len(stops), (place + 1) * len(stops))
    inside, totals = (
        fit._summed(first, stops, 0.95)[group].to_dict("records") for first in (starts, 0 * starts)
    )
    names = map(partial(_period, fit), starts.tolist(), stops.tolist())
    rows = tuple(
        Row(name, (*_cells(row), *_cells(total_row)))
        for name, row, total_row in zip(names, inside, totals, strict=True)
    )
    label = fit._facts.groups.labels[place] if fit._facts.groups.factors else fit._facts.factors[-1]
    what = header.counted_as(fit.release.adjacency).capitalize()
    return Section(label, (what, "95% noise int.", "Total", "95% noise int."), rows)


def _period(fit: SeriesResult, start: int, stop: int) -> str:
    names = fit._facts.levels[-1]
    return str(names[start]) if stop - start == 1 else f"{names[start]} .. {names[stop - 1]}"


def _cells(row: dict[object, float]) -> tuple[str, str]:
    return count(row["count"]), f"[{count(row['noise_low'])}, {count(row['noise_high'])}]"


def _series_notes(fit: SeriesResult) -> list[str]:
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


# Most lines of a curve, and curves of a page: choices.
SHOWN_POINTS = 20
SHOWN_CURVES = 6


@report_of.register
def survfit_report(fit: SurvfitResult) -> Report:
    """Lay out a line for each curve, then each curve over time."""
    counted = fit.counted
    complete = header.complete_rows(fit.release, fit.ncomplete, counted.noise_sd)
    last = f"{fit.times[-1]:,.6g}"
    names = fit.strata or [counted.spec.time.code]
    curves = zip(names[:SHOWN_CURVES], counted.curves, strict=False)
    return header.released_report(
        fit,
        "Private survival curves" if fit.strata else "Private survival curve",
        first=(("Complete", complete),),
        facts=(
            ("Event", counted.spec.event.code),
            ("Grid", f"{counted.spec.time.code}, {len(fit.times):,} intervals up to {last}"),
            ("Count noise", f"sd {signif(fit.release.noise_sd, 2)} a released count"),
            *_test(fit),
        ),
        sections=(_overview(fit), *(_curve(*pair) for pair in curves if pair[1].end)),
        notes=(
            *header.omitted(SHOWN_CURVES, fit.ncurves, "curves", "tidy() and plot()"),
            *_ends(fit),
            *_order(fit),
            *_survfit_notes(fit),
        ),
    )


def _test(fit: SurvfitResult) -> tuple[Fact, ...]:
    if fit.ncurves < 2:
        return ()
    try:
        test = fit.logrank()
    except NotAvailable:
        return (("Log-rank", "lost in noise"),)
    least, most = ("at least", "at most") if test.is_least else ("=", "=")
    p = "p < 0.0001" if test.pvalue < 1e-4 else f"p {most} {signif(test.pvalue, 2)}"
    return (("Log-rank", f"chi2({test.df}) {least} {signif(test.statistic, 3)}, {p}"),)


def _overview(fit: SurvfitResult) -> Section:
    table = fit.table(LEVEL)
    upto = table["upto"].max()
    mean = "mean" if np.isnan(upto) else f"mean to {upto:,.6g}"
    lines = table.head(SHOWN_CURVES).to_dict("records")
    names = fit.strata or ["(all)"]
    rows = tuple(Row(name, _line(row)) for name, row in zip(names, lines, strict=False))
    title = "Curve" if fit.strata else header.counted_as(fit.release.adjacency).capitalize()
    return Section(title, ("n", "events", "median", "95% conf. int.", mean, "std. error"), rows)


def _line(row: dict[object, float]) -> tuple[str, ...]:
    low, high = _time(row["conf_low"]), _time(row["conf_high"])
    between = f"[{low}, {high}]" if np.isfinite(row["conf_high"]) else f"from {low}"
    error = header.LOST if np.isnan(row["rmean_std_error"]) else signif(row["rmean_std_error"], 2)
    median = (_time(row["median"]), header.LOST if np.isnan(row["end"]) else between)
    return (count(row["records"]), count(row["events"]), *median, _time(row["rmean"]), error)


def _time(value: float) -> str:
    """Print a time, or a dash if it is not reached."""
    return header.LOST if np.isnan(value) else f"{value:,.4g}"


def _curve(name: str, curve: Curve) -> Section:
    """Print a line for each time, or for some of many, with the events since the line before."""
    table = pd.DataFrame(curve.columns(LEVEL))
    width = -(-curve.end // SHOWN_POINTS)
    positions = np.append(np.arange(width - 1, curve.end - 1, width), curve.end - 1)
    since = np.diff(np.append(0, np.cumsum(table["n_event"])[positions]))
    digits = 4 if table["std_error"].min() < 1e-3 else 3
    rows = []
    for events, row in zip(since, table.iloc[positions].to_dict("records"), strict=True):
        names = ("estimate", "noise_low", "noise_high", "conf_low", "conf_high")
        share, *ends = (f"{row[name]:.{digits}f}" for name in names)
        intervals = (f"[{ends[0]}, {ends[1]}]", f"[{ends[2]}, {ends[3]}]")
        cells = (count(row["n_risk"]), count(events), share, *intervals)
        rows.append(Row(f"{row['time']:,.6g}", cells))
    heads = ("at risk", "events", "survival", "95% noise int.", "95% conf. int.")
    return Section(name, heads, tuple(rows))


def _ends(fit: SurvfitResult) -> tuple[str, ...]:
    why = "the number at risk is below five sds of its noise"
    curves = list(zip(fit.strata or ["(all)"], fit.counted.curves, strict=True))
    lost = [name for name, curve in curves if not curve.end]
    notes = [f"Curves not reported, as {why}: {shorten(', '.join(lost), 200)}."] if lost else []
    early = [(name, curve) for name, curve in curves if 0 < curve.end < len(curve.times)]
    ends = [f"{name} at {curve.identified_times[-1]:,.6g}" for name, curve in early]
    if ends and fit.strata:
        notes.append(f"Curves end early ({shorten(', '.join(ends), 200)}): beyond, {why}.")
    elif ends:
        notes.append(f"The curve ends{ends[0].removeprefix('(all)')}: beyond, {why}.")
    return Rank.IDENTIFIED(*notes)


def _order(fit: SurvfitResult) -> tuple[str, ...]:
    coarse = []
    for name, curve in zip(fit.strata or [""], fit.counted.curves, strict=True):
        low, high = curve.counts.unordered
        half_width = (high - low) / 2
        if curve.end and (half_width > curve.survival.std_error).any():
            at = int(np.argmax(half_width))
            time = f"{curve.identified_times[at]:,.6g}{f' ({name})' if name else ''}"
            coarse.append(f"{low[at]:.3f} to {high[at]:.3f} at {time}")
    if not coarse:
        return ()
    return (
        *Rank.IDENTIFIED(
            "Coarse grid: depending on the order of times within intervals, survival is "
            f"{', '.join(coarse[:SHOWN_CURVES])}."
        ),
        *Rank.DETAIL("Coarse grid: write more breaks where times are frequent."),
    )


def _survfit_notes(fit: SurvfitResult) -> list[str]:
    notes = []
    if any(curve.end > SHOWN_POINTS for curve in fit.counted.curves):
        notes.append("Events are those since the line before; for all times use tidy().")
    convention = "Each interval holds one value: the product-limit estimate itself."
    if fit.counted.halved.any():
        convention = (
            "Actuarial: half of those censored in an interval count as at risk in it; intervals "
            "hold for any order of times within it."
        )
    return [
        *notes,
        convention,
        "Noise intervals are for the curve of these rows, confidence intervals for the "
        "population's, pointwise.",
        *Rank.DETAIL("Survival is computed from consistent integer counts."),
        *Rank.TARGET(_above(fit)),
    ]


def _above(fit: SurvfitResult) -> str:
    time = fit.counted.spec.time
    if not time.step:
        return "Times above the declared range are censored at its end."
    return f"Times from {time.upper:,.6g} on are censored there."
