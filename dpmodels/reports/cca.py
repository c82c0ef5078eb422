"""The printed report of a canonical correlation analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.report import Report, Row, Section, interval, signif, signif_uncertain
from dpmodels.reports.counted import counted_as
from dpmodels.reports.header import (
    SEE,
    SHOWN_VARIABLES,
    about,
    closing,
    complete_rows,
    moments_header,
    more,
)
from dpmodels.results.base import report_of
from dpmodels.results.cca import CCAResult

if TYPE_CHECKING:
    import xarray as xr

# Pairs that a line has room for: a choice.
SHOWN = 6
UNKNOWN = "not identified"


@report_of.register
def cca_report(fit: CCAResult) -> Report:
    """Lay out correlations and loadings as tables of strings."""
    complete = complete_rows(
        fit.ncomplete, fit.release.noise.count, what=counted_as(fit.release.adjacency)
    )
    shown = np.flatnonzero(fit.readable.to_numpy())[:SHOWN]
    loadings = (
        _loadings(fit, "Loadings of x", fit.xloadings, shown),
        _loadings(fit, "Loadings of y", fit.yloadings, shown),
    )
    return Report(
        title="Private canonical correlations",
        facts=(*moments_header(fit.call, fit.release, complete), ("Sides", _sides(fit))),
        sections=(_correlations(fit), *(loadings if len(shown) else ())),
        notes=(*_notes(fit), *closing(fit.call, fit.release, SEE, fit.nobs)),
        stamp=fit.stamp,
    )


def _sides(fit: CCAResult) -> str:
    return f"x of {len(fit.xcenter)}, y of {len(fit.ycenter)}"


def _correlations(fit: CCAResult) -> Section:
    rows = []
    for line in fit.tidy().to_dict("records"):
        cells = (UNKNOWN, "", interval(line["noise_low"], line["noise_high"]))
        if line["noise_low"] > 0:
            sd = line["noise_sd"]
            cells = (signif_uncertain(line["estimate"], sd), signif(sd, 2), cells[2])
        rows.append(Row(line["component"], cells))
    heads = ("Correlation", "noise sd", "95% noise interval")
    return Section("Pairs of variates", heads, tuple(rows))


def _loadings(fit: CCAResult, title: str, table: xr.DataArray, shown: np.ndarray) -> Section:
    names = [str(name) for name in table["variable"].to_numpy()[:SHOWN_VARIABLES]]
    rows = [
        Row(name, tuple(f"{value + 0.0:.2f}" for value in line[shown]), about=about(fit.call, name))
        for name, line in zip(names, table.to_numpy(), strict=False)
    ]
    return Section(title, tuple(fit.names[at] for at in shown), tuple(rows))


def _notes(fit: CCAResult) -> list[str]:
    readable, ridged = fit.readable.to_numpy(), max(fit.ridge) > 0
    notes = []
    if np.isnan(fit.cor.to_numpy()).any():
        return ["Noise leaves no direction of a side: nothing is told at this budget."]
    if np.isfinite(fit.noise_floor):
        notes.append(
            f"Noise alone makes canonical correlations of up to about {fit.noise_floor:.2g} (noise "
            "floor). Intervals are for the correlations of these rows, privacy noise only."
        )
    if ridged:
        first, second = (signif(own, 2) for own in fit.ridge)
        notes.append(
            f"Noise leaves a side without an inverse: a ridge of {first} was added to the "
            f"variances of x, of {second} to those of y, scaled by the half-ranges. What it takes "
            "off correlations is not known: cor and xcoef are understated. Name fewer columns."
        )
    if not readable.all():
        notes.append(
            f"{UNKNOWN}: not told from 0. Loadings of variates that are not told from 0, or from "
            "other variates, are not printed; xloadings and yloadings have them."
        )
    if readable.any():
        notes.append(
            "Loadings are correlations of columns with the variates of their own side; the "
            "largest of x is positive. Coefficients of variates of variance 1: xcoef, ycoef."
        )
    most = max(map(len, (fit.xcenter, fit.ycenter)))
    return [*notes, *more(SHOWN_VARIABLES, most, "columns", "xloadings and yloadings")]
