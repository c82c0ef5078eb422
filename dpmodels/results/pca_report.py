"""The printed report of a principal components result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.labels import component_names
from dpmodels.privacy import ApproxDP
from dpmodels.report import Report, Row, Section, aligned, count, interval, signif

if TYPE_CHECKING:
    from dpmodels.results.pca import PCAResult

SHOWN_COMPONENTS = 10
SHOWN_VARIABLES = 30
SMALL_LOADING = 0.1
STAMP = "SIMULATION - NOT PRIVATE"


def pca_report(fit: PCAResult) -> Report:
    """Lay out a fit as tables of strings."""
    shown = min(fit.ncomp, SHOWN_COMPONENTS)
    distinct = fit.spectrum.distinct[:shown]
    columns = tuple(
        name if known else f"{name} *"
        for name, known in zip(component_names(shown), distinct, strict=True)
    )
    return Report(
        title="Private principal components analysis",
        facts=_facts(fit),
        sections=(_importance(fit, columns), _loadings(fit, columns)),
        notes=_notes(fit, shown),
        stamp=STAMP if fit.simulated else None,
    )


def _facts(fit: PCAResult) -> tuple[tuple[str, str], ...]:
    call, said = fit.call, fit.release.facts()
    size = len(call.names)
    how = {"range": "range", "sd": "sd (correlation)", None: "none"}[call.scale]
    norm = "from the codebook" if call.row_norm == call.worst_case else "clipped, row_norm="
    rows = f"{count(fit.nobs)} ({fit.nobs_origin})"
    return (
        ("Formula", call.formula),
        ("Guarantee", said["Guarantee"]),
        ("Mechanism", said["Mechanism"]),
        ("Neighbours", said["Neighbours"]),
        ("Observations", rows),
        ("Ledger", call.ledger or "none"),
        ("Variables", f"{size}, {'centred' if call.center else 'not centred'}, scale = {how}"),
        ("Row norm", f"{signif(call.row_norm, 3)} ({norm})"),
        ("Complete rows", f"{count(fit.ncomplete)} (noise sd {signif(fit.release.noise.count, 2)})"),
        ("Total variance", signif(fit.total_variance, 4)),
    )


def _importance(fit: PCAResult, columns: tuple[str, ...]) -> Section:
    shown = len(columns)
    panel = fit.noise().iloc[:shown]
    share = fit.explained_variance_ratio.to_numpy()[:shown]
    bounds = np.sqrt(panel[["lower", "upper"]].to_numpy())
    rows = (
        Row("Standard deviation", aligned(fit.sdev.to_numpy()[:shown], 4)),
        Row("Proportion of variance", aligned(share, 3)),
        Row("Cumulative proportion", aligned(np.cumsum(share), 3)),
        Row("95% noise interval (sd)", tuple(interval(low, high) for low, high in bounds)),
        Row("Debiased sd", aligned(np.sqrt(panel["debiased"].to_numpy()), 4)),
        Row("Expected cos2 with the non-private component", _cosines(panel["cos2"].to_numpy())),
    )
    return Section("Importance of components", columns, rows)


def _cosines(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[str, ...]:
    """Print cosines with as many nines as they have, at most six."""
    return tuple(
        "-"
        if math.isnan(value)
        else f"{min(value, 0.999999):.{int(np.clip(1 - math.log10(max(1 - value, 1e-7)), 2, 6))}f}"
        for value in values
    )


def _loadings(fit: PCAResult, columns: tuple[str, ...]) -> Section:
    table = fit.loadings.to_numpy()[:, : len(columns)]
    distinct = fit.spectrum.distinct[: len(columns)]
    order = np.argsort(-np.abs(table[:, distinct]).max(axis=1, initial=0.0), kind="stable")
    kept = np.sort(order[:SHOWN_VARIABLES])
    rows = tuple(
        Row(fit.call.names[i], tuple(_loading(x, ok) for x, ok in zip(table[i], distinct, strict=True)))
        for i in kept
    )
    return Section(f"Loadings (blank: |loading| < {SMALL_LOADING})", columns, rows)


def _loading(value: float, distinct: bool) -> str:
    if not distinct or abs(value) < SMALL_LOADING:
        return ""
    return f"{value:.3f}"


def _notes(fit: PCAResult, shown: int) -> tuple[str, ...]:
    notes = []
    if not fit.spectrum.distinct[:shown].all():
        notes.append(
            f"* below the noise floor (variance {signif(fit.noise_floor, 3)}): not distinguishable "
            "from noise; its loadings are not shown."
        )
    if shown < fit.ncomp:
        notes.append(f"{fit.ncomp - shown} more components: see noise() and loadings.")
    if len(fit.call.names) > SHOWN_VARIABLES:
        more = len(fit.call.names) - SHOWN_VARIABLES
        notes.append(f"{more} more variables with smaller loadings: see loadings.")
    notes.append(
        f"Noise sd of an entry of the analysed matrix: {signif(fit.noise_sd, 3)}. Proportions are "
        "corrected for noise; noise interval: privacy noise only, for the population use conf_int()."
    )
    weak = fit.weak_variables
    if weak:
        notes.append(f"Variance not distinguishable from noise, correlations understated: {weak}.")
    guarantee = fit.release.guarantee
    if isinstance(guarantee, ApproxDP) and guarantee.delta * max(fit.nobs, 1) > 0.1:
        notes.append("delta is not small against 1/n: it allows for the disclosure of single rows.")
    if fit.call.reason:
        notes.append(f"Mechanism chosen automatically: {fit.call.reason}")
    card = fit.release.card
    notes.append(f"Source: {card.name}, {card.source}; see dpmodels.mechanisms.")
    return tuple(notes)
