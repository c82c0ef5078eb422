"""The printed report of ridge and lasso paths."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.report import Fact, Report, Row, Section, count, signif, signif_uncertain
from dpmodels.reports.counted import counted_as
from dpmodels.reports.header import SEE, about, closing, complete_rows, more, opening, shared_facts
from dpmodels.results.base import report_of
from dpmodels.results.path import PathResult
from dpmodels.typing import Floats

# Terms, and penalties besides that of the noise, in a printed table: choices.
SHOWN, STEPS = 60, 4
UNKNOWN = "not identified"


@report_of.register
def path_report(made: PathResult) -> Report:
    """Lay out coefficients at some penalties, with those of no penalty beside them."""
    fit = made.linear
    return Report(
        title=f"Private linear regression, {made.penalty} path",
        facts=_facts(made),
        sections=(_coefficients(made),),
        notes=(*_notes(made), *closing(fit.call, fit.release, SEE, fit.nobs)),
        stamp=made.stamp,
    )


def _facts(made: PathResult) -> tuple[Fact, ...]:
    fit = made.linear
    complete = "not counted (weights)"
    if fit.model.weights is None:
        what = counted_as(fit.release.adjacency)
        complete = complete_rows(fit.nobs, fit.release.noise.count, what=what)
    first, last = (signif(float(made.lambdas[at]), 3) for at in (0, -1))
    noise = (("Noise penalty", signif(made.noise_lambda, 3)),) * (made.penalty == "lasso")
    return (
        *opening(fit.call, fit.release),
        ("Complete", complete),
        ("Penalties", f"{count(len(made.lambdas))}, from {first} to {last}"),
        *noise,
        *shared_facts(fit.release),
    )


def _shown(made: PathResult) -> Floats:
    """Return the penalties that have a column: some of the path, and that of the noise."""
    places = np.linspace(0, len(made.lambdas) - 1, min(STEPS, len(made.lambdas))).round()
    own = made.lambdas[np.unique(places.astype(int))].tolist()
    noise = [] if math.isnan(made.noise_lambda) else [made.noise_lambda]
    return np.array(sorted({*own, *noise}, reverse=True))


def _coefficients(made: PathResult) -> Section:
    fit, shown = made.linear, _shown(made)
    sds = fit.errors(fit.full_law if fit.sampled else fit.noise_law, np.eye(len(fit.names)))
    columns = np.column_stack([made.at(float(own)).to_numpy() for own in shown])
    rows = []
    for name, sd, line in zip(fit.names[:SHOWN], sds.tolist(), columns.tolist(), strict=False):
        last = signif(sd, 2) if math.isfinite(sd) else UNKNOWN
        cells = (*(_cell(value, sd) for value in line), last)
        rows.append(Row(name, cells, about=about(fit.call, name)))
    heads = (*(_head(made, float(own)) for own in shown), _error(made))
    above = (*("penalty",) * len(shown), "")
    return Section("Coefficients", heads, tuple(rows), above)


def _error(made: PathResult) -> str:
    return "std err" if made.linear.sampled else "noise sd"


def _head(made: PathResult, penalty: float) -> str:
    noise = penalty == made.noise_lambda
    return f"noise {signif(penalty, 2)}" if noise else signif(penalty, 2)


def _cell(value: float, sd: float) -> str:
    """Print a coefficient to the digits that one without penalty has; a 0 of a lasso as a dot."""
    if value == 0:
        return "."
    return signif_uncertain(value, sd) if math.isfinite(sd) else signif(value, 2)


def _notes(made: PathResult) -> list[str]:
    fit, own = made.linear, made.standardised
    term = "s|b|" if made.penalty == "lasso" else "(sb)^2/2"
    notes = [
        *more(SHOWN, len(fit.names), "coefficients", "params and tidy()"),
        f"Least RSS/(2n) + penalty x sum of {term}, s the released sd of each term; the constant "
        f"has no penalty. {_error(made)} is that of the coefficient without one.",
    ]
    if not own.told.all():
        wide = made.scaled_by[made.scaled_by != "sd"].index.tolist()
        named = ", ".join(wide) if len(wide) <= 6 else f"{', '.join(wide[:5])}, ..."
        notes.append(f"s is half the public range where noise hides the sd: {named}.")
    if own.lifted:
        notes.append(
            "A ridge was put on X'X before any penalty, as in dp_lm: noise hides some of it, or "
            "the mechanism has one of its own."
        )
    if made.penalty == "lasso":
        kept, slopes = len(made.kept), len(fit.call.names) - 1
        which = "no slopes" if fit.sampled else "none in these rows, sampling not counted"
        notes.append(
            f"Noise penalty: below it slopes are not told from noise; were there {which}, all "
            f"would be 0 there in about 95 of 100 releases. {kept} of {slopes} slopes are not 0 at "
            "it."
        )
    if not fit.identified.all():
        notes.append(
            f"{UNKNOWN}: the release says nothing of the coefficient without penalty; with one it "
            "is what the penalty leaves."
        )
    notes.append(
        "No intervals: none covers after a penalty, or a choice by the same noise. .lm(formula) "
        "of dp_moments fits terms that were chosen otherwise, free."
    )
    return notes
