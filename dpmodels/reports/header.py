"""Facts and notes about a release that printed reports share."""

from __future__ import annotations

import math

from dpmodels.dates import FIRST_DAY, LAST_DAY, text_of_day
from dpmodels.formula.parse import quote
from dpmodels.inference.ratios import DETECTION_SDS
from dpmodels.privacy import Adjacency, ApproxDP, GaussianEvent, total_eps
from dpmodels.released import (
    AnyRelease,
    BoughtCurvature,
    CellsRelease,
    CoefficientsRelease,
    LevelsRelease,
    Meat,
    MomentsRelease,
    SelectionRelease,
    SubspaceRelease,
)
from dpmodels.report import Fact, count, signif
from dpmodels.report.notes import Rank
from dpmodels.results.call import AnyCall, CoefficientsCall, DescribedCall, MomentsCall, TableCall
from dpmodels.results.estimate_table import counted_as as counted_as
from dpmodels.results.estimate_table import words
from dpmodels.results.release_text import release_facts

UNKNOWN = "not identified"
# Most groups, variables and components of a table: choices, about a page.
SHOWN_GROUPS = 40
SHOWN_VARIABLES = 30
SHOWN_COMPONENTS = 10
# A choice: a percentage with a noise sd this large may be any from 0 to 100.
LOST_PERCENT = 50.0

LOST = "-"
SEE = "; see dpmodels.mechanisms"


def about(call: AnyCall, code: str) -> Fact | None:
    """Return a coded column and the description of its variable, if it has one."""
    book = call.codebook
    name = (
        next((variable for variable in book if quote(variable) == code), "")
        if code[:2] == "Q("
        else code
    )
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


def moments_header(call: MomentsCall, release: AnyRelease, complete: str) -> tuple[Fact, ...]:
    """Return the header of a report on moments; `complete` gives the number of complete rows."""
    how = {"range": "range", "sd": "sd (correlation)", None: "none"}[call.scale]
    centred = "centred" if call.center else "not centred"
    return (
        *opening(call, release),
        ("Variables", f"{len(call.names)}, {centred}, scale = {how}"),
        ("Row norm", row_norm(call, release)),
        ("Complete", complete),
        *shared_facts(release),
    )


def described_header(call: DescribedCall, release: AnyRelease, complete: str) -> tuple[Fact, ...]:
    """Return the header of a description; `complete` gives the number of complete rows."""
    return (*opening(call, release), ("Complete", complete), *shared_facts(release))


def shared_facts(release: AnyRelease) -> tuple[tuple[str, str], ...]:
    """Return the facts about the sites of a release, if it has sites."""
    shared = release.shared
    if shared is None:
        return ()
    sent = f"{shared.numbers:,} numbers ({shared.size:,} bytes)" if shared.numbers else "-"
    return (
        ("Sites", f"{len(shared.sites):,}, protocol {shared.protocol}"),
        ("Sent by each", sent),
    )


def row_norm(call: MomentsCall | CoefficientsCall, release: AnyRelease | None = None) -> str:
    """Give the limit of the row norm, and its origin."""
    why = "from the codebook"
    ball = getattr(release, "ball", None)
    if ball is not None:
        share, sd = 100 * min(max(ball.shortened, 0.0), 1.0), 100 * ball.shortened_sd
        decimals = 1 if sd >= 0.05 else 2
        what = "shortened" if isinstance(release, MomentsRelease) else "left out"
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
    notes.extend(_shortened(release))
    notes.extend(_rounds_notes(release))
    notes.extend(counted_notes(call, release))
    notes.extend(_shared_notes(release))
    if call.reason:
        notes += Rank.SOURCE(f"Mechanism chosen automatically: {call.reason}")
    see = "" if info.numerics.startswith("user-supplied") else see
    notes += Rank.SOURCE(f"Source: {info.name}, {info.source}{see}.")
    return tuple(notes)


def _shortened(release: AnyRelease) -> tuple[str, ...]:
    """Say which rows were shortened."""
    ball = release.ball if isinstance(release, MomentsRelease) else None
    if ball is not None and not math.isnan(ball.rows):
        return (
            "Rows with long terms have less weight and large residuals are cut, at radii that "
            "grow with n.",
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
        f"describe the shortened rows{', intervals all rows' * bought}."
    ) * (ball is not None)


def _shared_notes(release: AnyRelease) -> tuple[str, ...]:
    """Say what the aggregator sees, and against whom the guarantee holds."""
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
    """Say that the mechanism does not use the delta."""
    guarantee, events = release.guarantee, release.events
    if not isinstance(guarantee, ApproxDP) or any(isinstance(e, GaussianEvent) for e in events):
        return ()
    spent = total_eps(events, 0.0)
    if spent > guarantee.eps * (1 + 1e-9):
        return ()
    return Rank.DETAIL(
        f"delta is not used: the release is private with eps = {spent:.4g} and delta = 0."
    )


def _rounds_notes(release: AnyRelease) -> tuple[str, ...]:
    """Describe the first rounds of a release, if the ball does not show their result."""
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
    """Print an end of a range, a date as such."""
    return day(value) if of.date else f"{value:,.10g}"


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
    unit = "persons" if release.units is None else "sampling units"
    persons = f"{count(release.rows // adjacency.design_effect)} {unit} (public)"
    return (
        persons
        if adjacency.counts_persons
        else f"{persons}, at most {count(adjacency.places)} rows each"
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
    kin = (
        {_cluster_note(pair) for pair in _errors_of(call, release)}
        if release.adjacency.places > 1
        else ()
    )
    return subset * (release.subset is not None) + tuple(sorted(kin))


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
