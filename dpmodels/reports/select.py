"""The printed report of a private selection."""

from __future__ import annotations

import math

from dpmodels.report import Report, Row, Section, count, interval, signif, signif_uncertain
from dpmodels.reports.counted import counted_as
from dpmodels.reports.header import LOST, SHOWN_GROUPS, closing, more, opening, shared_facts
from dpmodels.results.base import report_of
from dpmodels.results.call import joined
from dpmodels.results.select import COUNT, GAIN, SelectResult


@report_of.register
def select_report(fit: SelectResult) -> Report:
    """Lay out what was named, best first, as a table of strings."""
    release, facts = fit.release, fit.call.tables[0]
    what = counted_as(release.adjacency)
    bought = release.values is not None
    valued = (("Values", f"{100 * fit.share:.3g}% of the budget"),) if bought else ()
    complete = () if fit.score == COUNT else (("Complete", _complete(fit, what)),)
    return Report(
        title="Private selection",
        facts=(
            *opening(fit.call, release),
            *shared_facts(release),
            ("Candidates", f"{fit.ncandidates:,}, by {fit.score}"),
            ("Ranking noise", f"scale {_scale(fit, what)}"),
            *complete,
            *valued,
        ),
        sections=(_section(fit, what, " x ".join(facts.factors)),),
        notes=(*_notes(fit), *closing(fit.call, release)),
        stamp=fit.stamp,
    )


def _scale(fit: SelectResult, what: str) -> str:
    """Say how much noise the ranking had: of counts in rows, of columns in the unit of values."""
    own = fit.release
    if fit.score == COUNT:
        return f"{signif(own.scale, 2)} {what}"
    rows = max(own.count or 0.0, 1.0)
    alike = rows * own.adjacency.design_effect
    return signif(own.scale / (math.sqrt(alike) if fit.score == "z" else rows), 2)


def _complete(fit: SelectResult, what: str) -> str:
    own = fit.release
    most = math.inf if own.rows is None else own.rows
    return f"{count(min(max(own.count or 0.0, 0.0), most))} {what}, noisy"


def _section(fit: SelectResult, what: str, name: str) -> Section:
    """One line a thing named."""
    names = joined(fit.index)[:SHOWN_GROUPS]
    labels = [f"{place}. {own}" for place, own in enumerate(names, start=1)]
    if not labels:
        return Section(name, ("",), (Row("(none found)", ("",)),))
    if fit.release.values is None:
        return Section(name, (), tuple(Row(label, ()) for label in labels))
    columns = fit.tidy()[["estimate", "noise_sd", "noise_low", "noise_high", "above_next"]]
    rows, sums = [], _cumulative(fit)
    for label, own, total in zip(labels, columns.itertuples(index=False), sums, strict=False):
        value, sd, low, high, above = own
        rows.append(Row(label, (*_printed(fit, value, sd, low, high), _chance(above), *total)))
    first = what.capitalize() if fit.score == COUNT else fit.score.capitalize()
    head = (first, "Noise sd", "95% noise int.", "Pr(above next)")
    return Section(name, (*head, "R2 so far") if fit.score == GAIN else head, tuple(rows))


def _cumulative(fit: SelectResult) -> list[tuple[str, ...]]:
    """Print R² of the fit so far to the digits that its noise leaves; nothing for other scores."""
    if fit.score != GAIN:
        return [()] * len(fit.index)
    return [
        (LOST,) if math.isnan(value) else (signif_uncertain(value, sd),)
        for value, sd in fit.cumulative().itertuples(index=False)
    ]


def _printed(
    fit: SelectResult, value: float, sd: float, low: float, high: float
) -> tuple[str, str, str]:
    """Print a value to the digits that its noise leaves, its noise and its interval."""
    if math.isnan(value):
        return LOST, LOST, LOST
    if fit.score == COUNT:
        return count(value), signif(sd, 2), f"[{count(low)}, {count(high)}]"
    return signif_uncertain(value, sd), signif(sd, 2), interval(low, high)


def _chance(probability: float) -> str:
    if math.isnan(probability):
        return LOST
    return "> 0.999" if probability > 0.999 else f"{probability:.3f}"


def _notes(fit: SelectResult) -> tuple[str, ...]:
    found, places = len(fit.release.places), fit.asked
    notes = [*more(SHOWN_GROUPS, found, "things named", "selected and tidy()")]
    if fit.threshold is not None:
        searched = fit.release.card.name == "sparse_vector"
        order = "in the order of the formula the first" if searched else "the largest"
        notes.append(
            f"Named is what is above {fit.threshold:,.10g} with the noise of the ranking, {order} "
            f"{places:,} of it at most."
        )
    elif places < fit.ncandidates:
        notes.append(
            f"The {_ordinal(places)} and the {_ordinal(places + 1)} are not told apart: nothing of "
            "what is not named was released, and the ranking has noise."
        )
    if fit.score == GAIN:
        notes.append(
            "Ranked by the size of the correlation with what the columns named before leave, as a "
            "share of the spread of the response: its square is the gain of the best coefficient. "
            "Gain is that of the coefficient that was released, which has noise, and R2 so far is "
            "of the fit of all of them."
        )
    elif fit.score != COUNT:
        notes.append("Ranked by the size of the correlation.")
    if fit.score != COUNT:
        lower = "rank lower" if fit.threshold is None else "come above the threshold more seldom"
        notes.append(
            "Columns whose standard deviation is below "
            f"{signif(fit.release.least or 0.0, 2)} of their public half-range are taken for ones "
            f"of so much, and {lower}: noise allows no less."
        )
    if fit.release.values is not None and fit.values.isna().any():
        notes.append(
            f"{LOST}: the spread of the column or of the response is not told from none with this "
            "budget; declare bounds that rows fill."
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
