"""Logistic regression of a truth that is known through randomised answers.

*Theorem.* Where the truth is 1 with probability ``p = 1/(1 + exp(-xβ))`` and the device asks for it
with probability c, and else says 1 with probability u, the answer is 1 with probability ``λ = (1 -
c) u + c p``. Its score is ``x g (y - λ) / (λ (1 - λ))``, g = c p (1 - p), and the information ``x
xᵀ g² / (λ (1 - λ))``. The error about what the same regression of the truth would give has the
covariance ``A M A + B N B - A M B - B M A``: A and B the inverses of the informations of answers
and truths, M and N the variances of the scores, whose covariance is M as ``Cov(y, truth) = g``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpmodels.typing import Floats

# Newton's steps, and halvings of one: choices.
STEPS, HALVINGS = 200, 30
# The step in standard errors at which the search ends, and below which it is taken whole, as
# likelihoods differ by no more than their rounding.
NEAR_FIT, CLOSE = 1e-6, 1e-3
# Of the information's eigenvalues, scaled to a diagonal of 1: below, a way is not identified.
SINGULAR = 1e-10
# From here on the linear predictor changes no probability that is computed.
LARGEST = 500.0


@dataclass(frozen=True)
class ResponseFit:
    """Coefficients, shape (columns,), and covariances; nan where they are not identified."""

    coefficients: Floats
    covariance: Floats
    noise_covariance: Floats
    log_likelihood: float


@dataclass(frozen=True)
class ResponseRows:
    """Coded rows (rows, columns), answers 0 or 1, weights, strata; how answers come of truths."""

    coded: Floats
    answers: Floats
    weights: Floats
    strata: NDArray[np.intp]
    truth: float
    spoken: float  # Probability of a 1 that is not asked for

    def expected(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the probabilities that truths and answers are 1."""
        truths = expit(np.clip(self.coded @ coefficients, -LARGEST, LARGEST))
        return truths, self.spoken + self.truth * truths

    def log_likelihood(self, coefficients: Floats) -> float:
        """Return the weighted logarithm of the answers' probability."""
        _, answers = self.expected(coefficients)
        return float(self.weights @ np.log(np.where(self.answers > 0, answers, 1 - answers)))

    def scores(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the scores per column of each row, and its information."""
        truths, answers = self.expected(coefficients)
        slope = self.truth * truths * (1 - truths)
        spread = answers * (1 - answers)
        return slope * (self.answers - answers) / spread, slope**2 / spread


def fitted(rows: ResponseRows) -> ResponseFit:
    """Find the likeliest coefficients by Fisher's scoring, from a constant of no odds."""
    columns = rows.coded.shape[1]
    found, likely = np.zeros(columns), rows.log_likelihood(np.zeros(columns))
    for _ in range(STEPS):
        scores, information = rows.scores(found)
        inverse = _inverse(_square(rows, rows.weights * information))
        if inverse is None:
            return _unidentified(found, likely)
        gradient = rows.coded.T @ (rows.weights * scores)
        step = inverse @ gradient
        moved = math.sqrt(max(float(gradient @ step), 0.0))
        if moved < NEAR_FIT:
            return _with_errors(rows, found, likely)
        for _ in range(HALVINGS if moved > CLOSE else 0):
            if rows.log_likelihood(found + step) >= likely:
                break
            step = step / 2
        found = found + step
        likely = rows.log_likelihood(found)
    return _unidentified(found, likely)


def _with_errors(rows: ResponseRows, found: Floats, likely: float) -> ResponseFit:
    truths, _ = rows.expected(found)
    scores, information = rows.scores(found)
    answered = _inverse(_square(rows, rows.weights * information))
    known = _inverse(_square(rows, rows.weights * truths * (1 - truths)))
    if answered is None or known is None:
        return _unidentified(found, likely)
    robust = answered @ _meat(rows, rows.weights * scores) @ answered
    squares = rows.weights**2
    both = answered @ _square(rows, squares * information)
    cross = both @ known
    noise = both @ answered - cross - cross.T
    noise += known @ _square(rows, squares * truths * (1 - truths)) @ known
    return ResponseFit(found, robust, noise, likely)


def _square(rows: ResponseRows, weights: Floats) -> Floats:
    return np.asarray((rows.coded.T * weights) @ rows.coded)


def _meat(rows: ResponseRows, scores: Floats) -> Floats:
    """Return the covariance of the sum of scores, as strata have it."""
    each = rows.coded * scores[:, None]
    meat = np.zeros((each.shape[1],) * 2)
    for stratum in np.unique(rows.strata):
        own = each[rows.strata == stratum]
        away = own - own.mean(axis=0)
        meat += len(own) / max(len(own) - 1, 1) * away.T @ away
    return meat


def _inverse(square: Floats) -> Floats | None:
    """Return the inverse of a positive matrix, None where it has none in floats."""
    scale = np.sqrt(np.diagonal(square))
    if not (np.isfinite(square).all() and (scale > 0).all()):
        return None
    values, vectors = np.linalg.eigh(square / np.outer(scale, scale))
    if values[0] < SINGULAR:
        return None
    return np.asarray((vectors / values) @ vectors.T / np.outer(scale, scale))


def _unidentified(found: Floats, likely: float) -> ResponseFit:
    unknown = np.full((len(found),) * 2, np.nan)
    return ResponseFit(found, unknown, unknown, likely)
