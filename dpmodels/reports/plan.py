"""The printed reports of ledgers, plans, divisions of a budget and power."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import pandas as pd

from dpmodels.arguments import checked_keywords
from dpmodels.privacy import ApproxDP, Ledger, hidden_by, verified
from dpmodels.privacy.events import Event
from dpmodels.privacy.filters import TOLERANCE
from dpmodels.privacy.register import convergence_notes
from dpmodels.privacy.spent import capacity
from dpmodels.report import Fact, Report, Row, Section, Summary, count, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.results.base import report_of
from dpmodels.results.plan import SELDOM, UNEVEN, PlannedCall, PlanResult, PowerResult, SplitResult
from dpmodels.typing import TableLine


@report_of.register
def plan_report(plan: PlanResult) -> Report:
    """Lay out planned calls as tables of strings."""
    unit = capacity(plan.guarantee).unit
    heads: tuple[str, ...] = ("mechanism", "noise", unit, f"total {unit}", "fits", "identified")
    rows = tuple(Row(call.call, _cells(call)) for call in plan.calls)
    if not plan.predicts:
        heads, rows = heads[:-1], tuple(Row(row.label, row.cells[:-1]) for row in rows)
    return Report(
        title="Calls planned, nothing spent",
        facts=_facts(plan),
        sections=(Section("Call", heads, rows),),
        notes=_notes(plan),
    )


def _cells(call: PlannedCall) -> tuple[str, ...]:
    fits = "yes" if call.fits else "NO"
    prices = (signif(spent.amount, 3) for spent in (call.price, call.total))
    identified = "-" if math.isnan(call.identified) else f"{100 * call.identified:.0f}%"
    return (call.mechanism, noise(call.events), *prices, fits, identified)


def noise(events: tuple[Event, ...]) -> str:
    """Describe the noise of each kind, and how many releases have it."""
    releases: Counter[str] = Counter()
    for event in events:
        law = event.describe().partition(",")[0]
        releases[law] += event.count
    return " + ".join(kind + f", {n} times" * (n > 1) for kind, n in releases.items()) or "none"


def _facts(plan: PlanResult) -> tuple[Fact, ...]:
    totals = [signif(call.total.amount, 3) for call in plan.calls if call.fits]
    limit = capacity(plan.guarantee).amount * (1 + TOLERANCE)
    refused = "" if plan.announced.amount <= limit else ", does not fit"
    return (
        ("Guarantee", plan.guarantee.describe()),
        ("Neighbours", plan.adjacency.describe()),
        ("Before", plan.ledger_state.split(";")[0]),
        ("After", f"{totals[-1] if totals else '-'}, one by one"),
        ("Calls", f"{len(plan.calls)}, {sum(call.fits for call in plan.calls)} fit"),
        ("As one", signif(plan.announced.amount, 3) + refused),
    )


def _notes(plan: PlanResult) -> tuple[str, ...]:
    unit = capacity(plan.guarantee).unit
    notes = [
        f"{unit}: of the call alone; total {unit}: of it and all calls before it, also if later "
        "calls depend on earlier answers.",
        *Rank.DETAIL("As one: if all calls are charged together before any answer."),
    ]
    for reading in dict.fromkeys(call.reading for call in plan.calls if call.reading):
        numbers = [str(at) for at, x in enumerate(plan.calls, 1) if x.reading == reading]
        notes.append(f"Call{'s' * (len(numbers) > 1)} {', '.join(numbers)}: {reading}.")
    if not plan.fits:
        notes += Rank.IDENTIFIED("NO: the ledger would refuse the call; later totals exclude it.")
    return tuple(notes)


# ``ledger_report``: the charges of a ledger, as a printed table.

_SHOWN: Final = 12
_STATES: Final = (
    "charged: no release is recorded, and the budget stays spent; released: digest is the start of "
    "the release's SHA-256.",
    "void: nothing was released, and the budget was returned if no later charge followed.",
)
_CHAIN: Final = (
    "Each hash covers its line and the previous hash: this detects a changed line, but not an "
    "older copy of the file. Keep a printed head elsewhere."
)


@checked_keywords("dp.ledger_report")
def ledger_report(ledger: Ledger) -> Summary:
    """Return the register of a ledger, to be printed or written.

    Parameters
    ----------
    ledger : Ledger
        In memory or in a file; it is verified first.

    Returns
    -------
    Summary
        Prints itself; `as_text`, `as_html`, `as_page`, `as_latex`, `as_markdown`.

    Raises
    ------
    LedgerError
        If a line was changed.
    ArgumentError
        If it is not a ledger.

    Examples
    --------
    >>> import dpmodels as dp
    >>> ledger = dp.Ledger(eps=2.0)
    >>> rows = {"age": [20, 40, 60] * 900}
    >>> cb = dp.codebook(age=(0, 100))
    >>> fit = dp.dp_mean("~ age", rows, codebook=cb, eps=0.5, ledger=ledger)
    >>> print(str(dp.ledger_report(ledger)).splitlines()[3].strip())
    Spent:      0.500 of 2.00 eps spent   Charges:    1, 0 unfinished
    """
    register = verified(ledger).register()
    lines = register.reset_index().to_dict("records")
    heads = (f"total {ledger.spent.unit}", "state", "mechanism", "digest", "time (UTC)", "hash")
    rows = []
    for line in lines:
        total, time = signif(line["total"], 3), line["time"][:16].replace("T", " ")
        release = (line["mechanism"] or "-", line["digest"][:_SHOWN] or "-")
        cells = (total, line["state"], *release, time, line["hash"][:_SHOWN])
        rows.append(Row(f"{line['charge']} {line['label']}".strip(), cells))
    unfinished = int((register["state"] == "charged").sum())
    facts = (
        ("Guarantee", ledger.guarantee.describe()),
        ("Neighbours", hidden_by(ledger.guarantee, ledger.adjacency)),
        ("Spent", ledger.describe().split(";")[0]),
        ("Charges", f"{count(len(lines))}, {count(unfinished)} unfinished"),
        ("Head", ledger.head[:_SHOWN]),
    )
    title = f"Privacy ledger {ledger.place}".strip()
    sections = (Section("Charge", heads, tuple(rows)),) if rows else ()
    void = [line for line in lines if line["reason"]]
    reasons = tuple(f"Charge {line['charge']} is void: {line['reason']}." for line in void)
    notes = (*_STATES, _CHAIN) if ledger.place else _STATES
    notes = (*convergence_notes(line["mechanism"] for line in lines), *notes)
    return Summary(Report(title, facts, sections, (*reasons, *notes)))


# The printed report of power.

_HEADS = ("effect", "std. err.", "noise sd", "sampling", "power", "identified", "no noise", "price")
_SOLVED = {"n": "rows", "eps": "eps", "effect": "smallest effects", "power": "power"}


@report_of.register
def power_report(result: PowerResult) -> Report:
    """Lay out the expected results as tables of strings."""
    request, sections = result.request, []
    target = "" if math.isnan(request.target) else f" for power {request.target:g}"
    for _, lines in result.table.groupby("cell", sort=False):
        n_rows, eps = int(lines["n"].iloc[0]), float(lines["eps"].iloc[0])
        title = f"n = {count(n_rows)}" + ("" if math.isnan(eps) else f", eps = {eps:.3g}")
        sections.append(Section(title, _HEADS, tuple(map(_row, lines.to_dict("records")))))
    return Report(
        title=f"Expected results of dp_{request.verb}, nothing read or spent",
        facts=(
            ("Formula", request.formula),
            ("Solved for", _SOLVED[request.solved] + target),
            ("Guarantee", request.guarantee),
            ("Neighbours", request.adjacency.describe()),
            ("Test", f"{request.tested}, level {request.alpha:g}"),
            ("Rows guessed", request.assumed),
        ),
        sections=tuple(sections),
        notes=_power_notes(result),
    )


def _row(line: TableLine) -> Row:
    cells = (
        "-" if math.isnan(line["power"]) else signif(line["effect"], 3),
        *(signif(line[name], 3) for name in ("std_error", "noise_sd", "sampling_se")),
        _share(line["power"]),
        f"{100 * line['identified']:.0f}%",
        _share(line["without_noise"]),
        f"{line['price']:.3g} x" if math.isfinite(line["price"]) else "-",
    )
    return Row(str(line["term"]), cells)


def _share(power: float) -> str:
    """Print a power to two digits."""
    if math.isnan(power):
        return "-"
    return f"{power:.2f}" if power < 0.995 else ">.99"


def _power_notes(result: PowerResult) -> tuple[str, ...]:
    request, error = result.request, result.table["power_se"].max()
    mechanisms = (f"Mechanism: {mechanism}" for mechanism in dict.fromkeys(request.mechanisms))
    errors = "simulation errors of powers are one or two hundredths"
    if error > 0.01:
        errors = f"simulation standard errors of powers are at most {error:.1g}"
    notes = [
        *Rank.TARGET(*mechanisms, f"All results depend on the assumed rows; {errors}."),
        "effect: after clipping to the bounds; std. err.: median over releases; noise sd: privacy "
        "noise in it; sampling: without noise.",
        "identified: share of releases with a standard error of the term; power counts the others "
        "as not rejected.",
        *Rank.DETAIL(
            "no noise: power of as many rows without privacy; price: factor of rows needed for the "
            "same standard error, or else the same power."
        ),
    ]
    seldom = result.table[result.table["identified"] < SELDOM]
    if len(seldom):
        instead = f"about eps = {request.enough:.2g} is needed, or more rows"
        if math.isnan(request.enough):
            instead = "leave out eps or n and give a power, such as power=0.8, to solve for it"
        notes += Rank.IDENTIFIED(
            f"Most releases have no standard errors of {_terms(seldom)}: {instead}."
        )
    uneven = result.table[result.table["se_high"] > UNEVEN * result.table["se_low"]]
    if len(uneven):
        notes.append(
            f"Standard errors of {_terms(uneven)} differ more than twofold from release to "
            "release: see se_low and se_high in the table."
        )
    return tuple(notes)


def _terms(lines: pd.DataFrame) -> str:
    return ", ".join(dict.fromkeys(map(str, lines["term"])))


# The printed report of divisions of a budget.


@report_of.register
def split_report(split: SplitResult) -> Report:
    """Lay out the divisions as tables of strings."""
    request, table = split.request, split.table
    rows = []
    for number, line in enumerate(table.to_dict("records")):
        mark = " *" if line["best"] else " =" if line["near"] else ""
        cells = (
            *(f"{capacity(budget).amount:.3g}" for budget in split.divisions[number]),
            signif_uncertain(line["score"], line["score_se"]),
            f"{line['score_se']:.2g}",
            "-" if line["best"] else signif_uncertain(line["behind"], line["behind_se"]),
            "-" if line["best"] else f"{line['behind_se']:.2g}",
        )
        rows.append(Row(split.labels[number] + mark, cells))
    currency = capacity(request.guarantee).unit
    heads = (*(f"{stage} {currency}" for stage in request.stages), "score", "se", "behind", "se")
    return Report(
        title="A budget divided between stages, nothing spent",
        facts=(
            ("Recipe", request.recipe),
            ("Guarantee", request.guarantee.describe()),
            ("Stages", ", ".join(request.stages)),
            ("Neighbours", request.adjacency.describe()),
            ("Runs", f"{request.repeats} of each division"),
            ("Best", f"the {request.best} mean score"),
        ),
        sections=(Section("Shares " + " : ".join(request.stages), heads, tuple(rows)),),
        notes=_split_notes(split),
    )


def _split_notes(split: SplitResult) -> tuple[str, ...]:
    request = split.request
    public = "The scores have no privacy guarantee: rows must be public or simulated."
    notes = [
        *Rank.GUARANTEE(public),
        "* best mean score. = not significantly worse: the 95% interval of the difference, from "
        "runs with the same random numbers, contains 0.",
        "behind: difference of the mean score from the best one, which is slightly optimistic, as "
        "it was selected.",
        *Rank.DETAIL("se: over runs on these rows; other rows differ by more."),
    ]
    if len(split.shares) > 1 and split.table["near"].all():
        notes += Rank.IDENTIFIED("The runs separate no divisions.")
    if isinstance(request.guarantee, ApproxDP):
        notes += Rank.DETAIL("Every stage has the whole delta.", _composition(split))
    return tuple(notes)


def _composition(split: SplitResult) -> str:
    total = capacity(split.request.guarantee).amount
    if sum(capacity(budget).amount for budget in split.divisions[0]) <= total * (1 + 1e-6):
        return (
            "Their eps add up to the total: open the ledger with pure=, the eps of the stages "
            "without Gaussian noise."
        )
    return (
        "Stages with Gaussian noise share 1/m^2 of their joint multiplier m: their eps add up to "
        "more than the total. Stages with other noise share eps."
    )
