"""The printed report of an overview: table one."""

from __future__ import annotations

import numpy as np

from dpmodels.inference.means import GroupMoments
from dpmodels.inference.ratios import DETECTION_SDS
from dpmodels.report import Report, Row, Section, count, hundredth, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports.groups import mean_text
from dpmodels.reports.header import (
    LOST,
    about,
    closing,
    counted_as,
    omitted,
    opening,
    pvalue,
    range_note,
    shared_facts,
)
from dpmodels.results.base import report_of
from dpmodels.results.components import root_sd
from dpmodels.results.groups import MeanResult
from dpmodels.results.overview import OverviewResult
from dpmodels.results.table import TableResult
from dpmodels.typing import Floats, Integers

# Most columns and levels of a table: choices.
SHOWN_GROUPS = 6
SHOWN_LEVELS = 20


@report_of.register
def overview_report(fit: OverviewResult) -> Report:
    """Lay out all variables as one table: a column for each group, for all, and for tests."""
    groups, what = fit.groups, counted_as(fit.release.adjacency)
    heads = (*groups.labels[:SHOWN_GROUPS], "All") if groups.factors else ("All",)
    tests = fit.tests()["p_value"].tolist() if fit.tested else []
    rows: list[Row] = []
    for place, name in enumerate(fit.variables):
        test = tuple(map(pvalue, tests[place : place + 1]))
        rows += _variable(fit, name, test, ("",) * len(heads))
    title = "Variable" + (f", by {' / '.join(groups.factors)}" if groups.factors else "")
    lost = any(cell == LOST or f"({LOST})" in cell for row in rows for cell in row.cells)
    return Report(
        title="Private overview",
        facts=(
            *opening(fit.call, fit.release),
            *shared_facts(fit.release),
            ("Cell noise", f"sd {signif(fit.release.noise_sd, 2)} {what}"),
        ),
        sections=(Section(title, (*heads, *["p-value"] * fit.tested), tuple(rows)),),
        notes=(*_notes(fit, lost=lost), *closing(fit.call, fit.release)),
        stamp=fit.stamp,
    )


def _variable(
    fit: OverviewResult, name: str, test: tuple[str, ...], blank: tuple[str, ...]
) -> list[Row]:
    """Head the lines of a variable with its name."""
    result = fit[name]
    lines = _mean_lines(result) if isinstance(result, MeanResult) else _level_lines(result)
    title = (
        name
        if isinstance(result, MeanResult)
        else f"{name}, {counted_as(fit.release.adjacency)} (%)"
    )
    return [
        Row(title, (*blank, *test), heading=True, about=about(fit.call, name)),
        *(Row(label, (*_displayed(cells), *[""] * len(test)), indent=1) for label, cells in lines),
    ]


def _displayed(cells: list[str]) -> list[str]:
    """Return the cells of printed groups, and that of all groups."""
    return [*cells[: min(len(cells) - 1, SHOWN_GROUPS)], cells[-1]]


def _mean_lines(result: MeanResult) -> list[tuple[str, list[str]]]:
    """Lay out mean and sd to the digits that noise leaves, the noise sd and complete rows."""
    moments = result._moments
    cells = _mean_cells(result, moments, result.counts.tolist())
    if result._facts.factors:
        cells += _mean_cells(result, moments.together, [float(result.counts.sum())])
    names = ("mean (sd)", "noise sd of mean", counted_as(result.release.adjacency))
    return [(name, list(line)) for name, line in zip(names, zip(*cells, strict=True), strict=True)]


def _mean_cells(
    result: MeanResult, moments: GroupMoments, counts: list[float]
) -> list[tuple[str, str, str]]:
    """Print the mean with its standard deviation, the noise and the rows of each group."""
    facts = result._facts
    means = (facts.lower + facts.width * moments.means).tolist()
    noise = (facts.width * moments.mean_noise_sd).tolist()
    rows = map(count, np.clip(counts, 0.0, result.release.rows).tolist())
    return [
        (f"{mean_text(facts, mean, sd)} ({spread})", signif(sd, 2), number)
        if np.isfinite(mean)
        else (LOST, LOST, number)
        for mean, sd, spread, number in zip(
            means, noise, _spreads(facts.width, moments), rows, strict=True
        )
    ]


def _spreads(width: float, moments: GroupMoments) -> list[str]:
    """Print standard deviations to three digits or less; a dash if they may be noise."""
    variances, noise = moments.variances, moments.variance_noise_sd
    spreads = width * np.sqrt(variances)
    sds = (width * root_sd(np.sqrt(variances), noise)).tolist()
    return [
        signif_uncertain(spread, max(sd, 10 * hundredth(spread))) if is_identified else LOST
        for spread, sd, is_identified in zip(
            spreads, sds, variances > DETECTION_SDS / 2 * noise, strict=True
        )
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
        f"{count(number)} ({LOST if np.isnan(share) else f'{100 * share:.{digits}f}'})"
        for number, share, digits in cells
    ]


def _notes(fit: OverviewResult, *, lost: bool) -> list[str]:
    rows = "Complete rows of each variable separately; percentages within the group."
    notes = [*Rank.TARGET(rows)]
    if lost:
        notes += Rank.IDENTIFIED(
            f"{LOST}: lost in the noise at this budget. If bounds are wide, dp_mean and dp_var of "
            "one variable can find a shorter range."
        )
    if fit.strata:
        notes += Rank.DETAIL(
            "All: all groups, at no further cost; rows without a group are excluded."
        )
    if fit.tested:
        notes.append(
            "p-values: Welch's t or anova for means, chi-square for counts; they account for "
            "noise, not for multiple tests."
        )
        notes += Rank.DETAIL("Tests use the released groups, at no further cost.")
    notes += omitted(SHOWN_GROUPS, fit.groups.cells, "groups", "tidy()")
    notes.append(
        "Digits of means are limited by the noise. For intervals use fit[variable].noise_int() and "
        "conf_int()."
    )
    dated = Rank.DETAIL("Means of dates are the nearest day; sd and noise are in days.")
    notes += dated * any(table.date for table in fit.call.tables)
    return [*notes, *range_note(*fit.call.tables)]
