"""The printed report of private bounds."""

from __future__ import annotations

from dpmodels.dates import text_of_day
from dpmodels.report import Report, Row, Section, count, signif
from dpmodels.reports.header import LOST, SHOWN_VARIABLES, closing, more, opening, shared_facts
from dpmodels.results.base import report_of
from dpmodels.results.bounds import BoundsResult, FoundBounds
from dpmodels.results.call import TableCall


@report_of.register
def bounds_report(fit: BoundsResult) -> Report:
    """Lay out found and declared bounds as a table of strings."""
    sds = ", then ".join(signif(sd, 2) for sd in fit.release.noise_sds)
    return Report(
        title="Private bounds",
        facts=(
            *opening(fit.call, fit.release),
            *shared_facts(fit.release),
            ("Variables", count(len(fit.names))),
            ("Cell noise", f"sd {sds}"),
        ),
        sections=(_section(fit),),
        notes=(*_notes(fit), *closing(fit.call, fit.release)),
        stamp=fit.stamp,
    )


def _section(fit: BoundsResult) -> Section:
    """One line a variable: found and declared range, and the share beyond with its noise."""
    heads = ("Found", "Declared", "% beyond", "95% noise int.")
    ends = fit.noise_int().to_numpy()
    rows = []
    lines = zip(fit.call.tables, fit.found.values(), ends, strict=True)
    for facts, own, (low, high) in list(lines)[:SHOWN_VARIABLES]:
        shares = (LOST, LOST)
        if own.cells:
            share = 100 * min(max(own.outside / max(own.rows, 1.0), 0.0), 1.0)
            shares = (f"{share:.1f}", f"[{100 * low:.1f}, {100 * high:.1f}]")
        rows.append(Row(facts.measured, (_found(facts, own), _range(facts), *shares)))
    return Section("Bounds", heads, tuple(rows))


def _found(facts: TableCall, own: FoundBounds) -> str:
    return _ends(facts, own.lower, own.upper) if own.told else "as declared"


def _range(facts: TableCall) -> str:
    steps = f" by {facts.step:,.10g}" if facts.step and not facts.date else ""
    return _ends(facts, facts.lower, facts.upper) + steps


def _ends(facts: TableCall, lower: float, upper: float) -> str:
    if facts.date:
        return f"{text_of_day(lower)} to {text_of_day(upper)}"
    return f"{lower:,.10g} to {upper:,.10g}"


def _notes(fit: BoundsResult) -> tuple[str, ...]:
    left = not all(own.told for own in fit.found.values())
    kept = (
        "As declared: too few rows are told from the noise, or the range that they are in is "
        "hardly shorter.",
    ) * left
    return (
        *more(SHOWN_VARIABLES, len(fit.names), "variables", "tidy()"),
        *kept,
        "% beyond: noisy share of the complete rows in cells wholly beyond the bounds; its "
        "interval is privacy noise only. Rows there are clipped to the bounds by whatever is "
        "fitted with them; a tail that no count tells of was taken from where most rows are.",
        "The declared codebook with these bounds is in codebook, public from now on: nothing "
        "has to be paid for it again.",
    )
