"""The printed reports of principal components and of released directions."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.inference import Spectrum, Unread
from dpmodels.labels import component_names
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
from dpmodels.results.call import MomentsCall
from dpmodels.results.components import SMALL_LOADING, blank_words, loading_noise, root_sd
from dpmodels.results.pca import PCAResult, SubspaceResult
from dpmodels.typing import Floats

NONE = "No component is"


@report_of.register
def pca_report(fit: PCAResult) -> Report:
    """Lay out a fit as tables of strings."""
    n_shown = min(fit.ncomp, header.SHOWN_COMPONENTS)
    distinct = fit.spectrum.distinct[:n_shown]
    marked = zip(component_names(n_shown), distinct, strict=True)
    columns = tuple(name if is_distinct else f"{name} *" for name, is_distinct in marked)
    loadings = (_loadings(fit, columns),) if fit.spectrum.readable[:n_shown].any() else ()
    complete = header.complete_rows(fit.release, fit.ncomplete, fit.release.noise.count)
    total, noise = fit.total_variance, fit.total_variance_noise_sd
    variance = signif(total, 3) if math.isnan(noise) else signif_uncertain(total, noise)
    return header.released_report(
        fit,
        "Private principal components analysis",
        first=header.moments_facts(fit.call, fit.release, complete),
        facts=(("Variance", variance),),
        sections=(_importance(fit, columns), *loadings),
        notes=_notes(fit, n_shown),
    )


def _importance(fit: PCAResult, columns: tuple[str, ...]) -> Section:
    n_shown = len(columns)
    panel = fit.noise().iloc[:n_shown]
    distinct = panel["distinct"].to_numpy()
    released, debiased = fit.sdev.to_numpy()[:n_shown], np.sqrt(panel["debiased"].to_numpy())
    noise = root_sd(released, panel["noise_sd"].to_numpy())
    # The accuracy of an estimate is unknown: three digits are printed.
    smallest = hundredth(released.max()) * (10 if isinstance(fit.spectrum, Unread) else 1)
    noise = np.fmax(noise, smallest)
    share = fit.explained_variance_ratio.to_numpy()[:n_shown]
    share_sd = np.fmax(fit.explained_variance_ratio_noise_sd.to_numpy()[:n_shown], 0.01)
    summed = np.where(distinct, np.minimum(np.cumsum(share), 1.0), np.nan)
    summed_sd = np.sqrt(np.cumsum(share_sd**2))
    share = np.where(distinct, np.clip(share, 0.0, 1.0), np.nan)
    rows = [
        Row("Standard deviation", uncertain(released, noise)),
        Row("Proportion of variance", uncertain(share, share_sd)),
        Row("Cumulative proportion", uncertain(summed, summed_sd)),
    ]
    if isinstance(fit.spectrum, Spectrum):
        bounds = np.sqrt(panel[["lower", "upper"]].to_numpy())
        rows[1:1] = [
            Row("Debiased sd", uncertain(debiased, noise)),
            Row("95% noise interval (sd)", tuple(interval(low, high) for low, high in bounds)),
        ]
        cosines = _cosines(panel["cos2"].to_numpy())
        rows.append(Row("Expected cos2 with the non-private component", cosines))
    return Section("Importance of components", columns, tuple(rows))


def _cosines(values: Floats) -> tuple[str, ...]:
    """Print cosines with all leading nines, at most six."""
    return tuple(
        "-"
        if math.isnan(value)
        else f"{min(value, 0.999999):.{int(np.clip(1 - math.log10(max(1 - value, 1e-7)), 2, 6))}f}"
        for value in values.tolist()
    )


def _loadings(fit: PCAResult, columns: tuple[str, ...]) -> Section:
    table = fit.loadings.to_numpy()[:, : len(columns)]
    noise = loading_noise(fit.spectrum)[: len(columns)]
    rows = _loading_rows(fit.call, table, noise)
    if isinstance(fit.spectrum, Spectrum):
        typical = tuple("" if math.isnan(sd) else signif(sd, 1) for sd in noise.tolist())
        rows += (Row("noise sd of a loading", typical),)
    title = f"Loadings ({blank_words(noise=isinstance(fit.spectrum, Spectrum))})"
    return Section(title, columns, rows)


def _loading_rows(call: MomentsCall, table: Floats, noise: Floats) -> tuple[Row, ...]:
    """Print the variables with the largest loadings, in their order; blank if noise is nan."""
    order = np.argsort(-np.abs(table[:, ~np.isnan(noise)]).max(axis=1), kind="stable")
    return tuple(
        Row(
            call.names[i],
            tuple(map(_loading, table[i].tolist(), noise.tolist())),
            about=header.about(call, call.names[i]),
        )
        for i in np.sort(order[: header.SHOWN_VARIABLES])
    )


def _hidden_variables(total: int) -> tuple[str, ...]:
    what = "variables with smaller loadings"
    return header.omitted(header.SHOWN_VARIABLES, total, what, "loadings")


def _loading(value: float, sd: float) -> str:
    """Print a loading to the decimal of its noise, at most three decimals."""
    if math.isnan(sd) or abs(value) < max(SMALL_LOADING, 2 * sd):
        return ""
    return f"{value:.{int(np.clip(-math.floor(math.log10(max(sd, 1e-9))), 1, 3))}f}"


def _signs(fit: PCAResult, n_shown: int) -> tuple[str, ...]:
    """Name components whose largest loadings have opposite signs and similar size."""
    if isinstance(fit.spectrum, Unread):
        return ()
    noise, table = loading_noise(fit.spectrum)[:n_shown], fit.loadings.to_numpy()[:, :n_shown]
    difference = table.max(axis=0) + table.min(axis=0)
    names = np.array(component_names(n_shown))[(table.min(axis=0) < 0) & (difference < 3 * noise)]
    return (
        f"Sign not determined, given the noise: {', '.join(names)}. A loading of opposite sign is "
        "about as large.",
    ) * bool(names.size)


def _notes(fit: PCAResult, n_shown: int) -> tuple[str, ...]:
    notes = [*_floor_notes(fit, n_shown)]
    notes += header.omitted(n_shown, fit.ncomp, "components", "noise() and loadings")
    unread = np.flatnonzero((fit.spectrum.distinct & ~fit.spectrum.readable)[:n_shown])
    if unread.size:
        listed = ", ".join(component_names(n_shown)[i] for i in unread)
        notes += Rank.IDENTIFIED(f"Loadings not printed, as they are lost in noise: {listed}.")
    notes += _signs(fit, n_shown)
    if fit.spectrum.readable[:n_shown].any():
        notes += _hidden_variables(len(fit.call.names))
    if fit.weak_variables:
        notes += Rank.IDENTIFIED(
            f"Variance below four times its noise: {fit.weak_variables}. They were divided by the "
            "root of that bound, not by their sd, so correlations are understated."
        )
    population, covers = ", not for the population", ""
    if fit.call.scale != "sd" and fit.call.center:
        population = "; for the population use conf_int()"
        covers = " conf_int() covers at least 95 % for any data within the bounds."
    if isinstance(fit.spectrum, Unread):
        notes += _unread(fit.spectrum)
    else:
        notes.append(
            f"Noise intervals are for these rows{population}. Proportions and cos2 allow for noise."
        )
        notes += Rank.DETAIL(
            f"Noise sd of an entry of the analysed matrix: {signif(fit.noise_sd, 3)}.{covers}"
        )
    return (*header.few_complete(fit.release, fit.ncomplete, fit.release.noise.count), *notes)


def _unread(spectrum: Unread) -> tuple[str, ...]:
    if spectrum.source is None:
        return Rank.IDENTIFIED(
            "The error distribution of this mechanism is not known: there are no noise floor and "
            "no intervals, and small components may be noise."
        )
    n_distinct = int(spectrum.source.distinct.sum())
    counts = {0: NONE, 1: "One component is"}
    sentence = counts.get(n_distinct, f"{n_distinct} components are")
    note = (
        "The error distribution of the mechanism's estimate is not known: there are no noise "
        "floor, intervals and cos2."
    )
    above = (
        f"{sentence} above the noise of the underlying unbiased release, usually the noisier of "
        "the two."
    )
    return *Rank.IDENTIFIED(note), above


def _floor_notes(fit: PCAResult, n_shown: int) -> tuple[str, ...]:
    distinct = fit.spectrum.distinct
    notes = []
    if isinstance(fit.spectrum, Unread):
        star = "* not distinguishable from noise in the underlying release."
        if fit.spectrum.source is None:
            star = "* no variance in the mechanism's estimate."
        return () if distinct[:n_shown].all() else Rank.IDENTIFIED(star)
    if not distinct[:n_shown].all():
        floor = signif(math.sqrt(fit.noise_floor), 3)
        notes.append(
            f"* below the noise floor (standard deviation {floor}): not distinguishable from noise."
        )
    if not distinct[:n_shown].any():
        notes.append(
            f"{NONE} above it: use a larger eps, more rows, fewer columns or narrower bounds."
        )
    names = component_names(len(distinct))
    together = fit.spectrum.alike & distinct[:, None] & distinct[None, :]
    groups = {tuple(np.flatnonzero(row).tolist()): None for row in together[:n_shown]}
    listed = "; ".join(", ".join(names[i] for i in group) for group in groups if len(group) > 1)
    if listed:
        notes.append(
            f"Too close to separate: {listed}. Interpret the space that they span, not the "
            "loadings of each."
        )
    return Rank.IDENTIFIED(*notes)


@report_of.register
def subspace_report(fit: SubspaceResult) -> Report:
    """Lay out a fit as tables of strings."""
    columns = tuple(component_names(min(fit.ncomp, header.SHOWN_COMPONENTS)))
    complete = "not released"
    if fit.bought:
        complete = header.complete_rows(fit.release, fit.ncomplete, fit.release.variance_sd)
    importance = (_subspace_importance(fit, columns),) if fit.bought else ()
    rows = _loading_rows(
        fit.call, fit.loadings.to_numpy()[:, : len(columns)], np.zeros(len(columns))
    )
    loadings = (Section(f"Loadings ({blank_words(noise=False)})", columns, rows),)
    noise = (
        Row("Expected loss of captured variance", (signif(fit.expected_loss, 2),)),
        Row("Components mean something one by one", ("yes" if fit.release.ordered else "no",)),
        Row(
            "How the directions were drawn",
            ("end of a chain" if fit.release.limit else "no chain",),
        ),
    )
    return header.released_report(
        fit,
        "Private principal subspace",
        first=header.moments_facts(fit.call, fit.release, complete),
        sections=(*importance, *(() if fit.lost else loadings), Section("Noise", ("",), noise)),
        notes=_subspace_notes(fit, len(columns)),
    )


def _subspace_importance(fit: SubspaceResult, columns: tuple[str, ...]) -> Section:
    n_shown = len(columns)
    released = fit.sdev.to_numpy()[:n_shown]
    noise = root_sd(released, fit.eigenvals_noise_sd.to_numpy()[:n_shown])
    printed = np.fmax(noise, hundredth(released.max()))
    sds = Row("noise sd", tuple(signif(sd, 2) for sd in noise.tolist()))
    rows = (Row("Standard deviation", uncertain(released, printed)), sds)
    return Section("Importance of components", columns, rows)


def _subspace_notes(fit: SubspaceResult, n_shown: int) -> tuple[str, ...]:
    release, columns = fit.release, len(fit.call.names)
    notes = []
    if fit.lost:
        notes.append(
            "Directions are not printed, as they may be almost random: use a larger eps, more "
            "rows, fewer columns or narrower bounds."
        )
    elif not release.ordered:
        notes.append("Only the spanned space is meaningful; its basis is arbitrary.")
    if fit.ncomp == columns and not release.ordered:
        notes.append(
            f"All {columns} directions span the whole space for any data: set a smaller ncomp=."
        )
    notes = [*Rank.IDENTIFIED(*notes)]
    if fit.lost:
        notes += Rank.DETAIL(
            "The expected loss is as large as the variance of rows of half the row norm."
        )
    notes += _accuracy_notes(fit)
    notes += header.omitted(n_shown, fit.ncomp, "components", "loadings")
    notes += _hidden_variables(columns)
    return tuple(notes)


def _accuracy_notes(fit: SubspaceResult) -> list[str]:
    release, notes = fit.release, list[str]()
    if release.limit:
        notes += Rank.GUARANTEE(f"The guarantee is {release.limit}.")
    if not math.isnan(fit.expected_loss):
        notes.append(
            "Expected loss: variance along the non-private components less that along the released "
            "ones, approximated for budgets that separate components."
        )
    elif math.isnan(release.expected_loss) and release.events:
        notes += Rank.IDENTIFIED("The expected loss is not known here: directions may be noise.")
    elif release.events:
        notes.append(
            "The expected loss needs the number of rows, which is private; "
            'eigenvals="private" releases it too.'
        )
    if fit.bought:
        notes.append("Variances are along the released directions, with separate noise.")
    elif release.events:
        notes.append(
            'Variances along the directions were not released; eigenvals="private" releases them.'
        )
    return notes
