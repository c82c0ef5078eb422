"""The printed report of a joint release of moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmodels.report import Report
from dpmodels.results.cov_report import SHOWN_VARIABLES, facts, variables, weak_note
from dpmodels.results.header import STAMP, closing_notes

if TYPE_CHECKING:
    from dpmodels.results.moments import MomentsResult


def moments_report(fit: MomentsResult) -> Report:
    """Lay out a release as tables of strings."""
    return Report(
        title="Private moments",
        facts=facts(fit.whole),
        sections=(variables(fit.whole),),
        notes=(*_notes(fit), *closing_notes(fit.call, fit.release, fit.nobs)),
        stamp=STAMP if fit.simulated else None,
    )


def _notes(fit: MomentsResult) -> list[str]:
    more = len(fit.call.names) - SHOWN_VARIABLES
    shown = [f"{more} more columns: see tidy()."] if more > 0 else []
    return [
        *weak_note(fit.whole),
        *shown,
        "Free of charge from here on, for any formula with these columns: .pca(formula), "
        ".cov(formula), .cor(formula), .mean(formula), .lm(formula).",
        "Digits end where noise begins. Noise sds are privacy noise only; for the population: "
        ".cov(formula).conf_int().",
    ]
