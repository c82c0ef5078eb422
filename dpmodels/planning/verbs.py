"""The kinds of result whose power is known: how each is posed and read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import ndtri

from dpmodels.errors import ArgumentError, NotAvailable, said
from dpmodels.models.replay import all_verbs, verb_of
from dpmodels.planning.group_effects import difference, means, shares
from dpmodels.planning.linear_effects import counted, least_squares, logistic
from dpmodels.planning.population import Population
from dpmodels.planning.posed import Effect, Posed
from dpmodels.question import Question
from dpmodels.results.glm import GLMResult
from dpmodels.results.groups import MeanResult
from dpmodels.results.lm import LMResult
from dpmodels.results.table import TableResult
from dpmodels.results.ttest import TTestResult
from dpmodels.typing import Floats
from dpmodels.verbs import Verb


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


def words_of(verb: Verb) -> dict[str, Any]:
    """Return a verb's own words, with their defaults."""
    options = {**verb.options, "subset": None}.items()
    return {name: own for name, own in options if name not in ("mu", "time")}
