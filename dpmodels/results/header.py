"""What every printed report says of the release it is made from."""

from __future__ import annotations

from typing import Any

from dpmodels.privacy import ZCDP, ApproxDP
from dpmodels.released import (
    AnyRelease,
    Release,
    release_facts,
    shared_facts,
    shared_notes,
    unused_delta,
)
from dpmodels.report import count, signif
from dpmodels.results.call import MomentsCall

STAMP = "SIMULATION - NOT PRIVATE"


def header(
    call: MomentsCall, release: Release, nobs: float, complete: str
) -> tuple[tuple[str, str], ...]:
    """Return the facts of the header.

    Parameters
    ----------
    call, release : MomentsCall, Release
        What was asked and what was released.
    nobs : float
        Number of rows, public or released.
    complete : str
        What is known of the number of complete rows.
    """
    said = release_facts(release)
    how = {"range": "range", "sd": "sd (correlation)", None: "none"}[call.scale]
    return (
        ("Formula", call.formula),
        ("Guarantee", said["Guarantee"]),
        ("Mechanism", said["Mechanism"]),
        ("Neighbours", said["Neighbours"]),
        ("Observations", "private" if release.rows is None else f"{count(nobs)} (public)"),
        ("Ledger", call.ledger or "none"),
        (
            "Variables",
            f"{len(call.names)}, {'centred' if call.center else 'not centred'}, scale = {how}",
        ),
        ("Row norm", f"{signif(call.row_norm, 3)} ({_norm(call)})"),
        ("Complete", complete),
        *shared_facts(release),
    )


def _norm(call: MomentsCall) -> str:
    if call.unit_rows:
        return "each row by its own"
    if call.row_norm < call.worst_case:
        return f"longer rows are shrunk; codebook: {signif(call.worst_case, 3)}"
    return "from the codebook"


def complete_rows(ncomplete: float, sd: float) -> str:
    """Say how many rows are complete, as far as it is known."""
    return f"{count(ncomplete)} rows (noise sd {signif(sd, 2)})"


def closing_notes(call: MomentsCall, release: Release, nobs: float) -> tuple[str, ...]:
    """Return the notes that every report ends with."""
    guarantee, card = release.guarantee, release.card
    notes = list(unused_delta(release))
    if not notes and isinstance(guarantee, ApproxDP) and guarantee.delta * max(nobs, 1) > 0.1:
        notes.append("delta is not small against 1/n: it allows for the disclosure of single rows.")
    if call.part_of:
        notes.append(
            f"Part of one release of {call.part_of}, at no further cost; made from the rows that "
            "are complete in all of them."
        )
    notes.extend(shared_notes(release))
    if call.reason:
        notes.append(f"Mechanism chosen automatically: {call.reason}")
    notes.append(f"Source: {card.name}, {card.source}; see dpmodels.mechanisms.")
    return tuple(notes)


def release_row(release: AnyRelease) -> dict[str, Any]:
    """Return what a one-row table says of a release."""
    guarantee = release.guarantee
    return {
        "eps": float("nan") if isinstance(guarantee, ZCDP) else guarantee.eps,
        "delta": guarantee.delta if isinstance(guarantee, ApproxDP) else 0.0,
        "rho": guarantee.rho if isinstance(guarantee, ZCDP) else float("nan"),
        "adjacency": release.adjacency.name,
        "mechanism": release.card.name,
        "simulated": release.simulated,
    }
