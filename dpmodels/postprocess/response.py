"""Estimation of true proportions from randomised answers: matrices, inverses, maximum likelihood.

*Theorem.* A device that asks for the truth with probability c, and otherwise draws the answer from
a public distribution u, has the matrix ``P = c I + (1 - c) u 1ᵀ`` of answers given truths. Its
inverse is ``(I - (1 - c) u 1ᵀ) / c``, since the entries of u have the sum 1. Its privacy loss is
``log(1 + c / ((1 - c) min u))``: an answer i has the probabilities ``c + (1 - c) u_i`` and
``(1 - c) u_i``, whose ratio is largest for the rarest answer.

Logistic regression of a truth that is observed through randomised answers.

*Theorem.* Where the truth is 1 with probability ``p = 1/(1 + exp(-xβ))`` and the device asks for it
with probability c, and else says 1 with probability u, the answer is 1 with probability ``λ = (1 -
c) u + c p``. Its score is ``x g (y - λ) / (λ (1 - λ))``, g = c p (1 - p), and the information ``x
xᵀ g² / (λ (1 - λ))``. The error about what the same regression of the truth would give has the
covariance ``A M A + B N B - A M B - B M A``: A and B the inverses of the informations of answers
and truths, M and N the variances of the scores, whose covariance is M as ``Cov(y, truth) = g``.

*Corrected scores.* ``z = (y - (1 - c) u) / c`` has the truth as its mean given the truth and x. So
``Σ x (z - p)`` has, given the respondents, the mean of the score of logistic regression of the true
answers, whether or not the model is correct: its root estimates what that regression does [1]_. The
device adds ``Var(z | truth)``, whose unbiased estimate is ``(1 - λ₀)(1 - λ₁) / c²`` where y = 1,
else ``λ₀ λ₁ / c²``, with ``λ₀ = (1 - c) u`` and ``λ₁ = λ₀ + c``.

.. [1] Carroll, R. J., Ruppert, D., Stefanski, L. A. and Crainiceanu, C. M. (2006). "Measurement
   error in nonlinear models", chapter 7. Chapman and Hall.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.special import expit

from dpmodels.released import Channel
from dpmodels.typing import Floats, Indices

# Most Newton steps, halvings of one, and the largest violation of the conditions of a maximum at
# which they end: choices.
STEPS, HALVINGS = 200, 40
NEAR = 1e-12
# Distance from 0 below which a proportion may be set to 0, and ridge of singular curvature.
ACTIVE, RIDGE = 1e-6, 1e-12


def device_loss(truth: float, rarest: float) -> float:
    """Return the privacy loss of a device whose rarest drawn answer has probability `rarest`."""
    return math.log1p(truth / ((1 - truth) * rarest))


def truth_of(eps: float, levels: int) -> float:
    """Return the probability of asking for the truth if drawn answers are uniform over levels."""
    return -math.expm1(-eps) / (1 + (levels - 1) * math.exp(-eps))


def matrix(channels: Sequence[Channel]) -> Floats:
    """Return probabilities of answers given truths, shape (answers, truths); columns add up to 1.

    >>> from dpmodels.released import Channel
    >>> matrix([Channel(0.5, (0.5, 0.5), 1.0, "coins")])
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    return _product(c.truth * np.eye(len(c.law)) + _drawn(c) for c in channels)


def inverse(channels: Sequence[Channel]) -> Floats:
    """Return the matrix from proportions of answers to those of truths, shape (truths, answers)."""
    return _product((np.eye(len(c.law)) - _drawn(c)) / c.truth for c in channels)


def _product(matrices: Iterable[Floats]) -> Floats:
    return reduce(lambda left, right: np.asarray(np.kron(left, right)), matrices)


def _drawn(channel: Channel) -> Floats:
    return np.asarray((1 - channel.truth) * np.array(channel.law)[:, None])


def likeliest(answers: Floats, channels: Sequence[Channel]) -> Floats:
    """Return the maximum likelihood proportions of truths, shape (truths,).

    Nonnegative, with the sum 1; nan without answers. They equal ``inverse @ answers`` where that is
    nonnegative, and of two levels 0 and 1 otherwise. Of more levels they are computed by projected
    Newton steps [1]_ until the conditions of a maximum hold to 1e-12; nan if 200 do not suffice.

    .. [1] Bertsekas, D. P. (1982). "Projected Newton methods for optimization problems with simple
       constraints." SIAM J. Control and Optimization 20(2), 221-246.
    """
    if not answers.sum() > 0:
        return np.full(answers.size, np.nan)
    shares = answers / answers.sum()
    unbiased = inverse(channels) @ shares
    if (unbiased >= 0).all():
        return np.asarray(unbiased)
    start = np.maximum(unbiased, 0.0)
    if len(start) == 2:
        return np.asarray(start / start.sum())
    return _likeliest_beyond(shares, matrix(channels), start)


def _likeliest_beyond(answers: Floats, given: Floats, start: Floats) -> Floats:
    """Return the proportions that minimise ``1ᵀp - Σ answers log(given p)``, which add up to 1."""
    size = len(start)
    proportions = 0.99 * start / start.sum() + 0.01 / size
    for _ in range(STEPS):
        expected = given @ proportions
        gradient = 1 - given.T @ (answers / expected)
        violation = np.abs(np.minimum(proportions, gradient)).max()
        if violation < NEAR:
            return np.asarray(proportions / proportions.sum())
        free = ~((proportions <= min(ACTIVE, violation)) & (gradient > 0))
        columns = given[:, free]
        curvature = (columns.T * (answers / expected**2)) @ columns
        curvature += RIDGE * np.trace(curvature) * np.eye(len(curvature))
        step = np.where(free, 0.0, gradient)
        step[free] = np.linalg.solve(curvature, gradient[free])
        proportions = _lower(answers, given, proportions, gradient, step)
    return np.full(size, np.nan)


def _lower(
    answers: Floats, given: Floats, proportions: Floats, gradient: Floats, step: Floats
) -> Floats:
    """Return the proportions after the longest halved step that lowers the objective enough."""
    counted = answers > 0
    weights, rows, before = answers[counted], given[counted], given[counted] @ proportions
    point = proportions
    for halving in range(HALVINGS):
        point = np.maximum(proportions - step / 2**halving, 0.0)
        with np.errstate(divide="ignore"):
            gain = float(weights @ np.log(rows @ point / before) - (point - proportions).sum())
        if gain >= 1e-4 * float(gradient @ (proportions - point)) - 1e-15:
            break
    return point


# Most Newton steps, and most halvings of one: choices.
FIT_STEPS, FIT_HALVINGS = 200, 30
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
    strata: Indices
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

    def objective(self, coefficients: Floats) -> float:
        """Return what the coefficients maximise, whose derivatives are :meth:`scores`."""
        return self.log_likelihood(coefficients)

    def scores(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the scores per column of each row, and its information."""
        truths, answers = self.expected(coefficients)
        slope = self.truth * truths * (1 - truths)
        spread = answers * (1 - answers)
        return slope * (self.answers - answers) / spread, slope**2 / spread

    def noise_covariance(self, coefficients: Floats, inverse: Floats) -> Floats | None:
        """Return the covariance of the errors about the same regression of the truth.

        `inverse` is that of the information; None where the truth's is singular.
        """
        truths, _ = self.expected(coefficients)
        _, information = self.scores(coefficients)
        truth_inverse = _inverse_if_regular(_square(self, self.weights * truths * (1 - truths)))
        if truth_inverse is None:
            return None
        squares = self.weights**2
        product = inverse @ _square(self, squares * information)
        cross = product @ truth_inverse
        truth_meat = _square(self, squares * truths * (1 - truths))
        noise = product @ inverse - cross - cross.T + truth_inverse @ truth_meat @ truth_inverse
        return np.asarray(noise)


@dataclass(frozen=True)
class CorrectedRows(ResponseRows):
    """The same respondents, with scores whose mean given the truth is that of the truth."""

    @property
    def _unbiased(self) -> Floats:
        """Numbers with the true answers as their means."""
        return (self.answers - self.spoken) / self.truth

    def objective(self, coefficients: Floats) -> float:
        """Return the log-likelihood of the truth with unbiased numbers instead of true answers."""
        linear = self.coded @ coefficients
        return float(self.weights @ (self._unbiased * linear - np.logaddexp(0.0, linear)))

    def scores(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the scores per column of each row, and minus their derivatives."""
        truths, _ = self.expected(coefficients)
        return self._unbiased - truths, truths * (1 - truths)

    def noise_covariance(self, coefficients: Floats, inverse: Floats) -> Floats | None:
        """Return the covariance of the errors about the regression of the true answers."""
        rates = np.array([self.spoken, self.spoken + self.truth])
        variances = np.prod([rates, 1 - rates], axis=1) / self.truth**2
        added = np.where(self.answers > 0, variances[1], variances[0])
        return np.asarray(inverse @ _square(self, self.weights**2 * added) @ inverse)


def fitted(rows: ResponseRows) -> ResponseFit:
    """Compute the coefficients at which the scores add up to 0, by Newton's method from 0."""
    columns = rows.coded.shape[1]
    coefficients, objective = np.zeros(columns), rows.objective(np.zeros(columns))
    for _ in range(FIT_STEPS):
        scores, information = rows.scores(coefficients)
        inverse = _inverse_if_regular(_square(rows, rows.weights * information))
        if inverse is None:
            return _unidentified(rows, coefficients)
        gradient = rows.coded.T @ (rows.weights * scores)
        step = inverse @ gradient
        step_length = math.sqrt(max(float(gradient @ step), 0.0))
        if step_length < NEAR_FIT:
            return _with_errors(rows, coefficients, inverse)
        for _ in range(FIT_HALVINGS if step_length > CLOSE else 0):
            if rows.objective(coefficients + step) >= objective:
                break
            step = step / 2
        coefficients = coefficients + step
        objective = rows.objective(coefficients)
    return _unidentified(rows, coefficients)


def _with_errors(rows: ResponseRows, coefficients: Floats, inverse: Floats) -> ResponseFit:
    noise = rows.noise_covariance(coefficients, inverse)
    if noise is None:
        return _unidentified(rows, coefficients)
    scores, _ = rows.scores(coefficients)
    robust = inverse @ _meat(rows, rows.weights * scores) @ inverse
    return ResponseFit(coefficients, robust, noise, rows.log_likelihood(coefficients))


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


def _inverse_if_regular(square: Floats) -> Floats | None:
    scale = np.sqrt(np.diagonal(square))
    if not (np.isfinite(square).all() and (scale > 0).all()):
        return None
    values, vectors = np.linalg.eigh(square / np.outer(scale, scale))
    if values[0] < SINGULAR:
        return None
    return np.asarray((vectors / values) @ vectors.T / np.outer(scale, scale))


def _unidentified(rows: ResponseRows, coefficients: Floats) -> ResponseFit:
    unknown = np.full((len(coefficients),) * 2, np.nan)
    return ResponseFit(coefficients, unknown, unknown, rows.log_likelihood(coefficients))
