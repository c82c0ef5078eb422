"""The printed reports of generalised regressions, and of estimates derived from any result."""

from __future__ import annotations

import math
from itertools import groupby

import numpy as np

from dpmodels.errors import shorten
from dpmodels.inference.sandwich import SIZE, Sandwich, dispersion
from dpmodels.released import CoefficientsRelease
from dpmodels.report import Fact, Report, Row, Section, interval, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports import header
from dpmodels.results.base import report_of
from dpmodels.results.call import LINKS, CoefficientsCall, release_facts
from dpmodels.results.classifiers import MultinomialResult, SVMResult
from dpmodels.results.derived_table import Estimates
from dpmodels.results.etable_columns import released_noise
from dpmodels.results.glm import GLMResult
from dpmodels.results.lm import LMResult
from dpmodels.results.survey import SurveyFitResult
from dpmodels.results.tabulated import CountedGLM, CountedMultinomial, OrdinalResult
from dpmodels.typing import Floats, TableLine

# Most coefficients in a printed table: a choice.
SHOWN = 60
TITLES = {
    "binomial": "Private generalised linear model",
    "poisson": "Private generalised linear model",
    "multinomial": "Private multinomial logit",
    "ordinal": "Private ordinal logit (proportional odds)",
}
COLUMNS = ("coef", "std err", "noise", "z", "P>|z|", "95% conf. interval")
_TWO_ERRORS = (
    "std err: sampling and privacy noise; noise: privacy noise alone. For the non-private "
    "estimate on these rows use noise_int()."
)


# The heads of a table of coefficients, and its cells.
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


@report_of.register
def glm_report(fit: GLMResult | MultinomialResult) -> Report:
    """Lay out a fit as tables of strings."""
    table = (COLUMNS, inference(fit)) if fit.linear.identified.any() else _unidentified(fit)
    family = fit.call.family
    return _report(fit, TITLES[family], f"{family}, {LINKS[family]}", table, fit_notes(fit))


@report_of.register
def svm_report(fit: SVMResult) -> Report:
    """Lay out a fit as tables of strings."""
    notes = (
        "A positive margin predicts the second level. There are no intervals; measure accuracy "
        "on public rows with predict(newdata).",
        _pull_note(fit.release),
    )
    title = "Private linear support vector machine"
    return _report(fit, title, "Huber loss, linear", _as_released(fit.call, fit.release), notes)


@report_of.register
def counted_report(fit: CountedGLM | CountedMultinomial) -> Report:
    """Lay out a fit as tables of strings."""
    call, release = fit.call, fit.release
    names = ["estimate", "std_error", "noise_sd", "statistic", "p_value", "conf_low", "conf_high"]
    lines = fit.tidy()[names].to_numpy(np.float64)
    facts = (
        ("Model", f"{call.family}, {LINKS[call.family]}"),
        ("Response", _response(call)),
        ("Cells", f"{len(release.values) - 1:,}, noise sd {signif(release.noise_sd, 3)} each"),
    )
    table = (COLUMNS, [coefficient_cells(*line) for line in lines.tolist()])
    return _laid_out(fit, TITLES[call.family], facts, table, _count_notes(fit))


def _response(call: CoefficientsCall) -> str:
    levels = call.levels
    if call.family == "ordinal":
        return f"{len(levels)} levels, {levels[0]} to {levels[-1]}"
    if call.family == "multinomial":
        return f"{len(levels)} levels, against {levels[0]}"
    return f"{levels[1]} against {levels[0]}" if levels else call.response


def _report(
    fit: GLMResult | MultinomialResult | SVMResult,
    title: str,
    model: str,
    table: Table,
    notes: tuple[str, ...],
) -> Report:
    call, release = fit.call, fit.release
    facts = (
        ("Model", model),
        ("Row norm", header.row_norm(call, release)),
        ("Response", _response(call)),
        ("Ridge", _ridge(release)),
    )
    return _laid_out(fit, title, facts, table, (*notes, *_tuning_notes(release)))


def _laid_out(
    fit: GLMResult | MultinomialResult | SVMResult,
    title: str,
    facts: tuple[Fact, ...],
    table: Table,
    notes: tuple[str, ...],
) -> Report:
    """Add the panels of a table to a report, and the notes on what it leaves out and on noise."""
    heads, cells = table
    total = len(fit.call.names) * fit.call.blocks
    omitted = header.omitted(SHOWN, total, "coefficients", "params and tidy()")
    return header.released_report(
        fit,
        title,
        first=facts,
        sections=panels(fit, heads, cells[:SHOWN]),
        notes=(*omitted, *notes),
        see=f"{header.SEE}.regression",
    )


def _ridge(release: CoefficientsRelease) -> str:
    text = f"{signif(release.ridge, 3)} {header.counted_as(release.adjacency)}"
    tuned = release.tuning
    return text if tuned is None else f"{text}, chosen of {len(tuned.ridges)} privately"


def _tuning_notes(release: CoefficientsRelease) -> tuple[str, ...]:
    tuned = release.tuning
    if tuned is None:
        return ()
    tried = ", ".join(signif(ridge, 3) for ridge in tuned.ridges)
    if release.rows is None:
        gap = f"a total of {signif(tuned.told_apart, 2)}"
    else:
        gap = f"about {signif(tuned.told_apart / (tuned.held_out * max(release.rows, 1)), 2)}"
    return Rank.DETAIL(
        f"{tuned.share:.0%} of the budget was spent on choosing among ridges {tried}, and the rest "
        "on this fit, to all rows.",
        f"Each ridge was fitted to a random {1 - tuned.held_out:.0%} of the rows, and one drawn by "
        f"the {tuned.score} of others: one worse by {gap} is 20 times less likely.",
    )


def panels(
    fit: GLMResult | MultinomialResult | SVMResult | SurveyFitResult,
    heads: tuple[str, ...],
    cells: list[tuple[str, ...]],
) -> tuple[Section, ...]:
    """Lay out the first coefficients: all together, by level, or slopes and thresholds."""
    call, levels, size = fit.call, fit.call.levels, len(fit.call.names)
    titles, stops = ["Coefficients"], [size]
    if isinstance(fit, OrdinalResult):
        titles, stops = ["Coefficients", "Thresholds"], [len(fit.slopes), size]
    elif isinstance(fit, MultinomialResult):
        titles = [f"{level} against {levels[0]}" for level in levels[1:]]
        stops = [size * (at + 1) for at in range(len(titles))]
    rows = [
        Row(name, line, about=header.about(call, name))
        for name, line in zip(call.names * call.blocks, cells, strict=False)
    ]
    spans = zip(titles, [0, *stops], stops, strict=False)
    sections = (Section(title, heads, tuple(rows[low:high])) for title, low, high in spans)
    return tuple(section for section in sections if section.rows)


def coefficient_cells(
    value: float, bse: float, noise: float, test: float, p: float, low: float, high: float
) -> tuple[str, ...]:
    """Return the cells of one coefficient under :data:`COLUMNS`."""
    if not math.isfinite(bse):
        return (header.UNKNOWN,) + ("",) * (len(COLUMNS) - 1)
    sds, ends = (signif(bse, 2), signif(noise, 2)), interval(low, high)
    return (signif_uncertain(value, bse), *sds, f"{test:.2f}", header.pvalue(p), ends)


def inference(fit: GLMResult | MultinomialResult | SurveyFitResult) -> list[tuple[str, ...]]:
    """Return the cells of all coefficients under :data:`COLUMNS`."""
    parts = (fit.params, fit.bse, fit.bse_noise, fit.tvalues, fit.pvalues)
    columns = [part.to_numpy(np.float64).T.ravel() for part in parts]
    numbers = np.column_stack([*columns, fit.conf_int()])
    return [coefficient_cells(*line) for line in numbers.tolist()]


def _unidentified(fit: GLMResult | MultinomialResult) -> Table:
    """Lay out coefficients without standard errors: to one digit where the noise is not known."""
    if isinstance(fit, MultinomialResult):
        return _coefficients(fit.params_released.to_numpy(np.float64).T.ravel(), None)
    smallest_noise = fit.noise_least
    if smallest_noise.isna().any():
        return _as_released(fit.linear.scaled_call, fit.release)
    pairs = zip(fit.params.tolist(), smallest_noise.tolist(), strict=True)
    cells: list[tuple[str, ...]] = [(signif(value, 1), signif(sd, 2)) for value, sd in pairs]
    return ("coef", "noise, at least"), cells


def _as_released(call: CoefficientsCall, release: CoefficientsRelease) -> Table:
    return _coefficients(call.matrix @ release.coefficients, released_noise(call, release))


def _coefficients(values: Floats, noise: Floats | None) -> Table:
    if noise is None:
        return ("coef",), [(signif(value, 1),) for value in values.tolist()]
    pairs = zip(values.tolist(), noise.tolist(), strict=True)
    return ("coef", "noise"), [(signif_uncertain(value, sd), signif(sd, 2)) for value, sd in pairs]


def _pull_note(release: CoefficientsRelease) -> str:
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
        if isinstance(fit, GLMResult) and not identified.all():
            notes += reference_note(fit)
    if fit.release.ball is not None and fit.release.ball.shortened_sd > 0:
        notes += Rank.TARGET(
            "Rows farther than the row norm from a released centre were left out: results describe "
            "the other rows, and all rows if the model holds for all."
        )
    if isinstance(fit, GLMResult) and fit.release.meat is not None:
        return (*notes, *(header.step_note(fit) if identified.any() else ()))
    clip = fit.call.clip if fit.release.clip is None else fit.release.clip
    if not math.isnan(clip):
        released = ", a released bound," if clip != fit.call.clip else ""
        notes += Rank.TARGET(
            f"Residuals beyond {signif(clip, 3)} in units of the response{released} were clipped; "
            "neither estimates nor intervals account for this bias."
        )
    return tuple(notes)


def reference_note(fit: GLMResult | LMResult) -> tuple[str, ...]:
    """Name the first factor whose reference level is lost in noise, while others are compared."""
    factors = fit._without_reference
    if not factors:
        return ()
    return Rank.IDENTIFIED(
        f"The level of {factors[0]} that others are compared with is lost in noise: "
        f'contrasts("{factors[0]}") compares the others, at no cost.'
    )


def _error_notes(sandwich: Sandwich, lost: int, release: CoefficientsRelease) -> list[str]:
    notes, bought = list[str](), release.curvature
    if lost:
        subject = "1 coefficient is" if lost == 1 else f"{lost} coefficients are"
        notes += Rank.IDENTIFIED(
            f"{subject} not identified at this budget: the noise in the curvature leaves the size "
            "unknown. Use a larger eps, more rows or fewer terms."
        )
        notes += Rank.DETAIL(
            "Intervals of identified coefficients allow for others that change the linear "
            f"predictor by about {max((SIZE, *sandwich.lost_sizes)):.2g} at the row norm."
        )
    if not sandwich.noise_law.clear:
        notes.append(
            f"The curvature is {sandwich.noise_law.equations.strength:.1f} times its noise along "
            "its weakest direction: intervals and z are by score inversion, not coef ± 1.96 std "
            "err and coef / std err."
        )
    notes += [
        _TWO_ERRORS,
        *Rank.DETAIL(
            "Coefficients are corrected for known bias, such as the ridge's shrinkage; "
            "params_released has them as released."
        ),
    ]
    if release.meat is not None:
        sampling = header.scores_of_units(release.meat)
        return [*notes, *Rank.DETAIL(f"std err: sampling with {sampling}.")]
    gradients, rest = "squared gradients", "which is the same if the model is correct"
    if bought is not None and bought.person is not None:
        gradients = f"squares of persons' gradients ({shorten(bought.person, 40)})"
        rest = "as if all rows of a person were equal"
    if bought is not None and release.units is not None:
        gradients, rest = "squared gradients of units", "as if all rows of a unit were equal"
    if bought is not None and release.clip is not None:
        times = signif(dispersion(bought), 2)
        rest = f"times a dispersion of {times}: counts may vary more than Poisson's"
    covariance = (
        f"Covariance: {sandwich.robust:.0%} of the sandwich's middle matrix is {gradients} "
        f"(robust), the rest curvature, {rest}."
    )
    return [*notes, *Rank.DETAIL(covariance)]


# Most rows of a table: a choice.
SHOWN_ESTIMATES = 80
NUMBERS = (
    *("estimate", "std_error", "statistic", "df", "df_resid", "sumsq", "meansq", "noise_sd"),
    *("p_value", "conf_low", "conf_high", "noise_low", "noise_high", "ngroups"),
)


@report_of.register
def estimates_report(estimates: Estimates) -> Report:
    """Lay out a table of estimates or tests."""
    table, heads = estimates.table, _heads(estimates)
    first = "estimate" if "estimate" in table else "statistic"
    keys = [str(name) for name in table if name not in (*NUMBERS, "identified")]
    lines = table.head(SHOWN_ESTIMATES).to_dict("records")
    rows: list[Row] = []
    for term, group in groupby(lines, lambda line: str(line[keys[0]])):
        group_lines, description = list(group), header.about(estimates.fit.call, term)
        headed = len(keys) > 1 and len(group_lines) > 1
        if headed:
            rows.append(Row(term, ("",) * len(heads), heading=True, about=description))
        for line in group_lines:
            cells = (header.UNKNOWN,) + ("",) * (len(heads) - 1)
            if line.get("identified", math.isfinite(line[first])):
                cells = tuple(_cell(estimates, line, name) for name in heads)
            label = ", ".join(str(line[name]) for name in keys[headed:])
            rows.append(Row(label, cells, int(headed), about=None if headed else description))
    title = ", ".join(keys).replace("term", "Term")
    lost = () if table.get("identified", table[first].notna()).all() else LOST
    return Report(
        title=estimates.title,
        facts=(
            ("Formula", estimates.fit.call.formula),
            *release_facts(estimates.fit.release).items(),
            *estimates.facts,
        ),
        sections=(Section(title, tuple(heads.values()), tuple(rows)),),
        notes=(
            *header.omitted(SHOWN_ESTIMATES, len(table), "rows", "tidy()"),
            *estimates.notes,
            *lost,
            *FREE,
        ),
    )


LOST = Rank.IDENTIFIED("not identified: it depends on coefficients that the noise leaves unknown.")
FREE = Rank.SOURCE("Computed from the released fit: no data are read, and no budget is spent.")


def _heads(estimates: Estimates) -> dict[str, str]:
    test = estimates.test
    labels = {
        "estimate": "ratio" if estimates.ratio else "estimate",
        "std_error": "std err (log)" if estimates.ratio else "std err",
        "noise_sd": "noise sd",
        "df": "df",
        "df_resid": "df resid",
        "sumsq": "sum sq",
        "meansq": "mean sq",
        "statistic": test,
        "p_value": f"P>|{test}|" if test in ("z", "t") else f"P>{test}",
        "conf_low": f"{estimates.level:.0%} conf. interval",
        "noise_low": f"{estimates.level:.0%} noise interval",
    }
    return {name: labels[name] for name in estimates.table if name in labels}


def _cell(estimates: Estimates, line: TableLine, name: str) -> str:
    value = line[name]
    match name:
        case "estimate":
            sd = line["std_error" if "std_error" in line else "noise_sd"]
            return signif_uncertain(value, sd * abs(value) if estimates.ratio else sd)
        case "std_error" | "noise_sd":
            return "" if math.isnan(value) else signif(value, 2)
        case "sumsq":
            return signif_uncertain(value, line["noise_sd"])
        case "meansq":
            return signif_uncertain(value, line["noise_sd"] / max(line["df"], 1.0))
        case "df" | "df_resid":
            return signif(value, 4) if value % 1 and value < 1e4 else f"{value:,.0f}"
        case "p_value":
            return "" if math.isnan(value) else header.pvalue(value)
        case "conf_low" | "noise_low":
            return interval(value, line[name.replace("low", "high")])
    return "" if math.isnan(value) else f"{value:.2f}"


def _count_notes(fit: CountedGLM | CountedMultinomial) -> tuple[str, ...]:
    lost = int((~fit.linear.identified).sum())
    subject = "1 coefficient is" if lost == 1 else f"{lost} coefficients are"
    notes = Rank.IDENTIFIED(
        f"{subject} not identified: noise hides the counts of their levels. Use a larger eps, "
        "merge rare levels, or declare a frequent level first."
    )
    how = Rank.DETAIL(
        "Coefficients maximise the likelihood of noisy counts of all combinations of levels; "
        "errors are of first order in their noise, sampling errors robust."
    )
    return (*notes * bool(lost), _TWO_ERRORS, *how)
