"""The printed report of survival curves."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpmodels.errors import NotAvailable, shorten
from dpmodels.report import Fact, Report, Row, Section, count, signif
from dpmodels.report.notes import Rank
from dpmodels.reports.header import (
    LOST,
    closing,
    complete_text,
    counted_as,
    described_header,
    omitted,
)
from dpmodels.results.base import report_of
from dpmodels.results.survfit import SurvfitResult
from dpmodels.results.survival_curve import Curve

# Most lines of a curve, and curves of a page: choices.
SHOWN_LINES = 20
SHOWN_CURVES = 6
LEVEL = 0.95


@report_of.register
def survfit_report(fit: SurvfitResult) -> Report:
    """Lay out a line for each curve, then each curve over time."""
    counted, what = fit.counted, counted_as(fit.release.adjacency)
    complete = complete_text(fit.ncomplete, counted.noise_sd, fit.release.rows, what)
    return Report(
        title="Private survival curves" if fit.strata else "Private survival curve",
        facts=(
            *described_header(fit.call, fit.release, complete),
            ("Event", counted.spec.event.code),
            ("Grid", f"{counted.spec.time.code}, {_grid(fit)}"),
            ("Count noise", f"sd {signif(fit.release.noise_sd, 2)} a released count"),
            *_test(fit),
        ),
        sections=(_overview(fit), *_curves(fit)),
        notes=(
            *omitted(SHOWN_CURVES, fit.ncurves, "curves", "tidy() and plot()"),
            *_ends(fit),
            *_order(fit),
            *_notes(fit),
            *closing(fit.call, fit.release),
        ),
        stamp=fit.stamp,
    )


def _grid(fit: SurvfitResult) -> str:
    return f"{len(fit.times):,} intervals up to {fit.times[-1]:,.6g}"


def _test(fit: SurvfitResult) -> tuple[Fact, ...]:
    if fit.ncurves < 2:
        return ()
    try:
        test = fit.logrank()
    except NotAvailable:
        return (("Log-rank", "lost in noise"),)
    p = "p < 0.0001" if test.pvalue < 1e-4 else f"p = {signif(test.pvalue, 2)}"
    return (("Log-rank", f"chi2({test.df}) = {signif(test.statistic, 3)}, {p}"),)


def _overview(fit: SurvfitResult) -> Section:
    """Lay out the columns of R's print of a survfit."""
    table = fit.table(LEVEL)
    upto = table["upto"].max()
    mean = "mean" if np.isnan(upto) else f"mean to {upto:,.6g}"
    lines = table.head(SHOWN_CURVES).to_dict("records")
    names = fit.strata or ["(all)"]
    rows = tuple(Row(name, _line(row)) for name, row in zip(names, lines, strict=False))
    title = "Curve" if fit.strata else counted_as(fit.release.adjacency).capitalize()
    return Section(title, ("n", "events", "median", "95% conf. int.", mean, "std. error"), rows)


def _line(row: dict[object, float]) -> tuple[str, ...]:
    low, high = _time(row["conf_low"]), _time(row["conf_high"])
    between = f"[{low}, {high}]" if np.isfinite(row["conf_high"]) else f"from {low}"
    return (
        count(row["records"]),
        count(row["events"]),
        _time(row["median"]),
        LOST if np.isnan(row["end"]) else between,
        _time(row["rmean"]),
        LOST if np.isnan(row["rmean_std_error"]) else signif(row["rmean_std_error"], 2),
    )


def _time(value: float) -> str:
    """Print a time, or a dash if it is not reached."""
    return LOST if np.isnan(value) else f"{value:,.4g}"


def _curves(fit: SurvfitResult) -> tuple[Section, ...]:
    names = fit.strata or [fit.counted.spec.time.code]
    pairs = zip(names[:SHOWN_CURVES], fit.counted.curves, strict=False)
    return tuple(_curve(name, curve) for name, curve in pairs if curve.end)


def _curve(name: str, curve: Curve) -> Section:
    """Print a line for each time, or for some of many, with the events since the line before."""
    table = pd.DataFrame(curve.columns(LEVEL))
    width = -(-curve.end // SHOWN_LINES)
    positions = np.append(np.arange(width - 1, curve.end - 1, width), curve.end - 1)
    since = np.diff(np.append(0, np.cumsum(table["n_event"])[positions]))
    digits = 4 if table["std_error"].min() < 1e-3 else 3
    rows = tuple(
        Row(
            f"{row['time']:,.6g}",
            (
                count(row["n_risk"]),
                count(events),
                f"{row['estimate']:.{digits}f}",
                _interval(row["noise_low"], row["noise_high"], digits),
                _interval(row["conf_low"], row["conf_high"], digits),
            ),
        )
        for events, row in zip(since, table.iloc[positions].to_dict("records"), strict=True)
    )
    heads = ("at risk", "events", "survival", "95% noise int.", "95% conf. int.")
    return Section(name, heads, rows)


def _interval(low: float, high: float, digits: int) -> str:
    return f"[{low:.{digits}f}, {high:.{digits}f}]"


def _ends(fit: SurvfitResult) -> tuple[str, ...]:
    """Say where the curves end."""
    why = "the number at risk is below five sds of its noise"
    curves = list(zip(fit.strata or ["(all)"], fit.counted.curves, strict=True))
    lost = [name for name, curve in curves if not curve.end]
    notes = [f"Curves not reported, as {why}: {shorten(', '.join(lost), 200)}."] if lost else []
    for name, curve in curves:
        if 0 < curve.end < len(curve.times):
            whose = f" of {name}" if fit.strata else ""
            notes.append(
                f"The curve{whose} ends at {curve.identified_times[-1]:,.6g}: beyond, {why}."
            )
    return Rank.IDENTIFIED(*notes[:SHOWN_CURVES])


def _order(fit: SurvfitResult) -> tuple[str, ...]:
    """Say where the grid is so coarse that the actuarial convention matters."""
    notes = []
    for name, curve in zip(fit.strata or [""], fit.counted.curves, strict=True):
        low, high = curve.counts.unordered
        half_width = (high - low) / 2
        if curve.end and (half_width > curve.survival.std_error).any():
            at = int(np.argmax(half_width))
            whose = f" of {name}" if name else ""
            notes.append(
                f"Coarse grid: depending on the order of times within intervals, survival{whose} "
                f"at {curve.identified_times[at]:,.6g} is from {low[at]:.3f} to {high[at]:.3f}."
            )
    breaks = Rank.DETAIL("Coarse grid: write more breaks where times are frequent.")
    return (*Rank.IDENTIFIED(*notes[:SHOWN_CURVES]), *breaks * bool(notes))


def _notes(fit: SurvfitResult) -> list[str]:
    notes = []
    if any(curve.end > SHOWN_LINES for curve in fit.counted.curves):
        notes.append("Events are those since the line before; for all times use tidy().")
    if fit.counted.halved.any():
        notes.append(
            "Actuarial: half of those censored in an interval count as at risk in it; intervals "
            "hold for any order of times within it."
        )
    else:
        notes.append("Each interval holds one value: the product-limit estimate itself.")
    return [
        *notes,
        "Noise intervals are for the curve of these rows, confidence intervals for the "
        "population's, pointwise.",
        *Rank.DETAIL("Survival is computed from consistent integer counts."),
        *Rank.TARGET(_above(fit)),
    ]


def _above(fit: SurvfitResult) -> str:
    """Describe the treatment of times above the declared range."""
    time = fit.counted.spec.time
    if not time.step:
        return "Times above the declared range are censored at its end."
    return f"Times from {time.upper:,.6g} on are censored there."
