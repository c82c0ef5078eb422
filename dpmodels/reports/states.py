"""The printed report of counts of states in dependent series."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dpmodels.report import Report, Row, Section, count, signif
from dpmodels.reports.counts import listed
from dpmodels.reports.header import SEE, complete_text
from dpmodels.results.base import report_of
from dpmodels.results.states import StatesResult

# A choice: doubts about the class are told of where one release in a thousand would by chance.
_SURE: Final = 0.999


@report_of.register
def states_report(fit: StatesResult) -> Report:
    """Lay out counts of states, the quilt and the scales of noise as tables of strings."""
    facts, release = fit.call.tables[0], fit.release
    complete = complete_text(fit.ncomplete, fit._counted.incomplete_sd, what="times")
    table = listed(" / ".join(facts.factors), facts.labels, fit.tidy(), release)
    persons = (release.rows or 0) // fit.steps
    many = f"{count(persons)} person{'s' * (persons != 1)}, {count(fit.steps)} times each"
    return Report(
        title="Private counts of states: Pufferfish (not differential privacy)",
        facts=(
            ("Formula", fit.call.formula),
            ("Guarantee", f"Pufferfish, eps = {fit.budget.eps:g}"),
            ("Mechanism", f"{release.card.name} ({release.card.numerics})"),
            ("Secrets", f"the state at each {fit.time}"),
            ("Observations", many),
            ("Ledger", fit.call.ledger or "none"),
            ("Class", fit.chain.describe()),
            ("Complete", complete),
            ("Cell noise", f"sd {signif(fit.noise_sd(), 2)}, Laplace"),
        ),
        sections=(replace(table, columns=("Times", *table.columns[1:])), _scales(fit)),
        notes=(_quilt(fit), *_notes(fit)),
        stamp=fit.stamp,
    )


def _scales(fit: StatesResult) -> Section:
    """Lay out what the noise is, and what it would be where less or more were assumed."""
    rows = tuple(
        Row(str(name), (signif(scale, 4), signif(ratio, 4)))
        for name, scale, ratio in fit.scales.itertuples()
    )
    return Section("Noise of a count", ("Scale", "Ratio"), rows)


def _quilt(fit: StatesResult) -> str:
    own = fit.quilt
    if own.trivial:
        why = "asked for" if fit.budget.quilt == "trivial" else "no other is quieter"
        return f"Active quilt: {own.describe()}, as for group privacy of a series ({why})."
    return (
        f"Active quilt: the states {own.describe()}, at {fit.time} number {count(own.time)}, which "
        f"needs most; their max-influence is {signif(own.influence, 3)} of eps = "
        f"{fit.budget.eps:g}."
    )


def _notes(fit: StatesResult) -> tuple[str, ...]:
    card = fit.release.card
    shares = "Shares are of the long run, with the dependence of the class: conf_int()."
    return (
        "The guarantee holds if the class holds the truth, different persons are independent, and "
        "which states are missing has nothing to do with them. It is of single states: who is in "
        "the table, when states are missing and how a series went as a whole are not hidden.",
        '"Each time by itself" is too little noise where states depend on each other.',
        "Counts are whole, not negative and, with the times without a state, add up to the places "
        "of all persons. Noise intervals rest on the noise alone.",
        *((shares,) * (fit.kept is not None)),
        *_doubts(fit),
        f"Source: {card.name}, {card.source}{SEE}.",
    )


def _doubts(fit: StatesResult) -> tuple[str, ...]:
    """Say where released shares are not those of the class; it is a reading of what is released."""
    if fit.kept is None:
        return ()
    ends = fit.conf_int(_SURE)
    if bool(((ends["lower"] <= fit.kept) & (fit.kept <= ends["upper"])).all()):
        return ()
    shares = ", ".join(f"{100 * share:.1f}" for share in fit.kept.tolist())
    return (
        f"The shares that the class keeps in the long run, {shares} %, are outside the {_SURE:.1%} "
        "intervals of what was released: the class may not hold the truth, and the guarantee rests "
        "on it. A model that is chosen after this release is learnt from the rows.",
    )
