"""The printed report of a private selection."""

from __future__ import annotations

import math

from dpmodels.report import Report, Row, Section, count, signif
from dpmodels.reports.counted import counted_as
from dpmodels.reports.header import LOST, SHOWN_GROUPS, closing, more, opening, shared_facts
from dpmodels.results.base import report_of
from dpmodels.results.call import joined
from dpmodels.results.select import SelectResult


@report_of.register
def select_report(fit: SelectResult) -> Report:
    """Lay out what was named, best first, as a table of strings."""
    release, facts = fit.release, fit.call.tables[0]
    what = counted_as(release.adjacency)
    valued = () if release.values is None else (("Value noise sd", _noise(fit, what)),)
    return Report(
        title="Private selection",
        facts=(
            *opening(fit.call, release),
            *shared_facts(release),
            ("Candidates", f"{fit.ncandidates:,}, by {fit.score}"),
            ("Ranking noise", f"scale {signif(release.scale, 2)} {what}"),
            *valued,
        ),
        sections=(_section(fit, what, " x ".join(facts.factors)),),
        notes=(*_notes(fit), *closing(fit.call, release)),
        stamp=fit.stamp,
    )


def _noise(fit: SelectResult, what: str) -> str:
    return f"{signif(fit.noise_sd, 2)} {what} ({100 * fit.share:.3g}% of the budget)"


def _section(fit: SelectResult, what: str, name: str) -> Section:
    """One line a thing named."""
    names = joined(fit.index)[:SHOWN_GROUPS]
    labels = [f"{place}. {own}" for place, own in enumerate(names, start=1)]
    if not labels:
        return Section(name, ("",), (Row("(none found)", ("",)),))
    if fit.release.values is None:
        return Section(name, (), tuple(Row(label, ()) for label in labels))
    columns = fit.tidy()[["value", "noise_low", "noise_high", "above_next"]].itertuples(index=False)
    rows = tuple(
        Row(label, (count(value), f"[{count(low)}, {count(high)}]", _chance(above)))
        for label, (value, low, high, above) in zip(labels, columns, strict=False)
    )
    return Section(name, (what.capitalize(), "95% noise int.", "Pr(above next)"), rows)


def _chance(probability: float) -> str:
    if math.isnan(probability):
        return LOST
    return "> 0.999" if probability > 0.999 else f"{probability:.3f}"


def _notes(fit: SelectResult) -> tuple[str, ...]:
    found, places = len(fit.release.places), fit.asked
    notes = [*more(SHOWN_GROUPS, found, "things named", "selected and tidy()")]
    if fit.threshold is not None:
        notes.append(
            f"Named is what is above {fit.threshold:,.10g} with the noise of the ranking, the "
            f"first {places:,} of it at most."
        )
    elif places < fit.ncandidates:
        notes.append(
            f"The {_ordinal(places)} and the {_ordinal(places + 1)} are not told apart: nothing of "
            "what is not named was released, and the ranking has noise."
        )
    if fit.release.values is not None:
        notes.append(
            "Values have fresh noise, which the ranking had no part in: given what was named they "
            "are unbiased for these rows, and need not fall from place to place. Pr(above next) "
            "is from two values and the law of that noise alone."
        )
    return tuple(notes)


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{'th' if number % 100 in (11, 12, 13) else ending}"
