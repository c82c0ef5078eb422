"""The printed report of a t-test."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.report import Report, Row, Section, interval, signif
from dpmodels.results.mean_report import LOST, mean_report, printed
from dpmodels.results.table_report import pvalue

if TYPE_CHECKING:
    from dpmodels.results.ttest import TTestResult


def ttest_report(fit: TTestResult) -> Report:
    """Lay out the means, then the test."""
    means = mean_report(fit.means)
    two = bool(fit.call.tables[0].factors)
    title = "Private two-sample t-test" if two else "Private one-sample t-test"
    sections = (*means.sections, _test(fit, two))
    return replace(means, title=title, sections=sections, notes=(*_notes(two), *means.notes))


def _test(fit: TTestResult, two: bool) -> Section:
    facts = fit.call.tables[0]
    name = f"{' - '.join(facts.labels) if two else 'mean'} = {fit.mu:g}?"
    heads = ("Estimate", "noise sd", "Std. err.", "t", "p-value", "95% conf. int.")
    if not np.isfinite(fit.params):
        return Section("Test", heads, (Row(name, (LOST,) * len(heads)),))
    cells = (
        printed(fit.params, fit.bse_noise, fit.bse),
        signif(fit.bse_noise, 2),
        signif(fit.bse, 2),
        signif(fit.tvalue, 3),
        pvalue(fit.pvalue),
        interval(*fit.conf_int()),
    )
    return Section("Test", heads, (Row(name, cells),))


def _notes(two: bool) -> tuple[str, ...]:
    unequal = "; variances are not taken as equal" if two else ""
    return (f"The test counts the privacy noise in{unequal}.",)
