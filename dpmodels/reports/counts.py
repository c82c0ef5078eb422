"""The printed reports of tables of counts and of margins."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.inference.independence import Independence
from dpmodels.released import AnyRelease
from dpmodels.report import Report, Row, Section, count, interval, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports import header
from dpmodels.results.base import report_of
from dpmodels.results.call import TableCall, n_public_rows
from dpmodels.results.margin import Margin, ReleasedMargins
from dpmodels.results.margins import LogLinear, MarginsResult
from dpmodels.results.table import StatesResult, TableResult
from dpmodels.results.weighted_margins import WeightedMarginsResult

# Most lines and columns of a table: choices.
SHOWN_ROWS = 40
SHOWN_COLUMNS = 12


@report_of.register
def table_report(fit: TableResult) -> Report:
    """Lay out counts as tables of strings: by the last factor, or as a list."""
    facts = fit.call.tables[0]
    across = len(facts.shape) > 1 and facts.shape[-1] <= SHOWN_COLUMNS
    lines = facts.cells // (facts.shape[-1] if across else 1)
    hidden = max(lines - SHOWN_ROWS, 0)
    notes = Rank.IDENTIFIED(f"{count(hidden)} more lines: see counts and tidy().")
    sections = (crossed(facts, fit.counts.to_numpy()) if across else _listed(fit), *_test(fit))
    title = "Private table of counts" if len(facts.shape) > 1 else "Private counts"
    if facts.sampled is not None:
        title = "Private weighted table" if len(facts.shape) > 1 else "Private weighted counts"
    return _counts_report(fit, title, sections, (*_test_notes(fit), *notes * (hidden > 0)))


def _counts_report(
    fit: TableResult, title: str, sections: tuple[Section, ...], notes: tuple[str, ...]
) -> Report:
    facts = fit.call.tables[0]
    is_public = fit.release.rows is not None and facts.sampled is None
    sd = fit._counted.incomplete_sd if is_public else fit.noise_sd(facts.cells)
    complete = header.complete_text(fit.ncomplete, sd, what=header.counted_in(fit.release))
    noise = f"sd {signif(fit.noise_sd(), 2)}, 95% within {signif(_half(fit), 2)}"
    return header.released_report(
        fit,
        title,
        first=(("Complete", complete),),
        facts=(*header.design_facts(fit.release, facts), ("Cell noise", noise)),
        sections=sections,
        notes=(*notes, *_lost_note(fit), *reading(fit.release)),
    )


def _half(fit: TableResult) -> float:
    """Return half the length of the noise interval of a count, the same for all."""
    if header.counted_in(fit.release) == header.WEIGHT:
        ends = fit.noise_int().to_numpy()
        return float((ends[:, 1] - np.maximum(fit.released.to_numpy().ravel(), 0.0)).max())
    middle = max(float(fit.released.to_numpy().flat[0]), 0.0)
    return float(fit.noise_int().to_numpy()[0, 1]) - middle


def _lost_note(fit: TableResult) -> tuple[str, ...]:
    some_at_zero = bool((fit.noise_int()["lower"] == 0).any())
    note = f"Counts up to {_half(fit):.0f} may be noise alone."
    return Rank.IDENTIFIED(note) * some_at_zero


def reading(release: AnyRelease) -> tuple[str, ...]:
    """Say what printed counts and their intervals are."""
    if header.counted_in(release) == header.WEIGHT:
        return header.weighted_notes(release)
    return (
        "Noise and noise_int() are privacy noise only; for shares of the population use "
        "conf_int().",
        *Rank.DETAIL(
            rounding_note(release, "the unbiased ones"),
            "Intervals are about the unbiased counts, so a printed count may lie outside its "
            "interval.",
        ),
    )


def rounding_note(release: AnyRelease, source: str) -> str:
    """Say how printed counts follow from released ones."""
    agree = "" if n_public_rows(release) is None else " and, with the incomplete rows, add up to n"
    return f"Counts are nonnegative integers{agree}: computed from {source} in released."


def crossed(facts: TableCall, counts: NDArray[np.generic]) -> Section:
    """Cross the last factor with all others, with totals."""
    names = (" / ".join(facts.factors[:-1]), facts.factors[-1])
    labels = joined_levels(facts.levels[:-1]), list(map(str, facts.levels[-1]))
    return side_by_side(counts.reshape(-1, facts.shape[-1]), names, labels)


def side_by_side(
    counts: NDArray[np.generic], names: tuple[str, str], labels: tuple[list[str], list[str]]
) -> Section:
    """Lay out counts, shape (lines, columns), with totals."""
    counts = np.vstack([counts, counts.sum(axis=0)])
    counts = np.column_stack([counts, counts.sum(axis=1)])
    lines = [*range(min(len(labels[0]), SHOWN_ROWS)), len(labels[0])]
    heads = [*labels[0], "Total"]
    rows = tuple(Row(heads[i], tuple(map(count, counts[i].tolist()))) for i in lines)
    return Section(" by ".join(names), (*labels[1], "Total"), rows)


def joined_levels(levels: tuple[tuple[object, ...], ...]) -> list[str]:
    """Name the combinations of levels."""
    return [" / ".join(map(str, combination)) for combination in product(*levels)]


def _listed(fit: TableResult) -> Section:
    facts = fit.call.tables[0]
    table = fit.tidy().head(SHOWN_ROWS)
    return listed(" / ".join(facts.factors), facts.labels[:SHOWN_ROWS], table, fit.release)


def listed(title: str, labels: Sequence[str], table: pd.DataFrame, release: AnyRelease) -> Section:
    """Print a line for every row of a tidy table of counts, with its intervals."""
    cells = map(_cells, with_shares(table).to_dict("records"))
    rows = tuple(Row(*row) for row in zip(labels, cells, strict=True))
    counted = (
        "Total"
        if header.counted_in(release) == header.WEIGHT
        else header.counted_as(release.adjacency)
    )
    heads = (counted.capitalize(), "95% noise int.", "%", "95% conf. int.")
    return Section(title, heads, rows)


def with_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Name the counts of a tidy table as `ranges` does, with the intervals of shares."""
    if "estimate" not in table:
        return table
    names = {"estimate": "count", "proportion_low": "conf_low", "proportion_high": "conf_high"}
    return table.drop(columns=["conf_low", "conf_high"]).rename(columns=names)


def _cells(row: dict[Hashable, float]) -> tuple[str, ...]:
    low, high = 100 * row["conf_low"], 100 * row["conf_high"]
    if not low <= high:
        # The share has an unknown error: to a tenth.
        share = f"{100 * row['proportion']:.1f}" if row["proportion"] >= 0 else header.LOST
        return count(row["count"]), header.LOST, share, header.LOST
    return (
        count(row["count"]),
        f"[{count(row['noise_low'])}, {count(row['noise_high'])}]",
        signif_uncertain(100 * row["proportion"], max((high - low) / 4, 0.01)),
        interval(low, high),
    )


def _test(fit: TableResult) -> tuple[Section, ...]:
    facts = fit.call.tables[0]
    factors = facts.factors
    if len(factors) < 2 or facts.sampled is not None:
        return ()
    test = fit.chi2_test()
    cells = (
        signif(test.statistic),
        header.LOST if test.reason else str(test.df),
        header.pvalue(test.pvalue),
    )
    return (_tested("Independence" if len(factors) == 2 else "Mutual independence", cells),)


def _tested(title: str, cells: tuple[str, ...]) -> Section:
    row = Row("chi-square, noise counted in", cells)
    return Section(title, ("statistic", "df", "p-value"), (row,))


def _test_notes(fit: TableResult) -> tuple[str, ...]:
    if len(fit.call.tables[0].factors) < 2:
        return ()
    test = fit.chi2_test()
    if test.reason:
        return Rank.IDENTIFIED(f"No test: {test.reason}")
    approximate = "Some expected counts are below 5: the test is approximate."
    return (*_pooled(fit, test.pooled), *((approximate,) * (test.smallest < 5)))


def _pooled(fit: TableResult, pooled_levels: tuple[tuple[int, ...], ...]) -> list[str]:
    facts, notes = fit.call.tables[0], []
    for factor, levels, pooled in zip(facts.factors, facts.levels, pooled_levels, strict=True):
        if pooled:
            listing = ", ".join(str(levels[i]) for i in pooled[:SHOWN_COLUMNS])
            n_hidden = len(pooled) - SHOWN_COLUMNS
            text = f"{listing} and {n_hidden} more" if n_hidden > 0 else listing
            notes.append(f"Test: levels {text} of {factor} are pooled, as their counts are small.")
    return notes


# The printed report of counts of states in dependent series.

# A choice: level of the intervals that are compared with the class.
_SURE: Final = 0.999


@report_of.register
def states_report(fit: StatesResult) -> Report:
    """Lay out counts of states, the quilt and the scales of noise as tables of strings."""
    facts, release = fit.call.tables[0], fit.release
    complete = header.complete_text(fit.ncomplete, fit._counted.incomplete_sd, what="times")
    table = listed(" / ".join(facts.factors), facts.labels, fit.tidy(), release)
    persons = (release.rows or 0) // fit.steps
    observations = f"{count(persons)} person{'s' * (persons != 1)}, {count(fit.steps)} times each"
    lines = ((str(name), [signif(x, 4) for x in pair]) for name, *pair in fit.scales.itertuples())
    scales = tuple(Row(name, tuple(cells)) for name, cells in lines)
    return Report(
        title="Private counts of states: Pufferfish (not differential privacy)",
        facts=(
            ("Formula", fit.call.formula),
            ("Guarantee", f"Pufferfish, eps = {fit.budget.eps:g}"),
            ("Mechanism", f"{release.info.name} ({release.info.numerics})"),
            ("Secrets", f"the state at each {fit.time}"),
            ("Observations", observations),
            ("Ledger", fit.call.ledger or "none"),
            ("Class", fit.chain.describe()),
            ("Complete", complete),
            ("Cell noise", f"sd {signif(fit.noise_sd(), 2)}, Laplace"),
        ),
        sections=(
            replace(table, columns=("Times", *table.columns[1:])),
            Section("Noise of a count", ("Scale", "Ratio"), scales),
        ),
        notes=(*Rank.DETAIL(_quilt(fit)), *_notes(fit)),
    )


def _quilt(fit: StatesResult) -> str:
    quilt = fit.quilt
    if quilt.trivial:
        why = "requested" if fit.budget.quilt == "trivial" else "no other has less noise"
        return f"Active quilt: {quilt.describe()}, as for group privacy of a series ({why})."
    return (
        f"Active quilt: the states {quilt.describe()}, at {fit.time} number {count(quilt.time)}, "
        f"which needs most noise; their max-influence is {signif(quilt.influence, 3)} of eps = "
        f"{fit.budget.eps:g}."
    )


def _notes(fit: StatesResult) -> tuple[str, ...]:
    info = fit.release.info
    shares = " For long-run shares, with the dependence of the class, use conf_int()."
    return (
        *Rank.GUARANTEE(
            "The guarantee holds if the class contains the true process, persons are independent, "
            "and states are missing independently of their values.",
            "It protects single states: who is in the table, when states are missing and the "
            "course of a whole series are not hidden.",
        ),
        '"Each time by itself" has too little noise if states depend on each other.',
        f"Noise intervals are privacy noise only.{shares * (fit.kept is not None)}",
        *Rank.DETAIL(
            "Counts are nonnegative integers and, with the times without a state, add up to all "
            "times of all persons."
        ),
        *_doubts(fit),
        *Rank.SOURCE(f"Source: {info.name}, {info.source}{header.SEE}."),
    )


def _doubts(fit: StatesResult) -> tuple[str, ...]:
    if fit.kept is None:
        return ()
    intervals = fit.conf_int(_SURE)
    if bool(((intervals["lower"] <= fit.kept) & (fit.kept <= intervals["upper"])).all()):
        return ()
    shares = ", ".join(f"{100 * share:.1f}" for share in fit.kept.tolist())
    return (
        *Rank.GUARANTEE(
            f"The long-run shares of the class, {shares} %, are outside the {_SURE:.1%} intervals "
            "of the released ones: the class may not contain the true process."
        ),
        *Rank.DETAIL("A class that is chosen after this release depends on the rows."),
    )


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
    hidden = header.omitted(len(printed), len(tables), "tables", "table('a', 'b') and tidy()")
    unlisted = header.omitted(header.SHOWN_GROUPS, len(tables), "margins", "tidy()")
    sizes = f"{count(len(tables))}, variables: {count(len(fit.factors))}"
    return header.released_report(
        fit,
        "Private margins",
        first=(("Margins", sizes), ("Counts of", header.counted_as(fit.release.adjacency))),
        sections=(_list(tables[: header.SHOWN_GROUPS]), *(_table(margin) for margin in printed)),
        notes=(*unlisted, *hidden, *_margins_notes(fit.source)),
    )


@report_of.register
def weighted_margins_report(fit: WeightedMarginsResult) -> Report:
    """List the margins with their noise, then print the first tables."""
    shown = fit._tables[: header.SHOWN_GROUPS]
    rows = (
        Row(name, (count(table._facts.cells), signif(table.noise_sd(), 2)))
        for name, table in zip(fit.terms, shown, strict=False)
    )
    printed, lines = list[Section](), 0
    for table in shown:
        lines += min(table._facts.cells, SHOWN_ROWS)
        if not printed or lines <= SHOWN_LINES:
            printed.append(_listed(table))
    sizes = f"{count(len(fit.requested))}, variables: {count(len(fit.factors))}"
    return header.released_report(
        fit,
        "Private weighted margins",
        first=(("Margins", sizes),),
        facts=header.design_facts(fit.release, fit.call.tables[0]),
        sections=(Section("Margins", ("cells", "noise sd"), tuple(rows)), *printed),
        notes=(
            *header.omitted(
                len(printed), len(fit.requested), "tables", "table('a', 'b') and tidy()"
            ),
            *header.weighted_notes(fit.release),
            *Rank.TARGET(
                "The unbiased totals in fit.released agree across margins, missing values included."
            ),
        ),
    )


@report_of.register
def margin_report(margin: Margin) -> Report:
    """Lay out one margin, and the test of independence if there is one."""
    fit = margin.fit
    what = header.counted_as(fit.release.adjacency)
    half = signif(fit.noise.width(margin.term, 0.95), 2)
    test: tuple[Section, ...] = ()
    if len(margin.term) > 1:
        test = (_tested("Mutual independence", _test_cells(margin.chi2_test())),)
    return header.released_report(
        fit,
        f"Private margin of {margin.name}",
        first=(
            ("Complete", header.complete_text(margin.ncomplete, margin.ncomplete_sd, what=what)),
            ("Cell noise", f"sd {signif(margin.noise_sd, 2)}, 95% within {half}"),
        ),
        sections=(_table(margin), *test),
        notes=_margins_notes(fit),
    )


@report_of.register
def loglin_report(fit: LogLinear) -> Report:
    """Lay out a log-linear model as one of generalised linear models."""
    result, model = fit.margin.fit, fit.model
    return Report(
        title="Private log-linear model",
        facts=(
            ("Model", fit.formula),
            *header.opening(result.call, result.release),
            ("Table", f"{fit.margin.name}, {count(math.prod(fit.shape))} cells"),
            *_deviance(fit),
        ),
        sections=(_coefficients(fit), *_fitted(fit)),
        notes=(
            "std err: sampling and privacy noise; of noise: privacy noise alone. For the "
            "coefficients of these rows use noise_int().",
            *Rank.DETAIL("Log link; treatment coding with the first level as base."),
            *(SEVERAL if math.isnan(model.deviance) else ONE),
            *header.closing(result.call, result.release),
        ),
    )


def _deviance(fit: LogLinear) -> tuple[tuple[str, str], ...]:
    model = fit.model
    if math.isnan(model.deviance):
        return ()
    deviance = f"{signif(model.deviance)} (noise included)"
    return (("Deviance", deviance), ("Df residuals", str(model.df)))


def _coefficients(fit: LogLinear) -> Section:
    rows = []
    for line in fit.tidy().to_dict("records"):
        cells = (
            signif_uncertain(line["estimate"], line["std_error"]),
            *(signif(line[name], 2) for name in ("std_error", "noise_sd")),
            f"{line['statistic']:.2f}",
            header.pvalue(line["p_value"]),
            interval(line["conf_low"], line["conf_high"]),
        )
        rows.append(Row(str(line["term"]), cells))
    heads = ("coef", "std err", "of noise", "z", "P>|z|", "95% conf. int.")
    return Section("Coefficients", heads, tuple(rows))


def _fitted(fit: LogLinear) -> tuple[Section, ...]:
    model = fit.model
    if not model.df:
        return ()
    cells = (signif(model.statistic), str(model.df), header.pvalue(model.pvalue))
    return (_tested("Fit of the model", cells),)


def _printed(tables: Sequence[Margin]) -> list[Margin]:
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
    return len(margin.term) > 1 and margin.facts.shape[-1] <= SHOWN_COLUMNS


def _list(tables: Sequence[Margin]) -> Section:
    heads = ("cells", "noise sd", "incomplete", "chi-square", "df", "p-value")
    rows = []
    for margin in tables:
        test = margin.chi2_test() if len(margin.term) > 1 else None
        cells = (header.LOST,) * 3 if test is None else _test_cells(test)
        counts = (count(margin.facts.cells), signif(margin.noise_sd, 2), count(margin.nincomplete))
        rows.append(Row(margin.name, (*counts, *cells)))
    return Section("Margins", heads, tuple(rows))


def _test_cells(test: Independence) -> tuple[str, str, str]:
    if math.isnan(test.statistic):
        return (header.LOST,) * 3
    return signif(test.statistic), str(test.df), header.pvalue(test.pvalue)


def _table(margin: Margin) -> Section:
    if _wide(margin):
        return crossed(margin.facts, margin.counts.to_numpy())
    table = margin.tidy().head(SHOWN_ROWS)
    return listed(margin.name, margin.labels[:SHOWN_ROWS], table, margin.fit.release)


def _margins_notes(fit: ReleasedMargins) -> tuple[str, ...]:
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
