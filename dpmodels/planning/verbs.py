"""The kinds of result whose power is known: how each is posed and read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import numpy as np
from scipy.special import expit, ndtri
from scipy.stats import poisson

from dpmodels.errors import ArgumentError, NotAvailable, said, shorten
from dpmodels.formula.response import TwoSided, two_levels, two_sided
from dpmodels.formula.values import Category, Real
from dpmodels.models.replay import all_verbs, verb_of
from dpmodels.planning.group_effects import difference, means, shares
from dpmodels.planning.population import Effect, Population, Posed, effects, held_against, of_sample
from dpmodels.question import Question
from dpmodels.results.glm import GLMResult
from dpmodels.results.groups import MeanResult, TTestResult
from dpmodels.results.lm import LMResult
from dpmodels.results.table import TableResult
from dpmodels.typing import Floats
from dpmodels.verbs import Verb

# Populations in which a linear predictor has stated coefficients.

# Quantiles of the response that each guessed row stands with in a Poisson regression: a choice.
QUANTILES = 4
_NEWTON = 100


def least_squares(question: Question, guessed: Population, effect: Effect) -> Posed:
    """Give the response the stated slopes, and the variance that it was guessed to have."""
    weights = question.words["weights"]
    apart = () if weights is None else (str(weights),)
    both = two_sided(question.formula, question.codebook, apart=apart)
    own, rows, response = _complete(both, guessed)
    if not of_sample(effect, guessed):
        name = _variable(both)
        stated = effects(effect, both.terms.names)
        declared = both.response
        made = _with_slopes(rows, response, stated, both)
        step = cast("Real", declared.blocks[0].factors[0]).step
        low, high = float(declared.lower[0]), float(declared.upper[0])
        response = np.clip(made, low, high)
        if step:
            own, places, response = own.on_steps(name, response, low, step)
            rows = rows[:, places]
        else:
            own = own.having(name, response)
    weight = own.part.columns[weights] if weights is not None else np.ones(len(response))
    mass = own.shares * weight
    gram = (rows * mass) @ rows.T
    found = np.linalg.lstsq(gram, (rows * mass) @ response, rcond=None)[0]
    residual = response - found @ rows
    covariance = float(mass @ residual**2) * np.linalg.pinv(gram)
    return _posed(own, both, effect, np.asarray(found), np.asarray(covariance))


def logistic(question: Question, guessed: Population, effect: Effect) -> Posed:
    """Give the log odds of the second level the stated slopes, and its share as guessed."""
    both = two_levels(two_sided(question.formula, question.codebook))
    own, rows, response = _complete(both, guessed)
    if not of_sample(effect, guessed):
        name, stated = _variable(both), effects(effect, both.terms.names)
        mean = float(own.shares @ response)
        chance = expit(_centred(stated, rows, own, mean, both, expit))
        many = np.arange(own.part.rows)
        twice = np.concatenate([own.shares * (1 - chance), own.shares * chance])
        response = np.repeat([0.0, 1.0], len(many))
        rows = np.hstack([rows, rows])
        own = own.among(np.tile(many, 2), twice).having(name, response)
    found, curvature = _fitted(rows, response, own.shares, "binomial")
    return _posed(own, both, effect, found, np.asarray(np.linalg.pinv(curvature)))


def counted(question: Question, guessed: Population, effect: Effect) -> Posed:
    """Give the logarithm of a mean count the stated slopes, and the mean as guessed."""
    both = two_sided(question.formula, question.codebook)
    own, rows, response = _complete(both, guessed)
    if not of_sample(effect, guessed):
        name, stated = _variable(both), effects(effect, both.terms.names)
        mean = float(own.shares @ response)
        expected = np.exp(_centred(stated, rows, own, mean, both, np.exp))
        many = np.tile(np.arange(own.part.rows), QUANTILES)
        # Quantiles spread evenly over all copies of all rows.
        order = np.random.default_rng(len(many)).permutation(len(many))
        drawn = poisson.ppf((order + 0.5) / len(many), expected[many])
        response = np.minimum(drawn, float(both.response.upper[0]))
        rows, shares = rows[:, many], own.shares[many]
        shares = _balanced(rows, response - expected[many], shares)
        own = own.among(many, shares).having(name, response)
    found, curvature = _fitted(rows, response, own.shares, "poisson")
    return _posed(own, both, effect, found, np.asarray(np.linalg.pinv(curvature)))


def _balanced(rows: Floats, residual: Floats, shares: Floats) -> Floats:
    """Weigh rows a little otherwise, so that their residuals tell of no other coefficients."""
    score = rows * residual
    weight = np.linalg.lstsq((score * shares) @ score.T, score @ shares, rcond=None)[0]
    return np.asarray(shares * np.maximum(1 - weight @ score, 0.0))


def _complete(both: TwoSided, guessed: Population) -> tuple[Population, Floats, Floats]:
    """Return the rows that count, the regressors with the constant first, and the response."""
    columns = guessed.part.columns
    if not both.terms.names:
        raise ArgumentError(
            f"the formula {shorten(both.response.formula)!r} has no term to have an effect; name "
            'one, or write verb="mean" for the mean of the response'
        )
    coded = np.empty((len(both.terms.names), guessed.part.rows))
    both.terms.evaluate(columns, coded)
    response = np.empty((1, guessed.part.rows))
    both.response.evaluate(columns, response)
    there = np.isfinite(coded).all(axis=0) & np.isfinite(response[0]) & guessed.counted
    if there.sum() <= len(coded) + 1:
        raise ArgumentError(
            f"shape=: {int(there.sum())} of the guessed rows are complete and in the subset, too "
            f"few for {len(coded)} terms; guess a shape with more"
        )
    own = guessed.among(np.flatnonzero(there), guessed.shares[there])
    ones = np.ones((int(both.intercept), int(there.sum())))
    return own, np.vstack([ones, coded[:, there]]), response[0, there]


def _variable(both: TwoSided) -> str:
    """Return the name of the response; ArgumentError where it is made from variables."""
    factor = both.response.blocks[0].factors[0]
    name = factor.variable if isinstance(factor, Real) else None
    if isinstance(factor, Category) and factor.code in both.response.codebook:
        name = factor.code
    if name is None or name in both.terms.codebook:
        raise ArgumentError(
            f"the response {shorten(both.response.names[0])!r} is made from variables, and an "
            "effect is given to one variable: declare the response as a variable of the codebook, "
            'or write effect="sample" with shape= a frame of public rows'
        )
    return name


def _with_slopes(rows: Floats, response: Floats, stated: Floats, both: TwoSided) -> Floats:
    first = int(both.intercept)
    kept = np.linalg.lstsq(rows.T, response, rcond=None)[0]
    residual = response - kept @ rows
    explained = stated @ rows[first:]
    left = 1 - float(np.var(explained) / np.var(response))
    if not left > 0:
        raise ArgumentError(
            f"effect=: terms with these slopes alone would vary by {np.std(explained):.4g}, more "
            f"than the response, which is guessed to have an sd of {np.std(response):.4g}; write "
            "smaller effects, or guess another shape"
        )
    scale = np.sqrt(left * np.var(response) / max(float(np.var(residual)), 1e-300))
    return np.asarray(np.mean(response) + explained - np.mean(explained) + scale * residual)


def _centred(
    stated: Floats, rows: Floats, own: Population, mean: float, both: TwoSided, link: np.ufunc
) -> Floats:
    """Return linear predictors with the stated slopes and the mean that was guessed."""
    from scipy.optimize import brentq

    linear = np.asarray(stated @ rows[int(both.intercept) :])
    if not both.intercept:
        return linear

    def beyond(constant: float) -> float:
        return float(own.shares @ link(np.minimum(constant + linear, 700.0))) - mean

    widest = 60.0 + float(np.abs(linear).max(initial=0.0))
    if not beyond(-widest) < 0 < beyond(widest):
        raise ArgumentError(
            "shape=: all guessed responses are the same; guess a mean within the bounds, or shares "
            "of both levels"
        )
    return linear + float(brentq(beyond, -widest, widest))


def _fitted(rows: Floats, response: Floats, shares: Floats, family: str) -> tuple[Floats, Floats]:
    """Return the coefficients that fit a population best, and their curvature there."""
    point = np.zeros(len(rows))
    curvature = np.eye(len(rows))
    for _ in range(_NEWTON):
        linear = np.clip(point @ rows, -30.0, 30.0)
        mean = expit(linear) if family == "binomial" else np.exp(linear)
        bend = mean * (1 - mean) if family == "binomial" else mean
        curvature = (rows * (shares * bend)) @ rows.T
        step = np.linalg.lstsq(curvature, rows @ (shares * (response - mean)), rcond=None)[0]
        point = point + step / max(1.0, float(np.abs(step @ rows).max()) / 2)
        if np.abs(step).max() < 1e-10 * (1 + np.abs(point).max()):
            break
    return point, curvature


def _posed(
    own: Population, both: TwoSided, effect: Effect, found: Floats, covariance: Floats
) -> Posed:
    """Test each coefficient that has an effect, but not the constant, against 0."""
    first = int(both.intercept)
    truth = found[first:]
    return Posed(
        own,
        both.terms.names,
        truth,
        held_against(effect, both.terms.names),
        np.sqrt(np.maximum(np.diag(covariance), 0.0))[first:],
    )


class Reading(NamedTuple):
    """What one release says of each term, shape (terms,); nan where it is not identified.

    The verb's test rejects where the size of `statistic` is beyond the normal quantile; it grows by
    1 where the effect does by `spread`, which is nan where there is no such number.
    """

    se: Floats
    noise: Floats
    statistic: Floats
    spread: Floats


class Power(NamedTuple):
    """How what a kind of result finds is posed and read."""

    pose: Callable[[Question, Population, Effect], Posed]
    read: Callable[[Any, Posed, float], Reading]
    runs: int  # A choice: releases that are enough where the test is told in nearly all of them
    more: int  # A choice: further ones where it is not
    tested: str


def _linear(result: Any, posed: Posed, alpha: float) -> Reading:
    """Read coefficients after the constant, where there are standard errors."""
    kept = slice(-len(posed.terms), None)
    try:
        found = [result.bse, result.bse_noise, result.tvalues]
    except NotAvailable:
        found = [np.full(len(posed.terms), np.nan)] * 3
    se, noise, statistic = (np.asarray(own, dtype=np.float64)[kept] for own in found)
    se = np.where(np.isfinite(se), se, np.nan)
    return Reading(se, np.where(np.isnan(se), np.nan, noise), statistic, se)


def _difference(result: Any, posed: Posed, alpha: float) -> Reading:
    se = np.array([result.bse if np.isfinite(result.pvalue) else np.nan])
    size = -ndtri(max(result.pvalue, 1e-300) / 2)
    statistic = np.array([size * np.sign(result.tvalue)])
    return Reading(se, np.array([result.bse_noise]), statistic, se)


def _means(result: Any, posed: Posed, alpha: float) -> Reading:
    ends, estimate = result.conf_int(1 - alpha), np.asarray(result.params)
    statistic, spread = _by_interval(estimate, ends, posed, alpha)
    return Reading(np.asarray(result.bse), np.asarray(result.bse_noise), statistic, spread)


def _shares(result: Any, posed: Posed, alpha: float) -> Reading:
    """Read shares of the complete rows, and the test of independence of two factors or more."""
    if not isinstance(result, TableResult):
        raise ArgumentError(
            'mechanism="randomized_response": power is known of tables of counts; write "auto", '
            '"geometric" or "gaussian"'
        )
    first = int(posed.freedom > 0)
    cells = posed._replace(truth=posed.truth[first:], null=posed.null[first:])
    counts = result.released.to_numpy().ravel()
    rows = max(float(counts.sum()), 1.0)
    ends = result.conf_int(1 - alpha)
    statistic, spread = _by_interval(counts / rows, ends, cells, alpha)
    width = (ends["upper"] - ends["lower"]).to_numpy() / 2
    noise = np.full(len(counts), result.noise_sd() / rows)
    own = Reading(width / -ndtri(alpha / 2), noise, statistic, spread)
    if not first:
        return own
    # One-sided: shifted, so that the two-sided quantile is where it rejects.
    chance = result.chi2_test().pvalue
    tail = -ndtri(max(chance, 1e-300)) + ndtri(alpha) - ndtri(alpha / 2)
    whole = zip((np.nan, np.nan, tail, np.nan), own, strict=True)
    return Reading(*(np.append(new, old) for new, old in whole))


def _by_interval(estimate: Floats, ends: Any, posed: Posed, alpha: float) -> tuple[Floats, Floats]:
    """Return statistics that are beyond the quantile where an interval leaves out the null."""
    below = np.nan_to_num(posed.effect, nan=1.0) >= 0
    arm = np.where(below, estimate - ends["lower"], ends["upper"] - estimate)
    spread = np.where(np.isfinite(arm) & (arm > 0), arm, np.nan) / -ndtri(alpha / 2)
    return (estimate - posed.null) / spread, spread


def _glm_pose(question: Question, guessed: Population, effect: Effect) -> Posed:
    family = question.words["family"]
    if family == "multinomial":
        raise ArgumentError(
            'family="multinomial": power is known of one linear predictor; plan one level against '
            'the rest, as in \'party == "a" ~ ...\' with family="binomial", and see '
            "dp_glm of simulated rows inside dp.simulation for all of them"
        )
    own = counted if family == "poisson" else logistic
    return own(question, guessed, effect)


_COEFFICIENTS: Final = "each coefficient against 0"
_APART: Final = "interval leaves out a number an effect away"
# A line for each kind of result whose intervals or tests have a power that is known.
POWERS: Final[dict[type, Power]] = {
    MeanResult: Power(means, _means, 300, 0, f"whether a mean's {_APART}"),
    TTestResult: Power(
        difference, _difference, 300, 0, "the t-test of the difference, or of one mean"
    ),
    TableResult: Power(shares, _shares, 600, 0, f"whether a share's {_APART}"),
    LMResult: Power(least_squares, _linear, 200, 200, _COEFFICIENTS),
    GLMResult: Power(_glm_pose, _linear, 64, 32, _COEFFICIENTS),
}


def _power(verb: Verb) -> Power | None:
    return next((POWERS[kind] for kind in verb.result.__mro__ if kind in POWERS), None)


def verb_with_power(name: object) -> tuple[Verb, Power]:
    """Return a verb, and how its kind of result is posed; ArgumentError where that is not known."""
    verb = verb_of(name) if isinstance(name, str) else None
    power = None if verb is None else _power(verb)
    if verb is None or power is None:
        known = [own.name for own in all_verbs().values() if _power(own)]
        raise ArgumentError(f"verb={said(name)}: expected one of {', '.join(map(repr, known))}")
    return verb, power


def words_of(verb: Verb) -> dict[str, object]:
    """Return a verb's own words, with their defaults."""
    options = {**verb.options, "subset": None}.items()
    return {name: own for name, own in options if name not in ("mu", "time")}
