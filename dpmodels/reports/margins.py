"""The printed reports of private margins, of one of them, and of a log-linear model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpmodels.inference.independence import Independence
from dpmodels.report import Report, Row, Section, count, interval, signif, signif_uncertain
from dpmodels.reports.counts import SHOWN_COLUMNS, SHOWN_ROWS, crossed, listed
from dpmodels.reports.header import (
    LOST,
    SHOWN_GROUPS,
    closing,
    complete_text,
    counted_as,
    more,
    opening,
    pvalue,
    shared_facts,
)
from dpmodels.results.base import report_of
from dpmodels.results.margin import Margin
from dpmodels.results.margins import LogLinear, MarginsResult
from dpmodels.results.released_margins import ReleasedMargins

# Lines of tables that are printed below the list of margins: a choice, about two pages.
SHOWN_LINES = 60
# What rows a log-linear model is of.
ONE = "Of the rows that are complete in the table."
SEVERAL = (
    "Fitted to the margins of its terms, as no released table has all of its variables: nothing is "
    "told of the fit. Rows that miss a variable are a level of it, (missing), where they are told "
    "from 0, and else taken for none."
)


@report_of.register
def margins_report(fit: MarginsResult) -> Report:
    """List the margins with their noise and tests, then print tables as far as there is room."""
    tables = [Margin(fit.source, term) for term in fit.source.terms]
    shown = _printed(tables)
    left = more(len(shown), len(tables), "tables", "table('a', 'b') and tidy()")
    unlisted = more(SHOWN_GROUPS, len(tables), "margins", "tidy()")
    return Report(
        title="Private margins",
        facts=(
            *opening(fit.call, fit.release),
            ("Margins", f"{count(len(tables))}, variables: {count(len(fit.factors))}"),
            ("Counts of", counted_as(fit.release.adjacency)),
            *shared_facts(fit.release),
        ),
        sections=(_list(tables[:SHOWN_GROUPS]), *(_table(own) for own in shown)),
        notes=(*unlisted, *left, *_notes(fit.source), *closing(fit.call, fit.release)),
        stamp=fit.stamp,
    )


@report_of.register
def margin_report(own: Margin) -> Report:
    """Lay out one margin, and the test of independence where there is one."""
    fit = own.fit
    what = counted_as(fit.release.adjacency)
    test = (_test(own.chi2_test()),) if len(own.term) > 1 else ()
    half = signif(fit.noise.width(own.term, 0.95), 2)
    return Report(
        title=f"Private margin of {own.name}",
        facts=(
            *opening(fit.call, fit.release),
            ("Complete", complete_text(own.ncomplete, own.ncomplete_sd, what=what)),
            ("Cell noise", f"sd {signif(own.noise_sd, 2)}, 95% within {half}"),
            *shared_facts(fit.release),
        ),
        sections=(_table(own), *test),
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
            "Log link; treatment coding, the first level of each variable the base. Standard "
            "errors count sampling and noise, of which the third column is the noise alone; "
            "noise_int() is the distance to the coefficients of these rows.",
            SEVERAL if math.isnan(model.deviance) else ONE,
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
            str(one["term"]),
            (
                signif_uncertain(one["estimate"], one["std_error"]),
                signif(one["std_error"], 2),
                signif(one["noise_sd"], 2),
                f"{one['statistic']:.2f}",
                pvalue(one["p_value"]),
                interval(one["conf_low"], one["conf_high"]),
            ),
        )
        for one in fit.tidy().to_dict("records")
    ]
    heads = ("coef", "std err", "of noise", "z", "P>|z|", "95% conf. int.")
    return Section("Coefficients", heads, tuple(rows))


def _fitted(fit: LogLinear) -> tuple[Section, ...]:
    """Test the fit, where there is something to test."""
    model = fit.model
    if not model.df:
        return ()
    cells = (signif(model.statistic), str(model.df), pvalue(model.pvalue))
    row = Row("chi-square, noise counted in", cells)
    return (Section("Fit of the model", ("statistic", "df", "p-value"), (row,)),)


def _printed(tables: Sequence[Margin]) -> list[Margin]:
    """Return the first tables, as many as there is room for; one at least."""
    found: list[Margin] = []
    lines = 0
    for own in tables:
        lines += _lines(own)
        if found and lines > SHOWN_LINES:
            break
        found.append(own)
    return found


def _lines(own: Margin) -> int:
    facts = own.facts
    crossed_by = facts.shape[-1] if _wide(own) else 1
    return min(facts.cells // crossed_by, SHOWN_ROWS)


def _wide(own: Margin) -> bool:
    """Whether the last variable stands across."""
    return len(own.term) > 1 and own.facts.shape[-1] <= SHOWN_COLUMNS


def _list(tables: Sequence[Margin]) -> Section:
    heads = ("cells", "noise sd", "incomplete", "chi-square", "df", "p-value")
    rows = []
    for own in tables:
        tested = own.chi2_test() if len(own.term) > 1 else None
        cells = (LOST,) * 3 if tested is None else _told(tested)
        told = (count(own.facts.cells), signif(own.noise_sd, 2), count(own.nincomplete))
        rows.append(Row(own.name, (*told, *cells)))
    return Section("Margins", heads, tuple(rows))


def _told(test: Independence) -> tuple[str, str, str]:
    if math.isnan(test.statistic):
        return (LOST,) * 3
    return signif(test.statistic), str(test.df), pvalue(test.pvalue)


def _test(test: Independence) -> Section:
    row = Row("chi-square, noise counted in", _told(test))
    return Section("Mutual independence", ("statistic", "df", "p-value"), (row,))


def _table(own: Margin) -> Section:
    if _wide(own):
        return crossed(own.facts, own.counts.to_numpy())
    table = own.tidy().head(SHOWN_ROWS)
    return listed(own.name, own.labels[:SHOWN_ROWS], table, own.fit.release)


def _notes(fit: ReleasedMargins) -> tuple[str, ...]:
    public = "" if fit.release.rows is None else " the public"
    return (
        "Rows with a missing or unlisted level of a variable are counted as a level of their own, "
        f"which is not printed: with it every table adds up to{public or ' one and the same'} "
        "number, and a variable has the same counts in every table of at most 10,000 cells.",
        "Counts are whole and not negative: made so from the unbiased ones in released, whose "
        "sums agree in all margins. Noise and noise_int() are privacy noise only; shares of the "
        "population: conf_int(). Tests count the noise in.",
    )
