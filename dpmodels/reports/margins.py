"""The printed reports of private margins, of one of them, and of a log-linear model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpmodels.inference.independence import Independence
from dpmodels.report import Report, Row, Section, count, interval, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports.counts import SHOWN_COLUMNS, SHOWN_ROWS, crossed, listed
from dpmodels.reports.header import (
    LOST,
    SHOWN_GROUPS,
    closing,
    complete_text,
    counted_as,
    omitted,
    opening,
    pvalue,
    shared_facts,
)
from dpmodels.results.base import report_of
from dpmodels.results.margin import Margin
from dpmodels.results.margins import LogLinear, MarginsResult
from dpmodels.results.released_margins import ReleasedMargins

# Most lines of tables below the list of margins: a choice, about two pages.
SHOWN_LINES = 60
# The rows that a log-linear model describes.
ONE = Rank.TARGET("For the rows that are complete in the table.")
SEVERAL = Rank.TARGET(
    "Fitted to the margins of its terms, as no released table has all of its variables: the "
    "fit cannot be tested.",
    "Missing values are a level, (missing), if their number exceeds its noise, and ignored "
    "otherwise.",
)


@report_of.register
def margins_report(fit: MarginsResult) -> Report:
    """List the margins with their noise and tests, then print the first tables."""
    tables = [Margin(fit.source, term) for term in fit.source.terms]
    printed = _printed(tables)
    hidden = omitted(len(printed), len(tables), "tables", "table('a', 'b') and tidy()")
    unlisted = omitted(SHOWN_GROUPS, len(tables), "margins", "tidy()")
    return Report(
        title="Private margins",
        facts=(
            *opening(fit.call, fit.release),
            ("Margins", f"{count(len(tables))}, variables: {count(len(fit.factors))}"),
            ("Counts of", counted_as(fit.release.adjacency)),
            *shared_facts(fit.release),
        ),
        sections=(_list(tables[:SHOWN_GROUPS]), *(_table(margin) for margin in printed)),
        notes=(*unlisted, *hidden, *_notes(fit.source), *closing(fit.call, fit.release)),
        stamp=fit.stamp,
    )


@report_of.register
def margin_report(margin: Margin) -> Report:
    """Lay out one margin, and the test of independence if there is one."""
    fit = margin.fit
    what = counted_as(fit.release.adjacency)
    test = (_test(margin.chi2_test()),) if len(margin.term) > 1 else ()
    half = signif(fit.noise.width(margin.term, 0.95), 2)
    return Report(
        title=f"Private margin of {margin.name}",
        facts=(
            *opening(fit.call, fit.release),
            ("Complete", complete_text(margin.ncomplete, margin.ncomplete_sd, what=what)),
            ("Cell noise", f"sd {signif(margin.noise_sd, 2)}, 95% within {half}"),
            *shared_facts(fit.release),
        ),
        sections=(_table(margin), *test),
        notes=(*_notes(fit), *closing(fit.call, fit.release)),
        stamp=fit.stamp,
    )


@report_of.register
def loglin_report(fit: LogLinear) -> Report:
    """Lay out a log-linear model as one of generalised linear models."""
    result, model = fit.margin.fit, fit.model
    return Report(
        title="Private log-linear model",
        facts=(
            ("Model", fit.formula),
            *opening(result.call, result.release),
            ("Table", f"{fit.margin.name}, {count(math.prod(fit.shape))} cells"),
            *_deviance(fit),
        ),
        sections=(_coefficients(fit), *_fitted(fit)),
        notes=(
            "std err: sampling and privacy noise; of noise: privacy noise alone. For the "
            "coefficients of these rows use noise_int().",
            *Rank.DETAIL("Log link; treatment coding with the first level as base."),
            *(SEVERAL if math.isnan(model.deviance) else ONE),
            *closing(result.call, result.release),
        ),
        stamp=result.stamp,
    )


def _deviance(fit: LogLinear) -> tuple[tuple[str, str], ...]:
    model = fit.model
    if math.isnan(model.deviance):
        return ()
    deviance = f"{signif(model.deviance)} (noise included)"
    return (("Deviance", deviance), ("Df residuals", str(model.df)))


def _coefficients(fit: LogLinear) -> Section:
    rows = [
        Row(
            str(line["term"]),
            (
                signif_uncertain(line["estimate"], line["std_error"]),
                signif(line["std_error"], 2),
                signif(line["noise_sd"], 2),
                f"{line['statistic']:.2f}",
                pvalue(line["p_value"]),
                interval(line["conf_low"], line["conf_high"]),
            ),
        )
        for line in fit.tidy().to_dict("records")
    ]
    heads = ("coef", "std err", "of noise", "z", "P>|z|", "95% conf. int.")
    return Section("Coefficients", heads, tuple(rows))


def _fitted(fit: LogLinear) -> tuple[Section, ...]:
    """Test the fit, if it has degrees of freedom."""
    model = fit.model
    if not model.df:
        return ()
    cells = (signif(model.statistic), str(model.df), pvalue(model.pvalue))
    row = Row("chi-square, noise counted in", cells)
    return (Section("Fit of the model", ("statistic", "df", "p-value"), (row,)),)


def _printed(tables: Sequence[Margin]) -> list[Margin]:
    """Return the first tables, at least one, of about SHOWN_LINES lines."""
    printed: list[Margin] = []
    lines = 0
    for margin in tables:
        lines += _lines(margin)
        if printed and lines > SHOWN_LINES:
            break
        printed.append(margin)
    return printed


def _lines(margin: Margin) -> int:
    facts = margin.facts
    crossed_by = facts.shape[-1] if _wide(margin) else 1
    return min(facts.cells // crossed_by, SHOWN_ROWS)


def _wide(margin: Margin) -> bool:
    """Whether the last variable has the columns."""
    return len(margin.term) > 1 and margin.facts.shape[-1] <= SHOWN_COLUMNS


def _list(tables: Sequence[Margin]) -> Section:
    heads = ("cells", "noise sd", "incomplete", "chi-square", "df", "p-value")
    rows = []
    for margin in tables:
        test = margin.chi2_test() if len(margin.term) > 1 else None
        cells = (LOST,) * 3 if test is None else _test_cells(test)
        counts = (count(margin.facts.cells), signif(margin.noise_sd, 2), count(margin.nincomplete))
        rows.append(Row(margin.name, (*counts, *cells)))
    return Section("Margins", heads, tuple(rows))


def _test_cells(test: Independence) -> tuple[str, str, str]:
    if math.isnan(test.statistic):
        return (LOST,) * 3
    return signif(test.statistic), str(test.df), pvalue(test.pvalue)


def _test(test: Independence) -> Section:
    row = Row("chi-square, noise counted in", _test_cells(test))
    return Section("Mutual independence", ("statistic", "df", "p-value"), (row,))


def _table(margin: Margin) -> Section:
    if _wide(margin):
        return crossed(margin.facts, margin.counts.to_numpy())
    table = margin.tidy().head(SHOWN_ROWS)
    return listed(margin.name, margin.labels[:SHOWN_ROWS], table, margin.fit.release)


def _notes(fit: ReleasedMargins) -> tuple[str, ...]:
    total = "same" if fit.release.rows is None else "public"
    return (
        *Rank.TARGET(
            "Missing or unlisted values count as a separate level, which is not printed: with it "
            f"every table adds up to the {total} number."
        ),
        "Noise and noise_int() are privacy noise only; for shares of the population use "
        "conf_int(). Tests account for the noise.",
        *Rank.DETAIL(
            "Counts are nonnegative integers, computed from the unbiased ones in released, whose "
            "sums agree in all margins.",
            "Counts of a variable agree in tables of at most 10,000 cells.",
        ),
    )
