"""Regressions under a survey design: what the cap cut off is put back, strata are taken off.

The scores of units above the cap, at the released coefficients, add up to ``Σ s``. Let e be the
mean excess of their weights, in caps: where it is unrelated to the scores within these units, what
was cut off adds ``e Σ s`` to the score in expectation (docs/theory.md, Theorem 80).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from dpmodels.postprocess.normal_equations import NormalEquations
from dpmodels.postprocess.small_samples import Added
from dpmodels.postprocess.strata import CLEAR, UNLIKE, noise_of_squares
from dpmodels.released import Meat, MomentsRelease
from dpmodels.typing import Floats

# How far the excess of capped units may be correlated with their scores: a choice.
RELATED: Final = 0.08


def put_back(equations: NormalEquations, release: MomentsRelease) -> NormalEquations:
    """Return equations whose score has what the cap cut off, and its error."""
    lost = lost_score(release)
    return equations if lost is None else _with_score(equations, *lost)


def lost_score(release: MomentsRelease) -> tuple[Floats, Floats] | None:
    """Return what the cap cut off the score, and a root of the covariance of its error.

    None where nothing was cut off, or nothing is known of it.
    """
    cap, meat = release.units, release.meat
    if cap is None or meat is None or meat.units is None or cap.excess is None:
        return None
    excess, factors = cap.excess, np.array(cap.excess.factors or (1.0,))
    # Sums of weights are those of capped ones: with the rest the score moves coefficients less.
    size = excess.mean * (1 - cap.beyond) / math.sqrt(factors.min() / factors.max())
    if size == 0:
        return None
    noise_sd, raw = size * meat.units.capped_sd, size * meat.units.capped
    # Where noise hides it little is put back: its error stays that of all of it.
    shift = raw * np.maximum(1 - noise_sd**2 / np.maximum(raw**2, 1e-300), 0.0)
    relative = math.hypot(UNLIKE, excess.mean_sd / excess.mean)
    # Excess and scores that are related: at most as two correlated variables of these squares.
    spread = math.sqrt(max(excess.square - excess.mean**2, 0.0) * max(release.count, 0.0))
    scores = np.sqrt(np.maximum(np.diagonal(meat.squares), 0.0))
    related = RELATED * (1 - cap.beyond) * excess.squares * spread * scores
    errors = np.hstack([np.diag(np.hypot(noise_sd, related)), relative * shift[:, None]])
    return meat.root @ shift, meat.root @ errors


def _with_score(equations: NormalEquations, shift: Floats, errors: Floats) -> NormalEquations:
    """Add to the score of all coefficients, with an error of covariance ``errors errorsᵀ``."""
    columns = np.column_stack([equations.regressors, equations.response])
    dual = np.linalg.pinv(columns).T
    rows, response = dual[:, :-1], dual[:, -1]
    moments, pull = np.outer(rows @ shift, response), rows @ errors
    moments, covariance = moments + moments.T, pull @ pull.T
    if equations.added_rows is not None:
        moments = moments + equations.added_rows.moments
        covariance = covariance + equations.added_rows.pull
    return replace(equations, added_rows=Added(moments, covariance))


def squares_of_units(meat: Meat, release: MomentsRelease) -> tuple[Meat, float]:
    """Return squares of scores within strata, and what they are to be multiplied by.

    The sums of strata are taken off where noise does not hide them.
    """
    scores, excess = meat.units, None if release.units is None else release.units.excess
    if scores is None or excess is None:
        return meat, release.sampling_correction
    if not excess.factors or scores.by_stratum is None:
        return meat, release.sampling_correction * excess.inflation
    n_units, factor = np.array(excess.strata)[:, None], max(excess.factors) * excess.inflation
    sums, noise = scores.by_stratum, scores.by_stratum_sd**2
    taken = (sums / n_units).T @ sums - noise * np.eye(sums.shape[1]) * (1 / n_units).sum()
    error = noise_of_squares(sums, noise, n_units)
    if not (error < CLEAR * np.diagonal(meat.squares)).all():
        return meat, factor
    noise_sd = math.hypot(meat.sd, float(error.max()))
    return replace(meat, squares=meat.squares - taken, sd=noise_sd), factor
