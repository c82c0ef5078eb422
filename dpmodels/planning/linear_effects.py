"""Populations in which a linear predictor has stated coefficients."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy.special import expit
from scipy.stats import poisson

from dpmodels.errors import ArgumentError, shorten
from dpmodels.formula.response import TwoSided, two_levels, two_sided
from dpmodels.formula.values import Category, Real
from dpmodels.planning.population import Population
from dpmodels.planning.posed import Effect, Posed, effects, held_against, of_sample
from dpmodels.question import Question
from dpmodels.typing import Floats

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
