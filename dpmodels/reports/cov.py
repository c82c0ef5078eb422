"""The printed reports of a covariance matrix and of a joint release of moments."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.report import (
    Report,
    Row,
    Section,
    hundredth,
    interval,
    signif,
    signif_uncertain,
    uncertain,
)
from dpmodels.report.notes import Rank
from dpmodels.reports import header
from dpmodels.results.base import report_of
from dpmodels.results.cca import CCAResult
from dpmodels.results.cov import CovResult
from dpmodels.results.moments import MomentsResult
from dpmodels.typing import DataArray, Floats

# Most columns of a printed matrix: a choice.
SHOWN_COLUMNS = 10


@report_of.register
def cov_report(fit: CovResult) -> Report:
    """Lay out a matrix as tables of strings."""
    what = "covariance" if fit.call.center else "second moment"
    titles = ("Covariances", "Correlations")
    if not fit.call.center:
        titles = ("Second moments", "Correlations about 0")
    correlations, weak = fit.cor.to_numpy().copy(), fit.weak.to_numpy()
    is_weak = (weak[:, None] | weak) & ~np.eye(len(weak), dtype=bool)
    correlations[is_weak] = np.nan
    # Three decimals at most, and an exact diagonal.
    noise: Floats = np.fmax(fit.cor_noise_sd.to_numpy(), 0.01)
    np.fill_diagonal(noise, 0.0)
    sections = (
        _variables(fit),
        _triangle(fit, titles[0], fit.cov.to_numpy(), fit.noise_sd.to_numpy()),
        _triangle(fit, titles[1], correlations, noise),
    )
    few = header.few_complete(fit.release, fit.ncomplete, fit.release.noise.count)
    return _report(fit, f"Private {what} matrix", sections, (*few, *_notes(fit)))


def _report(
    fit: CovResult | MomentsResult,
    title: str,
    sections: tuple[Section, ...],
    notes: tuple[str, ...],
) -> Report:
    complete = header.complete_rows(fit.release, fit.ncomplete, fit.release.noise.count)
    denoised = "no"
    if fit.call.denoise is not None:
        by_rule = math.isfinite(fit.release.noise.off) and fit.release.estimate is None
        denoised = f'by the rule "{fit.call.denoise}"' if by_rule else "by the mechanism"
    return header.released_report(
        fit,
        title,
        first=header.moments_facts(fit.call, fit.release, complete),
        facts=(("Denoised", denoised),),
        sections=sections,
        notes=notes,
    )


def _variables(fit: CovResult) -> Section:
    first = slice(0, header.SHOWN_VARIABLES)
    names = _labels(fit)[first]
    spread, spread_noise = fit.sd.to_numpy()[first], fit.sd_noise_sd.to_numpy()[first]
    # The noise of the unbiased release is not that of an estimate from it.
    released_noise = spread_noise if fit.release.estimate is None else np.full(len(spread), np.nan)
    cells = [_printed(spread, spread_noise), _sds(released_noise)]
    heads = ["Std. dev." if fit.call.center else "Root mean square", "noise sd"]
    if fit.center is not None and fit.center_noise_sd is not None:
        mean, noise = fit.center.to_numpy()[first], fit.center_noise_sd.to_numpy()[first]
        cells = [_printed(mean, noise, spread), _sds(noise), *cells]
        heads = ["Mean", "noise sd", *heads]
    descriptions = [header.about(fit.call, name) for name in fit.call.names[first]]
    rows = zip(names, zip(*cells, strict=True), descriptions, strict=True)
    section = tuple(Row(name, line, about=description) for name, line, description in rows)
    return Section("Variables", tuple(heads), section)


def _labels(fit: CovResult) -> list[str]:
    """Return names with the numbers that head matrices, weak columns marked."""
    marked = zip(fit.call.names, fit.weak.to_numpy(), strict=True)
    return [f"{number}. {name}{' *' * bool(poor)}" for number, (name, poor) in enumerate(marked, 1)]


def _triangle(fit: CovResult, title: str, matrix: Floats, noise: Floats) -> Section:
    """Print the lower triangle of a matrix, columns under their numbers."""
    size = min(len(matrix), SHOWN_COLUMNS)
    rows = [
        Row(name, (*_printed(matrix[i, : i + 1], noise[i, : i + 1]), *[""] * (size - i - 1)))
        for i, name in enumerate(_labels(fit)[:size])
    ]
    return Section(title, tuple(map(str, range(1, size + 1))), tuple(rows))


def _printed(values: Floats, noise: Floats, sizes: Floats | None = None) -> tuple[str, ...]:
    """Print numbers to the digits that their noise leaves, at most four."""
    sizes = np.abs(values) if sizes is None else np.fmax(np.abs(values), sizes)
    return uncertain(values, np.fmax(noise, [hundredth(size) for size in sizes.tolist()]))


def _sds(noise: Floats) -> tuple[str, ...]:
    return tuple(signif(sd, 2) for sd in noise.tolist())


def _weak_note(fit: CovResult) -> tuple[str, ...]:
    weak = int(fit.weak.sum())
    if not weak:
        return ()
    listing = fit.weak_variables if weak <= SHOWN_COLUMNS else f"{weak} columns"
    return Rank.IDENTIFIED(
        f"* Variance below four times its noise: {listing}. Correlations with them are not "
        "reported, and understated in cor."
    )


def _notes(fit: CovResult) -> list[str]:
    n_columns = len(fit.call.names)
    hidden = header.omitted(
        SHOWN_COLUMNS, n_columns, "columns of the matrices", "cov, cor and tidy()"
    )
    unit = Rank.TARGET("Each row was divided by its norm, so columns have no units.")
    return [*_weak_note(fit), *hidden, *_noise_notes(fit), *unit * fit.call.unit_rows]


def _noise_notes(fit: CovResult) -> tuple[str, ...]:
    if not fit.lawful:
        return Rank.IDENTIFIED(
            "The error distribution of this mechanism is not known: there are no noise sds and no "
            "intervals, and the number of correct digits is unknown."
        )
    if fit.release.estimate is not None:
        return (
            "The matrix is the mechanism's estimate; noise sds and intervals are those of the "
            "unbiased release (cov_released), usually the noisier of the two.",
        )
    denoised = "" if fit.call.denoise is None else " The matrix is denoised (cov)."
    population = covers = ""
    if fit.call.center:
        population = " For the population use conf_int()."
        covers = " conf_int() covers at least 95 % for any data within the bounds."
    of_noise = "noise sds and noise_int() are those of cov_released, privacy noise only."
    if fit.release.ball is not None:
        of_noise = "noise sds are those of cov_released; noise_int() allows for shortening too."
    return (
        f"{of_noise}{population}",
        *Rank.DETAIL(f"Digits are limited by the noise.{denoised}{covers}"),
    )


@report_of.register
def moments_report(fit: MomentsResult) -> Report:
    """Lay out a release as tables of strings."""
    notes = (
        *_weak_note(fit.whole),
        *header.omitted(header.SHOWN_VARIABLES, len(fit.call.names), "columns", "tidy()"),
        "Without further budget, for formulas of these columns: .pca(), .cov(), .cor(), "
        ".mean(), .lm(), .cca(), .pcor(), .aov() and .cor_test(x, y).",
        "Digits are limited by the noise. Noise sds are privacy noise only; for the population "
        "use .cov(formula).conf_int().",
    )
    return _report(fit, "Private moments", (_variables(fit.whole),), notes)


# The printed report of a canonical correlation analysis.

# Most pairs of variates in a table: a choice.
SHOWN = 6


@report_of.register
def cca_report(fit: CCAResult) -> Report:
    """Lay out correlations and loadings as tables of strings."""
    complete = header.complete_rows(fit.release, fit.ncomplete, fit.release.noise.count)
    selected = np.flatnonzero(fit.readable.to_numpy())[:SHOWN]
    loadings = (
        _loadings(fit, "Loadings of x", fit.xloadings, selected),
        _loadings(fit, "Loadings of y", fit.yloadings, selected),
    )
    sides = f"x of {len(fit.xcenter)}, y of {len(fit.ycenter)}"
    return header.released_report(
        fit,
        "Private canonical correlations",
        first=header.moments_facts(fit.call, fit.release, complete),
        facts=(("Sides", sides),),
        sections=(_correlations(fit), *(loadings if len(selected) else ())),
        notes=tuple(_cca_notes(fit)),
    )


def _correlations(fit: CCAResult) -> Section:
    rows = []
    for line in fit.tidy().to_dict("records"):
        cells = (header.UNKNOWN, "", interval(line["noise_low"], line["noise_high"]))
        if line["noise_low"] > 0:
            sd = line["noise_sd"]
            cells = (signif_uncertain(line["estimate"], sd), signif(sd, 2), cells[2])
        rows.append(Row(line["component"], cells))
    heads = ("Correlation", "noise sd", "95% noise interval")
    return Section("Pairs of variates", heads, tuple(rows))


def _loadings(fit: CCAResult, title: str, table: DataArray, selected: np.ndarray) -> Section:
    names = [str(name) for name in table["variable"].to_numpy()[: header.SHOWN_VARIABLES]]
    rows = []
    for name, line in zip(names, table.to_numpy(), strict=False):
        cells = tuple(f"{value + 0.0:.2f}" for value in line[selected])
        rows.append(Row(name, cells, about=header.about(fit.call, name)))
    return Section(title, tuple(fit.names[at] for at in selected), tuple(rows))


def _cca_notes(fit: CCAResult) -> list[str]:
    readable, ridged = fit.readable.to_numpy(), max(fit.ridge) > 0
    notes: list[str] = []
    if np.isnan(fit.cor.to_numpy()).any():
        note = "One side has no direction above the noise: this budget is too small."
        return [*Rank.IDENTIFIED(note)]
    if np.isfinite(fit.noise_floor):
        notes.append(
            f"Noise alone makes canonical correlations of up to about {fit.noise_floor:.2g} (noise "
            "floor). Intervals are for the correlations of these rows, privacy noise only."
        )
    if ridged:
        first, second = (signif(ridge, 2) for ridge in fit.ridge)
        notes += Rank.IDENTIFIED(
            "The noisy matrix of a side is singular: cor and xcoef are understated by an unknown "
            "amount, due to a ridge. Use fewer columns."
        )
        notes += Rank.DETAIL(
            f"Ridges of {first} and {second} were added to the variances of x and of y, scaled by "
            "the half-ranges."
        )
    if not readable.all():
        notes += Rank.IDENTIFIED(
            f"{header.UNKNOWN}: not distinguishable from 0. Such variates, and those not "
            "distinguishable from others, have no loadings here."
        )
        notes += Rank.DETAIL("All loadings are in xloadings and yloadings.")
    if readable.any():
        notes.append(
            "Loadings are correlations with the variates of their side; the largest of x is "
            "positive. Coefficients of variates with variance 1: xcoef, ycoef."
        )
    n_columns = max(map(len, (fit.xcenter, fit.ycenter)))
    return [
        *notes,
        *header.omitted(header.SHOWN_VARIABLES, n_columns, "columns", "xloadings and yloadings"),
    ]
