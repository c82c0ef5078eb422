"""The printed report of an overview: table one."""

from __future__ import annotations

import numpy as np

from dpmodels.inference.ratios import TOLD
from dpmodels.released import shared_facts
from dpmodels.report import Report, Row, Section, count, hundredth, signif, signif_uncertain
from dpmodels.reports.groups import mean_text
from dpmodels.reports.header import LOST, closing, more, opening, range_note
from dpmodels.results.analysis import root_sd
from dpmodels.results.base import report_of
from dpmodels.results.groups import MeanResult
from dpmodels.results.overview import OverviewResult
from dpmodels.results.table import TableResult
from dpmodels.typing import Floats, Integers

# Columns and levels of a page: choices.
SHOWN_GROUPS = 6
SHOWN_LEVELS = 20


@report_of.register
def overview_report(fit: OverviewResult) -> Report:
    """Lay out all variables as one table, a column a group."""
    groups = fit.groups
    heads = tuple(groups.labels[:SHOWN_GROUPS]) if groups.factors else ("All",)
    rows: list[Row] = []
    for name in fit.variables:
        own = fit[name]
        rows += _mean_rows(name, own) if isinstance(own, MeanResult) else _table_rows(name, own)
    title = "Variable" + (f", by {' / '.join(groups.factors)}" if groups.factors else "")
    shown = tuple(Row(row.label, row.cells[:SHOWN_GROUPS]) for row in rows)
    lost = any(cell == LOST or f"({LOST})" in cell for row in shown for cell in row.cells)
    return Report(
        title="Private overview",
        facts=(
            *opening(fit.call, fit.release),
            *shared_facts(fit.release),
            ("Cell noise", f"sd {signif(fit.release.noise_sd, 2)} rows"),
        ),
        sections=(Section(title, heads, shown),),
        notes=(*_notes(fit, lost=lost), *closing(fit.call, fit.release)),
        stamp=fit.stamp,
    )


def _mean_rows(name: str, own: MeanResult) -> list[Row]:
    """Mean and standard deviation to the digits that noise leaves, the noise, complete rows."""
    pairs = list(zip(own.params.tolist(), own.bse_noise.tolist(), strict=True))
    cells = tuple(
        f"{mean_text(own.call.tables[0], mean, sd)} ({spread})" if np.isfinite(mean) else LOST
        for (mean, sd), spread in zip(pairs, _spreads(own), strict=True)
    )
    rows = tuple(map(count, own.counts.clip(lower=0.0, upper=own.release.rows).tolist()))
    errors = tuple(signif(sd, 2) if np.isfinite(mean) else LOST for mean, sd in pairs)
    return [
        Row(f"{name}, mean (sd)", cells),
        Row(f"{name}, noise sd of mean", errors),
        Row(f"{name}, rows", rows),
    ]


def _spreads(own: MeanResult) -> list[str]:
    """Print standard deviations to three digits or less; none that may be 0 by the noise."""
    variances, noise = own._moments.variances, own._moments.variance_noise_sd
    width = own.call.tables[0].width
    sds = (width * root_sd(np.sqrt(variances), noise)).tolist()
    return [
        signif_uncertain(spread, max(sd, 10 * hundredth(spread))) if told else LOST
        for spread, sd, told in zip(own.sd, sds, variances > TOLD / 2 * noise, strict=True)
    ]


def _table_rows(name: str, own: TableResult) -> list[Row]:
    """Print counts, and shares within the group, a line a level."""
    facts = own.call.tables[0]
    levels = facts.levels[-1]
    groups = facts.factors[:-1]
    counts = own.counts.to_numpy().reshape(-1, len(levels))
    shares = own.proportions(groups).to_numpy().reshape(-1, len(levels))
    totals, sd = counts.sum(axis=1), own.noise_sd(len(levels))
    shares[totals <= TOLD * sd] = np.nan
    errors = 100 * own.noise_sd() / np.maximum(totals, 1.0)
    return [
        Row(f"{name} = {level}, rows (%)", _counted(counts[:, place], shares[:, place], errors))
        for place, level in enumerate(levels[:SHOWN_LEVELS])
    ]


def _counted(counts: Integers, shares: Floats, errors: Floats) -> tuple[str, ...]:
    """Print counts and percentages, these without a decimal where noise leaves none."""
    places = np.where(errors > 0.5, 0, 1).tolist()
    cells = zip(counts.tolist(), shares.tolist(), places, strict=True)
    return tuple(
        f"{count(number)} ({LOST if np.isnan(share) else f'{100 * share:.{digits}f}'})"
        for number, share, digits in cells
    )


def _notes(fit: OverviewResult, *, lost: bool) -> list[str]:
    notes = ["Complete rows of each variable by itself; percentages within the group."]
    if lost:
        notes.append(
            f"{LOST}: lost in the noise at this budget. Where bounds are wide, dp_mean and dp_var "
            "of one number can find a shorter range."
        )
    notes += more(SHOWN_GROUPS, fit.groups.cells, "groups", "tidy()")
    notes.append(
        "Digits of means end where noise begins. fit[variable] has the errors and intervals of "
        "each: noise_int(), conf_int()."
    )
    dated = ("Means of dates are the nearest day; sd and noise are in days.",)
    notes += dated * any(own.date for own in fit.call.tables)
    return [*notes, *range_note(*fit.call.tables)]
