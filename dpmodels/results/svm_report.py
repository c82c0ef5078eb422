"""The printed report of a support vector machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmodels.report import Report
from dpmodels.results.coefficients_header import (
    SHOWN,
    coefficients_facts,
    coefficients_notes,
    plain_section,
    pull_note,
)
from dpmodels.results.header import STAMP

if TYPE_CHECKING:
    from dpmodels.results.svm import SVMResult


def svm_report(fit: SVMResult) -> Report:
    """Lay out a fit as tables of strings."""
    notes = [
        "A margin above 0 stands for the second level. There are no intervals; accuracy is a "
        "matter of public rows: predict(newdata).",
        pull_note(fit.release),
    ]
    more = len(fit.params) - SHOWN
    if more > 0:
        notes.append(f"{more} more coefficients: see params and tidy().")
    return Report(
        title="Private linear support vector machine",
        facts=coefficients_facts(fit.call, fit.release, "Huber loss, linear"),
        sections=(plain_section(fit.call, fit.release),),
        notes=(*notes, *coefficients_notes(fit.call, fit.release)),
        stamp=STAMP if fit.simulated else None,
    )
