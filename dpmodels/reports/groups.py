"""The printed reports of means, variances and quantiles by group, and of table one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from scipy.special import ndtri

from dpmodels.errors import shorten
from dpmodels.inference.means import GroupMoments
from dpmodels.inference.proportions import DETECTION_SDS
from dpmodels.postprocess.far_points import most_missed, points_beyond
from dpmodels.postprocess.ranges import CellNoise
from dpmodels.released import CountsRelease
from dpmodels.report import (
    Report,
    Row,
    Section,
    count,
    hundredth,
    interval,
    signif,
    signif_uncertain,
)
from dpmodels.report.notes import Rank
from dpmodels.reports import header
from dpmodels.results.base import report_of
from dpmodels.results.bounds import QuantileResult
from dpmodels.results.call import TableCall
from dpmodels.results.components import root_sd
from dpmodels.results.groups import GroupedResult, MeanResult, TotalResult, TTestResult, VarResult
from dpmodels.results.overview import OverviewResult
from dpmodels.results.table import TableResult
from dpmodels.typing import Floats, Integers

# Level of the bound on the share of rows outside a range.
LEVEL = 0.95
# With fewer rows the mean of a skewed variable is not approximately normal.
FEW = 100
# Rows per squared skewness from which a mean is approximately normal: Cochran's rule.
COCHRAN = 25
_HEADS: Final = ("noise sd", "Std. err.", "95% noise int.", "95% conf. int.")
_KINDS: Final = (
    "Noise sd and interval: privacy noise only, for these rows. Std. err. and conf. "
    "interval: noise and sampling."
)


@report_of.register
def mean_report(fit: MeanResult) -> Report:
    """Lay out means as a table of strings."""
    return _of_measured("Private means", fit, "Mean")


@report_of.register
def total_report(fit: TotalResult) -> Report:
    """Lay out totals as a table of strings."""
    return _of_measured("Private totals", fit, "Total")


def _of_measured(title: str, fit: GroupedResult, head: str) -> Report:
    """Lay out estimates in the unit of the measured number, with both of their errors."""
    of, cells = fit._facts, []
    for row in _lines(fit):
        errors = (row["noise_sd"], row["std_error"])
        sds = (signif(sd, 2) for sd in errors)
        text = mean_text(of, row["estimate"], *errors)
        cells.append((_rows(row), text, *sds, *_intervals(row, date=of.date)))
    return _report(title, fit, (_counted_head(fit), head, *_HEADS), cells, _KINDS)


def _counted_head(fit: GroupedResult) -> str:
    if fit._facts.sampled is not None:
        return "Weight"
    return header.counted_as(fit.release.adjacency).capitalize()


@report_of.register
def var_report(fit: VarResult) -> Report:
    """Lay out variances as a table of strings."""
    heads = (_counted_head(fit), "Variance", "Std. dev.", "95% noise int.", "95% conf. int.")
    kinds = (
        "Noise interval: privacy noise only, for these rows. Conf. interval: noise and sampling, "
        "for the population; very skewed variables need thousands of rows."
    )
    cells = list[tuple[str, ...]]()
    for row in _lines(fit):
        noise = float(root_sd(np.array([row["sd"]]), np.array([row["noise_sd"]]))[0])
        spread = printed(row["sd"], 10 * hundredth(row["sd"]), noise)
        variance = printed(row["estimate"], row["noise_sd"])
        cells.append((_rows(row), variance, spread, *_intervals(row, date=False)))
    return _report("Private variances", fit, heads, cells, kinds)


def _report(
    title: str, fit: GroupedResult, heads: tuple[str, ...], cells: list[tuple[str, ...]], kinds: str
) -> Report:
    facts = fit._facts
    complete = float(fit.counts.sum())
    summed = fit.count_noise_sd * float(np.sqrt(facts.cells))
    is_public = fit.release.rows is not None and facts.sampled is None
    sd = fit._counted.incomplete_sd if is_public else summed
    rows = zip(facts.labels[: header.SHOWN_GROUPS], cells, strict=False)
    name = " / ".join(facts.factors) or facts.measured
    return header.released_report(
        fit,
        title if facts.factors else title.removesuffix("s"),
        first=(("Complete", _complete(fit, facts, complete, sd)),),
        facts=(("Variable", facts.measured), *header.design_facts(fit.release, facts)),
        sections=(Section(name, heads, tuple(Row(label, texts) for label, texts in rows)),),
        notes=(*header.few_complete(fit.release, complete, sd), *_notes(fit, facts, kinds)),
    )


def _complete(fit: GroupedResult, facts: TableCall, complete: float, sd: float) -> str:
    if facts.sampled is not None:
        return header.complete_text(complete, sd, None, header.WEIGHT)
    return header.complete_rows(fit.release, complete, sd)


def _lines(fit: GroupedResult) -> list[dict[object, float]]:
    table = fit.tidy().head(header.SHOWN_GROUPS)
    n_public = None if fit._facts.sampled is not None else fit.release.rows
    return table.assign(count=table["count"].clip(upper=n_public)).to_dict("records")


def mean_text(of: TableCall, value: float, *sds: float) -> str:
    """Print a mean to the digits that its errors leave, that of dates as the nearest date."""
    if not np.isfinite(value):
        return header.LOST
    return header.day(value) if of.date else signif_uncertain(value, max(sds))


def printed(value: float, *sds: float) -> str:
    """Print a number to the digits that the largest of its errors leaves, four at most."""
    if not np.isfinite(value):
        return header.LOST
    return signif_uncertain(value, max(*sds, hundredth(abs(value))))


def _rows(row: dict[object, float]) -> str:
    """Print a number of rows, or a dash if the group is lost in noise."""
    return count(row["count"]) if np.isfinite(row["estimate"]) else header.LOST


def _intervals(row: dict[object, float], *, date: bool) -> tuple[str, str]:
    """Print both intervals, or dashes if the group is lost in noise."""
    if not np.isfinite(row["estimate"]):
        return header.LOST, header.LOST
    pairs = [(row[f"{kind}_low"], row[f"{kind}_high"]) for kind in ("noise", "conf")]
    noise, population = (
        f"[{header.day(low)}, {header.day(high)}]" if date else interval(low, high)
        for low, high in pairs
    )
    return noise, population


def _notes(fit: GroupedResult, facts: TableCall, kinds: str) -> list[str]:
    notes: list[str] = []
    if fit.params.isna().any():
        notes += Rank.IDENTIFIED(
            f"{header.LOST}: too few rows to distinguish from 0 at this budget."
        )
    notes += header.omitted(header.SHOWN_GROUPS, facts.cells, "groups", "tidy()")
    notes.append(kinds)
    if (fit.counts[fit.params.notna()] < FEW).any():
        notes.append(
            f"Groups of fewer than {FEW} rows: conf. intervals assume that the variable is not "
            "very skewed, as Student's do."
        )
    if isinstance(fit, MeanResult):
        notes += _skewed_note(fit, facts)
    dates = Rank.DETAIL("Means of dates are the nearest day; their errors are in days.")
    notes += dates * (facts.date and isinstance(fit, MeanResult))
    return [*notes, *header.design_notes(fit, facts), *_range_notes(fit, facts)]


def _skewed_note(fit: MeanResult, facts: TableCall) -> tuple[str, ...]:
    """Name the means whose sampling distribution may not be approximately normal.

    A number from 0 on of mean m and standard deviation s has a skewness of s/m - m/s or more, by
    ``E[X³] E[X] >= E[X²]²``.
    """
    means, rows = fit.params, fit.counts
    shape = fit.sd / (means - facts.lower).clip(upper=facts.upper - means)
    sampled = fit.bse**2 > 2 * fit.bse_noise**2
    poor = sampled & (shape > 1) & (rows < COCHRAN * (shape - 1 / shape) ** 2)
    names = [label for label, is_poor in zip(facts.labels, poor, strict=True) if is_poor]
    note = (
        "Conf. intervals may cover less than 95 %, as the variable is skewed and rows are few: "
        f"{shorten(', '.join(names))}."
    )
    return Rank.IDENTIFIED(note) * bool(names)


def _range_notes(fit: GroupedResult, facts: TableCall) -> tuple[str, ...]:
    clipping = fit.release.held
    if clipping is None:
        unfound = fit.release.info.name == "rounds"
        note = f"{facts.measured}: the declared range is kept, as no much narrower one was found."
        return (*Rank.DETAIL(note) * unfound, *header.range_note(facts))
    share = min(max(clipping.outside, 0.0) + ndtri(LEVEL) * clipping.outside_sd, 1.0)
    range_text = (
        f"{header.bound_text(facts, clipping.lower)} to {header.bound_text(facts, clipping.upper)}"
    )
    is_heavy = isinstance(fit, MeanResult | VarResult) and fit.has_heavy_tail
    if clipping.points:
        heavy = "; few rows may determine it, so intervals may cover less than 95 %" * is_heavy
        missed = heavy or _missed_note(fit.release, facts)
        reason = f"as counts show rows far beyond a shorter range{missed}"
        return Rank.TARGET(f"{facts.measured}: {range_text}, {reason}.")
    heavy = "; few rows may determine it, so they may cover less than 95 %" * is_heavy
    return Rank.TARGET(
        f"{facts.measured}: clipped to {range_text}, a range released first. At most "
        f"{100 * share:.2g}% of the rows were outside (at 95%); intervals add the tail cut off"
        f"{heavy or _missed_note(fit.release, facts)}."
    )


def _missed_note(release: CountsRelease, declared: TableCall) -> str:
    """Say how many rows far beyond a released range are not noticed; nothing without such."""
    limits = release.held
    assert limits is not None
    is_wider = declared.lower < limits.lower or limits.upper < declared.upper
    points = points_beyond(limits, declared.lower, declared.upper, declared.cells)
    if release.info.name != "rounds" or not (is_wider if limits.points else points):
        return ""
    lines = declared.cells * (1 + bool(declared.clustered))
    n_rows = most_missed(CellNoise(release.law, release.noise_sd), lines)
    noun = "persons" if release.adjacency.counts_persons else "rows"
    return f"; up to {math.ceil(n_rows):,} {noun} far beyond may be missed"


@report_of.register
def ttest_report(fit: TTestResult) -> Report:
    """Lay out the means, then the test."""
    means = mean_report(fit.means)
    two = bool(fit._facts.factors)
    title = "Private two-sample t-test" if two else "Private one-sample t-test"
    unequal = "; variances may be unequal" if two else ""
    clipped = "" if fit.release.held is None else " It compares means of the clipped rows."
    note = f"The test accounts for the privacy noise{unequal}.{clipped}"
    sections = (*means.sections, _test(fit))
    return replace(means, title=title, sections=sections, notes=(note, *means.notes))


def _test(fit: TTestResult) -> Section:
    levels = fit._facts.labels if fit._facts.factors else (fit._facts.measured,)
    name = f"{' - '.join(f'mean({level})' for level in levels)} = {fit.mu:g}?"
    heads = ("Estimate", "noise sd", "Std. err.", "t", "p-value", "95% conf. int.")
    if not np.isfinite(fit.params):
        return Section("Test", heads, (Row(name, (header.LOST,) * len(heads)),))
    numbers = ((fit.bse_noise, 2), (fit.bse, 2), (fit.tvalue, 3))
    errors = (signif(value, digits) for value, digits in numbers)
    ends = interval(*fit.conf_int().to_numpy()[0].tolist())
    cells = (printed(fit.params, fit.bse_noise, fit.bse), *errors, header.pvalue(fit.pvalue), ends)
    return Section("Test", heads, (Row(name, cells),))


# Bounds of an interval wider than this multiple of the smaller one are rounded separately.
WIDE = 5.0


@report_of.register
def quantile_report(fit: QuantileResult) -> Report:
    """Lay out quantiles as a table of strings."""
    facts = fit._facts
    sd = float(np.linalg.norm(fit.count_noise_sd))
    what = header.counted_in(fit.release)
    n_rows = None if what == header.WEIGHT else fit.release.rows
    complete = header.complete_text(float(fit.counts.sum()), sd, n_rows, what)
    return header.released_report(
        fit,
        "Private quantiles",
        first=(("Complete", complete),),
        facts=(
            ("Variable", facts.measured),
            *header.design_facts(fit.release, fit.call.tables[0]),
            ("Rank noise sd", f"{signif(float(fit.rank_noise_sd.to_numpy().max()), 2)} {what}"),
        ),
        sections=(_section(fit),),
        notes=(
            *header.few_complete(fit.release, float(fit.counts.sum()), sd),
            *header.capped_note(fit.release),
            *_quantile_notes(fit),
        ),
    )


def _section(fit: QuantileResult) -> Section:
    facts = fit._facts
    values, ranks = fit.params.to_numpy(), fit.drawn.to_numpy()
    intervals = np.zeros((*values.shape, 2))
    if fit.level is not None:
        intervals = fit.conf_int().to_numpy().reshape(intervals.shape)
    shifted = _shifted(fit)
    heads = [*(["Drawn at"] if shifted else []), "Quantile"]
    if fit.level is not None:
        heads.append(f"{100 * fit.level:g}% conf. int.")
    rows = []
    for i, label in enumerate(facts.labels[: header.SHOWN_GROUPS]):
        for j, prob in enumerate(fit.probs):
            name = f"{label}, {100 * prob:g}%" if facts.factors else f"{100 * prob:g}%"
            low, high = intervals[i, j].tolist()
            rank = header.LOST if np.isnan(ranks[i, j]) else f"{100 * ranks[i, j]:.3g}%"
            at = [rank] if shifted else []
            cells = [*at, _printed(fit, float(values[i, j]), high - low)]
            if fit.level is not None:
                cells.append(header.LOST if cells[-1] == header.LOST else _interval(fit, low, high))
            rows.append(Row(name, tuple(cells)))
    return Section(" / ".join(facts.factors) or facts.measured, tuple(heads), tuple(rows))


def _shifted(fit: QuantileResult) -> bool:
    return bool((np.abs(fit.drawn.to_numpy() - np.array(fit.probs)) > 0).any())


def _printed(fit: QuantileResult, value: float, width: float) -> str:
    """Print a quantile to the digits that the grid and the interval leave; steps exactly."""
    if not np.isfinite(value):
        return header.LOST
    if fit._facts.date:
        return header.day(value)
    if fit._facts.step is not None:
        return f"{value:.10g}"
    return signif_uncertain(value, min(width / 4, abs(value) / 10))


def _interval(fit: QuantileResult, low: float, high: float) -> str:
    if fit._facts.date:
        return f"[{header.day(low)}, {header.day(high)}]"
    if fit._facts.step is not None:
        return f"[{low:.10g}, {high:.10g}]"
    if high - low > WIDE * min(abs(low), abs(high)):
        return f"[{signif(low, 3)}, {signif(high, 3)}]"
    return interval(low, high)


def _quantile_notes(fit: QuantileResult) -> list[str]:
    facts = fit.call.tables[0]
    notes: list[str] = []
    if fit.params.isna().any(axis=None):
        notes += Rank.IDENTIFIED(f"{header.LOST}: too few rows for this budget.")
    if _shifted(fit):
        notes += Rank.IDENTIFIED(
            "Drawn at: ranks nearer 0% or 100% would be lost in noise; these are the nearest "
            "possible."
        )
    notes += header.omitted(header.SHOWN_GROUPS, len(fit.params), "groups", "tidy()")
    if fit.level is not None:
        notes.append(
            "Conf. interval: noise and sampling; rounded outwards to public cells, and "
            "conservative if many rows share a value."
        )
    return [*notes, *header.range_note(facts)]


# Most columns and levels of a table: choices.
SHOWN_COLUMNS = 6
SHOWN_LEVELS = 20


@report_of.register
def overview_report(fit: OverviewResult) -> Report:
    """Lay out all variables as one table: a column for each group, for all, and for tests."""
    groups, what = fit.groups, header.counted_in(fit.release)
    heads = (*groups.labels[:SHOWN_COLUMNS], "All") if groups.factors else ("All",)
    tests = fit.tests()["p_value"].tolist() if fit.tested else []
    weighted = fit.release.weights is not None
    rows: list[Row] = []
    for place, name in enumerate(fit.variables):
        is_untested = weighted and isinstance(fit[name], TableResult)
        test = (
            ("",) if is_untested and tests else tuple(map(header.pvalue, tests[place : place + 1]))
        )
        rows += _variable(fit, name, test, ("",) * len(heads))
    title = "Variable" + (f", by {' / '.join(groups.factors)}" if groups.factors else "")
    counts = {name: np.asarray(fit[name].counts, dtype=float) for name in fit.variables}
    fewest, noise = (
        min(counts, key=lambda name: counts[name].sum()),
        header.cell_noise_sd(fit.release),
    )
    complete, sd = float(counts[fewest].sum()), noise * float(np.sqrt(counts[fewest].size))
    lost = any(
        cell == header.LOST or f"({header.LOST})" in cell for row in rows for cell in row.cells
    )
    design = header.design_facts(fit.release, fit.call.tables[0])
    return header.released_report(
        fit,
        "Private overview",
        facts=(*design, ("Cell noise", f"sd {signif(noise, 2)} {what}")),
        sections=(Section(title, (*heads, *["p-value"] * fit.tested), tuple(rows)),),
        notes=(
            *header.few_complete(fit.release, complete, sd, f" in {shorten(fewest, 20)}"),
            *_overview_notes(fit, lost=lost),
        ),
    )


def _variable(
    fit: OverviewResult, name: str, test: tuple[str, ...], blank: tuple[str, ...]
) -> list[Row]:
    result = fit[name]
    lines = _mean_lines(result) if isinstance(result, MeanResult) else _level_lines(result)
    title = (
        name if isinstance(result, MeanResult) else f"{name}, {header.counted_in(fit.release)} (%)"
    )
    return [
        Row(title, (*blank, *test), heading=True, about=header.about(fit.call, name)),
        *(Row(label, (*_displayed(cells), *[""] * len(test)), indent=1) for label, cells in lines),
    ]


def _displayed(cells: list[str]) -> list[str]:
    return [*cells[: min(len(cells) - 1, SHOWN_COLUMNS)], cells[-1]]


def _mean_lines(result: MeanResult) -> list[tuple[str, list[str]]]:
    moments = result._moments
    cells = _overview_mean_cells(result, moments, result.counts.tolist())
    if result._facts.factors:
        cells += _overview_mean_cells(result, moments.together, [float(result.counts.sum())])
    by_person = result.release.adjacency.person is not None and result._facts.sampled is None
    spread = "sd between persons" if by_person else "sd"
    names = (f"mean ({spread})", "noise sd of mean", header.counted_in(result.release))
    return [(name, list(line)) for name, line in zip(names, zip(*cells, strict=True), strict=True)]


def _overview_mean_cells(
    result: MeanResult, moments: GroupMoments, counts: list[float]
) -> list[tuple[str, str, str]]:
    """Print the mean with its standard deviation, the noise and the rows of each group."""
    facts = result._facts
    means = (facts.lower + facts.width * moments.means).tolist()
    noise = (facts.width * moments.mean_noise_sd).tolist()
    n_public = None if facts.sampled is not None else result.release.rows
    rows = map(count, np.clip(counts, 0.0, n_public).tolist())
    lines = zip(means, noise, _spreads(facts.width, moments), rows, strict=True)
    return [
        (f"{mean_text(facts, mean, sd)} ({spread})", signif(sd, 2), number)
        if np.isfinite(mean)
        else (header.LOST, header.LOST, number)
        for mean, sd, spread, number in lines
    ]


def _spreads(width: float, moments: GroupMoments) -> list[str]:
    """Print standard deviations to three digits or less; a dash if they may be noise."""
    variances, noise = moments.variances, moments.variance_noise_sd
    spreads = width * np.sqrt(variances)
    sds = (width * root_sd(np.sqrt(variances), noise)).tolist()
    identified = variances > DETECTION_SDS / 2 * noise
    return [
        signif_uncertain(spread, max(sd, 10 * hundredth(spread))) if is_identified else header.LOST
        for spread, sd, is_identified in zip(spreads, sds, identified, strict=True)
    ]


def _level_lines(result: TableResult) -> list[tuple[str, list[str]]]:
    """Print counts, and shares within the group, one line per level."""
    facts, counts = result._facts, result.by_level
    noise = np.full(len(counts), result.noise_sd())
    sd = np.full(len(counts), result.noise_sd(counts.shape[1]))
    if len(facts.factors) > 1:
        counts = np.vstack([counts, counts.sum(axis=0)])
        noise = np.append(noise, result.noise_sd(len(noise)))
        sd = np.append(sd, result.noise_sd(result.by_level.size))
    totals = counts.sum(axis=1)
    divisor = np.where(totals > DETECTION_SDS * sd, totals, np.nan)
    shares = np.asarray(counts / divisor[:, None])
    errors = 100 * noise / np.maximum(totals, 1.0)
    return [
        (str(level), _counted(counts[:, place], shares[:, place], errors))
        for place, level in enumerate(facts.levels[-1][:SHOWN_LEVELS])
    ]


def _counted(counts: Integers, shares: Floats, errors: Floats) -> list[str]:
    """Print counts and percentages, to the decimals that noise leaves."""
    decimals = np.where(errors > 0.5, 0, 1).tolist()
    cells = zip(counts.tolist(), shares.tolist(), decimals, strict=True)
    return [
        f"{count(number)} ({header.LOST if np.isnan(share) else f'{100 * share:.{digits}f}'})"
        for number, share, digits in cells
    ]


def _overview_notes(fit: OverviewResult, *, lost: bool) -> list[str]:
    rows = "Complete rows of each variable separately; percentages within the group."
    notes = [*Rank.TARGET(rows), *header.capped_note(fit.release)]
    if lost:
        notes += Rank.IDENTIFIED(
            f"{header.LOST}: lost in the noise at this budget. If bounds are wide, dp_mean and "
            "dp_var of one variable can find a shorter range."
        )
    together = "All: all groups, at no further cost; rows without a group are excluded."
    notes += Rank.DETAIL(together) * bool(fit.strata)
    if fit.tested:
        tests = "for means, chi-square for counts; they account"
        if fit.release.weights is not None:
            tests = "for means, none for counts under a survey design; they account"
        notes.append(f"p-values: Welch's t or anova {tests} for noise, not for multiple tests.")
        notes += Rank.DETAIL("Tests use the released groups, at no further cost.")
    notes += header.omitted(SHOWN_COLUMNS, fit.groups.cells, "groups", "tidy()")
    notes.append(
        "Digits of means are limited by the noise. For intervals use fit[variable].noise_int() and "
        "conf_int()."
    )
    dated = Rank.DETAIL("Means of dates are the nearest day; sd and noise are in days.")
    notes += dated * any(table.date for table in fit.call.tables)
    return [*notes, *header.range_note(*fit.call.tables)]
