"""The printed report of quantiles by group."""

from __future__ import annotations

import numpy as np

from dpmodels.report import Report, Row, Section, interval, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports.header import (
    LOST,
    SHOWN_GROUPS,
    closing,
    complete_text,
    counted_as,
    day,
    described_header,
    omitted,
    range_note,
)
from dpmodels.results.base import report_of
from dpmodels.results.quantile import QuantileResult
from dpmodels.typing import Floats

# Bounds of an interval wider than this multiple of the smaller one are rounded separately.
WIDE = 5.0


@report_of.register
def quantile_report(fit: QuantileResult) -> Report:
    """Lay out quantiles as a table of strings."""
    facts = fit.call.tables[0]
    sd = float(np.linalg.norm(fit.count_noise_sd))
    what = counted_as(fit.release.adjacency)
    complete = complete_text(float(fit.counts.sum()), sd, fit.release.rows, what)
    return Report(
        title="Private quantiles",
        facts=(
            *described_header(fit.call, fit.release, complete),
            ("Variable", facts.measured),
            ("Rank noise sd", f"{signif(float(fit.release.rank_sd.max()), 2)} {what}"),
        ),
        sections=(_section(fit),),
        notes=(*_notes(fit), *closing(fit.call, fit.release)),
        stamp=fit.stamp,
    )


def _section(fit: QuantileResult) -> Section:
    """One line per group and prob, with the rank drawn and the interval if there is one."""
    facts = fit.call.tables[0]
    values, ranks = fit.params.to_numpy(), fit.drawn.to_numpy()
    intervals = _intervals(fit)
    shifted = _shifted(fit)
    heads = [*(["Drawn at"] if shifted else []), "Quantile"]
    if fit.level is not None:
        heads.append(f"{100 * fit.level:g}% conf. int.")
    rows = []
    for i, label in enumerate(facts.labels[:SHOWN_GROUPS]):
        for j, prob in enumerate(fit.probs):
            name = f"{label}, {100 * prob:g}%" if facts.factors else f"{100 * prob:g}%"
            low, high = intervals[i, j].tolist()
            at = [_share(float(ranks[i, j]))] if shifted else []
            cells = [*at, _printed(fit, float(values[i, j]), high - low)]
            if fit.level is not None:
                cells.append(LOST if cells[-1] == LOST else _interval(fit, low, high))
            rows.append(Row(name, tuple(cells)))
    return Section(" / ".join(facts.factors) or facts.measured, tuple(heads), tuple(rows))


def _intervals(fit: QuantileResult) -> Floats:
    """Return both bounds of each interval, or zeros without intervals."""
    if fit.level is None:
        return np.zeros((*fit.params.shape, 2))
    return fit.conf_int().to_numpy().reshape(*fit.params.shape, 2)


def _shifted(fit: QuantileResult) -> bool:
    """Whether a quantile was drawn at another rank than requested."""
    return bool((np.abs(fit.drawn.to_numpy() - np.array(fit.probs)) > 0).any())


def _share(rank: float) -> str:
    return LOST if np.isnan(rank) else f"{100 * rank:.3g}%"


def _printed(fit: QuantileResult, value: float, width: float) -> str:
    """Print a quantile to the digits that the grid and the interval leave; steps exactly."""
    if not np.isfinite(value):
        return LOST
    if fit.call.tables[0].date:
        return day(value)
    if fit.call.tables[0].step is not None:
        return f"{value:.10g}"
    return signif_uncertain(value, min(width / 4, abs(value) / 10))


def _interval(fit: QuantileResult, low: float, high: float) -> str:
    if fit.call.tables[0].date:
        return f"[{day(low)}, {day(high)}]"
    if fit.call.tables[0].step is not None:
        return f"[{low:.10g}, {high:.10g}]"
    if high - low > WIDE * min(abs(low), abs(high)):
        return f"[{signif(low, 3)}, {signif(high, 3)}]"
    return interval(low, high)


def _notes(fit: QuantileResult) -> list[str]:
    facts = fit.call.tables[0]
    notes: list[str] = []
    if fit.params.isna().any(axis=None):
        notes += Rank.IDENTIFIED(f"{LOST}: too few rows for this budget.")
    if _shifted(fit):
        notes += Rank.IDENTIFIED(
            "Drawn at: ranks nearer 0% or 100% would be lost in noise; these are the nearest "
            "possible."
        )
    notes += omitted(SHOWN_GROUPS, facts.cells, "groups", "tidy()")
    if fit.level is not None:
        notes.append(
            "Conf. interval: noise and sampling; rounded outwards to public cells, and "
            "conservative if many rows share a value."
        )
    return [*notes, *range_note(facts)]
