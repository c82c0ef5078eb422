"""The printed report of a principal components result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmodels.labels import component_names
from dpmodels.privacy import ApproxDP
from dpmodels.report import Report, Row, Section, count, interval, signif, signif_uncertain

if TYPE_CHECKING:
    from dpmodels.results.pca import PCAResult

Floats = NDArray[np.float64]

SHOWN_COMPONENTS = 10
SHOWN_VARIABLES = 30
SMALL_LOADING = 0.1
STAMP = "SIMULATION - NOT PRIVATE"
NOTHING = "-"


def pca_report(fit: PCAResult) -> Report:
    """Lay out a fit as tables of strings."""
    shown = min(fit.ncomp, SHOWN_COMPONENTS)
    distinct = fit.spectrum.distinct[:shown]
    columns = tuple(
        name if known else f"{name} *"
        for name, known in zip(component_names(shown), distinct, strict=True)
    )
    loadings = (_loadings(fit, columns),) if distinct.any() else ()
    return Report(
        title="Private principal components analysis",
        facts=_facts(fit),
        sections=(_importance(fit, columns), *loadings),
        notes=_notes(fit, shown),
        stamp=STAMP if fit.simulated else None,
    )


def _facts(fit: PCAResult) -> tuple[tuple[str, str], ...]:
    call, said = fit.call, fit.release.facts()
    how = {"range": "range", "sd": "sd (correlation)", None: "none"}[call.scale]
    norm = "from the codebook"
    if call.row_norm < call.worst_case:
        norm = f"longer rows are shrunk; codebook: {signif(call.worst_case, 3)}"
    known = fit.release.rows is not None
    complete = f"noise sd {signif(fit.release.noise.count, 2)}"
    return (
        ("Formula", call.formula),
        ("Guarantee", said["Guarantee"]),
        ("Mechanism", said["Mechanism"]),
        ("Neighbours", said["Neighbours"]),
        ("Observations", f"{count(fit.nobs)} (public)" if known else "private"),
        ("Ledger", call.ledger or "none"),
        (
            "Variables",
            f"{len(call.names)}, {'centred' if call.center else 'not centred'}, scale = {how}",
        ),
        ("Row norm", f"{signif(call.row_norm, 3)} ({norm})"),
        ("Complete", f"{count(fit.ncomplete)} rows ({complete})"),
        ("Variance", _total(fit)),
    )


def _total(fit: PCAResult) -> str:
    return signif_uncertain(fit.total_variance, fit.total_variance_sd)


def _importance(fit: PCAResult, columns: tuple[str, ...]) -> Section:
    shown = len(columns)
    panel = fit.noise().iloc[:shown]
    distinct = panel["distinct"].to_numpy()
    released, debiased = fit.sdev.to_numpy()[:shown], np.sqrt(panel["debiased"].to_numpy())
    # To first order; where an sd is near 0 its noise is no larger than sqrt(noise).
    noise = panel["noise_sd"].to_numpy()
    noise = noise / np.maximum(2 * released, np.sqrt(noise))
    noise = np.maximum(noise, _hundredth(released.max()))
    share = fit.explained_variance_ratio.to_numpy()[:shown]
    share_sd = fit.explained_variance_ratio_sd.to_numpy()[:shown]
    summed = np.where(distinct, np.cumsum(share), np.nan)
    summed_sd = np.sqrt(np.cumsum(share_sd**2))
    share = np.where(distinct, np.maximum(share, 0.0), np.nan)
    bounds = np.sqrt(panel[["lower", "upper"]].to_numpy())
    rows = (
        Row("Standard deviation", _uncertain(released, noise)),
        Row("Debiased sd", _uncertain(debiased, noise)),
        Row("95% noise interval (sd)", tuple(interval(low, high) for low, high in bounds)),
        Row("Proportion of variance", _uncertain(share, np.maximum(share_sd, 0.01))),
        Row("Cumulative proportion", _uncertain(summed, np.maximum(summed_sd, 0.01))),
        Row("Expected cos2 with the non-private component", _cosines(panel["cos2"].to_numpy())),
    )
    return Section("Importance of components", columns, rows)


def _hundredth(value: float) -> float:
    """Return the power of ten that leaves a number four digits as its noise."""
    return float(10.0 ** math.floor(math.log10(value)) / 100) if value > 0 else 0.0


def _uncertain(values: Floats, sds: Floats) -> tuple[str, ...]:
    """Print numbers to the digits their noise leaves."""
    return tuple(
        NOTHING if math.isnan(value) else signif_uncertain(value, sd)
        for value, sd in zip(values.tolist(), sds.tolist(), strict=True)
    )


def _cosines(values: Floats) -> tuple[str, ...]:
    """Print cosines with as many nines as they have, at most six."""
    return tuple(
        NOTHING
        if math.isnan(value)
        else f"{min(value, 0.999999):.{int(np.clip(1 - math.log10(max(1 - value, 1e-7)), 2, 6))}f}"
        for value in values.tolist()
    )


def _loadings(fit: PCAResult, columns: tuple[str, ...]) -> Section:
    table = fit.loadings.to_numpy()[:, : len(columns)]
    distinct = fit.spectrum.distinct[: len(columns)]
    noise = _loading_noise(fit)[: len(columns)]
    order = np.argsort(-np.abs(table[:, distinct]).max(axis=1), kind="stable")
    kept = np.sort(order[:SHOWN_VARIABLES])
    rows = [
        Row(fit.call.names[i], tuple(map(_loading, table[i].tolist(), noise.tolist())))
        for i in kept
    ]
    typical = tuple("" if math.isnan(sd) else signif(sd, 1) for sd in noise.tolist())
    rows.append(Row("noise sd of a loading", typical))
    title = f"Loadings (blank: |loading| < {SMALL_LOADING} or twice its noise)"
    return Section(title, columns, tuple(rows))


def _loading_noise(fit: PCAResult) -> Floats:
    """Return the root mean square noise of each component's loadings, nan below the floor."""
    turned = 1 - fit.spectrum.expected_cos2()
    return np.asarray(np.sqrt(turned / max(len(turned) - 1, 1)))


def _loading(value: float, sd: float) -> str:
    if math.isnan(sd) or abs(value) < max(SMALL_LOADING, 2 * sd):
        return ""
    return f"{value:.3f}" if sd < SMALL_LOADING else f"{value:.2f}"


def _notes(fit: PCAResult, shown: int) -> tuple[str, ...]:
    guarantee, card = fit.release.guarantee, fit.release.card
    notes = [*_floor_notes(fit, shown)]
    if shown < fit.ncomp:
        notes.append(f"{fit.ncomp - shown} more components: see noise() and loadings.")
    if len(fit.call.names) > SHOWN_VARIABLES and fit.spectrum.distinct[:shown].any():
        more = len(fit.call.names) - SHOWN_VARIABLES
        notes.append(f"{more} more variables with smaller loadings: see loadings.")
    if fit.weak_variables:
        notes.append(
            f"Variance below four times its noise: {fit.weak_variables}. Divided by the root of "
            "that bound instead of a standard deviation: correlations are understated."
        )
    population = "for the population use conf_int()."
    if fit.call.scale == "sd":
        population = "not for the population."
    notes.append(
        f"Noise sd of an entry of the analysed matrix: {signif(fit.noise_sd, 3)}. Noise intervals "
        f"are for these rows, {population} Proportions and cos2 allow for noise."
    )
    if isinstance(guarantee, ApproxDP) and guarantee.delta * max(fit.nobs, 1) > 0.1:
        notes.append("delta is not small against 1/n: it allows for the disclosure of single rows.")
    if fit.call.reason:
        notes.append(f"Mechanism chosen automatically: {fit.call.reason}")
    notes.append(f"Source: {card.name}, {card.source}; see dpmodels.mechanisms.")
    return tuple(notes)


def _floor_notes(fit: PCAResult, shown: int) -> list[str]:
    """Say which components noise leaves nothing, or little, to be read from."""
    distinct = fit.spectrum.distinct
    notes = []
    if not distinct[:shown].all():
        floor = signif(math.sqrt(fit.noise_floor), 3)
        notes.append(
            f"* below the noise floor (standard deviation {floor}): not distinguishable from "
            "noise; nothing more is said of it."
        )
    if not distinct[:shown].any():
        notes.append(
            "No component is above it: a larger eps, more rows, fewer columns or narrower bounds "
            "are needed."
        )
    names = component_names(len(distinct))
    together = fit.spectrum.alike & distinct[:, None] & distinct[None, :]
    groups = {tuple(np.flatnonzero(row).tolist()): None for row in together[:shown]}
    listed = "; ".join(", ".join(names[i] for i in own) for own in groups if len(own) > 1)
    if listed:
        notes.append(
            f"Too close to be told apart: {listed}. Read the space they span together, not the "
            "loadings of each."
        )
    return notes
