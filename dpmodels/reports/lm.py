"""The printed reports of linear regressions, as in statsmodels, with their noise."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.errors import shorten
from dpmodels.formula.response import COUNTS_SHARE
from dpmodels.inference.sandwich import DETECTION_SDS
from dpmodels.privacy import LaplaceEvent
from dpmodels.report import Fact, Report, Row, Section, count, interval, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports import header
from dpmodels.reports.coefficients import reference_note
from dpmodels.results.base import report_of
from dpmodels.results.call import INTERCEPT
from dpmodels.results.lm import LMResult
from dpmodels.results.path import PathResult

# Most coefficients in a printed table: a choice.
SHOWN = 60
REWEIGHTED = (
    "Noise interval: a fit with equal weights may lie outside it where the relation bends or tails "
    "are heavy."
)


@report_of.register
def lm_report(fit: LMResult) -> Report:
    """Lay out a fit as tables of strings."""
    return Report(
        title="Private linear regression",
        facts=_facts(fit),
        sections=(_coefficients(fit), _noise(fit)),
        notes=(
            *header.few_complete(fit.release, fit.nobs, fit.release.noise.count),
            *_notes(fit),
            *header.closing(fit.call, fit.release, header.SEE, fit.nobs),
        ),
    )


def _facts(fit: LMResult) -> tuple[Fact, ...]:
    weighted = fit.model.weights
    complete = "not counted (weights)"
    if fit.release.units is not None:
        cap = fit.release.units.cap
        weight, noise = count(max(cap * fit.linear.weight, 0.0)), cap * fit.release.noise.count
        complete = f"rows of weight {weight} (noise sd {signif(noise, 2)})"
    elif not weighted:
        complete = header.complete_text(
            fit.nobs,
            fit.release.noise.count,
            fit.release.rows,
            header.counted_as(fit.release.adjacency),
        )
    _, *moments = header.moments_facts(fit.call, fit.release, complete)
    statistic, slopes, chance = fit.slopes_test
    tested = not math.isnan(statistic)
    kind = "" if fit.model.intercept else " (uncentred)"
    model = f"WLS, weights {weighted}" if weighted else "OLS"
    freedom = "unknown" if math.isnan(fit.df_resid) else count(fit.df_resid)
    n_slopes = sum(str(name) != INTERCEPT for name in fit.params.index)
    of = "all slopes" if slopes == n_slopes else f"{slopes:.0f} of {n_slopes} slopes"
    return (
        ("Dep. variable", fit.call.names[-1]),
        (f"R-squared{kind}", _rsquared(fit, fit.rsquared)),
        ("Model", "WLS, sampling weights" if fit.model.sampled else model),
        ("Adj. R-squared", _rsquared(fit, fit.rsquared_adj)),
        ("Residual sd", _sigma(fit)),
        ("Wald chi2", f"{signif(statistic, 4)} ({of} 0)" if tested else "-"),
        ("Df", f"{slopes:.0f} model, {freedom} residuals"),
        ("Prob (chi2)", header.pvalue(chance) if tested else "-"),
        *_fixed_effects(fit),
        *_covariance_type(fit),
        *header.opening(fit.call, fit.release),
        *moments,
        *header.shared_facts(fit.release),
    )


def _fixed_effects(fit: LMResult) -> tuple[Fact, ...]:
    sizes = [(code, len(fit.terms[code]) + 1) for code in fit.model.fixed]
    text = ", ".join(f"{code} ({size:,} levels)" for code, size in sizes)
    return (("Fixed effects", text),) if sizes else ()


def _covariance_type(fit: LMResult) -> tuple[Fact, ...]:
    meat = fit.release.meat
    if meat is None:
        return ()
    kind = "HC" if meat.person is None else f"cluster ({shorten(meat.person, 40)})"
    kind = kind if fit.release.units is None else "survey design"
    return (("Covariance type", f"{kind}, bought with {meat.share:.0%} of the budget"),)


def _rsquared(fit: LMResult, value: float) -> str:
    sd = fit.linear.rsquared[1]
    if math.isnan(value):
        return "-" if math.isnan(fit.df_resid) else "lost in noise"
    return signif_uncertain(value, max(sd, 0.01))


def _sigma(fit: LMResult) -> str:
    value, sd = fit.linear.scale
    if math.isnan(fit.df_resid):
        return "-"
    if math.isnan(fit.scale):
        limit = max(value + DETECTION_SDS * sd, 0.0)
        return f"below {signif(math.sqrt(limit), 2)}" if limit > 0 else "lost in noise"
    root = math.sqrt(value)
    return signif_uncertain(root, max(sd / (2 * root), 0.001 * root))


def _coefficients(fit: LMResult) -> Section:
    """Lay out statsmodels' columns; the z and its p-value are those that conf_int() inverts."""
    z = "score z" if fit.sampled and _score_tested(fit) else "z"
    heads = ("coef", "std err", z, "P>|z|", "95% conf. interval")
    blank = ("",) * (len(heads) - 1)
    if not fit.sampled:
        plain = zip(fit.params.items(), fit.bse_noise, strict=True)
        rows = [
            Row(
                str(name),
                (signif_uncertain(v, sd), *blank),
                about=header.about(fit.call, str(name)),
            )
            for (name, v), sd in plain
        ]
        return Section("Coefficients", heads, tuple(rows[:SHOWN]))
    table = fit.tidy()
    rows = []
    columns = ["estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"]
    numbers = table[columns].to_numpy(dtype=float)[:SHOWN].tolist()
    for name, is_identified, line in zip(table["term"], table["identified"], numbers, strict=False):
        value, sd, z, p, low, high = line
        cells = (header.UNKNOWN, *blank)
        if is_identified:
            ends = interval(low, high) if math.isfinite(high - low) else header.UNKNOWN
            cells = (signif_uncertain(value, sd), signif(sd, 2), f"{z:.2f}", header.pvalue(p), ends)
        rows.append(Row(str(name), cells, about=header.about(fit.call, str(name))))
    return Section("Coefficients", heads, tuple(rows))


def _noise(fit: LMResult) -> Section:
    ends = fit.noise_int()
    sds = fit.bse_noise.to_numpy().tolist()
    shares = _shares(fit)
    names, rows = map(str, fit.params.index[:SHOWN]), []
    for name, sd, share, pair in zip(names, sds, shares, ends.to_numpy().tolist(), strict=False):
        cells = (header.UNKNOWN, "", "")
        if math.isfinite(sd):
            cells = (signif(sd, 2), share, interval(*pair))
        rows.append(Row(name, cells))
    heads = ("noise sd", "share of variance", "95% noise interval")
    return Section("Privacy noise", heads, tuple(rows))


def _shares(fit: LMResult) -> list[str]:
    if not fit.sampled:
        return ["-"] * len(fit.params)
    total = fit.bse.to_numpy()
    noise = fit.bse_noise.to_numpy()
    with np.errstate(invalid="ignore"):
        shares = (noise / total) ** 2
    return ["-" if math.isnan(share) else f"{share:.0%}" for share in shares.tolist()]


def _notes(fit: LMResult) -> list[str]:
    identified = fit.identified.to_numpy()
    notes = [*header.omitted(SHOWN, len(identified), "coefficients", "params, tidy() and noise()")]
    notes += _lumped(fit)
    if not identified.all():
        notes += _unidentified(fit)
    if fit.sampled and (differing := _score_tested(fit)):
        notes.append(
            "score z: z and P>|z| are of the score test that the intervals invert, not coef/std "
            f"err, for {_listed(differing)}."
        )
    weights = ", downweighted where terms are extreme" * fit.linear.is_reweighted
    notes += [
        "std err, conf. interval: sampling and privacy noise. Noise interval: for the non-private "
        f"fit of these rows{weights}.",
        *Rank.DETAIL(REWEIGHTED) * bool(weights),
        *Rank.TARGET(
            f"Intervals do not account for bias by clipping to the declared bounds{_far(fit)}."
        ),
        *Rank.DETAIL(
            f"std err: sampling with {_variances(fit)}. Privacy noise: that in X'X and X'y."
        ),
    ]
    notes += header.step_note(fit)
    heavy = (
        "Intercept: most rows are on one side of the line, and few rows on the other may "
        "determine it, so it may cover less than 95 %."
    )
    notes += Rank.TARGET(heavy) * (fit.has_heavy_tail and bool(identified[0]))
    if fit.linear.equations.lifted:
        notes += Rank.DETAIL(
            "Intervals allow for slopes along hidden directions of X'X of twice the root mean "
            "square slope (in sds)."
        )
    if math.isnan(fit.scale) and fit.release.meat is None and fit.sampled:
        notes += Rank.IDENTIFIED(
            "The residual variance is lost in noise: intervals of predicted single rows use its "
            "upper limit."
        )
    if not fit.sampled:
        notes += Rank.IDENTIFIED(
            "Without the number of rows the residual variance, std err and conf. intervals "
            'are not available; use no weights, adjacency="replace", or vcov="HC".'
        )
    elif fit.model.weights and fit.release.meat is None:
        notes.append(
            "The number of complete weighted rows is not known: std err is too small if many are "
            "incomplete."
        )
    if any(isinstance(event, LaplaceEvent) for event in fit.release.events):
        notes.append(
            "Laplace noise is approximated by normal noise: 95% intervals cover at least 93.8%, "
            "the case of one dominating draw."
        )
    return notes


def _far(fit: LMResult) -> str:
    limit = fit.linear.residual_limit
    if math.isnan(limit):
        return ""
    size = f"±{signif(limit, 2)}"
    return f", nor for residuals far beyond {size}, such as codes, which count as {size}"


def _lumped(fit: LMResult) -> list[str]:
    release = fit.release
    if release.lumped is None or release.lumped_sd is None or fit.request is None:
        return []
    minimum = f"{float(fit.request.options['lump']):g}"
    cost = f"noise sd {signif(release.lumped_sd, 2)}, {COUNTS_SHARE:.0%} of the budget"
    if not release.lumped:
        note = f"No factor has two levels with a noisy count below {minimum} ({cost}): none merged."
        return list(Rank.TARGET(note))
    levels = "; ".join(
        f"{shorten(name, 20)}: {count(len(merged))} levels" for name, merged in release.lumped[:2]
    )
    if len(release.lumped) > 2:
        levels = f"{count(len(release.lumped))} factors"
    note = f'Levels with a noisy count below {minimum} are merged into "Other" ({levels}; {cost}).'
    detail = "; ".join(f"{name}: {', '.join(merged)}" for name, merged in release.lumped)
    return [*Rank.TARGET(note), *Rank.DETAIL(f"Merged: {shorten(detail, 120)}.")]


def _variances(fit: LMResult) -> str:
    meat = fit.release.meat
    if meat is None:
        return "equal residual variances"
    kind, unit = "unequal residual variances (HC1", "row"
    if meat.person is not None:
        kind, unit = f"rows clustered by person ({shorten(meat.person, 40)}", "person"
    if fit.release.units is not None:
        return header.scores_of_units(meat)
    most = f"one {unit}: at most {100 * meat.most:.2g}% of a variance"
    return f"{kind}; {most}; noise: {meat.sd:.0%})"


def _unidentified(fit: LMResult) -> list[str]:
    identified = fit.identified.to_numpy()
    lost = [str(name) for name in fit.params.index[~identified]]
    if not identified.any():
        note = (
            "No coefficient is identified at this budget: use a larger eps, more rows, fewer terms "
            "or narrower bounds."
        )
        if fit.release.units is not None and fit.release.info.name != "scores":
            note = (
                "No coefficient is identified: under a design noisy moments may not lead to all "
                'weights. Write mechanism="scores" with delta=1e-6 or budget=dp.ZCDP(rho).'
            )
        strength = (
            f"X'X over its noise, along its weakest direction (strength): {fit.strength:.2g}."
        )
        if names := fit.call.names[:-1]:
            loads = np.abs(np.linalg.eigh(fit.linear.equations.scatter).eigenvectors[:, 0])
            weakest = [names[i] for i in np.argsort(-loads)[:3] if loads[i] > 0.5]
            strength += f" Weakest terms: {', '.join(weakest)}." * bool(weakest)
        return [*Rank.IDENTIFIED(note), *Rank.DETAIL(strength)]
    notes = [
        *Rank.IDENTIFIED(
            f"Not identified at this budget: {_listed(lost)}. Noise hides the number of rows or "
            "their variation; tests omit these terms."
        ),
        *Rank.DETAIL("predict() omits rows that need unidentified coefficients."),
    ]
    hidden = fit.linear.hidden_directions
    if hidden:
        notes += Rank.IDENTIFIED(
            f"Their estimates are biased by a ridge from the released spectrum, on {hidden} of "
            f"{len(fit.linear.names)} directions of X'X that noise hides."
        )
    notes += reference_note(fit)
    if fit.linear.equations.added_rows is not None:
        notes += Rank.DETAIL(
            "Levels are compared with the first of their variable, whose count is a noisy "
            "difference: declare a common level first."
        )
    return notes


def _score_tested(fit: LMResult) -> list[str]:
    """Name identified coefficients whose z is not coef/std err."""
    with np.errstate(invalid="ignore"):
        ratio = (fit.params / fit.bse).to_numpy()
        off = np.abs(fit.tvalues.to_numpy() - ratio) > 0.02 * np.maximum(np.abs(ratio), 0.5)
    off &= fit.identified.to_numpy()
    return [str(name) for name in fit.params.index[off]]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" * (len(names) > 6)
    return ", ".join(names[:5] if more else names) + more


# The printed report of ridge and lasso paths.

# Most terms, and penalties besides that of the noise, in a printed table: choices.
SHOWN_LINES, STEPS = 60, 4
# Errors of a path, by whether the sampling error is known.
_ERRORS = {True: "std err", False: "noise sd"}


@report_of.register
def path_report(path: PathResult) -> Report:
    """Lay out coefficients at some penalties, with standard errors of those without penalty."""
    fit = path.linear
    return header.released_report(
        fit,
        f"Private linear regression, {path.penalty} path",
        first=_path_facts(path),
        sections=(_path_coefficients(path),),
        notes=tuple(_path_notes(path)),
    )


def _path_facts(path: PathResult) -> tuple[Fact, ...]:
    fit = path.linear
    complete = "not counted (weights)"
    if fit.model.weights is None:
        what = header.counted_as(fit.release.adjacency)
        complete = header.complete_text(fit.nobs, fit.release.noise.count, fit.release.rows, what)
    first, last = (signif(float(path.lambdas[at]), 3) for at in (0, -1))
    noise = (("Noise penalty", signif(path.noise_lambda, 3)),) * (path.penalty == "lasso")
    penalties = f"{count(len(path.lambdas))}, from {first} to {last}"
    return (("Complete", complete), ("Penalties", penalties), *noise)


def _path_coefficients(path: PathResult) -> Section:
    positions = np.linspace(0, len(path.lambdas) - 1, min(STEPS, len(path.lambdas))).round()
    selected = path.lambdas[np.unique(positions.astype(int))].tolist()
    noise = [] if math.isnan(path.noise_lambda) else [path.noise_lambda]
    fit, penalties = path.linear, np.array(sorted({*selected, *noise}, reverse=True))
    law = fit.about_population if fit.sampled else fit.about_rows
    sds = law.errors(np.eye(len(fit.names)))
    columns = np.column_stack([path.at(float(penalty)).to_numpy() for penalty in penalties])
    rows, lines = [], zip(fit.names, sds.tolist(), columns.tolist(), strict=True)
    for name, sd, line in list(lines)[:SHOWN_LINES]:
        last = signif(sd, 2) if math.isfinite(sd) else header.UNKNOWN
        cells = (*(_cell(value, sd) for value in line), last)
        rows.append(Row(name, cells, about=header.about(fit.call, name)))
    marked = [("noise " * (at == path.noise_lambda) + signif(at, 2)) for at in penalties.tolist()]
    heads = (*marked, _ERRORS[fit.sampled])
    above = (*("penalty",) * len(penalties), "")
    return Section("Coefficients", heads, tuple(rows), above)


def _cell(value: float, sd: float) -> str:
    """Print a coefficient to the digits of the one without penalty; 0 as a dot."""
    if value == 0:
        return "."
    return signif_uncertain(value, sd) if math.isfinite(sd) else signif(value, 2)


def _path_notes(path: PathResult) -> list[str]:
    fit, standardised = path.linear, path.standardised
    term = "s|b|" if path.penalty == "lasso" else "(sb)^2/2"
    notes = [
        *header.omitted(SHOWN_LINES, len(fit.names), "coefficients", "params and tidy()"),
        f"Minimises RSS/(2n) + penalty x sum of {term}, s the released sd of each term; the "
        "constant has no penalty.",
        *Rank.DETAIL(f"{_ERRORS[fit.sampled]}: of the coefficient without penalty."),
    ]
    if not standardised.has_variance.all():
        wide = path.scaled_by[path.scaled_by != "sd"].index.tolist()
        listing = ", ".join(wide) if len(wide) <= 6 else f"{', '.join(wide[:5])}, ..."
        notes.append(f"s is half the public range if noise hides the sd: {listing}.")
    if standardised.lifted:
        notes += Rank.DETAIL(
            "A ridge was added to X'X before any penalty, as in dp_lm: noise hides part of it, or "
            "the mechanism requires one."
        )
    if path.penalty == "lasso":
        n_kept, slopes = len(path.kept), len(fit.call.names) - 1
        condition = "no slopes" if fit.sampled else "none in these rows, sampling not counted"
        notes.append(
            f"Noise penalty: if there were {condition}, all slopes would be 0 at it in about 95 of "
            f"100 releases; {n_kept} of {slopes} are not 0."
        )
    if not fit.identified.all():
        notes += Rank.IDENTIFIED(
            f"{header.UNKNOWN}: the release does not determine the coefficient without penalty; "
            "with one it depends on the penalty."
        )
    none = (
        "No intervals: they would not cover after penalisation, or after a choice of terms from "
        "the same release."
    )
    chosen = "To fit terms chosen otherwise, use .lm(formula) of dp_moments."
    return [*notes, *Rank.IDENTIFIED(none), *Rank.DETAIL(chosen)]
