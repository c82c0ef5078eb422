"""The printed report of a generalised linear model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.report import Report, Row, Section, interval, signif, signif_uncertain
from dpmodels.results.coefficients_call import LINKS
from dpmodels.results.coefficients_header import (
    SHOWN,
    coefficients_facts,
    coefficients_notes,
    plain_section,
    pull_note,
)
from dpmodels.results.header import STAMP

if TYPE_CHECKING:
    from dpmodels.results.glm import GLMResult


def glm_report(fit: GLMResult) -> Report:
    """Lay out a fit as tables of strings."""
    model = f"{fit.call.family}, {LINKS[fit.call.family]}"
    return Report(
        title="Private generalised linear model",
        facts=coefficients_facts(fit.call, fit.release, model),
        sections=(_coefficients(fit),),
        notes=(*_notes(fit), *coefficients_notes(fit.call, fit.release)),
        stamp=STAMP if fit.simulated else None,
    )


def _coefficients(fit: GLMResult) -> Section:
    if fit.sandwich is None:
        return plain_section(fit.call, fit.release)
    columns = (fit.params, fit.bse, fit.bse_noise, fit.tvalues, fit.pvalues)
    numbers = np.column_stack([*columns, fit.conf_int()]).tolist()
    rows = [
        Row(
            name,
            (
                signif_uncertain(value, bse),
                signif(bse, 2),
                signif(noise, 2),
                f"{test:.2f}",
                f"{p:.3f}",
                interval(low, high),
            ),
        )
        for name, (value, bse, noise, test, p, low, high) in zip(
            fit.call.names, numbers, strict=True
        )
    ]
    heads = ("coef", "std err", "noise", "z", "P>|z|", "95% conf. interval")
    return Section("Coefficients", heads, tuple(rows[:SHOWN]))


def _notes(fit: GLMResult) -> list[str]:
    notes = []
    if len(fit.call.names) > SHOWN:
        notes.append(f"{len(fit.call.names) - SHOWN} more coefficients: see params and tidy().")
    if fit.sandwich is None:
        notes.append(f"Standard errors: {fit.why_not}.")
        notes.append(pull_note(fit.release))
    else:
        notes.append(
            "std err: sampling and privacy noise; noise: privacy noise alone. What is known to be "
            "off the coefficients, as the ridge's pull, is taken off. For the non-private estimate "
            "on these rows: noise_int()."
        )
        notes.append(
            f"Sandwich: {fit.sandwich.robust:.0%} of its filling are squared gradients, the rest "
            "the curvature, which they equal where the model is right."
        )
    if not math.isnan(fit.call.clip):
        notes.append(
            f"Residuals beyond {signif(fit.call.clip, 3)} in units of the response were clipped. "
            "What that does to the coefficients is in no number here, and in no interval."
        )
    return notes
