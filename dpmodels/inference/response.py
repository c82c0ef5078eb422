"""True proportions behind randomised answers: estimates, errors, intervals, tests.

*Theorem.* Let a respondent of stratum h with weight w answer a, and t be the column of the inverse
of the device's matrix for a. Given the truth, t has the truth's indicator as its mean. So weighted
means of t are unbiased for those of the truth, and a proportion of one set of truths within
another, ``s = Nτ / Dτ``, τ the mean of t, has to first order the error of the weighted mean of ``l
= (N - s D) t / Dτ``: a number per respondent, whose variance within strata gives the variance for
the population [1]_. The randomisation adds the mean over respondents of the variance of l given the
truth, ``E l² - (E l)²``, both known from the device.

.. [1] Woodruff, R. S. (1971). "A simple method for approximating the variance of a complicated
   estimate." JASA 66(334), 411-414.
.. [2] Wilson, E. B. (1927). "Probable inference, the law of succession, and statistical inference."
   JASA 22(158), 209-212.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy.special import chdtrc, ndtri

from dpmodels.inference.independence import degrees, margins_of
from dpmodels.inference.proportions import DETECTION_SDS
from dpmodels.postprocess.protocol import consistent
from dpmodels.postprocess.response import inverse, likeliest, matrix
from dpmodels.released import AnswersRelease, Channel
from dpmodels.typing import Floats

_HIDDEN_LEVEL = "the proportion of a level is not distinguishable from 0."


@dataclass(frozen=True)
class Shares:
    """Estimated proportions with their errors, each of shape (shares,).

    `variance` is that for the population, `noise` the part due to randomisation, `plain` that of a
    simple random sample of the same size without randomisation; nan for proportions outside (0, 1).
    `lines` are the linearised proportions, shape (shares, answers); `answers` are the proportions
    of answers, and `rows` the numbers of respondents in their denominators.
    """

    values: Floats
    variance: Floats
    noise: Floats
    plain: Floats
    lines: Floats
    answers: Floats
    rows: Floats

    @property
    def design_effect(self) -> Floats:
        """Ratio of the variance to that without randomisation, weights and strata."""
        return np.asarray(self.variance / self.plain)

    @property
    def private(self) -> Floats:
        """Fractions of the variances due to randomisation; nan if the variance is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.variance > 0, np.minimum(self.noise / self.variance, 1.0), np.nan)

    def noise_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return normal intervals for the proportions of these respondents, clipped to [0, 1]."""
        return _cut(self.values, float(ndtri((1 + level) / 2)) * np.sqrt(self.noise))

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return normal intervals for the proportions of the population, clipped to [0, 1]."""
        return _cut(self.values, float(ndtri((1 + level) / 2)) * np.sqrt(self.variance))

    def score_interval(self, level: float, truth: float) -> tuple[Floats, Floats]:
        """Return Wilson's interval for answers, transformed to truths by `truth`."""
        ends = score_interval(self.answers, truth**2 * self.variance, self.rows, level)
        shifted = ((end - self.answers) / truth + self.values for end in ends)
        low, high = (np.clip(end, 0.0, 1.0) for end in shifted)
        return low, high


def _cut(middle: Floats, half: Floats) -> tuple[Floats, Floats]:
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


@dataclass(frozen=True)
class ReadAnswers:
    """Answers by stratum with their devices; `effect` is the design effect."""

    release: AnswersRelease
    effect: int = 1

    @cached_property
    def given(self) -> Floats:
        """Probabilities of answers given truths."""
        return matrix(self.release.channels)

    @cached_property
    def turned(self) -> Floats:
        """The inverse, shape (truths, answers)."""
        return inverse(self.release.channels)

    @cached_property
    def parts(self) -> tuple[Floats, Floats, Floats]:
        """Counts of answers, sums of weights and of squared weights by stratum; weights sum to 1.

        Strata without answers are left out, and the others are reweighted.
        """
        release = self.release
        weights = release.values if release.weights is None else release.weights
        squares = release.values if release.squares is None else release.squares
        has_answers = weights.sum(axis=1) > 0
        counts, weights, squares = (
            table[has_answers] for table in (release.values, weights, squares)
        )
        totals = weights.sum(axis=1, keepdims=True)
        factor = np.ones_like(totals) / max(float(totals.sum()), np.finfo(float).tiny)
        if release.shares is not None:
            shares = np.array(release.shares)[has_answers][:, None]
            factor = shares / shares.sum() / totals
        return counts, weights * factor, squares * factor**2

    @property
    def complete(self) -> int:
        """How many respondents answered."""
        return round(float(self.release.values.sum()))

    @property
    def answers(self) -> Floats:
        """Weighted proportions of answers."""
        return np.asarray(self.parts[1].sum(axis=0))

    @property
    def simple(self) -> bool:
        """Whether all respondents have equal weights, in one stratum."""
        release = self.release
        return release.weights is None and not release.strata and self.effect == 1

    @property
    def truths(self) -> Floats:
        """Unbiased weighted proportions of truths."""
        return np.asarray(self.turned @ self.answers)

    @cached_property
    def likeliest(self) -> Floats:
        """The maximum likelihood proportions of truths, nonnegative."""
        return likeliest(self.answers, self.release.channels)

    def shares(self, of: Floats, within: Floats) -> Shares:
        """Return proportions of sets of truths within others, each of shape (shares, truths).

        nan where the denominator is not distinguishable from 0, given the randomisation.
        """
        truths = self.truths
        base = within @ truths
        base_sd = np.sqrt(self._coins(within @ self.turned, within))
        base = np.where(base > DETECTION_SDS * base_sd, base, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            values = (of @ truths) / base
            residual = (of - values[:, None] * within) / base[:, None]
            plain = np.where(
                (values > 0) & (values < 1), values * (1 - values) / (base * self.complete), np.nan
            )
        lines = residual @ self.turned
        noise = self._coins(lines, residual)
        sampled = np.maximum(self._variances(lines) - noise, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            answers = (of @ self.answers) / (within @ self.answers)
        rows = within @ self.release.values.sum(axis=0)
        return Shares(values, noise + self.effect * sampled, noise, plain, lines, answers, rows)

    def covariance(self, lines: Floats) -> Floats:
        """Return the covariance of linearised proportions for the population."""
        total = np.zeros((len(lines), len(lines)))
        for counts, weights, squares in zip(*self.parts, strict=True):
            centred, n_rows = lines - self._middle(lines, weights), counts.sum()
            means = centred @ weights
            within = (centred * squares) @ centred.T - np.outer(means, means) / n_rows
            total += n_rows / max(n_rows - 1, 1) * within
        return total

    def _coins(self, lines: Floats, away: Floats) -> Floats:
        """Return the variance that randomisation adds to respondents' numbers.

        That is their mean square less the mean square of their expectations given the truth.
        """
        squares = self.parts[2].sum(axis=0)
        variance = lines**2 @ squares - away**2 @ (self.turned @ squares)
        return np.asarray(np.maximum(variance, 0.0))

    def _variances(self, lines: Floats) -> Floats:
        variances = np.zeros(len(lines))
        for counts, weights, squares in zip(*self.parts, strict=True):
            centred, n_rows = lines - self._middle(lines, weights), counts.sum()
            within = centred**2 @ squares - (centred @ weights) ** 2 / n_rows
            variances += n_rows / max(n_rows - 1, 1) * np.maximum(within, 0.0)
        return variances

    def _middle(self, lines: Floats, weights: Floats) -> Floats:
        if self.release.shares is None:
            return np.zeros((len(lines), 1))
        return np.asarray(lines @ weights / weights.sum())[:, None]


@dataclass(frozen=True)
class ReadBits(ReadAnswers):
    """Answers with a bit for each level: each level is read as one question of two answers.

    Proportions are of all complete respondents; the last of `truths` is what is left for those
    without a truth. `likeliest` are the shares nearest to the estimates, with the sum 1: the
    likelihood of all bits together is not determined by how often each was set.
    """

    @cached_property
    def bits(self) -> tuple[ReadAnswers, ...]:
        """The answers to each level."""
        bits = []
        for start in range(0, self.release.values.shape[1], 2):
            changes: dict[str, Any] = {"unary": None}
            for name in ("values", "weights", "squares"):
                table = getattr(self.release, name)
                changes[name] = None if table is None else table[:, start : start + 2]
            bits.append(ReadAnswers(replace(self.release, **changes), self.effect))
        return tuple(bits)

    @property
    def complete(self) -> int:
        """How many respondents answered."""
        return self.bits[0].complete

    @property
    def truths(self) -> Floats:
        """Unbiased weighted proportions of levels, and of respondents without one."""
        levels = np.array([bit.truths[1] for bit in self.bits])
        return np.append(levels, 1 - levels.sum())

    @cached_property
    def likeliest(self) -> Floats:
        """The shares of levels nearest to the estimates."""
        return np.append(consistent(self.truths[:-1], 1.0), 0.0)

    def shares(self, of: Floats, within: Floats) -> Shares:
        """Return the proportions of all levels, whatever the sets: there is one question."""
        one, both = np.array([[0.0, 1.0]]), np.ones((1, 2))
        levels = (astuple(bit.shares(one, both)) for bit in self.bits)
        return Shares(*map(np.concatenate, zip(*levels, strict=True)))


def score_interval(
    answers: Floats, variance: Floats, rows: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return Wilson's interval for proportions of answers, at their effective sample size [2]_.

    Where that is undefined, `rows` is used.
    """
    z2 = float(ndtri((1 + level) / 2)) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        size = answers * (1 - answers) / variance
    size = np.where(np.isfinite(size) & (size > 0), size, np.maximum(rows, 1))
    middle = (answers + z2 / (2 * size)) / (1 + z2 / size)
    half = np.sqrt(z2 * answers * (1 - answers) / size + (z2 / (2 * size)) ** 2)
    half /= 1 + z2 / size
    return middle - half, middle + half


@dataclass(frozen=True)
class AnswersTest:
    """A chi-square test on randomised answers.

    `kept` is the fraction of the noncentrality, and so of the number of respondents, that remains
    after randomisation: the mean over directions, at the maximum likelihood proportions.
    """

    statistic: float
    pvalue: float
    df: int
    kept: float
    reason: str = ""


def independence_of_answers(
    table: Floats, channels: Sequence[Channel], truths: Sequence[Floats]
) -> AnswersTest:
    """Test the independence of answers, which is equivalent to that of truths.

    `table` are counts of answers, one axis per question; `truths` the maximum likelihood
    proportions of each. Independent devices turn independent truths into independent answers, so
    Pearson's test keeps its size without correction. Levels without answers are left out.
    """
    for axis in range(table.ndim):
        table = np.compress(margins_of(table)[axis] > 0, table, axis)
    information = math.prod(map(kept_information, channels, truths))
    if min(table.shape) < 2:
        return _untested(degrees(table.shape), information)
    total = table.sum()
    expected = total * reduce(np.multiply.outer, [margin / total for margin in margins_of(table)])
    statistic = float(((table - expected) ** 2 / expected).sum())
    return _tested(statistic, degrees(table.shape), information)


def independence_of_shares(
    shares: Floats, covariance: Floats, shape: tuple[int, ...], information: float
) -> AnswersTest:
    """Test the independence of estimated proportions by Wald's statistic."""
    table = shares.reshape(shape)
    margins = margins_of(table)
    if not min(float(margin.min()) for margin in margins) > 0:
        return _untested(degrees(shape), information)
    expected = reduce(np.multiply.outer, margins).ravel()
    positions = np.indices(shape).reshape(len(shape), -1)
    slope = np.zeros((len(shares), len(shares)))
    for position, margin in zip(positions, margins, strict=True):
        is_same = position[:, None] == position[None, :]
        slope += is_same * expected[:, None] / margin[position][:, None]
    jacobian = np.eye(len(shares)) - slope + (len(shape) - 1) * expected[:, None]
    return wald(shares - expected, jacobian @ covariance @ jacobian.T, degrees(shape), information)


def wald(away: Floats, covariance: Floats, df: int, information: float) -> AnswersTest:
    """Test whether numbers with a covariance of rank df are 0."""
    if not np.isfinite(covariance).all():
        return _untested(df, information, "the proportions are not identified.")
    values, vectors = np.linalg.eigh(covariance)
    top, axes = values[-df:], vectors[:, -df:]
    if not top.min() > 1e-12 * top.max():
        return _untested(df, information, "some answers have no respondents.")
    return _tested(float(((axes.T @ away) ** 2 / top).sum()), df, information)


def fit_of_answers(answers: Floats, expected: Floats, information: float) -> AnswersTest:
    """Test counts of answers against expected proportions, by Pearson's statistic."""
    total, df = answers.sum(), len(answers) - 1
    if not total > 0:
        return _untested(df, information, "there are no respondents.")
    statistic = float(((answers - total * expected) ** 2 / (total * expected)).sum())
    return _tested(statistic, df, information)


def kept_information(channel: Channel, truths: Floats) -> float:
    """Return the fraction of the information on proportions after randomisation.

    The mean over directions, which is the mean squared canonical correlation of answer and truth:
    at most c², c the probability of asking for the truth, attained only if drawn answers have the
    distribution of the truth.
    """
    probabilities = matrix([channel])
    answers = probabilities @ truths
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = probabilities**2 * truths / answers[:, None]
    square = np.where(answers[:, None] > 0, ratios, 0.0).sum()
    return float(min(max(square - 1, 0.0) / (len(truths) - 1), 1.0))


def _tested(statistic: float, df: int, information: float) -> AnswersTest:
    return AnswersTest(statistic, float(chdtrc(df, statistic)), df, information)


def _untested(df: int, information: float, reason: str = _HIDDEN_LEVEL) -> AnswersTest:
    return AnswersTest(math.nan, math.nan, df, information, reason)
