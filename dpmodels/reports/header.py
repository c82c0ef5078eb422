"""Facts and notes about a release or its survey design that printed reports share."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd

from dpmodels.dates import FIRST_DAY, LAST_DAY, text_of_day
from dpmodels.errors import shorten
from dpmodels.formula.parse import quote
from dpmodels.inference.proportions import DETECTION_SDS
from dpmodels.privacy import Adjacency, ApproxDP, GaussianEvent, total_eps
from dpmodels.released import (
    AnyRelease,
    BoughtCurvature,
    CappedWeights,
    CellsRelease,
    CoefficientsRelease,
    CountsRelease,
    LevelsRelease,
    Meat,
    MomentsRelease,
    SelectionRelease,
    SubspaceRelease,
)
from dpmodels.report import Fact, Report, Section, count, signif
from dpmodels.report.notes import Rank
from dpmodels.results.call import (
    AnyCall,
    CoefficientsCall,
    DescribedCall,
    MomentsCall,
    TableCall,
    n_public_rows,
    release_facts,
)
from dpmodels.results.components import UPPER
from dpmodels.results.estimate_table import counted_as as counted_as
from dpmodels.results.estimate_table import words
from dpmodels.results.glm import GLMResult
from dpmodels.results.groups import GroupedResult
from dpmodels.results.lm import LMResult

UNKNOWN = "not identified"
# Most groups, variables and components of a table: choices, about a page.
SHOWN_GROUPS = 40
SHOWN_VARIABLES = 30
SHOWN_COMPONENTS = 10
# A choice: a percentage with a noise sd this large may be any from 0 to 100.
LOST_PERCENT = 50.0

OF_ALL_ROWS = ", intervals of covariances and components all rows"
LOST = "-"
SEE = "; see dpmodels.mechanisms"


def about(call: AnyCall, code: str) -> Fact | None:
    """Return a coded column and the description of its variable, if it has one."""
    book, name = call.codebook, code
    if code[:2] == "Q(":
        name = next((variable for variable in book if quote(variable) == code), "")
    description = words(name, book[name]) if name in book else ""
    return (code, description) if description else None


def opening(call: AnyCall, release: AnyRelease) -> tuple[Fact, ...]:
    """Return the facts that every report begins with."""
    subset = () if release.subset is None else (("Subset", release.subset),)
    return (
        ("Formula", call.formula),
        *release_facts(release).items(),
        *subset,
        *(release.table or ()),
        ("Observations", observations(release)),
        ("Ledger", call.ledger or "none"),
    )


def released_report(
    fit: Any,
    title: str,
    *,
    first: tuple[Fact, ...] = (),
    facts: tuple[Fact, ...] = (),
    sections: tuple[Section, ...],
    notes: tuple[str, ...],
    see: str = "",
) -> Report:
    """Lay out a result of one release, with what all such reports open and close with.

    `first` are facts before those of sites, `facts` after them; `see` is as for :func:`closing`.
    """
    call, release = fit.call, fit.release
    lines = (*opening(call, release), *first, *shared_facts(release), *facts)
    of_moments = (SEE, fit.nobs) if isinstance(call, MomentsCall) else (see, None)
    report = Report(title, lines, sections, (*notes, *closing(call, release, *of_moments)))
    return in_units(report, call.tables[0]) if isinstance(call, DescribedCall) else report


def moments_facts(call: MomentsCall, release: AnyRelease, complete: str) -> tuple[Fact, ...]:
    """Return the facts about moments; `complete` gives the number of complete rows."""
    how = {"range": "range", "sd": "sd (correlation)", None: "none"}[call.scale]
    centred = "centred" if call.center else "not centred"
    return (
        ("Variables", f"{len(call.names)}, {centred}, scale = {how}"),
        ("Row norm", row_norm(call, release)),
        ("Complete", complete),
    )


def shared_facts(release: AnyRelease) -> tuple[tuple[str, str], ...]:
    """Return the facts about the sites of a release, if it has sites."""
    shared = release.shared
    if shared is None:
        return ()
    sent = f"{shared.numbers:,} numbers ({shared.size:,} bytes)" if shared.numbers else "-"
    return (("Sites", f"{len(shared.sites):,}, protocol {shared.protocol}"), ("Sent by each", sent))


def row_norm(call: MomentsCall | CoefficientsCall, release: AnyRelease | None = None) -> str:
    """Give the limit of the row norm, and its origin."""
    why = "from the codebook"
    ball = getattr(release, "ball", None)
    if ball is not None:
        share, sd = 100 * min(max(ball.shortened, 0.0), 1.0), 100 * ball.shortened_sd
        decimals = 1 if sd >= 0.05 else 2
        what = "shortened" if isinstance(release, MomentsRelease) else "left out"
        if sd == 0 and what == "left out":
            return f"{signif(ball.radius, 3)} (no row can be longer)"
        if sd >= LOST_PERCENT:
            return f"{signif(ball.radius, 3)} (% {what}: lost in noise)"
        return f"{signif(ball.radius, 3)} ({share:.{decimals}f} ± {sd:.{decimals}f} % {what})"
    if isinstance(call, MomentsCall) and call.unit_rows:
        why = "each row by its own"
    elif call.row_norm < call.worst_case:
        why = f"longer rows are shrunk; codebook: {signif(call.worst_case, 3)}"
    return f"{signif(call.row_norm, 3)} ({why})"


def complete_text(complete: float, sd: float, rows: int | None = None, what: str = "rows") -> str:
    """Give the number of complete rows if it exceeds its noise; at most `rows`, if public."""
    noise = f"noise sd {signif(sd, 2)}"
    if complete < DETECTION_SDS * sd:
        return f"may be 0 {what} ({noise})"
    if rows is not None and round(complete) > rows:
        return f"{count(rows)} {what} ({noise}; released {count(complete)})"
    return f"{count(complete)} {what} ({noise})"


def complete_rows(release: AnyRelease, complete: float, sd: float) -> str:
    """Give the number of complete rows, or persons, at most the public number."""
    return complete_text(complete, sd, release.rows, counted_as(release.adjacency))


def few_complete(
    release: AnyRelease, complete: float, sd: float, where: str = ""
) -> tuple[str, ...]:
    """Say what counts as missing where the released number is clearly below half of n.

    Where only the most rows that count of a person is public, n is at least one row each.
    """
    weighted = isinstance(release, MomentsRelease) and release.units is not None
    if release.rows is None or release.subset or weighted or counted_in(release) == WEIGHT:
        return ()
    n_rows = n_public_rows(release) or release.rows // release.adjacency.places
    if not complete + DETECTION_SDS * sd < n_rows / 2:  # Nor where none is known
        return ()
    what = counted_as(release.adjacency)
    return Rank.IDENTIFIED(
        f"Fewer than half of the {what} are complete{where}: numbers with separators or units "
        "(1,234; 5 kg) and undeclared levels count as missing."
    )


def closing(
    call: AnyCall, release: AnyRelease, see: str = "", rows: float | None = None
) -> tuple[str, ...]:
    """Return the notes that every report ends with.

    `see` refers to the documentation of the mechanism; `rows` is the number of
    rows to compare delta with, if it is not the public one.
    """
    guarantee, info = release.guarantee, release.info
    protected = release.adjacency
    n_units = (release.rows or 0.0 if rows is None else rows) / protected.design_effect
    notes = list(_unused_delta(release))
    if not notes and isinstance(guarantee, ApproxDP) and guarantee.delta * max(1.0, n_units) > 0.1:
        unit = "rows" if protected.person is None else "persons"
        notes += Rank.GUARANTEE(
            f"delta is not small relative to 1/n: it permits the disclosure of single {unit}."
        )
    if isinstance(call, MomentsCall) and call.part_of:
        notes += Rank.TARGET(
            f"Part of one release of {call.part_of}, at no further cost; it uses the rows that are "
            "complete in all of them."
        )
    notes += (*_shortened(release), *_rounds_notes(release))
    notes += (*counted_notes(call, release), *_shared_notes(release))
    if call.reason:
        notes += Rank.SOURCE(f"Mechanism chosen automatically: {call.reason}")
    see = "" if info.numerics.startswith("user-supplied") else see
    notes += Rank.SOURCE(f"Source: {info.name}, {info.source}{see}.")
    return tuple(notes)


def _shortened(release: AnyRelease) -> tuple[str, ...]:
    ball = release.ball if isinstance(release, MomentsRelease) else None
    if ball is not None and not math.isnan(ball.rows):
        most = min(max(1 - ball.kept + UPPER * ball.kept_sd, 0.0), 1.0)
        share = f" (up to about {100 * most:.2g}%)" * math.isfinite(most)
        cut = f" and residuals truncated{share}" if release.units is None else ""
        return (
            f"Rows with extreme terms are downweighted{cut}, at thresholds growing with n; Df "
            "counts rows by squared weight.",
        )
    if ball is not None and ball.axes is not None:
        return Rank.TARGET(
            "Rows outside an ellipsoid about a released centre were shortened to it: coefficients "
            "and intervals describe the shortened rows.",
            "Those of all rows may differ if errors of long rows have a nonzero mean.",
        )
    if release.info.name == "ellipsoid":
        return Rank.DETAIL(
            "No ellipsoid was found in which coefficients are predicted to have less noise: rows "
            "are bounded by the codebook, and none was shortened."
        )
    bought = isinstance(release, MomentsRelease) and release.tails is not None
    return Rank.TARGET(
        "Rows farther than the row norm from a released centre were shortened to it: results "
        f"describe the shortened rows{OF_ALL_ROWS * bought}."
    ) * (ball is not None)


def _shared_notes(release: AnyRelease) -> tuple[str, ...]:
    shared = release.shared
    if shared is None:
        return ()
    unit, disjoint = "row", "disjoint rows"
    if release.adjacency.person is not None:
        unit, disjoint = "person", "all rows of a person"
    holds = (
        f"The guarantee holds against {shared.holds}, if no {unit} is at two sites, which no "
        "protocol can detect."
    )
    twice = (
        f"Sites are assumed to hold {disjoint}: a {unit} at two sites counts twice and is "
        "protected less than stated."
    )
    trust = f"Trust ({shared.protocol}): the aggregator sees {shared.sees}."
    return (*Rank.GUARANTEE(holds, trust), *Rank.DETAIL(twice))


def _unused_delta(release: AnyRelease) -> tuple[str, ...]:
    guarantee, events = release.guarantee, release.events
    if not isinstance(guarantee, ApproxDP) or any(isinstance(e, GaussianEvent) for e in events):
        return ()
    spent = total_eps(events, 0.0)
    if spent > guarantee.eps * (1 + 1e-9):
        return ()
    note = f"delta is not used: the release is private with eps = {spent:.4g} and delta = 0."
    return Rank.DETAIL(note)


def _rounds_notes(release: AnyRelease) -> tuple[str, ...]:
    if not isinstance(release, MomentsRelease) or not release.info.name.startswith("rounds"):
        return ()
    notes = []
    if release.ball is None:
        notes.append(
            "The first rounds found no smaller ball than the codebook's, which therefore bounds "
            "the rows: their share of the budget had no effect."
        )
    if release.estimate is not None:
        notes.append(
            "Row norms, as released, differ so much that increments between radii were released "
            "instead of one matrix; the estimate combines them."
        )
    return Rank.DETAIL(*notes)


def omitted(n_shown: int, total: int, what: str, where: str) -> tuple[str, ...]:
    """Say how many of something are left out, and where they are."""
    left = total - n_shown
    note = f"{left} more {'of the ' * (left == 1)}{what}: see {where}."
    return Rank.IDENTIFIED(note) * (left > 0)


def bound_text(of: TableCall, value: float) -> str:
    """Print an end of a range: a date as such, and no comma in what may be a year."""
    if of.date:
        return day(value)
    return f"{value:,.10g}" if abs(value) >= 10_000 else f"{value:.10g}"


def day(value: float) -> str:
    """Print a number of days since 1970-01-01 as the nearest date of the years 1 to 9999."""
    return text_of_day(min(max(value, FIRST_DAY), LAST_DAY))


def range_note(*tables: TableCall) -> tuple[str, ...]:
    """Say that values outside declared ranges, other than 0 to 1, were clipped."""
    ranges = [
        f"{bound_text(table, table.lower)} to {bound_text(table, table.upper)} ({table.measured})"
        for table in tables
        if (table.lower, table.upper) != (0.0, 1.0)
    ]
    listed = ", ".join(ranges)
    return Rank.TARGET(
        f"Values outside {listed} were clipped to the bounds; intervals do not account for this."
    ) * bool(ranges)


def pvalue(value: float) -> str:
    """Print a p-value, to 0.0001 at the least."""
    if math.isnan(value):
        return "-"
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


# Facts and notes on the unit of protection and on dependent rows.


def observations(release: AnyRelease) -> str:
    """Give the number of rows or persons, if it is public."""
    adjacency = release.adjacency
    if release.rows is None:
        return "private"
    if adjacency.person is None:
        return f"{count(release.rows)} (public)"
    n_units = release.rows // adjacency.design_effect
    unit = ("person" if release.units is None else "sampling unit") + "s" * (n_units != 1)
    persons = f"{count(n_units)} {unit} (public)"
    if adjacency.counts_persons:
        return persons
    return f"{persons}, at most {count(adjacency.places)} rows each"


HIDDEN_SCORES = (
    "Intervals assume that the longest scores, which noise hides, go on from the shorter ones: "
    "a few heavy units in a group far out make them too short."
)


def sampled_notes(release: AnyRelease) -> tuple[str, ...]:
    """Return notes on the weights and standard errors of a survey design."""
    cap = release.units
    if cap is None:
        return ()
    unit = "row" if release.adjacency.person is None else "sampling unit"
    cut = f"{100 * cap.beyond:.2g} ± {100 * cap.beyond_sd:.2g} % of the weight"
    if math.isnan(cap.beyond_sd):
        cut = "the declared bound of a row: noise hides the weights"
    scores = cap.scores
    strata = "strata do not shorten it"
    if scores is not None and scores.factors:
        strata = "within strata, where noise does not hide them"
    errors = Rank.DETAIL(f"std err: linearised, each {unit} drawn with replacement; {strata}.")
    if isinstance(release, CoefficientsRelease) and release.meat and release.clip is None:
        errors += Rank.INTERVALS(HIDDEN_SCORES)
    if scores is not None and not math.isnan(cap.beyond_sd):
        return errors
    return (
        *Rank.TARGET(
            f"Weights of a {unit} above {signif(cap.cap, 4)} ({cut}) are capped: results are "
            "those of capped weights."
        ),
        *errors,
    )


def counted_notes(call: AnyCall, release: AnyRelease) -> tuple[str, ...]:
    """Return notes on rows outside a subset, and on sampling errors of dependent rows."""
    if release.units is not None:
        return sampled_notes(release)
    subset = Rank.TARGET(
        "Rows outside the subset count as incomplete: the size of the subset is not published, "
        "except for the noisy number of complete rows."
    )
    pairs = _errors_of(call, release) if release.adjacency.places > 1 else ()
    kin = tuple(sorted({_cluster_note(pair) for pair in pairs}))
    return subset * (release.subset is not None) + kin


def _errors_of(call: AnyCall, release: AnyRelease) -> tuple[tuple[Adjacency, bool], ...]:
    """Return for each table whether errors are clustered by person; empty without errors."""
    adjacency = release.adjacency
    match release:
        case SubspaceRelease() | CellsRelease() | LevelsRelease() | SelectionRelease():
            return ()
        case MomentsRelease(meat=Meat(person=str())):
            return ()
        case CoefficientsRelease(curvature=None | BoughtCurvature(person=str())):
            return ()
    tables = call.tables if isinstance(call, DescribedCall) else ()
    exact = tuple(adjacency.person is not None and table.degree == 2 for table in tables)
    return tuple((adjacency, clustered) for clustered in exact or (False,))


def _cluster_note(of: tuple[Adjacency, bool]) -> str:
    adjacency, exact = of
    if exact:
        return (
            f"Sampling errors of means are clustered by person ({adjacency.person}), for any "
            "dependence of a person's rows. Standard deviations are between persons."
        )
    if adjacency.counts_persons:
        return (
            "A person counts as one observation, with the sampling error of a single row: "
            "intervals are conservative."
        )
    kin = "Rows of a person" if adjacency.person else f"Any {adjacency.places} rows"
    return (
        f"{kin} may be dependent: sampling variances are {adjacency.places} times those of "
        "independent rows, the worst case, so intervals are conservative."
    )


WEIGHT: Final = "units of weight"
# The error of a percentage that is not printed: a choice.
HIDDEN_PERCENT: Final = 50.0


def design_facts(release: AnyRelease, facts: TableCall) -> tuple[tuple[str, str], ...]:
    """Return the lines of the header on the design; none without one."""
    if facts.sampled is None:
        return ()
    unit = "sampling units" if facts.sampled.units else "rows"
    n_units = "private" if release.rows is None else count(release.rows)
    return (("Design", facts.sampled.design), ("Sample", f"{n_units} {unit}"))


def counted_in(release: AnyRelease) -> str:
    """Return what counts are of: rows, persons, or weight under a survey design."""
    weighted = isinstance(release, CountsRelease) and release.weights is not None
    return WEIGHT if weighted else counted_as(release.adjacency)


def cell_noise_sd(release: CountsRelease) -> float:
    """Return the noise sd of a part of a table, in rows or units of weight."""
    return release.noise_sd * (1.0 if release.weights is None else release.weights.cap)


def capped_note(release: AnyRelease) -> tuple[str, ...]:
    """Say at what weights were capped, if they were; nothing without a survey design."""
    weights = release.weights if isinstance(release, CountsRelease) else None
    if weights is None or not weights.has_excess:
        return ()
    text = _capped(weights, units=release.adjacency.person is not None)
    return Rank.TARGET(f"{text}: what was cut off is put back, and in the errors.")


def _capped(weights: CappedWeights, *, units: bool) -> str:
    what = "Units of weight" if units else "Weights"
    return f"{what} above {signif(weights.cap, 3)} were capped"


def step_note(fit: LMResult | GLMResult) -> tuple[str, ...]:
    """Say from which weights the estimate starts, and which coefficient the step moved the most."""
    cap = fit.release.units
    if cap is None or cap.scores is None or cap.beyond == 0:
        return ()
    table = fit.design
    text = f"One step from weights capped at {signif(cap.cap, 3)} to all weights moved"
    at = int(np.argmax(np.nan_to_num(table["shift"].abs() / fit.bse)))
    name = shorten(str(table.index[at]), 30)
    shift, shift_sd = (float(table[part].iloc[at]) for part in ("shift", "shift_sd"))
    return Rank.TARGET(f"{text} {name} by {signif(-shift, 2)} ± {signif(shift_sd, 2)}.")


def scores_of_units(meat: Meat) -> str:
    """Describe the squares from which errors under a design follow."""
    most = f"one unit: at most {100 * meat.most:.2g}% of a variance"
    return f"scores of units (linearised; {most}; noise: {meat.sd:.0%})"


def weighted_notes(release: AnyRelease) -> tuple[str, ...]:
    """Say at what the weights of a table were capped, and what is printed."""
    return (
        *capped_note(release),
        "Totals are of the population. Noise and noise_int() are privacy noise only; conf_int() "
        "is of shares, and tidy() has both errors of totals.",
        *Rank.DETAIL(
            "Totals are the nearest to the unbiased ones in released that are not negative.",
            "Errors are linearised, sampling units drawn with replacement.",
        ),
    )


def design_notes(fit: GroupedResult, facts: TableCall) -> tuple[str, ...]:
    """Say what was cut off the weights, and what the design does to the errors."""
    sampled, weights = facts.sampled, fit.release.weights
    if sampled is None or weights is None:
        return ()
    cap = Rank.DETAIL("No weights were capped.")
    if weights.has_excess:
        cap = _cap_note(fit.design, _capped(weights, units=sampled.units))
    weak = "Strata are ignored in errors where noise hides them, which makes errors larger."
    return (*cap, *_error_note(fit, sampled.units), *Rank.DETAIL(weak) * bool(sampled.strata))


def _cap_note(table: pd.DataFrame, text: str) -> tuple[str, ...]:
    sizes = table["weight"].clip(lower=0)
    sizes = sizes / max(float(sizes.sum()), 1e-300)
    share = 100 * float(table["capped"].to_numpy() @ sizes.to_numpy())
    error = 100 * float(np.linalg.norm(table["capped_sd"] * sizes))
    if not (np.isfinite(share) and error < HIDDEN_PERCENT):
        return Rank.TARGET(
            f"{text}. Noise hides how much of the weight this cut off; estimates and errors allow "
            "for it."
        )
    text = f"{text}, by {share:.1f} ± {error:.1f} % of all weight. This"
    if len(table) > 1:
        return Rank.TARGET(f"{text} is put back, and in the errors: see fit.design.")
    shift, shift_sd = (signif(part, 2) for part in table[["shift", "shift_sd"]].iloc[0])
    moved = f"moved the estimate by {shift} ± {shift_sd}"
    return Rank.TARGET(f"{text} {moved}: put back, and in the errors.")


def _error_note(fit: GroupedResult, units: bool) -> tuple[str, ...]:
    table = fit.design.dropna(subset=["effective_n"])
    if table.empty:
        return ()
    low, high = (count(max(value, 0.0)) for value in table["effective_n"].agg(["min", "max"]))
    span = _span(low, high)
    if units:
        return Rank.DETAIL(
            "Errors are linearised over sampling units drawn with replacement; effective number of "
            f"units {span}."
        )
    deff = _span(*(signif(value, 2) for value in table["deff"].agg(["min", "max"])))
    return Rank.DETAIL(f"Design effect {deff}, effective n {span}: linearised errors.")


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def in_units(report: Report, facts: TableCall) -> Report:
    """Return a report that names the persons of a release as sampling units, if it has any."""
    if facts.sampled is None or not facts.sampled.units:
        return report
    header = tuple((head, text.replace("person", "sampling unit")) for head, text in report.facts)
    notes = tuple(
        note for note in report.notes if "observation" not in note and "between persons" not in note
    )
    return replace(report, facts=header, notes=notes)
