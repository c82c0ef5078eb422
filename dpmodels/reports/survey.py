"""The printed reports of randomised responses."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from dpmodels.released import AnswersFitRelease, AnswersRelease, Channel
from dpmodels.report import Fact, Report, Row, Section, count, interval, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports import header
from dpmodels.reports.coefficients import COLUMNS, inference, panels
from dpmodels.results.base import report_of
from dpmodels.results.call import release_facts
from dpmodels.results.survey import SurveyFitResult, SurveyResult
from dpmodels.typing import TableLine

# Most lines of a printed table: a choice.
SHOWN = 40
HEADS = ("answers", "estimate", "std err", "coins", "noise int.", "conf. int.", "deff")
USED = (
    "The guarantee is local, and assumes that the devices were used before answering, which cannot "
    "be checked."
)


@report_of.register
def survey_report(fit: SurveyResult) -> Report:
    """Lay out shares of the truth as tables of strings."""
    title = "Table of randomized responses" if fit.rowwise else "Survey with randomized response"
    return Report(
        title,
        (*_opening(fit, fit.release), *_devices(fit), *_sampling(fit.release)),
        (*_sections(fit), *_test(fit)),
        (*_notes(fit), *_closing(fit)),
    )


def _opening(fit: SurveyResult | SurveyFitResult, release: Any) -> tuple[Fact, ...]:
    charged = bool(release.events)
    guarantee = release.guarantee.describe()
    whose = f"each {release.adjacency.unit.removeprefix('one ')}" if charged else "each respondent"
    counted = header.counted_as(release.adjacency) if charged else "answers"
    complete = f"{count(fit.ncomplete)} {counted}"
    observed = header.observations(release) if charged else f"{count(release.rows)} respondents"
    subset = () if release.subset is None else (("Subset", release.subset),)
    trust = ("Model", "local: no curator is trusted")
    return (
        ("Formula", fit.call.formula),
        ("Guarantee", f"{guarantee} for {whose}, local"),
        ("Mechanism", release_facts(release)["Mechanism"]) if charged else trust,
        ("Neighbours", release.adjacency.describe() if charged else "one respondent's answers"),
        *subset,
        *(release.table or ()),
        ("Observations", observed),
        ("Complete", f"{complete} (estimated)" if charged else complete),
        ("Ledger" if charged else "Budget", fit.call.ledger or "none"),
        *header.shared_facts(release),
    )


def _devices(fit: SurveyResult) -> tuple[Fact, ...]:
    if fit.rowwise:
        (channel,) = fit.release.channels
        cells = f"{len(channel.law):,} cells with the incomplete rows"
        return (("Device", f"{_device(channel)}, {cells}"),)
    factors = fit.call.tables[0].factors
    pairs = zip(factors, fit.release.channels, strict=True)
    return tuple((name, _device(channel)) for name, channel in pairs)


def _device(channel: Channel) -> str:
    if not channel.how:
        return "as answered, not protected"
    lie = (1 - channel.truth) * (1 - min(channel.law))
    return f"{channel.how}: lie {signif(lie, 3)}, eps {channel.eps:.3g}"


def _sampling(release: AnswersRelease | AnswersFitRelease) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    if release.weighted is not None:
        facts.append(("Weights", release.weighted))
    if release.stratified is not None:
        has_shares = isinstance(release, AnswersRelease) and release.shares is not None
        facts.append(("Strata", release.stratified + ", weighted to the population" * has_shares))
    return tuple(facts)


def _sections(fit: SurveyResult) -> tuple[Section, ...]:
    facts, channels = fit.call.tables[0], fit.release.channels
    if len(facts.factors) == 1:
        return (_section(facts.variable, facts.labels, fit.tidy()),)
    pairs = () if fit.rowwise else zip(facts.factors, channels, strict=True)
    exact_names = [name for name, channel in pairs if not channel.how]
    randomised = [name for name in facts.factors if name not in exact_names]
    levels = dict(zip(facts.factors, facts.levels, strict=True))
    margins = tuple(_section(name, map(str, levels[name]), fit.margin(name)) for name in randomised)
    table, title = fit.tidy(), " / ".join(facts.factors)
    if exact_names:
        table, title = fit.within(exact_names), f"{title}, within {' / '.join(exact_names)}"
    return (*margins, _section(title, facts.labels, table))


def _section(title: str, labels: Iterable[str], table: pd.DataFrame) -> Section:
    lines = table.head(SHOWN).to_dict("records")
    rows = tuple(Row(label, _cells(line)) for label, line in zip(labels, lines, strict=False))
    return Section(f"{title}, %", HEADS, rows)


def _cells(line: TableLine) -> tuple[str, ...]:
    if not math.isfinite(line["estimate"]):
        return (header.LOST,) * len(HEADS)
    error = 100 * line["std_error"]
    private = line["private_share"]
    return (
        signif(100 * line["answers"], 3),
        signif_uncertain(100 * line["estimate"], max(error, 1e-3)),
        signif(error, 2),
        header.LOST if math.isnan(private) else f"{100 * private:.0f}%",
        interval(100 * line["noise_low"], 100 * line["noise_high"]),
        interval(100 * line["conf_low"], 100 * line["conf_high"]),
        header.LOST if math.isnan(line["design_effect"]) else signif(line["design_effect"], 3),
    )


def _test(fit: SurveyResult) -> tuple[Section, ...]:
    if len(fit.call.tables[0].factors) < 2:
        return ()
    test = fit.independence()
    pearson = not fit.rowwise and fit._read.simple
    information = f"{signif(100 * test.kept, 2)}%"
    name = "chi-square of the answers" if pearson else "Wald, noise and weights counted in"
    row = Row(name, (signif(test.statistic), str(test.df), header.pvalue(test.pvalue), information))
    heads = ("statistic", "df", "p-value", "information kept")
    return (Section("Independence", heads, (row,)),)


def _notes(fit: SurveyResult) -> tuple[str, ...]:
    facts = fit.call.tables[0]
    notes = [*header.omitted(SHOWN, facts.cells, "lines", "tidy()")]
    if len(facts.factors) > 1:
        test = fit.independence()
        if test.reason:
            notes += Rank.IDENTIFIED(f"No test: {test.reason}")
        notes += Rank.DETAIL(
            "information kept: the fraction of respondents that would be as informative about "
            "dependence without randomisation, at the maximum likelihood shares."
        )
    values = fit.estimate.to_numpy()
    if np.isnan(values).any():
        notes += Rank.IDENTIFIED("Shares are not reported: given the noise, a group may be empty.")
    elif not ((values >= 0).all() and (values <= 1).all()):
        notes.append(
            "Estimates are unbiased, and may lie outside 0 and 100% by noise; likeliest has the "
            f"{'nearest' if fit.release.unary else 'maximum likelihood'} shares, which do not."
        )
    whose = "rows" if fit.rowwise else "respondents"
    interval_kind = "estimate ± 1.96 std err" if fit.rowwise else "Wilson for a randomised question"
    deff = (
        "coins: share of the variance from randomisation; deff: variance over that of a simple "
        "random sample of true answers."
    )
    return (
        *notes,
        f"noise int.: for these {whose}; conf. int.: for the population, {interval_kind}.",
        *Rank.DETAIL(deff),
    )


def _closing(fit: SurveyResult | SurveyFitResult) -> tuple[str, ...]:
    release: Any = fit.release
    if release.events:
        return (
            *Rank.DETAIL(
                "Answers are randomised row by row from the exact counts: distribution and errors "
                "are those of respondents who randomise themselves.",
                "If the holder of the rows is trusted, mechanism='auto' has much less noise.",
            ),
            *header.closing(fit.call, release, header.SEE),
        )
    channels = (release.channel,) if isinstance(fit, SurveyFitResult) else release.channels
    randomised = [channel for channel in channels if channel.how]
    limits = ""
    if len(randomised) > 1:
        parts = " + ".join(f"{channel.eps:.3g}" for channel in randomised)
        limits = f"The answers of one respondent add up: eps = {parts}. "
    is_weighted = release.weighted is not None or release.stratified is not None
    if is_weighted or isinstance(fit, SurveyFitResult) or len(randomised) < len(channels):
        exact = "Variables that were not randomised are exact"
        limits += f"{exact}, and the guarantee does not cover them."
    notes = [*Rank.GUARANTEE(*filter(None, (USED, limits.strip())))]
    lost = release.rows - fit.ncomplete
    if lost:
        notes += Rank.TARGET(f"{count(lost)} respondents without valid answers are left out.")
    return (*notes, *Rank.SOURCE(f"Source: {release.info.name}, {release.info.source}."))


@report_of.register
def fit_report(fit: SurveyFitResult) -> Report:
    """Lay out a regression of answers as statsmodels does a generalised linear model."""
    call, release = fit.call, fit.release
    facts = (
        *_opening(fit, release),
        ("Response", f"{call.response}: {call.levels[1]} against {call.levels[0]}"),
        ("Device", _device(release.channel)),
        ("Link", "logit, of the truth"),
        *_sampling(release),
        ("Log-likelihood", signif(fit.llf, 6)),
        ("LL-null", signif(fit.llnull, 6)),
    )
    notes = (
        *header.omitted(SHOWN, len(call.names), "coefficients", "params and tidy()"),
        "std err: sampling and randomisation (sandwich). noise: randomisation only, for the true "
        "answers of these respondents.",
        *Rank.DETAIL(_method(release)),
    )
    if not fit.identified:
        unknown = (
            "Not identified: the answers do not determine all coefficients. Use more respondents, "
            "fewer terms, or levels that the terms do not separate."
        )
        notes = (*notes, *Rank.IDENTIFIED(unknown))
    sections = panels(fit, COLUMNS, inference(fit)[:SHOWN])
    title = "Logistic regression of randomized responses"
    return Report(title, facts, sections, (*notes, *_closing(fit)))


def _method(release: AnswersFitRelease) -> str:
    if release.method == "score":
        return (
            "The corrected score estimates the coefficients of logistic regression of the true "
            "answers. The log-likelihood is that of the answers."
        )
    return (
        "noise assumes that the model is correct; otherwise the two fits weigh respondents "
        "differently. The likelihood is that of the randomised answers."
    )
