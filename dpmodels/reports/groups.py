"""The printed reports of means and variances by group, and of a test of means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from dpmodels.errors import shorten
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
from dpmodels.reports.header import (
    LOST,
    SHOWN_GROUPS,
    bound_text,
    closing,
    complete_text,
    counted_as,
    day,
    described_header,
    omitted,
    pvalue,
    range_note,
)
from dpmodels.results.base import report_of
from dpmodels.results.call import TableCall
from dpmodels.results.components import root_sd
from dpmodels.results.groups import GroupedResult, MeanResult, TTestResult, VarResult

# Level of the bound on the share of rows outside a range.
LEVEL = 0.95
# With fewer rows the mean of a skewed variable is not approximately normal.
FEW = 100
# Rows per squared skewness from which a mean is approximately normal: Cochran's rule.
COCHRAN = 25


@report_of.register
def mean_report(fit: MeanResult) -> Report:
    """Lay out means as a table of strings."""
    counted = counted_as(fit.release.adjacency).capitalize()
    heads = (counted, "Mean", "noise sd", "Std. err.", "95% noise int.", "95% conf. int.")
    kinds = (
        "Noise sd and interval: privacy noise only, for these rows. Std. err. and conf. "
        "interval: noise and sampling."
    )
    return _report("Private means", fit, heads, _mean_cells(_lines(fit), fit._facts), kinds)


@report_of.register
def var_report(fit: VarResult) -> Report:
    """Lay out variances as a table of strings."""
    counted = counted_as(fit.release.adjacency).capitalize()
    heads = (counted, "Variance", "Std. dev.", "95% noise int.", "95% conf. int.")
    kinds = (
        "Noise interval: privacy noise only, for these rows. Conf. interval: noise and sampling, "
        "for the population; very skewed variables need thousands of rows."
    )
    return _report("Private variances", fit, heads, _var_cells(_lines(fit)), kinds)


def _report(
    title: str,
    fit: GroupedResult,
    heads: tuple[str, ...],
    cells: list[tuple[str, ...]],
    kinds: str,
) -> Report:
    """Lay out a table; `kinds` is the note on its errors and intervals."""
    facts = fit._facts
    complete = float(fit.counts.sum())
    summed = fit.count_noise_sd * float(np.sqrt(facts.cells))
    sd = summed if fit.release.rows is None else fit._counted.incomplete_sd
    rows = zip(facts.labels[:SHOWN_GROUPS], cells, strict=False)
    name = " / ".join(facts.factors) or facts.measured
    return Report(
        title=title if facts.factors else title.removesuffix("s"),
        facts=(
            *described_header(
                fit.call,
                fit.release,
                complete_text(complete, sd, fit.release.rows, counted_as(fit.release.adjacency)),
            ),
            ("Variable", facts.measured),
        ),
        sections=(Section(name, heads, tuple(Row(label, texts) for label, texts in rows)),),
        notes=(*_notes(fit, facts, kinds), *closing(fit.call, fit.release)),
        stamp=fit.stamp,
    )


def _lines(fit: GroupedResult) -> list[dict[object, float]]:
    """Return the printed rows of each group, with counts of at most n."""
    table = fit.tidy().head(SHOWN_GROUPS)
    return table.assign(count=table["count"].clip(upper=fit.release.rows)).to_dict("records")


def _mean_cells(lines: list[dict[object, float]], of: TableCall) -> list[tuple[str, ...]]:
    return [
        (
            _rows(row),
            mean_text(of, row["estimate"], row["noise_sd"], row["std_error"]),
            signif(row["noise_sd"], 2),
            signif(row["std_error"], 2),
            *_intervals(row, date=of.date),
        )
        for row in lines
    ]


def _var_cells(lines: list[dict[object, float]]) -> list[tuple[str, ...]]:
    return [
        (
            _rows(row),
            printed(row["estimate"], row["noise_sd"]),
            _spread(row),
            *_intervals(row, date=False),
        )
        for row in lines
    ]


def mean_text(of: TableCall, value: float, *sds: float) -> str:
    """Print a mean, that of dates as the nearest date."""
    return day(value) if of.date and np.isfinite(value) else printed(value, *sds)


def printed(value: float, *sds: float) -> str:
    """Print a number to the digits that the largest of its errors leaves, four at most."""
    if not np.isfinite(value):
        return LOST
    return signif_uncertain(value, max(*sds, hundredth(abs(value))))


def _spread(row: dict[object, float]) -> str:
    """Print a standard deviation to the digits that the noise of the variance leaves."""
    noise = root_sd(np.array([row["sd"]]), np.array([row["noise_sd"]]))
    return printed(row["sd"], 10 * hundredth(row["sd"]), float(noise[0]))


def _rows(row: dict[object, float]) -> str:
    """Print a number of rows, or a dash if the group is lost in noise."""
    return count(row["count"]) if np.isfinite(row["estimate"]) else LOST


def _intervals(row: dict[object, float], *, date: bool) -> tuple[str, str]:
    """Print both intervals, or dashes if the group is lost in noise."""
    if not np.isfinite(row["estimate"]):
        return LOST, LOST
    pairs = [(row[f"{kind}_low"], row[f"{kind}_high"]) for kind in ("noise", "conf")]
    noise, population = (
        f"[{day(low)}, {day(high)}]" if date else interval(low, high) for low, high in pairs
    )
    return noise, population


def _notes(fit: GroupedResult, facts: TableCall, kinds: str) -> list[str]:
    notes: list[str] = []
    if fit.params.isna().any():
        notes += Rank.IDENTIFIED(f"{LOST}: too few rows to distinguish from 0 at this budget.")
    notes += omitted(SHOWN_GROUPS, facts.cells, "groups", "tidy()")
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
    return [*notes, *_range_notes(fit, facts)]


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
    """Describe the range to which values were clipped, and the share outside."""
    clipping = fit.release.held
    if clipping is None:
        unfound = fit.release.info.name == "rounds"
        note = f"{facts.measured}: no much shorter range than the declared one was found."
        return (*Rank.DETAIL(note) * unfound, *range_note(facts))
    share = min(max(clipping.outside, 0.0) + ndtri(LEVEL) * clipping.outside_sd, 1.0)
    range_text = f"{bound_text(facts, clipping.lower)} to {bound_text(facts, clipping.upper)}"
    return Rank.TARGET(
        f"{facts.measured}: clipped to {range_text}, a range released first. At most "
        f"{100 * share:.2g}% of the rows were outside (at 95%); intervals add the tail cut off."
    )


@report_of.register
def ttest_report(fit: TTestResult) -> Report:
    """Lay out the means, then the test."""
    means = mean_report(fit.means)
    two = bool(fit._facts.factors)
    title = "Private two-sample t-test" if two else "Private one-sample t-test"
    unequal = "; variances may be unequal" if two else ""
    note = f"The test accounts for the privacy noise{unequal}."
    sections = (*means.sections, _test(fit))
    return replace(means, title=title, sections=sections, notes=(note, *means.notes))


def _test(fit: TTestResult) -> Section:
    levels = fit._facts.labels if fit._facts.factors else (fit._facts.measured,)
    name = f"{' - '.join(f'mean({level})' for level in levels)} = {fit.mu:g}?"
    heads = ("Estimate", "noise sd", "Std. err.", "t", "p-value", "95% conf. int.")
    if not np.isfinite(fit.params):
        return Section("Test", heads, (Row(name, (LOST,) * len(heads)),))
    cells = (
        printed(fit.params, fit.bse_noise, fit.bse),
        signif(fit.bse_noise, 2),
        signif(fit.bse, 2),
        signif(fit.tvalue, 3),
        pvalue(fit.pvalue),
        interval(*fit.conf_int().to_numpy()[0].tolist()),
    )
    return Section("Test", heads, (Row(name, cells),))
