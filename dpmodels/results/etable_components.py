"""Components and correlations as columns beside others: a row a variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.inference import Spectrum
from dpmodels.labels import component_names
from dpmodels.results.analysis import root_sd
from dpmodels.results.cca import CCAResult
from dpmodels.results.cov import CovResult
from dpmodels.results.etable_columns import LOST, Column, cells_of, whole_of
from dpmodels.results.etable_columns import columns_of as columns_of
from dpmodels.results.pca import PCAResult
from dpmodels.results.reading_line import convergence_words
from dpmodels.results.subspace import SubspaceResult
from dpmodels.typing import Floats

# Columns of one result: a choice, what a page holds.
SHOWN = 10
LOADINGS = "Loadings"


@columns_of.register
def _principal(fit: PCAResult, level: float) -> tuple[Column, ...]:
    own = min(fit.ncomp, SHOWN)
    names, readable = component_names(own), fit.spectrum.readable[:own]
    noise, table = fit.loadings_noise_sd.to_numpy(), fit.loadings.to_numpy()
    sds = root_sd(fit.sdev.to_numpy()[:own], fit.noise()["noise_sd"].to_numpy()[:own])
    shares = fit.explained_variance_ratio.to_numpy()
    share_sds = fit.explained_variance_ratio_noise_sd.to_numpy()
    whole = whole_of(fit, nobs=_count_sd(fit))
    # What has no law of its noise is printed to two digits.
    spread = noise if isinstance(fit.spectrum, Spectrum) else np.full(own, 0.05)
    shown = [j for j in range(own) if readable[j]] or [0]
    hidden = [name for j, name in enumerate(names) if j not in shown]
    more = [f"and {fit.ncomp - own} more"] * (fit.ncomp > own)
    note = f"not shown: {', '.join(hidden + more)}" if hidden or more else ""
    if hidden:
        note += ", as noise leaves too little of some to be read" if more else ", lost in noise"
    return tuple(
        Column(
            fit,
            "PCA",
            "",
            LOADINGS,
            _loadings(fit, table[:, j], noise[j], spread[j], told=bool(readable[j])),
            {
                **whole,
                "std_dev": (fit.sdev.to_numpy()[j], sds[j]),
                "percent": (float(np.clip(shares[j], 0, 1)), share_sds[j]),
            },
            component=names[j],
            note=note,
        )
        for j in shown
    )


def _loadings(fit: Any, values: Floats, noise: float, spread: float, *, told: bool) -> Any:
    names = fit.call.names
    numbers = {
        "estimate": values,
        "noise_sd": np.full(len(names), noise),
        "spread": np.full(len(names), spread),
    }
    return cells_of(names, numbers, told, LOST)


def _count_sd(fit: PCAResult | CovResult | CCAResult) -> float:
    return fit.release.noise.count if fit.release.rows is None else 0.0


@columns_of.register
def _directions(fit: SubspaceResult, level: float) -> tuple[Column, ...]:
    names, table = component_names(min(fit.ncomp, SHOWN)), fit.loadings.to_numpy()
    notes = (
        [] if fit.release.ordered else ["only the space that the directions span means anything"]
    )
    if fit.ncomp > len(names):
        notes.append(f"{fit.ncomp - len(names)} more directions are not shown")
    if caveat := convergence_words(fit.release):
        notes.append(f"the guarantee holds {caveat}")
    if fit.lost:
        notes.append("theory expects this budget to lose the directions")
    return tuple(
        Column(
            fit,
            "subspace",
            "",
            LOADINGS,
            _loadings(fit, table[:, j], np.nan, np.nan, told=not fit.lost),
            whole_of(fit),
            component=name,
            note="; ".join(notes),
        )
        for j, name in enumerate(names)
    )


@columns_of.register
def _correlations(fit: CovResult, level: float) -> tuple[Column, ...]:
    names = fit.call.names
    if len(names) > SHOWN:
        raise ArgumentError(
            f"correlations of {len(names)} columns have no room beside others: at most {SHOWN}; "
            "write dp.dp_moments(...) and m.cov('~ a + b') of a few"
        )
    values, noise = fit.cor.to_numpy(), fit.cor_noise_sd.to_numpy().copy()
    np.fill_diagonal(noise, np.nan)
    note = f"correlations of {fit.weak_variables} are understated" if fit.weak_variables else ""
    return tuple(
        Column(
            fit,
            "correlation",
            "",
            "Correlations",
            cells_of(names[j:], {"estimate": values[j:, j], "noise_sd": noise[j:, j]}),
            whole_of(fit, nobs=_count_sd(fit)),
            component=name,
            note=note,
        )
        for j, name in enumerate(names)
    )


@columns_of.register
def _canonical(fit: CCAResult, level: float) -> tuple[Column, ...]:
    ends, told = fit.noise_int(level), fit.readable.to_numpy()
    numbers = {
        "estimate": fit.cor.to_numpy(),
        "noise_sd": fit.cor_noise_sd.to_numpy(),
        "noise_low": ends["lower"].to_numpy(),
        "noise_high": ends["upper"].to_numpy(),
    }
    cells = cells_of(fit.names, numbers, told, LOST)
    whole = whole_of(fit, nobs=_count_sd(fit))
    return (Column(fit, "CCA", "", "Canonical correlations", cells, whole),)
