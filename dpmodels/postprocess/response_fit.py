"""Logistic regression of a truth that is observed through randomised answers.

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

# Most Newton steps, and most halvings of one: choices.
STEPS, HALVINGS = 200, 30
# Step in standard errors at which the search ends, and below which it is not halved, since
# likelihoods differ only by rounding.
NEAR_FIT, CLOSE = 1e-6, 1e-3
# Smallest eigenvalue of the information, scaled to unit diagonal, that counts as identified.
SINGULAR = 1e-10
# Bound on the linear predictor; larger ones change no computed probability.
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
    """Coded rows (rows, columns), answers 0 or 1, weights, strata, and the device."""

    coded: Floats
    answers: Floats
    weights: Floats
    strata: NDArray[np.intp]
    truth: float
    spoken: float  # Probability of a drawn answer of 1

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
    """Compute maximum likelihood coefficients by Fisher scoring, starting from 0."""
    columns = rows.coded.shape[1]
    coefficients, log_likelihood = np.zeros(columns), rows.log_likelihood(np.zeros(columns))
    for _ in range(STEPS):
        scores, information = rows.scores(coefficients)
        inverse = _inverse(_square(rows, rows.weights * information))
        if inverse is None:
            return _unidentified(coefficients, log_likelihood)
        gradient = rows.coded.T @ (rows.weights * scores)
        step = inverse @ gradient
        step_length = math.sqrt(max(float(gradient @ step), 0.0))
        if step_length < NEAR_FIT:
            return _with_errors(rows, coefficients, log_likelihood)
        for _ in range(HALVINGS if step_length > CLOSE else 0):
            if rows.log_likelihood(coefficients + step) >= log_likelihood:
                break
            step = step / 2
        coefficients = coefficients + step
        log_likelihood = rows.log_likelihood(coefficients)
    return _unidentified(coefficients, log_likelihood)


def _with_errors(rows: ResponseRows, coefficients: Floats, log_likelihood: float) -> ResponseFit:
    truths, _ = rows.expected(coefficients)
    scores, information = rows.scores(coefficients)
    answer_inverse = _inverse(_square(rows, rows.weights * information))
    truth_inverse = _inverse(_square(rows, rows.weights * truths * (1 - truths)))
    if answer_inverse is None or truth_inverse is None:
        return _unidentified(coefficients, log_likelihood)
    robust = answer_inverse @ _meat(rows, rows.weights * scores) @ answer_inverse
    squares = rows.weights**2
    product = answer_inverse @ _square(rows, squares * information)
    cross = product @ truth_inverse
    noise = product @ answer_inverse - cross - cross.T
    noise += truth_inverse @ _square(rows, squares * truths * (1 - truths)) @ truth_inverse
    return ResponseFit(coefficients, robust, noise, log_likelihood)


def _square(rows: ResponseRows, weights: Floats) -> Floats:
    return np.asarray((rows.coded.T * weights) @ rows.coded)


def _meat(rows: ResponseRows, scores: Floats) -> Floats:
    """Return the covariance of the sum of scores under stratified sampling."""
    scores_by_column = rows.coded * scores[:, None]
    meat = np.zeros((scores_by_column.shape[1],) * 2)
    for stratum in np.unique(rows.strata):
        stratum_scores = scores_by_column[rows.strata == stratum]
        centred = stratum_scores - stratum_scores.mean(axis=0)
        meat += len(stratum_scores) / max(len(stratum_scores) - 1, 1) * centred.T @ centred
    return meat


def _inverse(square: Floats) -> Floats | None:
    """Return the inverse of a positive matrix; None if it is numerically singular."""
    scale = np.sqrt(np.diagonal(square))
    if not (np.isfinite(square).all() and (scale > 0).all()):
        return None
    values, vectors = np.linalg.eigh(square / np.outer(scale, scale))
    if values[0] < SINGULAR:
        return None
    return np.asarray((vectors / values) @ vectors.T / np.outer(scale, scale))


def _unidentified(coefficients: Floats, log_likelihood: float) -> ResponseFit:
    unknown = np.full((len(coefficients),) * 2, np.nan)
    return ResponseFit(coefficients, unknown, unknown, log_likelihood)
