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

# Most steps of the EM algorithm, and its tolerance in proportions: choices.
STEPS = 10_000
NEAR = 1e-10


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
    nonnegative. By the EM algorithm, which never lowers the likelihood [1]_.

    .. [1] Dempster, A., Laird, N. and Rubin, D. (1977). "Maximum likelihood from incomplete data
       via the EM algorithm." JRSS B 39(1), 1-38.
    """
    sizes = [len(channel.law) for channel in channels]
    counts = answers.reshape(sizes)
    if not answers.sum() > 0:
        return np.full(answers.size, np.nan)
    proportions = np.full(sizes, 1 / answers.size)
    for _ in range(STEPS):
        expected = _expected_answers(proportions, channels)
        ratio = np.divide(counts, expected, where=expected > 0, out=np.zeros(sizes))
        step = proportions * _answered_transpose(ratio, channels)
        if np.abs(step - proportions).max() < NEAR:
            break
        proportions = step
    return np.asarray(step / step.sum()).ravel()


def _spoken(channel: Channel, axis: int, axes: int) -> Floats:
    """Return the probabilities of drawn answers, along one axis of several."""
    return (1 - channel.truth) * np.array(channel.law).reshape([-1] + [1] * (axes - axis - 1))


def _expected_answers(table: Floats, channels: Sequence[Channel]) -> Floats:
    """Multiply by the matrix, one axis after the other."""
    for axis, channel in enumerate(channels):
        spoken = _spoken(channel, axis, len(channels))
        table = channel.truth * table + spoken * table.sum(axis, keepdims=True)
    return table


def _answered_transpose(table: Floats, channels: Sequence[Channel]) -> Floats:
    """Multiply by the transpose of the matrix, one axis after the other."""
    for axis, channel in enumerate(channels):
        spoken = _spoken(channel, axis, len(channels))
        table = channel.truth * table + (spoken * table).sum(axis, keepdims=True)
    return table
