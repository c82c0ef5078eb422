"""What every printed report of coefficients says of its release."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.privacy import ApproxDP
from dpmodels.released import CoefficientsRelease, release_facts, unused_delta
from dpmodels.report import Row, Section, count, signif, signif_uncertain
from dpmodels.results.coefficients_call import CoefficientsCall

Fact = tuple[str, str]

# Coefficients in a printed table.
SHOWN = 60


def coefficients_facts(
    call: CoefficientsCall, release: CoefficientsRelease, model: str
) -> tuple[Fact, ...]:
    """Return the facts of the header."""
    said = release_facts(release)
    rows = "private" if release.rows is None else f"{count(release.rows)} (public)"
    norm = "from the codebook"
    if call.row_norm < call.worst_case:
        norm = f"longer rows are shrunk; codebook: {signif(call.worst_case, 3)}"
    return (
        ("Formula", call.formula),
        ("Guarantee", said["Guarantee"]),
        ("Mechanism", said["Mechanism"]),
        ("Neighbours", said["Neighbours"]),
        ("Observations", rows),
        ("Ledger", call.ledger or "none"),
        ("Model", model),
        ("Row norm", f"{signif(call.row_norm, 3)} ({norm})"),
        ("Response", _response(call)),
        ("Ridge", f"{signif(release.ridge, 3)} rows"),
    )


def plain_section(call: CoefficientsCall, release: CoefficientsRelease) -> Section:
    """Lay out coefficients as released; their noise stands beside where it is theirs alone."""
    values = (call.matrix @ release.coefficients)[:SHOWN].tolist()
    if release.gradient is not None or math.isnan(release.coefficient_sd):
        rows = [Row(name, (signif(v, 2),)) for name, v in zip(call.names, values, strict=False)]
        return Section("Coefficients", ("coef",), tuple(rows))
    noise = (np.linalg.norm(call.matrix, axis=1) * release.coefficient_sd).tolist()
    rows = [
        Row(name, (signif_uncertain(v, sd), signif(sd, 2)))
        for name, v, sd in zip(call.names, values, noise, strict=False)
    ]
    return Section("Coefficients", ("coef", "noise"), tuple(rows))


def pull_note(release: CoefficientsRelease) -> str:
    """Say what the coefficients without standard errors are."""
    pulled = "Coefficients are as released, pulled towards 0 by a ridge"
    if release.gradient is None and not math.isnan(release.coefficient_sd):
        return f"{pulled}; noise: sd of the noise about those that the ridge gives these rows."
    return f"{pulled}, and noisy by an amount that was not released."


def _response(call: CoefficientsCall) -> str:
    if call.levels:
        return f"{call.levels[1]} against {call.levels[0]}"
    return call.response


def coefficients_notes(call: CoefficientsCall, release: CoefficientsRelease) -> tuple[str, ...]:
    """Return the notes that every report of coefficients ends with."""
    guarantee, rows = release.guarantee, release.rows
    notes = list(unused_delta(release))
    if not notes and isinstance(guarantee, ApproxDP) and guarantee.delta * max(rows or 1, 1) > 0.1:
        notes.append("delta is not small against 1/n: it allows for the disclosure of single rows.")
    if call.reason:
        notes.append(f"Mechanism chosen automatically: {call.reason}")
    notes.append(
        f"Source: {release.card.name}, {release.card.source}; see dpmodels.mechanisms.regression."
    )
    return tuple(notes)
