"""The printed reports of logits from counts of cells."""

from __future__ import annotations

import numpy as np

from dpmodels.report import Report, Row, Section, signif
from dpmodels.report.notes import Rank
from dpmodels.reports.coefficients import COLUMNS, SHOWN, coefficient_cells
from dpmodels.reports.header import SEE, about, closing, omitted, opening, shared_facts
from dpmodels.results.base import report_of
from dpmodels.results.call import LINKS
from dpmodels.results.tabulated import CountedGLM, CountedMultinomial, OrdinalResult

TITLES = {
    "binomial": "Private generalised linear model",
    "multinomial": "Private multinomial logit",
    "ordinal": "Private ordinal logit (proportional odds)",
}


@report_of.register
def counted_report(fit: CountedGLM | CountedMultinomial) -> Report:
    """Lay out a fit as tables of strings."""
    call, release = fit.call, fit.release
    table = fit.tidy()
    numbers = table[["estimate", "std_error", "noise_sd", "statistic", "p_value"]]
    cells = np.column_stack([numbers, table[["conf_low", "conf_high"]]]).tolist()
    rows = [
        Row(name, coefficient_cells(*line), about=about(call, name))
        for name, line in zip(table["term"], cells, strict=True)
    ][:SHOWN]
    facts = (
        *opening(call, release),
        ("Model", f"{call.family}, {LINKS[call.family]}"),
        ("Response", _response(fit)),
        ("Cells", f"{len(release.values) - 1:,}, noise sd {signif(release.noise_sd, 3)} each"),
        *shared_facts(release),
    )
    notes = (*omitted(SHOWN, len(table), "coefficients", "params and tidy()"), *_notes(fit))
    closed = closing(call, release, f"{SEE}.regression")
    sections = tuple(_sections(fit, rows))
    return Report(TITLES[call.family], facts, sections, (*notes, *closed), fit.stamp)


def _response(fit: CountedGLM | CountedMultinomial) -> str:
    levels = fit.call.levels
    if isinstance(fit, OrdinalResult):
        return f"{len(levels)} levels, {levels[0]} to {levels[-1]}"
    if isinstance(fit, CountedMultinomial):
        return f"{len(levels)} levels, against {levels[0]}"
    return f"{levels[1]} against {levels[0]}"


def _sections(fit: CountedGLM | CountedMultinomial, rows: list[Row]) -> list[Section]:
    """Return the coefficients in panels: by level, or slopes and thresholds."""
    levels, size = fit.call.levels, len(fit.call.names)
    heads, stops = ["Coefficients"], [size]
    if isinstance(fit, OrdinalResult):
        heads, stops = ["Coefficients", "Thresholds"], [len(fit.slopes), size]
    elif isinstance(fit, CountedMultinomial):
        heads = [f"{level} against {levels[0]}" for level in levels[1:]]
        stops = [size * (at + 1) for at in range(len(heads))]
    spans = zip(heads, [0, *stops], stops, strict=False)
    sections = [Section(head, COLUMNS, tuple(rows[low:high])) for head, low, high in spans]
    return [section for section in sections if section.rows]


def _notes(fit: CountedGLM | CountedMultinomial) -> tuple[str, ...]:
    """Count the coefficients without an error, and describe errors."""
    lost = int((~fit.linear.identified).sum())
    subject = "1 coefficient is" if lost == 1 else f"{lost} coefficients are"
    notes = Rank.IDENTIFIED(
        f"{subject} not identified: noise hides the counts of their levels. Use a larger eps, "
        "merge rare levels, or declare a frequent level first."
    )
    errors = (
        "std err: sampling and privacy noise; noise: privacy noise alone. For the non-private "
        "estimate on these rows use noise_int()."
    )
    how = Rank.DETAIL(
        "Coefficients maximise the likelihood of noisy counts of all combinations of levels; "
        "errors are of first order in their noise, sampling errors robust."
    )
    return (*notes * bool(lost), errors, *how)
