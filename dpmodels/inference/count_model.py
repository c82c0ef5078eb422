"""Models of a category by the maximum likelihood of noisy counts, and their errors.

Theorem 59 of ``docs/theory.md``: with counts ``c = c₀ + e``, e independent of known variance s²,
and ``g = ∂ log p`` of a cell, the estimate solves ``Σ c g = 0``, on average over the noise the
equation of the estimate without noise. To first order they differ by ``H⁻¹ Σ e g``, of covariance
``s² H⁻¹ (Σ g gᵀ) H⁻¹``, H the observed information; about the population's value comes White's
``H⁻¹ (Σ c g gᵀ) H⁻¹``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit, log_softmax

from dpmodels.typing import Floats, Numbers

# A choice: the likelihood of noise alone has no maximum, so p below exp(-LONGEST) is penalised.
LONGEST = 12.0
# Most steps of Newton's method, halvings of one, and the gain in likelihood that is left out.
STEPS, HALVINGS, NEAR = 200, 40, 1e-12
# Eigenvalues below these parts of the largest are lifted to it in a step, and in the errors.
WEAK, FLAT = 1e-6, 1e-9
# Entries of the information beyond it cannot be of rows.
HUGE = 1e100
# Half the step of a difference quotient, in log odds.
STEP = 1e-5


@dataclass(frozen=True)
class LevelLogits:
    """Log odds of each of K levels against the first; parameters level by level."""

    rows: Floats  # shape (rows, coefficients)
    levels: int

    def start(self, counts: Floats) -> Floats:
        """Return equal odds."""
        return np.zeros(self.rows.shape[1] * (self.levels - 1))

    def logs(self, params: Floats) -> Floats:
        """Return logarithms of probabilities, shape (rows, K)."""
        odds = self.rows @ params.reshape(self.levels - 1, -1).T
        return np.asarray(log_softmax(np.insert(odds, 0, 0.0, axis=1), axis=1))

    def slopes(self, params: Floats) -> Floats:
        """Return their derivatives by the parameters, shape (rows, K, parameters)."""
        away = np.eye(self.levels)[None] - np.exp(self.logs(params))[:, None, :]
        crossed = away[:, :, 1:, None] * self.rows[:, None, None, :]
        return np.asarray(crossed.reshape(*away.shape[:2], -1))

    def observed(self, params: Floats, counts: Floats) -> Floats:
        """Return less the derivative of ``Σ counts slopes``; here it is the expected one."""
        return expected(counts, self.logs(params), self.slopes(params))


@dataclass(frozen=True)
class CumulativeLogits:
    """Proportional odds: slopes, then thresholds; ``logit P(y <= a) = threshold - slopes x``."""

    rows: Floats
    levels: int

    def start(self, counts: Floats) -> Floats:
        """Return no effects, and the thresholds of all counts together."""
        shares = np.maximum(counts.sum(axis=0), 0.0) + 1 + 1e-3 * np.abs(counts).sum()
        below = (np.cumsum(shares) / shares.sum())[:-1]
        return np.concatenate([np.zeros(self.rows.shape[1]), np.log(below / (1 - below))])

    def _ends(self, params: Floats) -> tuple[Floats, Floats]:
        """Return linear predictors above and below each level, shape (rows, K)."""
        slopes, thresholds = np.split(params, [self.rows.shape[1]])
        inner = thresholds - (self.rows @ slopes)[:, None]
        outer = np.full((len(inner), 1), np.inf)
        return np.hstack([inner, outer]), np.hstack([-outer, inner])

    def logs(self, params: Floats) -> Floats:
        """Return logarithms of probabilities; nan where thresholds do not rise."""
        upper, lower = self._ends(params)
        if not (np.diff(params[self.rows.shape[1] :]) > 0).all():
            return np.full_like(upper, np.nan)
        # F(u) - F(l) = F(u) F(-l) (1 - exp(l - u))
        return np.asarray(log_expit(upper) + log_expit(-lower) + np.log1p(-np.exp(lower - upper)))

    def slopes(self, params: Floats) -> Floats:
        """Return their derivatives by the parameters, shape (rows, K, parameters)."""
        logs, size = self.logs(params), self.rows.shape[1]
        upper, lower = (
            np.exp(log_expit(end) + log_expit(-end) - logs) for end in self._ends(params)
        )
        slopes = np.zeros((*logs.shape, len(params)))
        slopes[:, :, :size] = (lower - upper)[:, :, None] * self.rows[:, None, :]
        at = np.arange(self.levels - 1)
        slopes[:, at, size + at], slopes[:, at + 1, size + at] = upper[:, :-1], -lower[:, 1:]
        return slopes

    def observed(self, params: Floats, counts: Floats) -> Floats:
        """Return less the derivative of ``Σ counts slopes``, by differences to ten digits."""
        scores = [
            [np.einsum("xk,xkq->q", counts, self.slopes(params + spec * move)) for spec in (-1, 1)]
            for move in STEP * np.eye(len(params))
        ]
        columns = np.array([(before - after) / (2 * STEP) for before, after in scores])
        return np.asarray(columns + columns.T) / 2


CellModel = LevelLogits | CumulativeLogits


def of_family(family: str, rows: Floats, levels: int) -> CellModel:
    """Return the model of a family in the rows of a table."""
    return (CumulativeLogits if family == "ordinal" else LevelLogits)(rows, levels)


def expected(counts: Floats, logs: Floats, slopes: Floats) -> Floats:
    """Return the information of the rows' numbers if the model is correct."""
    return _squares(slopes, counts.sum(axis=1, keepdims=True) * np.exp(logs))


def _squares(slopes: Floats, weights: Numbers) -> Floats:
    flat = slopes.reshape(-1, slopes.shape[-1])
    return np.asarray(flat.T @ (weights.reshape(-1, 1) * flat))


def _axes(information: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues and vectors, also of counts so large that a sum of squares overflows."""
    bounded = np.nan_to_num(information, nan=0.0, posinf=HUGE, neginf=-HUGE)
    values, vectors = np.linalg.eigh(np.clip(bounded, -HUGE, HUGE))
    return values, vectors


def maximum(model: CellModel, counts: Floats, sd: float) -> Floats:
    """Return the parameters of maximum likelihood of counts, shape (rows, K), noise included.

    Counts may be negative. Squares of ``-log p`` beyond :data:`LONGEST` cost half of `sd` each.
    """

    def value(logs: Floats) -> float:
        over = np.maximum(-logs - LONGEST, 0.0)
        return float((counts * logs).sum() - sd * (over**2).sum() / 2)

    params = model.start(counts)
    logs = model.logs(params)
    best = value(logs)
    for _ in range(STEPS):
        slopes, pull = model.slopes(params), sd * np.maximum(-logs - LONGEST, 0.0)
        gradient = np.einsum("xk,xkq->q", counts + pull, slopes)
        information = np.add(expected(counts, logs, slopes), _squares(slopes, sd * (pull > 0)))
        values, vectors = _axes(information)
        size = np.maximum(np.abs(values), max(WEAK * np.abs(values).max(initial=0.0), 1e-300))
        step = vectors @ ((vectors.T @ gradient) / size)
        if gradient @ step <= max(NEAR, 1e-16 * abs(best)):
            break
        trials = (params + step / 2**halving for halving in range(HALVINGS))
        trial = next((point for point in trials if value(model.logs(point)) > best), None)
        if trial is None:
            break
        params, logs = trial, model.logs(trial)
        best = value(logs)
    return params


class CountEstimate(NamedTuple):
    """Parameters from noisy counts, and the first-order law of their error.

    The two roots are of covariances, about the estimate without noise and of that about the
    population's. `influence`, shape (cells, parameters), is their derivative by the counts,
    `inverse` the inverse information.
    """

    params: Floats
    noise_root: Floats
    sampling_root: Floats
    influence: Floats
    inverse: Floats


@np.errstate(all="ignore")
def estimate(model: CellModel, counts: Floats, sd: float, design_effect: float) -> CountEstimate:
    """Fit a model to counts, shape (rows, K), of noise `sd`; sampling variances are multiplied.

    Negative counts enter the squares as 0: sampling errors are too large where cells are empty, by
    less than the noise in them. Information below its own noise is lifted to that.
    """
    params = maximum(model, counts, sd)
    slopes, logs = model.slopes(params), model.logs(params)
    penalty = _squares(slopes, sd * (-logs > LONGEST))
    values, vectors = _axes(model.observed(params, counts) + penalty)
    flat, size = slopes.reshape(-1, len(params)), np.abs(values)
    noise = sd * np.sqrt(((flat @ vectors) ** 4).sum(axis=0))
    lifted = np.maximum(np.maximum(size, noise), max(FLAT * size.max(initial=0.0), 1e-300))
    inverse = np.asarray(vectors / lifted @ vectors.T)
    influence = flat @ inverse
    weights = np.sqrt(design_effect * np.maximum(counts, 0.0)).reshape(-1, 1)
    return CountEstimate(
        params, _root(sd * influence), _root(weights * influence), influence, inverse
    )


def _root(rows: Floats) -> Floats:
    return np.asarray(np.linalg.qr(rows, mode="r")).T
