"""The printed report of a multinomial logit: a panel for each level against the reference."""

from __future__ import annotations

import numpy as np

from dpmodels.report import Report, Row, Section, signif
from dpmodels.reports.coefficients import COLUMNS, SHOWN, coefficient_cells, fit_notes, fit_report
from dpmodels.reports.header import about, more
from dpmodels.results.base import report_of
from dpmodels.results.multinomial import MultinomialResult


@report_of.register
def multinomial_report(fit: MultinomialResult) -> Report:
    """Lay out a fit as tables of strings."""
    call = fit.call
    notes = (
        *more(SHOWN, len(fit.linear.matrix), "coefficients", "params and tidy()"),
        *fit_notes(fit),
    )
    response = f"{len(call.levels)} levels, against {call.levels[0]}"
    title, model = "Private multinomial logit", "multinomial, logit link"
    return fit_report(fit, title, model, response, _panels(fit), notes)


def _panels(fit: MultinomialResult) -> tuple[Section, ...]:
    """Return a section for each level, of the first coefficients."""
    call = fit.call
    size, known = len(call.names), not fit.why_not
    heads = COLUMNS if known else ("coef",)
    cells = _told(fit) if known else _as_released(fit)
    found = []
    for at, level in enumerate(call.levels[1:]):
        own = zip(call.names, cells[at * size : min((at + 1) * size, SHOWN)], strict=False)
        rows = tuple(Row(name, line, about=about(call, name)) for name, line in own)
        if rows:
            found.append(Section(f"{level} against {call.levels[0]}", heads, rows))
    return tuple(found)


def _told(fit: MultinomialResult) -> list[tuple[str, ...]]:
    parts = (fit.params, fit.bse, fit.bse_noise, fit.tvalues, fit.pvalues)
    columns = [own.to_numpy(np.float64).T.ravel() for own in parts]
    numbers = np.column_stack([*columns, fit.conf_int()])
    return [coefficient_cells(*line) for line in numbers.tolist()]


def _as_released(fit: MultinomialResult) -> list[tuple[str, ...]]:
    values = fit.params_released.to_numpy(np.float64).T.ravel().tolist()
    return [(signif(value, 1),) for value in values]
