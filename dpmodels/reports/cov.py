"""The printed reports of a covariance matrix and of a joint release of moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.report import (
    Fact,
    Report,
    Row,
    Section,
    hundredth,
    interval,
    signif,
    signif_uncertain,
    uncertain,
)
from dpmodels.reports.header import (
    SEE,
    SHOWN_VARIABLES,
    about,
    closing,
    complete_rows,
    counted_as,
    moments_header,
    more,
)
from dpmodels.results.base import report_of
from dpmodels.results.cca import CCAResult
from dpmodels.results.cov import CovResult
from dpmodels.results.moments import MomentsResult
from dpmodels.typing import Floats

if TYPE_CHECKING:
    import xarray as xr


# Columns of a matrix that a line has room for: a choice.
SHOWN_COLUMNS = 10


@report_of.register
def cov_report(fit: CovResult) -> Report:
    """Lay out a matrix as tables of strings."""
    what = "covariance" if fit.call.center else "second moment"
    titles = ("Covariances", "Correlations")
    if not fit.call.center:
        titles = ("Second moments", "Correlations about 0")
    return Report(
        title=f"Private {what} matrix",
        facts=_facts(fit),
        sections=(
            _variables(fit),
            _triangle(fit, titles[0], fit.cov.to_numpy(), fit.noise_sd.to_numpy()),
            _triangle(fit, titles[1], _told(fit), _cor_noise(fit)),
        ),
        notes=(*_notes(fit), *closing(fit.call, fit.release, SEE, fit.nobs)),
        stamp=fit.stamp,
    )


def _facts(fit: CovResult) -> tuple[Fact, ...]:
    """Return the header of a report on released moments."""
    complete = complete_rows(
        fit.ncomplete, fit.release.noise.count, what=counted_as(fit.release.adjacency)
    )
    own = moments_header(fit.call, fit.release, complete)
    return (*own, ("Denoised", _denoised(fit)))


def _denoised(fit: CovResult) -> str:
    if fit.call.denoise is None:
        return "no"
    by_rule = fit.lawful and fit.release.estimate is None
    return f'by the rule "{fit.call.denoise}"' if by_rule else "by the mechanism"


def _variables(fit: CovResult) -> Section:
    """Tell the mean and the standard deviation of each column, with their noise."""
    shown = slice(0, SHOWN_VARIABLES)
    names = _labels(fit)[shown]
    spread, spread_noise = fit.sd.to_numpy()[shown], fit.sd_noise_sd.to_numpy()[shown]
    # Noise of the unbiased release is not that of an estimate made from it.
    own_noise = spread_noise if fit.release.estimate is None else np.full(len(spread), np.nan)
    cells = [_printed(spread, spread_noise), _sds(own_noise)]
    heads = ["Std. dev." if fit.call.center else "Root mean square", "noise sd"]
    if fit.center is not None and fit.center_noise_sd is not None:
        mean, noise = fit.center.to_numpy()[shown], fit.center_noise_sd.to_numpy()[shown]
        cells = [_printed(mean, noise, spread), _sds(noise), *cells]
        heads = ["Mean", "noise sd", *heads]
    known = [about(fit.call, name) for name in fit.call.names[shown]]
    rows = zip(names, zip(*cells, strict=True), known, strict=True)
    section = tuple(Row(name, own, about=words) for name, own, words in rows)
    return Section("Variables", tuple(heads), section)


def _labels(fit: CovResult) -> list[str]:
    """Return names with the numbers that heads of matrices are, weak columns marked."""
    return [
        f"{number}. {name}{' *' if poor else ''}"
        for number, (name, poor) in enumerate(zip(fit.call.names, fit.weak, strict=True), 1)
    ]


def _triangle(fit: CovResult, title: str, matrix: Floats, noise: Floats) -> Section:
    """Print the lower triangle of a matrix, columns under their numbers."""
    size = min(len(matrix), SHOWN_COLUMNS)
    rows = [
        Row(name, (*_printed(matrix[i, : i + 1], noise[i, : i + 1]), *[""] * (size - i - 1)))
        for i, name in enumerate(_labels(fit)[:size])
    ]
    return Section(title, tuple(map(str, range(1, size + 1))), tuple(rows))


def _told(fit: CovResult) -> Floats:
    """Return correlations, nan beside the diagonal where a column's own variance is not known."""
    cor = fit.cor.to_numpy().copy()
    weak = fit.weak.to_numpy()
    cor[(weak[:, None] | weak) & ~np.eye(len(cor), dtype=bool)] = np.nan
    return cor


def _cor_noise(fit: CovResult) -> Floats:
    """Return what leaves a correlation at most three decimals, and a diagonal of 1 exact."""
    noise: Floats = np.fmax(fit.cor_noise_sd.to_numpy(), 0.01)
    np.fill_diagonal(noise, 0.0)
    return noise


def _printed(values: Floats, noise: Floats, sizes: Floats | None = None) -> tuple[str, ...]:
    """Print numbers to the digits their noise leaves, at most four of their size."""
    sizes = np.abs(values) if sizes is None else np.fmax(np.abs(values), sizes)
    return uncertain(values, np.fmax(noise, [hundredth(size) for size in sizes.tolist()]))


def _sds(noise: Floats) -> tuple[str, ...]:
    return tuple(signif(sd, 2) for sd in noise.tolist())


def _weak_note(fit: CovResult) -> tuple[str, ...]:
    """Say which columns' correlations are understated."""
    weak = int(fit.weak.sum())
    if not weak:
        return ()
    which = fit.weak_variables if weak <= SHOWN_COLUMNS else f"{weak} columns"
    return (
        f"* Variance below four times its noise: {which}. Correlations with them are not told; "
        "cor has them understated, divided by the root of that bound.",
    )


def _notes(fit: CovResult) -> list[str]:
    there = len(fit.call.names)
    left = more(SHOWN_COLUMNS, there, "columns of the matrices", "cov, cor and tidy()")
    notes = [*_weak_note(fit), *left, _noise_note(fit)]
    if fit.call.unit_rows:
        notes.append("Each row was divided by its own norm: columns have no units of their own.")
    return notes


def _noise_note(fit: CovResult) -> str:
    """Say what noise the printed numbers have."""
    if not fit.lawful:
        return (
            "The error of this mechanism has no known law: there is no noise sd and no interval, "
            "and nothing tells how many of the digits hold."
        )
    if fit.release.estimate is not None:
        return (
            "The matrix is the mechanism's estimate; noise sds and intervals are those of the "
            "unbiased release it was made from (cov_released), as a rule the noisier of the two."
        )
    taken = "" if fit.call.denoise is None else "The matrix has its noise taken off (cov); "
    population = ""
    if fit.call.center:
        population = (
            " For the population: conf_int(), of 95 % or more whatever the rows are within their "
            "bounds."
        )
    return (
        f"Digits end where noise begins. {taken}noise sds and noise_int() are those of the matrix "
        f"as released (cov_released), privacy noise only.{population}"
    )


@report_of.register
def moments_report(fit: MomentsResult) -> Report:
    """Lay out a release as tables of strings."""
    return Report(
        title="Private moments",
        facts=_facts(fit.whole),
        sections=(_variables(fit.whole),),
        notes=(
            *_weak_note(fit.whole),
            *more(SHOWN_VARIABLES, len(fit.call.names), "columns", "tidy()"),
            "Free of charge from here on, for any formula with these columns: .pca(formula), "
            ".cov(formula), .cor(formula), .mean(formula), .lm(formula), .cca(formula), "
            ".cor_test(x, y), .pcor(formula), .aov(formula).",
            "Digits end where noise begins. Noise sds are privacy noise only; for the population: "
            ".cov(formula).conf_int().",
            *closing(fit.call, fit.release, SEE, fit.nobs),
        ),
        stamp=fit.stamp,
    )


# The printed report of a canonical correlation analysis.

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
        notes=(*_cca_notes(fit), *closing(fit.call, fit.release, SEE, fit.nobs)),
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


def _cca_notes(fit: CCAResult) -> list[str]:
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
