"""The kinds of result with known power: their hypotheses and tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pandas as pd
from scipy.special import expit, ndtri
from scipy.stats import poisson

from dpmodels.errors import ArgumentError, FormulaError, NotAvailable, did_you_mean, quoted, shorten
from dpmodels.formula.response import TwoSided, two_levels, two_sided
from dpmodels.formula.values import Category, Real
from dpmodels.models.predictor import estimates_of, simulated_fits
from dpmodels.models.release import all_verbs, verb_of
from dpmodels.models.verb_spec import planned
from dpmodels.planning import population as populations
from dpmodels.planning.population import Effect, Hypothesis, Population, shares
from dpmodels.privacy import ApproxDP
from dpmodels.request import Request
from dpmodels.results.base import Result
from dpmodels.results.cov import CovResult
from dpmodels.results.glm import GLMResult
from dpmodels.results.groups import MeanResult, TTestResult
from dpmodels.results.lm import LMResult
from dpmodels.results.moments import MomentsResult
from dpmodels.results.pca import PCAResult
from dpmodels.results.table import TableResult
from dpmodels.sites import parties
from dpmodels.typing import Floats
from dpmodels.verbs import Verb

# Populations in which a linear predictor has stated coefficients.

# Response quantiles for each assumed row in a Poisson regression: a choice.
QUANTILES = 4
_NEWTON = 100


def least_squares(request: Request, assumed: Population, effect: Effect) -> Hypothesis:
    """Give the response the stated slopes, and keep its assumed variance."""
    weights = request.options["weights"]
    excluded = () if weights is None else (str(weights),)
    formula = two_sided(request.formula, request.codebook, excluded=excluded, absorb=True)
    population, rows, response = _complete(formula, assumed)
    if not populations.of_sample(effect, assumed):
        name = _variable(formula)
        stated = populations.effects(effect, formula.terms.names)
        declared, shifted = formula.response, _with_slopes(rows, response, stated, formula)
        step = cast("Real", declared.blocks[0].factors[0]).step
        low, high = float(declared.lower[0]), float(declared.upper[0])
        response = np.clip(shifted, low, high)
        population, positions, response = population.with_numbers(name, response, low, step)
        rows = rows[:, positions]
    weight = population.part.columns[weights] if weights is not None else np.ones(len(response))
    mass = population.shares * weight
    gram = (rows * mass) @ rows.T
    coefficients = np.linalg.lstsq(gram, (rows * mass) @ response, rcond=None)[0]
    residual = response - coefficients @ rows
    covariance = float(mass @ residual**2) * np.linalg.pinv(gram)
    return _posed(population, formula, effect, np.asarray(coefficients), np.asarray(covariance))


def logistic(request: Request, assumed: Population, effect: Effect) -> Hypothesis:
    """Give the log odds of the second level the stated slopes, and keep its assumed share."""
    formula = two_levels(_without_offset(request))
    population, rows, response = _complete(formula, assumed)
    if not populations.of_sample(effect, assumed):
        name, stated = _variable(formula), populations.effects(effect, formula.terms.names)
        chance = expit(_centred(stated, rows, population, response, formula, expit))
        indices = np.arange(population.part.rows)
        twice = np.concatenate([population.shares * (1 - chance), population.shares * chance])
        response = np.repeat([0.0, 1.0], len(indices))
        rows = np.hstack([rows, rows])
        population = population.among(np.tile(indices, 2), twice).having(name, response)
    return _posed(population, formula, effect, *_fitted(rows, response, population, "binomial"))


def counted(request: Request, assumed: Population, effect: Effect) -> Hypothesis:
    """Give the logarithm of a mean count the stated slopes, and keep its assumed mean."""
    formula = _without_offset(request)
    population, rows, response = _complete(formula, assumed)
    if not populations.of_sample(effect, assumed):
        name, stated = _variable(formula), populations.effects(effect, formula.terms.names)
        expected = np.exp(_centred(stated, rows, population, response, formula, np.exp))
        indices = np.tile(np.arange(population.part.rows), QUANTILES)
        # Quantiles spread evenly over all copies of all rows.
        order = np.random.default_rng(len(indices)).permutation(len(indices))
        counts = poisson.ppf((order + 0.5) / len(indices), expected[indices])
        response = np.minimum(counts, float(formula.response.upper[0]))
        rows, shares = rows[:, indices], population.shares[indices]
        shares = _balanced(rows, response - expected[indices], shares)
        population = population.among(indices, shares).having(name, response)
    return _posed(population, formula, effect, *_fitted(rows, response, population, "poisson"))


def _without_offset(request: Request) -> TwoSided:
    formula = two_sided(request.formula, request.codebook, linked=True)
    if formula.offset:
        raise FormulaError(
            f"{shorten(formula.offset)!r}: dp.power assumes no offsets; leave it out, for rows of "
            "the same exposure"
        )
    return formula


def _balanced(rows: Floats, residual: Floats, shares: Floats) -> Floats:
    """Adjust weights so that residuals are orthogonal to the regressors."""
    score = rows * residual
    weight = np.linalg.lstsq((score * shares) @ score.T, score @ shares, rcond=None)[0]
    return np.asarray(shares * np.maximum(1 - weight @ score, 0.0))


def _complete(formula: TwoSided, assumed: Population) -> tuple[Population, Floats, Floats]:
    columns = assumed.part.columns
    if not formula.terms.names:
        raise ArgumentError(
            f"the formula {shorten(formula.response.formula)!r} has no terms; "
            'name one, or write verb="mean" for the mean of the response'
        )
    coded = np.empty((len(formula.terms.names), assumed.part.rows))
    formula.terms.evaluate(columns, coded)
    response = np.empty((1, assumed.part.rows))
    formula.response.evaluate(columns, response)
    usable = np.isfinite(coded).all(axis=0) & np.isfinite(response[0]) & assumed.counted
    if usable.sum() <= len(coded) + 1:
        raise ArgumentError(
            f"shape=: {int(usable.sum())} of the assumed rows are complete and in the subset, too "
            f"few for {len(coded)} terms; write a shape with more"
        )
    population = assumed.among(np.flatnonzero(usable), assumed.shares[usable])
    ones = np.ones((int(formula.intercept), int(usable.sum())))
    return population, np.vstack([ones, coded[:, usable]]), response[0, usable]


def _variable(formula: TwoSided) -> str:
    factor = formula.response.blocks[0].factors[0]
    name = factor.variable if isinstance(factor, Real) else None
    if isinstance(factor, Category) and factor.code in formula.response.codebook:
        name = factor.code
    if name is None or name in formula.terms.codebook:
        raise ArgumentError(
            f"the response {shorten(formula.response.names[0])!r} is computed from variables, and "
            "effect= needs a single one: declare the response as a variable of the codebook, "
            'or write effect="sample" with shape= a frame of public rows'
        )
    return name


def _with_slopes(rows: Floats, response: Floats, stated: Floats, formula: TwoSided) -> Floats:
    first = int(formula.intercept)
    slopes = np.linalg.lstsq(rows.T, response, rcond=None)[0]
    residual = response - slopes @ rows
    explained = stated @ rows[first:]
    left = 1 - float(np.var(explained) / np.var(response))
    if not left > 0:
        raise ArgumentError(
            f"effect=: these slopes alone imply an sd of {np.std(explained):.4g}, more than the "
            f"assumed sd of the response, {np.std(response):.4g}; write smaller effects, or "
            "another shape"
        )
    scale = np.sqrt(left * np.var(response) / max(float(np.var(residual)), 1e-300))
    return np.asarray(np.mean(response) + explained - np.mean(explained) + scale * residual)


def _centred(
    stated: Floats,
    rows: Floats,
    population: Population,
    response: Floats,
    formula: TwoSided,
    link: np.ufunc,
) -> Floats:
    """Return linear predictors with the stated slopes and the assumed mean."""
    from scipy.optimize import brentq

    linear = np.asarray(stated @ rows[int(formula.intercept) :])
    if not formula.intercept:
        return linear
    mean = float(population.shares @ response)

    def beyond(constant: float) -> float:
        return float(population.shares @ link(np.minimum(constant + linear, 700.0))) - mean

    widest = 60.0 + float(np.abs(linear).max(initial=0.0))
    if not beyond(-widest) < 0 < beyond(widest):
        raise ArgumentError(
            "shape=: all assumed responses are equal; write a mean within the bounds, or shares "
            "of both levels"
        )
    return linear + float(brentq(beyond, -widest, widest))


def _fitted(
    rows: Floats, response: Floats, population: Population, family: str
) -> tuple[Floats, Floats]:
    """Return the coefficients, and the inverse of the curvature."""
    point, curvature, shares = np.zeros(len(rows)), np.eye(len(rows)), population.shares
    for _ in range(_NEWTON):
        linear = np.clip(point @ rows, -30.0, 30.0)
        mean = expit(linear) if family == "binomial" else np.exp(linear)
        bend = mean * (1 - mean) if family == "binomial" else mean
        curvature = (rows * (shares * bend)) @ rows.T
        step = np.linalg.lstsq(curvature, rows @ (shares * (response - mean)), rcond=None)[0]
        point = point + step / max(1.0, float(np.abs(step @ rows).max()) / 2)
        if np.abs(step).max() < 1e-10 * (1 + np.abs(point).max()):
            break
    return point, np.asarray(np.linalg.pinv(curvature))


def _posed(
    population: Population,
    formula: TwoSided,
    effect: Effect,
    coefficients: Floats,
    covariance: Floats,
) -> Hypothesis:
    """Test each coefficient that has an effect, but not the constant, against 0."""
    first, names, shown = int(formula.intercept), formula.terms.names, formula.shown
    return Hypothesis(
        population,
        tuple(names[position] for position in shown),
        coefficients[first:][shown],
        populations.null_values(effect, names)[shown],
        np.sqrt(np.maximum(np.diag(covariance), 0.0))[first:][shown],
    )


class Reading(NamedTuple):
    """Results of one release for each term, shape (terms,); nan if it is not identified.

    The test rejects if `statistic` exceeds the normal quantile in absolute value; it grows by 1 if
    the effect grows by `spread`, which is nan if there is no such number.
    """

    se: Floats
    noise: Floats
    statistic: Floats
    spread: Floats


class Power(NamedTuple):
    """The hypotheses and tests of a kind of result."""

    pose: Callable[[Request, Population, Effect], Hypothesis]
    read: Callable[[Any, Hypothesis, float], Reading]
    runs: int  # A choice: releases, enough if nearly all have a test
    extra_runs: int  # A choice: additional ones otherwise
    tested: str


def _linear(result: LMResult | GLMResult, posed: Hypothesis, alpha: float) -> Reading:
    terms = slice(-len(posed.terms), None)
    try:
        results = (result.bse, result.bse_noise, result.tvalues)
        columns = [np.asarray(column, dtype=np.float64) for column in results]
    except NotAvailable:
        columns = [np.full(len(posed.terms), np.nan)] * 3
    se, noise, statistic = (column[terms] for column in columns)
    se = np.where(np.isfinite(se), se, np.nan)
    return Reading(se, np.where(np.isnan(se), np.nan, noise), statistic, se)


def _difference(result: TTestResult, posed: Hypothesis, alpha: float) -> Reading:
    se = np.array([result.bse if np.isfinite(result.pvalue) else np.nan])
    size = -ndtri(max(result.pvalue, 1e-300) / 2)
    statistic = np.array([size * np.sign(result.tvalue)])
    return Reading(se, np.array([result.bse_noise]), statistic, se)


def _means(result: MeanResult, posed: Hypothesis, alpha: float) -> Reading:
    interval, estimate = result.conf_int(1 - alpha), np.asarray(result.params)
    statistic, spread = _by_interval(estimate, interval, posed, alpha)
    return Reading(np.asarray(result.bse), np.asarray(result.bse_noise), statistic, spread)


def _shares(result: object, posed: Hypothesis, alpha: float) -> Reading:
    if not isinstance(result, TableResult):
        raise ArgumentError(
            'mechanism="randomized_response": power is available for tables of counts; write '
            '"auto", "geometric" or "gaussian"'
        )
    first = int(posed.freedom > 0)
    cells = posed._replace(truth=posed.truth[first:], null=posed.null[first:])
    counts = result.released.to_numpy().ravel()
    n_rows = max(float(counts.sum()), 1.0)
    interval = result.conf_int(1 - alpha)
    statistic, spread = _by_interval(counts / n_rows, interval, cells, alpha)
    width = (interval["upper"] - interval["lower"]).to_numpy() / 2
    noise = np.full(len(counts), result.noise_sd() / n_rows)
    reading = Reading(width / -ndtri(alpha / 2), noise, statistic, spread)
    if not first:
        return reading
    # One-sided: shifted so that it rejects at the two-sided quantile.
    chance = result.chi2_test().pvalue
    tail = -ndtri(max(chance, 1e-300)) + ndtri(alpha) - ndtri(alpha / 2)
    pairs = zip((np.nan, np.nan, tail, np.nan), reading, strict=True)
    return Reading(*(np.append(new, old) for new, old in pairs))


def _by_interval(
    estimate: Floats, interval: pd.DataFrame, posed: Hypothesis, alpha: float
) -> tuple[Floats, Floats]:
    below = np.nan_to_num(posed.effect, nan=1.0) >= 0
    arm = np.where(below, estimate - interval["lower"], interval["upper"] - estimate)
    spread = np.where(np.isfinite(arm) & (arm > 0), arm, np.nan) / -ndtri(alpha / 2)
    return (estimate - posed.null) / spread, spread


def _glm_pose(request: Request, assumed: Population, effect: Effect) -> Hypothesis:
    family = request.options["family"]
    if family == "multinomial":
        raise ArgumentError(
            'family="multinomial": power is available for one linear predictor; plan one level '
            'against the rest, as in \'party == "a" ~ ...\' with family="binomial", or simulate '
            "dp_glm inside dp.simulation"
        )
    pose = counted if family == "poisson" else logistic
    return pose(request, assumed, effect)


_COEFFICIENTS: Final = "each coefficient against 0"
_OFFSET: Final = "interval excludes a number an effect away"
# The kinds of result with known power.
POWERS: Final[dict[type, Power]] = {
    MeanResult: Power(populations.means, _means, 300, 0, f"whether a mean's {_OFFSET}"),
    TTestResult: Power(
        populations.difference, _difference, 300, 0, "the t-test of the difference, or of one mean"
    ),
    TableResult: Power(shares, _shares, 600, 0, f"whether a share's {_OFFSET}"),
    LMResult: Power(least_squares, _linear, 200, 200, _COEFFICIENTS),
    GLMResult: Power(_glm_pose, _linear, 64, 32, _COEFFICIENTS),
}


# Rows of the sample whose release, with negligible noise, has the true values: a choice.
LARGE: Final = 10**6
PLENTY: Final = ApproxDP(1e3, 1e-6)


def any_estimates(request: Request, assumed: Population, effect: Effect) -> Hypothesis:
    """Test every estimate of a verb against a number that is the effect below it."""
    spec = all_verbs()[request.verb].spec(replace(request, guarantee=PLENTY))
    private = spec.private.of(assumed.sample(LARGE, np.random.default_rng(LARGE)))
    (fit,) = simulated_fits(spec, planned(spec, parties({}), "auto", [private]), private, 1)
    table = _shares_of_counts(estimates_of(fit))
    truth, names = table["estimate"].to_numpy(), tuple(map(str, table.index))
    sampling = table["std_error"].to_numpy() * math.sqrt(LARGE)
    null = truth - populations.stated_effects(effect, names)
    return Hypothesis(assumed, names, truth, null, sampling)


def _any_estimates(result: object, posed: Hypothesis, alpha: float) -> Reading:
    table = _shares_of_counts(estimates_of(result, 1 - alpha)).reindex(list(posed.terms))
    lost = (table["identified"] == 0).to_numpy()
    ends = table[["conf_low", "conf_high"]].set_axis(["lower", "upper"], axis=1)
    tested = _by_interval(table["estimate"].to_numpy(), ends, posed, alpha)
    numbers = (table["std_error"], table["noise_sd"], *tested)
    return Reading(*(np.where(lost, np.nan, column) for column in numbers))


def _shares_of_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Return counts as shares of the rows, which do not grow with their number."""
    names = ["estimate", "std_error", "noise_sd", "conf_low", "conf_high"]
    return table.assign(**{name: table[name] / table["rows"] for name in names})


OTHERS: Final = Power(any_estimates, _any_estimates, 64, 0, f"whether an estimate's {_OFFSET}")
# Results whose intervals allow for the worst that clipping may do, which no effect has a power by.
_CLIPPED: Final = (CovResult, PCAResult, MomentsResult)


def _power(verb: Verb) -> Power | None:
    kinds, intervals = verb.result.__mro__, {"conf_int", "_conf_int", "_interval"}
    has_interval = any(intervals & set(vars(kind)) for kind in kinds[: kinds.index(Result)])
    if not has_interval or issubclass(verb.result, _CLIPPED):
        return None
    return next((POWERS[kind] for kind in kinds if kind in POWERS), OTHERS)


def verb_with_power(name: object) -> tuple[Verb, Power]:
    """Return a verb and the power of its kind of result; ArgumentError if it has none."""
    verb = verb_of(name) if isinstance(name, str) else None
    power = None if verb is None else _power(verb)
    if verb is None or power is None:
        names = [entry.name for entry in all_verbs().values() if _power(entry)]
        meant, listed = did_you_mean(name, names), ", ".join(map(repr, names))
        raise ArgumentError(f"verb={quoted(name)}{meant}: expected one of {listed}")
    return verb, power


def options_of(verb: Verb) -> dict[str, object]:
    """Return a verb's options with their defaults."""
    options = {**verb.options, "subset": None}
    left_out = {"mu", "time"} if verb.name == "table" else {"mu"}
    return {name: value for name, value in options.items() if name not in left_out}
