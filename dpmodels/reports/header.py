"""What printed reports say of the release that a result is made from."""

from __future__ import annotations

import math

from dpmodels.dates import FIRST_DAY, LAST_DAY, text_of_day
from dpmodels.formula.parse import quote
from dpmodels.inference.ratios import TOLD
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
from dpmodels.results.base import release_facts
from dpmodels.results.call import AnyCall, CoefficientsCall, DescribedCall, MomentsCall, TableCall
from dpmodels.results.estimate_table import counted_as as counted_as
from dpmodels.results.estimate_table import words

# Groups, and variables and components of a table: a choice, about what a page holds.
SHOWN_GROUPS = 40
SHOWN_VARIABLES = 30
SHOWN_COMPONENTS = 10

LOST = "-"
SEE = "; see dpmodels.mechanisms"


def about(call: AnyCall, code: str) -> Fact | None:
    """Return a coded column and the words for it, where it is a variable that has some."""
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
    """Return the header of a report on moments; `complete` tells the number of complete rows."""
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
    """Return the header of a description; `complete` tells the number of complete rows."""
    return (*opening(call, release), ("Complete", complete), *shared_facts(release))


def shared_facts(release: AnyRelease) -> tuple[tuple[str, str], ...]:
    """Return what every report says of the sites of a release; nothing where there are none."""
    shared = release.shared
    if shared is None:
        return ()
    sent = f"{shared.numbers:,} numbers ({shared.size:,} bytes)" if shared.numbers else "-"
    return (
        ("Sites", f"{len(shared.sites):,}, protocol {shared.protocol}"),
        ("Sent by each", sent),
    )


def row_norm(call: MomentsCall | CoefficientsCall, release: AnyRelease | None = None) -> str:
    """Say how long rows may be, and what that follows from."""
    why = "from the codebook"
    ball = getattr(release, "ball", None)
    if ball is not None:
        share, sd = 100 * max(ball.shortened, 0.0), 100 * ball.shortened_sd
        decimals = 1 if sd >= 0.05 else 2
        what = "shortened" if isinstance(release, MomentsRelease) else "left out"
        return f"{signif(ball.radius, 3)} ({share:.{decimals}f} ± {sd:.{decimals}f} % {what})"
    if isinstance(call, MomentsCall) and call.unit_rows:
        why = "each row by its own"
    elif call.row_norm < call.worst_case:
        why = f"longer rows are shrunk; codebook: {signif(call.worst_case, 3)}"
    return f"{signif(call.row_norm, 3)} ({why})"


def complete_rows(ncomplete: float, sd: float, rows: int | None = None, what: str = "rows") -> str:
    """Say how many rows are complete, as far as it is known: of `rows`, where that is public."""
    noise = f"noise sd {signif(sd, 2)}"
    if rows is not None and round(ncomplete) > rows:
        return f"{count(rows)} {what} ({noise}; released {count(ncomplete)})"
    return f"{count(ncomplete)} {what} ({noise})"


def complete_text(complete: float, sd: float, rows: int | None = None, what: str = "rows") -> str:
    """Say how many rows are complete, where that is told from none."""
    if complete < TOLD * sd:
        return f"not told from 0 {what} (noise sd {signif(sd, 2)})"
    return complete_rows(complete, sd, rows, what)


def closing(
    call: AnyCall, release: AnyRelease, see: str = "", rows: float | None = None
) -> tuple[str, ...]:
    """Return the notes that every report ends with.

    `see` names where the mechanism is told of; `rows` is the number of rows to
    hold a delta against, where it is not the public one.
    """
    guarantee, card = release.guarantee, release.card
    protected = release.adjacency
    n_units = (release.rows or 0.0 if rows is None else rows) / protected.design_effect
    notes = list(_unused_delta(release))
    if not notes and isinstance(guarantee, ApproxDP) and guarantee.delta * max(1.0, n_units) > 0.1:
        unit = "rows" if protected.person is None else "persons"
        notes.append(
            f"delta is not small against 1/n: it allows for the disclosure of single {unit}."
        )
    if isinstance(call, MomentsCall) and call.part_of:
        notes.append(
            f"Part of one release of {call.part_of}, at no further cost; made from the rows that "
            "are complete in all of them."
        )
    notes.extend(_shortened(release))
    notes.extend(_rounds_notes(release))
    notes.extend(counted_notes(call, release))
    notes.extend(_shared_notes(release))
    if call.reason:
        notes.append(f"Mechanism chosen automatically: {call.reason}")
    see = "" if card.numerics.startswith("user-supplied") else see
    notes.append(f"Source: {card.name}, {card.source}{see}.")
    return tuple(notes)


def _shortened(release: AnyRelease) -> tuple[str, ...]:
    """Say which rows were shortened."""
    ball = release.ball if isinstance(release, MomentsRelease) else None
    if ball is not None and ball.axes is not None:
        return (
            "Rows outside an ellipsoid about a released centre, in the units of its axes longer "
            "than the row norm, were shortened to it: coefficients and intervals are of the rows "
            "so held. Where errors of long rows lean to one side the line of all rows is another.",
        )
    if release.card.name == "ellipsoid":
        return (
            "The rounds found no ellipsoid in which coefficients are predicted to have less noise: "
            "rows were held in the codebook's ball, and no row was shortened.",
        )
    if ball is not None:
        return (
            "Rows longer than the row norm, counted from a released centre, were shortened to it: "
            "what is told here is of the rows so held.",
        )
    return ()


def _shared_notes(release: AnyRelease) -> tuple[str, ...]:
    """Say who has to be trusted with what."""
    shared = release.shared
    if shared is None:
        return ()
    if release.adjacency.person is None:
        disjoint = "Sites are taken to hold disjoint rows: a row that two of them hold"
    else:
        disjoint = "Sites are taken to hold all rows of a person: one of whom two of them hold rows"
    return (
        f"Trust ({shared.protocol}): the aggregator sees {shared.sees}. The guarantee holds "
        f"against {shared.holds}.",
        f"{disjoint} counts twice and is protected less than stated, which no protocol can detect.",
    )


def _unused_delta(release: AnyRelease) -> tuple[str, ...]:
    """Say where a delta was granted to a mechanism that has no use for it."""
    guarantee, events = release.guarantee, release.events
    if not isinstance(guarantee, ApproxDP) or any(isinstance(e, GaussianEvent) for e in events):
        return ()
    spent = total_eps(events, 0.0)
    if spent > guarantee.eps * (1 + 1e-9):
        return ()
    return (f"delta is not used: the release is private with eps = {spent:.4g} and delta = 0.",)


def _rounds_notes(release: AnyRelease) -> tuple[str, ...]:
    """Say what the first rounds of a release came to, where it does not show in the ball."""
    if not isinstance(release, MomentsRelease) or not release.card.name.startswith("rounds"):
        return ()
    notes = []
    if release.ball is None:
        notes.append(
            "The first rounds told of no smaller ball than the codebook's: rows were held there, "
            "and the rounds' share of the budget bought nothing."
        )
    if release.estimate is not None:
        notes.append(
            "The lengths of the rows, as released, differ so much that increments between radii "
            "were released instead of one matrix, with an estimate made of them."
        )
    return tuple(notes)


def omitted(n_shown: int, total: int, what: str, where: str) -> tuple[str, ...]:
    """Say how many of something are left out, and where they are."""
    left = total - n_shown
    return (f"{left} more {'of the ' * (left == 1)}{what}: see {where}.",) * (left > 0)


def bound_text(of: TableCall, value: float) -> str:
    """Print an end of a range, a date as such."""
    return day(value) if of.date else f"{value:,.10g}"


def day(value: float) -> str:
    """Print a number of days since 1970-01-01 as the nearest date of the years 1 to 9999."""
    return text_of_day(min(max(value, FIRST_DAY), LAST_DAY))


def range_note(*tables: TableCall) -> tuple[str, ...]:
    """Say what was done with values outside declared ranges, but of those from 0 to 1."""
    ranges = [
        f"{bound_text(table, table.lower)} to {bound_text(table, table.upper)} ({table.measured})"
        for table in tables
        if (table.lower, table.upper) != (0.0, 1.0)
    ]
    listed = ", ".join(ranges)
    note = f"Values outside {listed} were clipped to the ends; no interval knows of that."
    return (note,) * bool(ranges)


def pvalue(value: float) -> str:
    """Print a p-value; below 0.0001 nothing more is claimed."""
    if math.isnan(value):
        return "-"
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


# What printed reports say of whose rows a release counted, and how they are alike.


def observations(release: AnyRelease) -> str:
    """Say how many rows or persons were read, where that is public."""
    adjacency = release.adjacency
    if release.rows is None:
        return "private"
    if adjacency.person is None:
        return f"{count(release.rows)} (public)"
    persons = f"{count(release.rows // adjacency.design_effect)} persons (public)"
    return (
        persons
        if adjacency.counts_persons
        else f"{persons}, at most {count(adjacency.places)} rows each"
    )


def counted_notes(call: AnyCall, release: AnyRelease) -> tuple[str, ...]:
    """Say what rows outside a subset count as, and how sampling errors take rows of one person."""
    subset = (
        "Rows outside the subset count as incomplete ones: how many are in it is not published, "
        "but in the number of complete ones, with its noise."
    )
    kin = (
        {_cluster_note(pair) for pair in _errors_of(call, release)}
        if release.adjacency.places > 1
        else ()
    )
    return ((subset,) * (release.subset is not None)) + tuple(sorted(kin))


def _errors_of(call: AnyCall, release: AnyRelease) -> tuple[tuple[Adjacency, bool], ...]:
    """Return whether errors are of persons, for each table; nothing where there are no errors."""
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
            f"Sampling errors of means are clustered by person ({adjacency.person}): each is one "
            "observation, whatever its rows have in common. Standard deviations are of persons."
        )
    if adjacency.counts_persons:
        return (
            "A person counts as one observation, whose sampling error is taken for that of one of "
            "its rows: no interval is too short for it, most are longer than need be."
        )
    kin = "Rows of a person" if adjacency.person else f"Any {adjacency.places} rows"
    return (
        f"{kin} may be alike: sampling errors allow for {adjacency.places} times the variance that "
        "independent rows have, so that no interval is too short for it."
    )
