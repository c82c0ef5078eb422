"""``coefplot``: coefficients of regressions in units that can stand on one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from dpmodels.arguments import boolean, checked_keywords, option
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.formula.response import two_sided
from dpmodels.inference.sandwich import DETECTION_SDS
from dpmodels.postprocess.normal_equations import even
from dpmodels.results.base import checked_level
from dpmodels.results.call import INTERCEPT, CoefficientsCall, MomentsCall
from dpmodels.results.coefficient_model import in_unit
from dpmodels.results.components import Analysis
from dpmodels.results.estimate_table import unit_of
from dpmodels.typing import Axes, Floats, TableColumns
from dpmodels.verbs import documented

if TYPE_CHECKING:
    from dpmodels.results.base import Result

Standard = Literal["range", "sd"] | None
_STANDARDS: Final = ("range", "sd", None)
_SCALES: Final = {"binomial": "log odds", "poisson": "log rate"}
_CHANGES: Final = {
    "binomial": ("Odds ratio", "Change of log odds"),
    "poisson": ("Rate ratio", "Change of log rate"),
}
_OVER: Final = {"range": "over the range of each term", "sd": "by one sd of each term", None: ""}


@checked_keywords("dp.coefplot")
@documented
def coefplot(
    fits: object,
    *,
    labels: Sequence[str] | None = None,
    standardize: Standard = None,
    exponentiate: bool = False,
    level: float = 0.95,
    ax: Axes | None = None,
    caption: bool = True,
) -> Axes:
    """Draw coefficients of one regression or of several beside each other.

    Parameters
    ----------
    fits : result, list of results or mapping of them by name
        Of `dp_lm`, `dp_glm` or `dp_survey`.
    labels : sequence of str, optional
        Names of the models in the legend; their formulas by default.
    standardize : {None, "range", "sd"}
        What a coefficient is multiplied by: nothing, so that the picture has the numbers of the
        table; the length of its term's public range (of a level 1), so that it is the change from
        one declared end to the other; or its released standard deviation, where there is one
        (`dp_lm`).
    exponentiate : bool
        Whether exponentials are drawn, odds or rate ratios, on a logarithmic axis.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ArgumentError
        If there is no fit with terms, or an option is not valid.
    NotAvailable
        If a fit has no intervals, or no such units.

    Notes
    -----
    Wide bars are noise intervals, for the estimate on the same rows without privacy; thin ones
    include sampling. An arrow marks an interval that continues. Terms are in the order of the fits.

    Examples
    --------
    >>> import dpmodels as dp
    >>> from dpmodels.datasets import load_randhie, randhie_codebook
    >>> words = {"codebook": randhie_codebook(), "eps": 2, "delta": 1e-6}
    >>> with dp.simulation(seed=1):
    ...     fit = dp.dp_lm("mdvis ~ lncoins + idp", load_randhie(), **words)
    >>> ax = dp.coefplot(fit)
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['lncoins', 'idp']
    """
    from dpmodels.plots.coefficients import Intervals, coefficients

    fits_by_name = _fits(fits, labels)
    over, level = option("standardize", standardize, _STANDARDS), checked_level(level)
    ratio = boolean("exponentiate", exponentiate)
    parts = [_terms(fit, over, level) for fit in fits_by_name.values()]
    names = list(dict.fromkeys(name for part in parts for name in part[0]))
    if not names:
        raise ArgumentError("plot(): the model has no terms besides the constant")
    models = []
    for name, (terms, values) in zip(fits_by_name, parts, strict=True):
        aligned = np.full((len(names), values.shape[1]), np.nan)
        aligned[[names.index(term) for term in terms]] = values
        models.append(Intervals(name, aligned[:, 0], aligned[:, 1:3], aligned[:, 3:]))
    captions = {name: fit._caption(enabled=caption) for name, fit in fits_by_name.items()}
    if len(set(captions.values())) > 1:
        captions = {name: f"{name}: {text}" for name, text in captions.items()}
    stamps = [fit.stamp for fit in fits_by_name.values() if fit.stamp]
    return coefficients(
        models,
        labels=names,
        title=_title(list(fits_by_name.values()), over, ratio=ratio),
        level=level,
        ratio=ratio,
        ax=ax,
        stamp=stamps[0] if stamps else None,
        caption=" ".join(dict.fromkeys(filter(None, captions.values()))) or None,
    )


def _fits(fits: Any, labels: Sequence[str] | None) -> TableColumns:
    if isinstance(fits, Mapping):
        labels, fits = [str(name) for name in fits], list(fits.values())
    several = isinstance(fits, Sequence)
    fit_list = list(fits) if several else [fits]
    if not fit_list or not all(map(_of_one_equation, fit_list)):
        raise ArgumentError(
            "fits: expected a result of dp_lm, dp_glm or dp_survey, or several; other results "
            "have a plot() of their own"
        )
    names = [fit.call.formula for fit in fit_list] if labels is None else list(labels)
    if len(names) != len(fit_list):
        raise ArgumentError(f"labels has {len(names)} entries for {len(fit_list)} fits")
    if not several:
        names = [""]
    return {
        name if names.count(name) == 1 else f"{name} ({at + 1})": fit
        for at, (name, fit) in enumerate(zip(names, fit_list, strict=True))
    }


def _of_one_equation(fit: object) -> bool:
    called = isinstance(getattr(fit, "call", None), MomentsCall | CoefficientsCall)
    return called and getattr(getattr(fit, "params", None), "ndim", 0) == 1


def _terms(fit: Any, over: str | None, level: float) -> tuple[list[str], Floats]:
    """Return a fit's terms, and their estimates and both intervals, shape (terms, 5)."""
    noise, confidence = fit.noise_int(level), fit.conf_int(level)
    constants = {INTERCEPT, *getattr(fit, "thresholds", fit.params[:0]).index}
    terms = [str(name) for name in fit.params.index if name not in constants]
    parts = [fit.params[terms].to_numpy()[:, None]]
    parts += [interval.loc[terms].to_numpy() for interval in (noise, confidence)]
    names = [name for name in fit.call.names if name != INTERCEPT]
    lengths = dict(zip(names, _lengths(fit, over).tolist(), strict=False))
    factors = np.array([lengths[term] for term in terms])
    return terms, np.hstack(parts) * factors[:, None]


def _lengths(fit: Result, over: str | None) -> Floats:
    """Return what each coefficient is multiplied by, shape (terms,)."""
    call = fit.call
    if isinstance(call, MomentsCall):
        return _of_moments(fit, call, over)
    assert isinstance(call, CoefficientsCall)
    coded = two_sided(call.formula, call.codebook, most=max(len(call.levels), 2)).terms
    if over is None:
        return np.ones(len(coded.names))
    if over == "sd":
        raise NotAvailable(
            'standardize="sd": no standard deviations of terms are released with these '
            'coefficients; write standardize="range" or None'
        )
    return coded.upper - coded.lower


def _of_moments(fit: Any, call: MomentsCall, over: str | None) -> Floats:
    n_terms = len(call.names) - 1
    if over is None:
        return np.ones(n_terms)
    if over == "range":
        return np.asarray(fit.linear.widths)
    if fit.model.weights is not None or fit.release.total is None:
        raise NotAvailable(
            'standardize="sd": no standard deviations of terms are released of a fit with weights '
            'or without a constant; write standardize="range" or None'
        )
    plain = Analysis(replace(call, scale="range", center=True), fit.release).plain
    ball = fit.release.ball
    axes = None if ball is None else ball.axes
    back = np.eye(n_terms + 1) if axes is None else np.linalg.inv(even(axes))
    columns = back[:, :n_terms] * call.divisor[:n_terms]
    if fit.linear.products is not None:
        columns = columns @ np.linalg.inv(fit.linear.products.matrix).T
    variance = np.diag(columns.T @ plain.matrix @ columns)
    noise = (columns**2).T @ plain.diagonal_sd
    return np.asarray(np.sqrt(np.where(variance > DETECTION_SDS * noise, variance, np.nan)))


def _title(fits: Sequence[Result], over: str | None, *, ratio: bool) -> str:
    calls = [fit.call for fit in fits]
    families = {getattr(call, "family", "") for call in calls}
    family = families.pop() if len(families) == 1 else ""
    responses = dict.fromkeys(map(_response, calls))
    of = next(iter(responses)) if len(responses) == 1 else ""
    units = {unit_of(call.codebook, of) for call in calls if isinstance(call, MomentsCall)}
    unit = units.pop() if len(units) == 1 and not ratio else ""
    if over is None and not ratio:
        inside = ", ".join(filter(None, (of, _SCALES.get(family), unit)))
        return f"Coefficient ({inside})".removesuffix(" ()")
    what = _CHANGES.get(family, ("Factor", "Change"))[not ratio]
    return " ".join(filter(None, (what, f"of {of}{in_unit(unit)}" * bool(of), _OVER[over])))


def _response(call: MomentsCall | CoefficientsCall) -> str:
    """Name what is modelled: the response, or the level of it."""
    if isinstance(call, MomentsCall):
        return call.names[-1]
    if call.levels == ("False", "True"):
        return call.response.removesuffix("[T.True]")
    return call.levels[1] if call.levels else call.response
