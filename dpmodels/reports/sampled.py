"""What reports say of a survey design: the design, its cap, and what it does to the errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from dpmodels.errors import shorten
from dpmodels.released import AnyRelease, CountsRelease, Meat
from dpmodels.report import Report, count, signif
from dpmodels.report.notes import Rank
from dpmodels.results.call import TableCall
from dpmodels.results.estimate_table import counted_as
from dpmodels.results.glm import GLMResult
from dpmodels.results.groups import GroupedResult
from dpmodels.results.lm import LMResult

WEIGHT: Final = "units of weight"
# The error of a percentage that is not printed: a choice.
HIDDEN_PERCENT: Final = 50.0


def design_facts(release: AnyRelease, facts: TableCall) -> tuple[tuple[str, str], ...]:
    """Return the lines of the header on the design; none without one."""
    if facts.sampled is None:
        return ()
    unit = "sampling units" if facts.sampled.units else "rows"
    n_units = "private" if release.rows is None else count(release.rows)
    return (("Design", facts.sampled.design), ("Sample", f"{n_units} {unit}"))


def counted_in(release: AnyRelease) -> str:
    """Return what counts are of: rows, persons, or weight under a survey design."""
    weighted = isinstance(release, CountsRelease) and release.weights is not None
    return WEIGHT if weighted else counted_as(release.adjacency)


def cell_noise_sd(release: CountsRelease) -> float:
    """Return the noise sd of a part of a table, in rows or units of weight."""
    return release.noise_sd * (1.0 if release.weights is None else release.weights.cap)


def capped_note(release: AnyRelease) -> tuple[str, ...]:
    """Say at what weights were capped, if they were; nothing without a survey design."""
    weights = release.weights if isinstance(release, CountsRelease) else None
    if weights is None or weights.mean_excess == 0:
        return ()
    what = "Weights" if release.adjacency.person is None else "Units of weight"
    return Rank.TARGET(
        f"{what} above {signif(weights.cap, 3)} were capped: what was cut off is put back, and in "
        "the errors."
    )


def step_note(fit: LMResult | GLMResult) -> tuple[str, ...]:
    """Say from which weights the estimate starts, and which coefficient the step moved the most."""
    cap = fit.release.units
    if cap is None or cap.scores is None or cap.beyond == 0:
        return ()
    table = fit.design
    text = f"One step from weights capped at {signif(cap.cap, 3)} to all weights moved"
    at = int(np.argmax(np.nan_to_num(table["shift"].abs() / fit.bse)))
    name = shorten(str(table.index[at]), 30)
    shift, shift_sd = (float(table[part].iloc[at]) for part in ("shift", "shift_sd"))
    return Rank.TARGET(f"{text} {name} by {signif(-shift, 2)} ± {signif(shift_sd, 2)}.")


def scores_of_units(meat: Meat) -> str:
    """Describe the squares from which errors under a design follow."""
    most = f"one unit: at most {100 * meat.most:.2g}% of a variance"
    return f"scores of units (linearised; {most}; noise: {meat.sd:.0%})"


def weighted_notes(release: AnyRelease) -> tuple[str, ...]:
    """Say at what the weights of a table were capped, and what is printed."""
    return (
        *capped_note(release),
        "Totals are of the population. Noise and noise_int() are privacy noise only; conf_int() "
        "is of shares, and tidy() has both errors of totals.",
        *Rank.DETAIL(
            "Totals are the nearest to the unbiased ones in released that are not negative.",
            "Errors are linearised, sampling units drawn with replacement.",
        ),
    )


def design_notes(fit: GroupedResult, facts: TableCall) -> tuple[str, ...]:
    """Say what was cut off the weights, and what the design does to the errors."""
    if facts.sampled is None or fit.release.weights is None:
        return ()
    notes = (*_cap_note(fit, facts.sampled.units), *_error_note(fit, facts.sampled.units))
    weak = "Strata are ignored in errors where noise hides them, which makes errors larger."
    return (*notes, *Rank.DETAIL(weak) * bool(facts.sampled.strata))


def _cap_note(fit: GroupedResult, units: bool) -> tuple[str, ...]:
    table, weights = fit.design, fit.release.weights
    assert weights is not None
    what = "Units of weight" if units else "Weights"
    if weights.mean_excess == 0:
        return Rank.DETAIL("No weights were capped.")
    sizes = table["weight"].clip(lower=0)
    sizes = sizes / max(float(sizes.sum()), 1e-300)
    share = 100 * float(table["capped"].to_numpy() @ sizes.to_numpy())
    error = 100 * float(np.linalg.norm(table["capped_sd"] * sizes))
    if not (np.isfinite(share) and error < HIDDEN_PERCENT):
        return Rank.TARGET(
            f"{what} above {signif(weights.cap, 3)} were capped. Noise hides how much of the "
            "weight this cut off; what may have been is put back, and in the errors."
        )
    text = f"{what} above {signif(weights.cap, 3)} were capped, by {share:.1f} ± {error:.1f} %"
    if len(table) == 1:
        shift, shift_sd = table[["shift", "shift_sd"]].iloc[0]
        moved = f"moved the estimate by {signif(shift, 2)} ± {signif(shift_sd, 2)}"
        return Rank.TARGET(f"{text} of all weight. This {moved}: put back, and in the errors.")
    return Rank.TARGET(
        f"{text} of all weight. This is put back, and in the errors: see fit.design."
    )


def _error_note(fit: GroupedResult, units: bool) -> tuple[str, ...]:
    table = fit.design.dropna(subset=["effective_n"])
    if table.empty:
        return ()
    sizes = [count(max(value, 0.0)) for value in (table["effective_n"].agg(["min", "max"]))]
    span = sizes[0] if sizes[0] == sizes[1] else f"{sizes[0]} to {sizes[1]}"
    if units:
        return Rank.DETAIL(
            f"Errors are linearised over sampling units drawn with replacement; effective number "
            f"of units {span}."
        )
    low, high = (signif(value, 2) for value in table["deff"].agg(["min", "max"]))
    deff = low if low == high else f"{low} to {high}"
    return Rank.DETAIL(f"Design effect {deff}, effective n {span}: linearised errors.")


def in_units(report: Report, facts: TableCall) -> Report:
    """Return a report that names the persons of a release as sampling units, if it has any."""
    if facts.sampled is None or not facts.sampled.units:
        return report
    header = tuple((head, _named(text)) for head, text in report.facts)
    notes = tuple(
        note for note in report.notes if "observation" not in note and "between persons" not in note
    )
    return replace(report, facts=header, notes=notes)


def _named(text: str) -> str:
    return text.replace("persons", "sampling units").replace("person", "sampling unit")
