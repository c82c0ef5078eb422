"""The printed report of a released space."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.labels import component_names
from dpmodels.report import Fact, Report, Row, Section, hundredth, signif, uncertain
from dpmodels.reports.header import (
    SEE,
    SHOWN_COMPONENTS,
    SHOWN_VARIABLES,
    SMALL_LOADING,
    closing,
    complete_rows,
    moments_header,
    more,
)
from dpmodels.results.analysis import root_sd
from dpmodels.results.base import report_of
from dpmodels.results.subspace import SubspaceResult


@report_of.register
def subspace_report(fit: SubspaceResult) -> Report:
    """Lay out a fit as tables of strings."""
    columns = tuple(component_names(min(fit.ncomp, SHOWN_COMPONENTS)))
    importance = (_importance(fit, columns),) if fit.bought else ()
    loadings = () if fit.lost else (_loadings(fit, columns),)
    return Report(
        title="Private principal subspace",
        facts=_facts(fit),
        sections=(*importance, *loadings, _noise(fit)),
        notes=_notes(fit, len(columns)),
        stamp=fit.stamp,
    )


def _facts(fit: SubspaceResult) -> tuple[Fact, ...]:
    complete = "not released"
    if fit.bought:
        complete = complete_rows(fit.ncomplete, fit.release.variance_sd)
    return moments_header(fit.call, fit.release, complete)


def _importance(fit: SubspaceResult, columns: tuple[str, ...]) -> Section:
    shown = len(columns)
    released = fit.sdev.to_numpy()[:shown]
    noise = root_sd(released, fit.eigenvals_noise_sd.to_numpy()[:shown])
    printed = np.fmax(noise, hundredth(released.max()))
    rows = (
        Row("Standard deviation", uncertain(released, printed)),
        Row("noise sd", tuple(signif(sd, 2) for sd in noise.tolist())),
    )
    return Section("Importance of components", columns, rows)


def _loadings(fit: SubspaceResult, columns: tuple[str, ...]) -> Section:
    table = fit.loadings.to_numpy()[:, : len(columns)]
    order = np.argsort(-np.abs(table).max(axis=1), kind="stable")
    rows = [
        Row(fit.call.names[i], tuple(map(_loading, table[i].tolist())))
        for i in np.sort(order[:SHOWN_VARIABLES])
    ]
    return Section(f"Loadings (blank: |loading| < {SMALL_LOADING})", columns, tuple(rows))


def _loading(value: float) -> str:
    return f"{value:.3f}" if abs(value) >= SMALL_LOADING else ""


def _noise(fit: SubspaceResult) -> Section:
    """Say what theory gives."""
    drawn = "end of a chain" if fit.release.limit else "no chain"
    rows = (
        Row("Expected loss of captured variance", (signif(fit.expected_loss, 2),)),
        Row("Components mean something one by one", ("yes" if fit.release.ordered else "no",)),
        Row("How the directions were drawn", (drawn,)),
    )
    return Section("Noise", ("",), rows)


def _notes(fit: SubspaceResult, shown: int) -> tuple[str, ...]:
    release, columns = fit.release, len(fit.call.names)
    notes = []
    if fit.lost:
        notes.append(
            "Directions are not shown: theory expects this budget to lose as much variance as "
            "rows of half the row norm have, so they may be close to random. A larger eps, more "
            "rows, fewer columns or narrower bounds are needed."
        )
    elif not release.ordered:
        notes.append("Only the space spanned is meaningful; its basis is arbitrary.")
    if fit.ncomp == columns and not release.ordered:
        notes.append(
            f"All {columns} directions span the whole space, whatever the rows: ask for fewer, by "
            "ncomp=."
        )
    notes += _known(fit)
    notes += more(shown, fit.ncomp, "components", "loadings")
    notes += more(SHOWN_VARIABLES, columns, "variables with smaller loadings", "loadings")
    return (*notes, *closing(fit.call, release, SEE, fit.nobs))


def _known(fit: SubspaceResult) -> list[str]:
    """Say what the guarantee rests on, and what is known of the directions."""
    release, notes = fit.release, []
    if release.limit:
        notes.append(f"The guarantee is {release.limit}.")
    if not math.isnan(fit.expected_loss):
        notes.append(
            "Expected loss: what the variances along the components sum to less than those along "
            "the non-private ones; an approximation for a budget that tells them apart."
        )
    elif math.isnan(release.expected_loss) and release.events:
        notes.append("Theory gives no expected loss here: nothing tells directions from noise.")
    elif release.events:
        notes.append(
            "What is expected to be lost needs the number of rows, which is private: "
            'eigenvals="private" buys it too.'
        )
    if fit.bought:
        notes.append("Variances are those along the released directions, with noise of their own.")
    elif release.events:
        notes.append(
            'Variances along the directions were not released; eigenvals="private" buys them.'
        )
    return notes
