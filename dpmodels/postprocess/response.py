"""Estimation of true proportions from randomised answers: matrices, inverses, maximum likelihood.

*Theorem.* A device that asks for the truth with probability c, and otherwise draws the answer from
a public distribution u, has the matrix ``P = c I + (1 - c) u 1ᵀ`` of answers given truths. Its
inverse is ``(I - (1 - c) u 1ᵀ) / c``, since the entries of u have the sum 1. Its privacy loss is
``log(1 + c / ((1 - c) min u))``: an answer i has the probabilities ``c + (1 - c) u_i`` and
``(1 - c) u_i``, whose ratio is largest for the rarest answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from dpmodels.released import Channel
from dpmodels.typing import Floats

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
    return _product(map(_matrix, channels))


def inverse(channels: Sequence[Channel]) -> Floats:
    """Return the matrix from proportions of answers to those of truths, shape (truths, answers)."""
    return _product(map(_inverse, channels))


def _product(matrices: Iterable[Floats]) -> Floats:
    return reduce(lambda left, right: np.asarray(np.kron(left, right)), matrices)


def _matrix(channel: Channel) -> Floats:
    spoken = (1 - channel.truth) * np.array(channel.law)
    return channel.truth * np.eye(len(spoken)) + spoken[:, None]


def _inverse(channel: Channel) -> Floats:
    spoken = (1 - channel.truth) * np.array(channel.law)
    return np.asarray((np.eye(len(spoken)) - spoken[:, None]) / channel.truth)


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
