"""The printed reports of selections and discoveries, and of narrowed bounds and levels."""

from __future__ import annotations

import math
from dataclasses import replace

from dpmodels.dates import text_of_day
from dpmodels.inference.screening_tests import NAMES
from dpmodels.privacy import ZCDP, ApproxDP, total_eps, total_rho
from dpmodels.report import Report, Row, Section, count, interval, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports import header
from dpmodels.results.base import report_of
from dpmodels.results.bounds import FEWEST, BoundsResult, LevelsResult
from dpmodels.results.call import TableCall, joined
from dpmodels.results.discoveries import COUNT, GAIN, Discoveries, FDRResult, SelectResult


@report_of.register
def select_report(fit: SelectResult) -> Report:
    """Lay out the selected candidates, best first, as a table of strings."""
    release, facts = fit.release, fit.call.tables[0]
    what = header.counted_as(release.adjacency)
    bought = release.values is not None
    valued = (("Values", f"{100 * fit.share:.3g}% of the budget"),) if bought else ()
    n_rows = max(release.count or 0.0, 1.0)
    unit = math.sqrt(n_rows * release.adjacency.design_effect) if fit.score == "z" else n_rows
    scale = signif(release.scale / unit, 2)
    if fit.score == COUNT:
        scale = f"{signif(release.scale, 2)} {what}"
    limit = math.inf if release.rows is None else release.rows
    n_complete = count(min(max(release.count or 0.0, 0.0), limit))
    complete = () if fit.score == COUNT else (("Complete", f"{n_complete} {what}, noisy"),)
    return header.released_report(
        fit,
        "Private selection",
        facts=(
            ("Candidates", f"{fit.ncandidates:,}, by {fit.score}"),
            ("Ranking noise", f"scale {scale}"),
            *complete,
            *valued,
        ),
        sections=(_section(fit, what, " x ".join(facts.factors)),),
        notes=_notes(fit),
    )


def _section(fit: SelectResult, what: str, name: str) -> Section:
    names = joined(fit.index)[: header.SHOWN_GROUPS]
    labels = [f"{place}. {candidate}" for place, candidate in enumerate(names, start=1)]
    if not labels:
        return Section(name, ("",), (Row("(none found)", ("",)),))
    if fit.release.values is None:
        return Section(name, (), tuple(Row(label, ()) for label in labels))
    columns = fit.tidy()[["estimate", "noise_sd", "noise_low", "noise_high", "above_next"]]
    rows = []
    for label, line in zip(labels, columns.itertuples(index=False), strict=False):
        value, sd, low, high, above = line
        cells = (signif_uncertain(value, sd), signif(sd, 2), interval(low, high))
        if math.isnan(value):
            cells = (header.LOST, header.LOST, header.LOST)
        elif fit.score == COUNT:
            cells = (count(value), cells[1], f"[{count(low)}, {count(high)}]")
        rows.append(Row(label, (*cells, _chance(above))))
    if fit.score == GAIN:
        sums = fit.cumulative().itertuples(index=False)
        totals = (header.LOST if math.isnan(x) else signif_uncertain(x, sd) for x, sd in sums)
        pairs = zip(rows, totals, strict=False)
        rows = [replace(row, cells=(*row.cells, total)) for row, total in pairs]
    first = what.capitalize() if fit.score == COUNT else fit.score.capitalize()
    head = (first, "Noise sd", "95% noise int.", "Pr(above next)")
    return Section(name, (*head, "R2 so far") if fit.score == GAIN else head, tuple(rows))


def _chance(probability: float) -> str:
    if math.isnan(probability):
        return header.LOST
    return "> 0.999" if probability > 0.999 else f"{probability:.3f}"


def _shown_of_others(fit: SelectResult) -> str:
    shared = fit.release.shared
    if shared is None or shared.protocol != "secure_sum":
        return "nothing else about other candidates was released"
    return "of other candidates only the sites and the aggregator saw noisy counts"


def _notes(fit: SelectResult) -> tuple[str, ...]:
    n_named, n_requested = len(fit.release.places), fit.n_requested
    notes = [*header.omitted(header.SHOWN_GROUPS, n_named, "candidates", "selected and tidy()")]
    if fit.threshold is not None:
        searched = fit.release.info.name == "sparse_vector"
        order = "first in the order of the formula" if searched else "largest"
        notes.append(
            f"Selected: candidates above {fit.threshold:,.10g} with the noise of the ranking, at "
            f"most the {n_requested:,} {order}."
        )
    elif n_requested < fit.ncandidates:
        notes += Rank.IDENTIFIED(
            f"How far the {_ordinal(n_requested)} is above the {_ordinal(n_requested + 1)} is not "
            f"known: the ranking has noise, and {_shown_of_others(fit)}."
        )
    if fit.score == GAIN:
        notes.append(
            "Gain is that of the released coefficient, which has noise; R2 so far is of the fit of "
            "all columns so far."
        )
        notes += Rank.DETAIL(
            "Ranked by the absolute correlation with the residual of the columns selected before, "
            "in sds of the response: its square is the gain."
        )
    elif fit.score != COUNT:
        notes.append("Ranked by the absolute correlation.")
    if fit.score != COUNT:
        lower = "rank lower" if fit.threshold is None else "exceed the threshold less often"
        notes += Rank.DETAIL(
            f"Given the noise, standard deviations below {signif(fit.release.least or 0.0, 2)} of "
            f"the public half-range are replaced by that value; such columns {lower}."
        )
    if fit.release.values is not None and fit.values.isna().any():
        notes += Rank.IDENTIFIED(
            f"{header.LOST}: the variance of the column or of the response is lost in noise; "
            "declare narrower bounds."
        )
    if fit.release.values is not None:
        notes.append(
            "Values have fresh noise: given the selection they are unbiased for these rows, and "
            "need not decrease."
        )
        notes += Rank.DETAIL(
            "Pr(above next) follows from two values and the distribution of their noise."
        )
    return tuple(notes)


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{'th' if number % 100 in (11, 12, 13) else ending}"


# The printed reports of tests at a false discovery rate.

# Most hypotheses of a table, and those printed after the rejected ones: choices.
SHOWN, OTHERS = 60, 5


@report_of.register
def fdr_report(fit: FDRResult) -> Report:
    """Lay out rejected hypotheses, and the first others, as a table of strings."""
    call, release = fit.call, fit.release
    table = fit.tidy()
    shown_table = table.head(min(len(fit.rejected) + OTHERS, SHOWN))
    rows = [
        Row(str(line.hypothesis), _cells(line), about=header.about(call, str(line.hypothesis)))
        for line in shown_table.itertuples()
    ]
    whose = "persons" if release.adjacency.counts_persons else "rows"
    value = "Correlation" if fit.valued == "correlation" else "log p"
    heads = (value, "Noise sd", "p-value", "Adjusted", "Rejected")
    complete = header.complete_text(release.count, release.response_sd, release.rows, whose)
    return header.released_report(
        fit,
        "Private tests at a false discovery rate",
        first=(("Complete", complete),),
        facts=(
            ("Columns", f"{count(fit.hypotheses)}, looked at {count(len(fit.names))}"),
            ("Alternative", call.alternative),
            ("q", f"{fit.q:g}, {NAMES[fit.discoveries.method]}"),
            ("Rejected", count(len(fit.rejected))),
        ),
        sections=(Section(f"Association with {call.response}", heads, tuple(rows)),),
        notes=_fdr_notes(fit, len(shown_table)),
    )


def _cells(line: object) -> tuple[str, ...]:
    middle, sd = (getattr(line, name) for name in ("estimate", "noise_sd"))
    estimates = [header.LOST if math.isnan(value) else f"{value:.4f}" for value in (middle, sd)]
    return (*estimates, *_values(line), "yes" if getattr(line, "rejected", False) else "")


def _values(line: object) -> list[str]:
    return [_small(getattr(line, name)) for name in ("p_value", "p_adjusted")]


def _small(value: float) -> str:
    """Print a p-value of many tests to two digits."""
    return header.LOST if math.isnan(value) else f"{value:.4f}" if value >= 1e-3 else f"{value:.1e}"


def _spent(fit: FDRResult) -> str:
    events = fit.release.events
    if not fit.release.choice:
        return "Budget: all for values."
    guarantee, costs = fit.release.guarantee, []
    for what, of_part in (("choice", events[:1]), ("values", events[1:])):
        cost = f"rho = {signif(total_rho(of_part), 3)}"
        if not isinstance(guarantee, ZCDP):
            delta = guarantee.delta if isinstance(guarantee, ApproxDP) else 0.0
            cost = f"eps = {signif(total_eps(of_part, delta), 3)}"
        costs.append(f"{what} {cost}")
    return f"Budget: {', '.join(costs)}, each alone."


def _fdr_notes(fit: FDRResult, n_shown: int) -> tuple[str, ...]:
    left, lost = fit.hypotheses - len(fit.names), int(fit.params.isna().sum())
    unseen = Rank.IDENTIFIED(
        f"Hypotheses not among the {count(len(fit.names))} were not examined: {count(left)} have a "
        "p-value of 1."
    )
    bounds = {
        "by": "The rate holds for any dependence of the columns.",
        "bh": "The rate is proved for independent columns up to a factor of "
        f"{signif(1 + math.log(1 / fit.q), 2)}, and kept in simulations; method='by' for any.",
        "adapt": "The rate holds for independent columns whose sums are symmetric under the null "
        "hypothesis: columns of the opposite sign estimate false discoveries.",
    }
    if fit.valued == "log_p":
        # Increase of the rate by noise that is lower than allowed for.
        more_false = 1 / 11
        bounds = {
            "by": f"The rate is at most {signif(1 + more_false, 2)} q for any normal sums.",
            "bh": "The rate is proved for independent normal sums up to a factor of "
            f"{signif(1 + math.log(1 / fit.q) + more_false, 2)}; method='by' for any.",
        }
    return (
        *header.omitted(n_shown, len(fit.names), "columns", "tidy()"),
        *unseen * bool(left),
        *Rank.IDENTIFIED(
            f"A dash, for {count(lost)}: the variance of the column, or of the response, is lost "
            "in noise."
        )
        * (lost > 0),
        bounds[fit.discoveries.method],
        *_of_p_values(fit),
        *Rank.DETAIL("Values have fresh noise, without selection bias.", _spent(fit)),
    )


def _of_p_values(fit: FDRResult) -> tuple[str, ...]:
    if fit.valued == "log_p":
        cutoff = fit.q / (2 * fit.hypotheses)
        margin = (
            "p-values include the margin of the published cut-offs, twice the noise's scale times "
            f"log(6 x {count(len(fit.names))}/q)."
        )
        found = "The method is here for comparison: mechanism='peeling' finds more."
        return (
            "log p is the natural logarithm of a z-test's p-value, with noise, and cut off at "
            f"{math.log(cutoff):.1f}.",
            "The test assumes that a column fills its bounds, and that its sum with the response "
            "is normal.",
            *Rank.DETAIL(margin, found),
        )
    return (
        "p-values test independence of column and response, and account for the noise: none is "
        f"below {_small(fit.least)}.",
    )


@report_of.register
def discoveries_report(discoveries: Discoveries) -> Report:
    """Lay out hypotheses with their p-values as a table of strings."""
    table = discoveries.tidy()
    shown_table = table.head(SHOWN)
    rows = [
        Row(str(line.hypothesis), (*_values(line), "yes" if line.rejected else ""))
        for line in shown_table.itertuples()
    ]
    facts = (
        ("Formula", discoveries.formula),
        ("Hypotheses", count(discoveries.hypotheses)),
        ("q", f"{discoveries.q:g}, {NAMES[discoveries.method]}"),
        ("Rejected", count(len(discoveries.rejected))),
    )
    untested = int(table["p_value"].isna().sum())
    notes = (
        *header.omitted(len(shown_table), len(table), "hypotheses", "tidy()"),
        *(f"{untested} without a p-value count as not rejected." for _ in range(untested > 0)),
        "Computed from released p-values, at no further cost. The intercept is not tested.",
    )
    section = Section("Hypotheses", ("p-value", "Adjusted", "Rejected"), tuple(rows))
    return Report("Tests at a false discovery rate", facts, (section,), notes)


@report_of.register
def bounds_report(fit: BoundsResult) -> Report:
    """Lay out released and declared bounds as a table of strings."""
    sds = ", then ".join(signif(sd, 2) for sd in fit.release.noise_sds)
    heads, rows = ("Found", "Declared", "% beyond", "95% noise int."), []
    lines = zip(fit.call.tables, fit.found.values(), fit.noise_int().to_numpy(), strict=True)
    for facts, bounds, (low, high) in list(lines)[: header.SHOWN_VARIABLES]:
        shares = (header.LOST, header.LOST)
        if bounds.cells:
            share = 100 * min(max(bounds.outside / max(bounds.rows, 1.0), 0.0), 1.0)
            shares = (f"{share:.1f}", f"[{100 * low:.1f}, {100 * high:.1f}]")
        narrowed = _range_text(facts, bounds.lower, bounds.upper)
        declared = _range_text(facts, facts.lower, facts.upper)
        declared += f" by {facts.step:,.10g}" if facts.step and not facts.date else ""
        ranges = (narrowed if bounds.is_narrowed else "as declared", declared)
        rows.append(Row(facts.measured, (*ranges, *shares)))
    return header.released_report(
        fit,
        "Private bounds",
        facts=(("Variables", count(len(fit.names))), ("Cell noise", f"sd {sds}")),
        sections=(Section("Bounds", heads, tuple(rows)),),
        notes=_bounds_notes(fit),
    )


def _range_text(facts: TableCall, lower: float, upper: float) -> str:
    if facts.date:
        return f"{text_of_day(lower)} to {text_of_day(upper)}"
    return f"{lower:,.10g} to {upper:,.10g}"


def _bounds_notes(fit: BoundsResult) -> tuple[str, ...]:
    some_declared = not all(bounds.is_narrowed for bounds in fit.found.values())
    declared_note = Rank.IDENTIFIED(
        "As declared: too few rows exceed the noise, or their range is hardly shorter."
    )
    return (
        *header.omitted(header.SHOWN_VARIABLES, len(fit.names), "variables", "tidy()"),
        *declared_note * some_declared,
        *Rank.TARGET(
            "Fits with these bounds clip the rows beyond; tails below the noise were extrapolated "
            "from the bulk of the rows."
        ),
        "% beyond: noisy share of complete rows in cells outside the bounds; its interval is "
        "privacy noise only.",
        "codebook is the declared one with these bounds: it is public, and using it costs no "
        "budget.",
    )


# The printed report of private levels.


@report_of.register
def levels_report(fit: LevelsResult) -> Report:
    """Lay out levels with their noisy counts as tables of strings, one per variable."""
    release = fit.release
    table, what, sections = fit.tidy(), header.counted_as(release.adjacency), []
    scale = signif(release.scale / fit.unit, 2)
    for name in fit.names:
        columns = table[table["variable"] == name].head(header.SHOWN_GROUPS)
        lines = columns[["level", "estimate", "noise_low", "noise_high"]].itertuples(index=False)
        rows = tuple(
            Row(str(level), (count(noisy), f"[{count(low)}, {count(high)}]"))
            for level, noisy, low, high in lines
        )
        heads = (what.capitalize(), "95% noise int.")
        sections.append(Section(name, heads, rows or (Row("(none found)", ("", "")),)))
    return header.released_report(
        fit,
        "Private levels",
        facts=(
            ("Cell noise", f"scale {scale}, at most {_threshold(fit)}"),
            ("Found", f"95% of levels with {count(fit.found_with())} {what}"),
        ),
        sections=tuple(sections),
        notes=_levels_notes(fit),
    )


def _threshold(fit: LevelsResult) -> str:
    return count(fit.release.most / fit.unit)


def _levels_notes(fit: LevelsResult) -> tuple[str, ...]:
    hidden = sum(max(len(levels) - header.SHOWN_GROUPS, 0) for levels in fit.release.levels)
    few = [name for name, levels in fit.levels.items() if len(levels) < FEWEST]
    listed = ", ".join(few)
    return (
        *header.omitted(0, hidden, "levels", "levels and tidy()"),
        *Rank.IDENTIFIED(f"codebook omits {listed}: fewer than two levels were released.")
        * bool(few),
        f"A level is released if its noisy count exceeds {_threshold(fit)}; a level with a single "
        "row does so with probability at most delta.",
        *Rank.TARGET("Rows with other levels are incomplete where the codebook is used."),
        "Noise intervals are for the number of rows of a level, given that it was released.",
    )
