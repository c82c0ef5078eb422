"""``ledger_report``: what a ledger has been charged, as a printed table."""

from __future__ import annotations

from typing import Any, Final

from dpmodels.privacy import Ledger, hidden_by, verified
from dpmodels.privacy.register import convergence_notes
from dpmodels.report import Report, Row, Section, Summary, count, signif

_SHOWN: Final = 12
_STATES: Final = (
    "charged: nothing is known to have come of it, and it stays spent; released: digest begins "
    "the SHA-256 of what came out; void: nothing came of it, and it was given back if no other "
    "came after it."
)
_CHAIN: Final = (
    "Each line's hash is made of the line and the hash before it. A changed line shows; an older "
    "copy of the whole file does not: keep a printed head where the file cannot be written."
)


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
        If it is no ledger.

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
    rows = tuple(Row(f"{line['charge']} {line['label']}".strip(), _cells(line)) for line in lines)
    unfinished = int((register["state"] == "charged").sum())
    facts = (
        ("Guarantee", ledger.guarantee.describe()),
        ("Neighbours", hidden_by(ledger.guarantee, ledger.adjacency)),
        ("Spent", ledger.describe().split(";")[0]),
        ("Charges", f"{count(len(lines))}, {count(unfinished)} unfinished"),
        ("Head", ledger.head[:_SHOWN]),
    )
    title = f"Privacy ledger {ledger.place}".strip()
    sections = (Section("Charge", heads, rows),) if rows else ()
    void = [line for line in lines if line["reason"]]
    reasons = tuple(f"Charge {line['charge']} is void: {line['reason']}." for line in void)
    notes = (_STATES, _CHAIN) if ledger.place else (_STATES,)
    notes = (*convergence_notes(line["mechanism"] for line in lines), *notes)
    return Summary(Report(title, facts, sections, (*reasons, *notes)))


def _cells(line: dict[Any, Any]) -> tuple[str, ...]:
    return (
        signif(line["total"], 3),
        line["state"],
        line["mechanism"] or "-",
        line["digest"][:_SHOWN] or "-",
        line["time"][:16].replace("T", " "),
        line["hash"][:_SHOWN],
    )
