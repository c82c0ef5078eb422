"""The printed reports of coefficients: generalised linear models and support vector machines."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.errors import shorten
from dpmodels.inference.sandwich import SIZE, Sandwich, dispersion
from dpmodels.released import CoefficientsRelease
from dpmodels.report import Fact, Report, Row, Section, interval, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports.header import (
    SEE,
    about,
    closing,
    counted_as,
    omitted,
    opening,
    pvalue,
    row_norm,
    shared_facts,
)
from dpmodels.results.base import report_of
from dpmodels.results.call import LINKS, CoefficientsCall
from dpmodels.results.etable_columns import released_noise
from dpmodels.results.glm import GLMResult
from dpmodels.results.multinomial import MultinomialResult
from dpmodels.results.svm import SVMResult

# Most coefficients in a printed table: a choice.
SHOWN = 60
UNKNOWN = "not identified"
COLUMNS = ("coef", "std err", "noise", "z", "P>|z|", "95% conf. interval")


@report_of.register
def glm_report(fit: GLMResult) -> Report:
    """Lay out a fit as tables of strings."""
    model = f"{fit.call.family}, {LINKS[fit.call.family]}"
    section = _coefficients(fit) if fit.identified.any() else _unidentified(fit)
    notes = (*omitted(SHOWN, len(fit.call.names), "coefficients", "params and tidy()"),)
    title = "Private generalised linear model"
    return fit_report(fit, title, model, _response(fit.call), (section,), (*notes, *fit_notes(fit)))


@report_of.register
def svm_report(fit: SVMResult) -> Report:
    """Lay out a fit as tables of strings."""
    notes = (
        "A positive margin predicts the second level. There are no intervals; measure accuracy "
        "on public rows with predict(newdata).",
        _pull_note(fit.release),
        *omitted(SHOWN, len(fit.params), "coefficients", "params and tidy()"),
    )
    title, model = "Private linear support vector machine", "Huber loss, linear"
    section = _as_released(fit.call, fit.release)
    return fit_report(fit, title, model, _response(fit.call), (section,), notes)


def _response(call: CoefficientsCall) -> str:
    return f"{call.levels[1]} against {call.levels[0]}" if call.levels else call.response


def fit_report(
    fit: GLMResult | MultinomialResult | SVMResult,
    title: str,
    model: str,
    response: str,
    sections: tuple[Section, ...],
    notes: tuple[str, ...],
) -> Report:
    """Add the facts and notes of every report of coefficients to its tables."""
    call, release = fit.call, fit.release
    facts: tuple[Fact, ...] = (
        *opening(call, release),
        ("Model", model),
        ("Row norm", row_norm(call, release)),
        ("Response", response),
        ("Ridge", _ridge(release)),
        *shared_facts(release),
    )
    notes = (*notes, *_tuning_notes(release))
    closed = closing(call, release, f"{SEE}.regression")
    return Report(title, facts, sections, (*notes, *closed), fit.stamp)


def _ridge(release: CoefficientsRelease) -> str:
    text = f"{signif(release.ridge, 3)} {counted_as(release.adjacency)}"
    tuned = release.tuning
    return text if tuned is None else f"{text}, chosen of {len(tuned.ridges)} privately"


def _tuning_notes(release: CoefficientsRelease) -> tuple[str, ...]:
    """Describe the ridges tried, their cost, and the resolution of the choice."""
    tuned = release.tuning
    if tuned is None:
        return ()
    tried = ", ".join(signif(ridge, 3) for ridge in tuned.ridges)
    if release.rows is None:
        gap = f"a total of {signif(tuned.told_apart, 2)}"
    else:
        gap = f"about {signif(tuned.told_apart / (tuned.held_out * max(release.rows, 1)), 2)}"
    return (
        *Rank.DETAIL(
            f"{tuned.share:.0%} of the budget was spent on choosing among ridges {tried}, and the "
            "rest on this fit, to all rows.",
            f"Each ridge was fitted to a random {1 - tuned.held_out:.0%} of the rows, and one "
            f"drawn by the {tuned.score} of others: one worse by {gap} is 20 times less likely.",
        ),
    )


def _coefficients(fit: GLMResult) -> Section:
    columns = (fit.params, fit.bse, fit.bse_noise, fit.tvalues, fit.pvalues)
    numbers = np.column_stack([*columns, fit.conf_int()]).tolist()
    rows = [
        Row(name, coefficient_cells(*line), about=about(fit.call, name))
        for name, line in zip(fit.call.names, numbers, strict=True)
    ]
    return Section("Coefficients", COLUMNS, tuple(rows[:SHOWN]))


def coefficient_cells(
    value: float, bse: float, noise: float, test: float, p: float, low: float, high: float
) -> tuple[str, ...]:
    """Return the cells of one coefficient under :data:`COLUMNS`."""
    if not math.isfinite(bse):
        return (UNKNOWN,) + ("",) * (len(COLUMNS) - 1)
    sds, ends = (signif(bse, 2), signif(noise, 2)), interval(low, high)
    return (signif_uncertain(value, bse), *sds, f"{test:.2f}", pvalue(p), ends)


def _unidentified(fit: GLMResult) -> Section:
    """Lay out coefficients without standard errors, to the digits that the noise leaves."""
    smallest_noise = fit.noise_least
    if smallest_noise.isna().any():
        return _as_released(fit.linear.scaled_call, fit.release)
    pairs = list(zip(fit.params, smallest_noise, strict=True))[:SHOWN]
    rows = [
        Row(name, (signif_uncertain(value, sd), signif(sd, 2)), about=about(fit.call, name))
        for name, (value, sd) in zip(fit.call.names, pairs, strict=False)
    ]
    return Section("Coefficients", ("coef", "noise, at least"), tuple(rows))


def _as_released(call: CoefficientsCall, release: CoefficientsRelease) -> Section:
    """Lay out coefficients as released, with their noise if it is known."""
    values = (call.matrix @ release.coefficients)[:SHOWN].tolist()
    noise = released_noise(call, release)
    if noise is None:
        rows = [
            Row(name, (signif(v, 1),), about=about(call, name))
            for name, v in zip(call.names, values, strict=False)
        ]
        return Section("Coefficients", ("coef",), tuple(rows))
    rows = [
        Row(name, (signif_uncertain(v, sd), signif(sd, 2)), about=about(call, name))
        for name, v, sd in zip(call.names, values, noise.tolist(), strict=False)
    ]
    return Section("Coefficients", ("coef", "noise"), tuple(rows))


def _pull_note(release: CoefficientsRelease) -> str:
    """Describe coefficients without standard errors."""
    pulled = "Coefficients are as released, shrunk by a ridge towards a constant model"
    if release.gradient is None and not math.isnan(release.coefficient_sd):
        return f"{pulled}; noise: sd of the noise about the ridge estimate of these rows."
    return f"{pulled}; the size of their noise was not released."


def fit_notes(fit: GLMResult | MultinomialResult) -> tuple[str, ...]:
    """Describe standard errors, or say why they are missing, and say which rows counted."""
    notes, sandwich, identified = list[str](), fit.sandwich, fit.identified.to_numpy()
    if sandwich is None or not identified.any():
        reason, _, advice = fit.why_not.partition("; use ")
        notes += Rank.IDENTIFIED(f"Standard errors: {reason}.")
        notes.append(_pull_note(fit.release))
        if advice:
            notes += Rank.DETAIL(f"For standard errors use {advice}.")
    else:
        notes += _error_notes(sandwich, int((~identified).sum()), fit.release)
    if fit.release.ball is not None:
        notes += Rank.TARGET(
            "Rows farther than the row norm from a released centre were left out: results describe "
            "the other rows, and all rows if the model holds for all."
        )
    if fit.release.clip is not None:
        notes += Rank.TARGET(
            f"Residuals beyond {signif(fit.release.clip, 3)} in units of the response, a released "
            "bound, were clipped; neither estimates nor intervals account for this bias."
        )
    elif not math.isnan(fit.call.clip):
        notes += Rank.TARGET(
            f"Residuals beyond {signif(fit.call.clip, 3)} in units of the response were clipped; "
            "neither estimates nor intervals account for this bias."
        )
    return tuple(notes)


def _error_notes(sandwich: Sandwich, lost: int, release: CoefficientsRelease) -> list[str]:
    """Describe standard errors, and count the coefficients without one."""
    notes, bought = list[str](), release.curvature
    if lost:
        subject = "1 coefficient is" if lost == 1 else f"{lost} coefficients are"
        notes += Rank.IDENTIFIED(
            f"{subject} not identified at this budget: the noise in the curvature leaves the size "
            "unknown. Use a larger eps, more rows or fewer terms."
        )
        notes += Rank.DETAIL(
            "Intervals of identified coefficients allow for others that change the linear "
            f"predictor by about {SIZE:g} at the row norm."
        )
    if not sandwich.noise_law.clear:
        notes.append(
            f"The curvature is {sandwich.noise_law.equations.strength:.1f} times its noise along "
            "its weakest direction: intervals and z are by score inversion, not coef ± 1.96 std "
            "err and coef / std err."
        )
    notes += [
        "std err: sampling and privacy noise; noise: privacy noise alone. For the non-private "
        "estimate on these rows use noise_int().",
        *Rank.DETAIL(
            "Coefficients are corrected for known bias, such as the ridge's shrinkage; "
            "params_released has them as released."
        ),
    ]
    gradients, rest = "squared gradients", "which is the same if the model is correct"
    if bought is not None and bought.person is not None:
        gradients = f"squares of persons' gradients ({shorten(bought.person, 40)})"
        rest = "as if all rows of a person were equal"
    if bought is not None and release.clip is not None:
        times = signif(dispersion(bought), 2)
        rest = f"times a dispersion of {times}: counts may vary more than Poisson's"
    covariance = (
        f"Covariance: {sandwich.robust:.0%} of the sandwich's middle matrix is {gradients} "
        f"(robust), the rest curvature, {rest}."
    )
    return [*notes, *Rank.DETAIL(covariance)]


# The printed report of a multinomial logit: a panel for each level against the reference.


@report_of.register
def multinomial_report(fit: MultinomialResult) -> Report:
    """Lay out a fit as tables of strings."""
    call = fit.call
    notes = (
        *omitted(SHOWN, len(fit.linear.matrix), "coefficients", "params and tidy()"),
        *fit_notes(fit),
    )
    response = f"{len(call.levels)} levels, against {call.levels[0]}"
    title, model = "Private multinomial logit", "multinomial, logit link"
    return fit_report(fit, title, model, response, _panels(fit), notes)


def _panels(fit: MultinomialResult) -> tuple[Section, ...]:
    """Return a section for each level, of the first coefficients."""
    call = fit.call
    size, identified = len(call.names), not fit.why_not
    heads = COLUMNS if identified else ("coef",)
    cells = _inference_cells(fit) if identified else _multinomial_as_released(fit)
    sections = []
    for index, level in enumerate(call.levels[1:]):
        pairs = zip(call.names, cells[index * size : min((index + 1) * size, SHOWN)], strict=False)
        rows = tuple(Row(name, line, about=about(call, name)) for name, line in pairs)
        if rows:
            sections.append(Section(f"{level} against {call.levels[0]}", heads, rows))
    return tuple(sections)


def _inference_cells(fit: MultinomialResult) -> list[tuple[str, ...]]:
    parts = (fit.params, fit.bse, fit.bse_noise, fit.tvalues, fit.pvalues)
    columns = [part.to_numpy(np.float64).T.ravel() for part in parts]
    numbers = np.column_stack([*columns, fit.conf_int()])
    return [coefficient_cells(*line) for line in numbers.tolist()]


def _multinomial_as_released(fit: MultinomialResult) -> list[tuple[str, ...]]:
    values = fit.params_released.to_numpy(np.float64).T.ravel().tolist()
    return [(signif(value, 1),) for value in values]
