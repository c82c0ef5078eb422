"""The printed reports of tests at a false discovery rate."""

from __future__ import annotations

import math

from dpmodels.postprocess.step_up import NAMES
from dpmodels.privacy import ZCDP, ApproxDP, Event, total_eps, total_rho
from dpmodels.report import Report, Row, Section, count, signif
from dpmodels.reports.header import (
    LOST,
    about,
    closing,
    complete_text,
    more,
    opening,
    shared_facts,
)
from dpmodels.results.base import report_of
from dpmodels.results.discoveries import Discoveries
from dpmodels.results.fdr import FDRResult

# Rejected hypotheses, and of the others the first, that a page holds: choices.
SHOWN, OTHERS = 60, 5


@report_of.register
def fdr_report(fit: FDRResult) -> Report:
    """Lay out what was rejected, and the first that were not, as a table of strings."""
    call, release = fit.call, fit.release
    table = fit.tidy()
    kept = table.head(min(len(fit.rejected) + OTHERS, SHOWN))
    rows = [
        Row(str(one.hypothesis), _cells(one), about=about(call, str(one.hypothesis)))
        for one in kept.itertuples()
    ]
    whose = "persons" if release.adjacency.counts_persons else "rows"
    value = "Correlation" if fit.valued == "correlation" else "log p"
    heads = (value, "Noise sd", "p-value", "Adjusted", "Rejected")
    return Report(
        title="Private tests at a false discovery rate",
        facts=(
            *opening(call, release),
            (
                "Complete",
                complete_text(release.count, release.response_sd, release.rows, whose),
            ),
            *shared_facts(release),
            ("Columns", f"{count(fit.hypotheses)}, looked at {count(len(fit.names))}"),
            ("Alternative", call.alternative),
            ("q", f"{fit.q:g}, {NAMES[fit.discoveries.method]}"),
            ("Rejected", count(len(fit.rejected))),
        ),
        sections=(Section(f"Association with {call.response}", heads, tuple(rows)),),
        notes=(*_notes(fit, len(kept)), *closing(call, release)),
        stamp=fit.stamp,
    )


def _cells(one: object) -> tuple[str, ...]:
    middle, sd = (getattr(one, name) for name in ("estimate", "noise_sd"))
    seen = [LOST if math.isnan(own) else f"{own:.4f}" for own in (middle, sd)]
    return (*seen, *_values(one), "yes" if getattr(one, "rejected", False) else "")


def _values(one: object) -> list[str]:
    return [_small(getattr(one, name)) for name in ("p_value", "p_adjusted")]


def _small(value: float) -> str:
    """Print a p-value of many tests: to two digits, however small."""
    return LOST if math.isnan(value) else f"{value:.4f}" if value >= 1e-3 else f"{value:.1e}"


def _spent(fit: FDRResult) -> str:
    """Say what the choice and the values would cost, each by itself."""
    events = fit.release.events
    if not fit.release.choice:
        return "Budget: all for values."
    parts = (("choice", events[:1]), ("values", events[1:]))
    told = ", ".join(f"{what} {_price(fit, own)}" for what, own in parts)
    return f"Budget: {told}, each by itself."


def _price(fit: FDRResult, events: tuple[Event, ...]) -> str:
    guarantee = fit.release.guarantee
    if isinstance(guarantee, ZCDP):
        return f"rho = {signif(total_rho(events), 3)}"
    delta = guarantee.delta if isinstance(guarantee, ApproxDP) else 0.0
    return f"eps = {signif(total_eps(events, delta), 3)}"


def _notes(fit: FDRResult, shown: int) -> tuple[str, ...]:
    left = fit.hypotheses - len(fit.names)
    unseen = (
        f"Hypotheses not among the {count(len(fit.names))} were not looked at: {count(left)} have "
        "a p-value of 1."
    )
    bounds = {
        "by": "The rate holds for any dependence of the columns.",
        "bh": "The rate is proved for independent columns up to a factor of "
        f"{signif(1 + math.log(1 / fit.q), 2)}, and kept in simulations; method='by' for any.",
        "adapt": "False discoveries are estimated by the columns that go the other way: the rate "
        "holds for independent columns whose sums are symmetric under the null hypothesis.",
    }
    if fit.valued == "log_p":
        # What noise that is lower than is allowed for adds to the rate.
        more_false = 1 / 11
        bounds = {
            "by": f"The rate is at most {signif(1 + more_false, 2)} q for any normal sums.",
            "bh": "The rate is proved for independent normal sums up to a factor of "
            f"{signif(1 + math.log(1 / fit.q) + more_false, 2)}; method='by' for any.",
        }
    return (
        *more(shown, len(fit.names), "columns", "tidy()"),
        *((unseen,) if left else ()),
        _of_p_values(fit),
        *_untold(fit),
        bounds[fit.discoveries.method],
        _spent(fit),
    )


def _of_p_values(fit: FDRResult) -> str:
    fresh = "Values have fresh noise: having been chosen makes them no larger."
    if fit.valued == "log_p":
        least = fit.q / (2 * fit.hypotheses)
        return (
            "log p is the natural logarithm of a z-test's p-value, with noise, and cut off at "
            f"{math.log(least):.1f}. The test takes a column for one that fills its bounds, and "
            "its sum with the response for normal. p-values are larger by what the published "
            "cut-offs are lower, twice the noise's scale times "
            f"log(6 x {count(len(fit.names))}/q). {fresh} The method is here for comparison: "
            "mechanism='peeling' finds more."
        )
    return (
        "p-values are of independence of column and response; they count in the noise, and what "
        f"it hides of the column's variance: none is below {_small(fit.least)}. {fresh}"
    )


def _untold(fit: FDRResult) -> tuple[str, ...]:
    lost = int(fit.params.isna().sum())
    return (
        f"A dash, for {count(lost)}: the variance of the column, or of the response, is not told "
        "from its noise.",
    ) * (lost > 0)


@report_of.register
def discoveries_report(own: Discoveries) -> Report:
    """Lay out hypotheses with their p-values as a table of strings."""
    table = own.tidy()
    kept = table.head(SHOWN)
    rows = [
        Row(str(one.hypothesis), (*_values(one), "yes" if one.rejected else ""))
        for one in kept.itertuples()
    ]
    facts = (
        ("Formula", own.formula),
        ("Hypotheses", count(own.hypotheses)),
        ("q", f"{own.q:g}, {NAMES[own.method]}"),
        ("Rejected", count(len(own.rejected))),
    )
    untested = int(table["p_value"].isna().sum())
    notes = (
        *more(len(kept), len(table), "hypotheses", "tidy()"),
        *(f"{untested} without a p-value count as not rejected." for _ in range(untested > 0)),
        "Made of p-values that were released already: nothing is paid for it. The intercept is no "
        "hypothesis.",
    )
    section = Section("Hypotheses", ("p-value", "Adjusted", "Rejected"), tuple(rows))
    return Report("Tests at a false discovery rate", facts, (section,), notes, own.stamp)
