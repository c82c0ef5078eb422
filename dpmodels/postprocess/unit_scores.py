"""Regressions under a survey design: a step by the scores of all weights, strata taken off.

At the estimate θ of capped weights the score of all weights is S, and that of an estimate t of all
weights is ``S - G (t - θ)``, G being X'X of all weights. So the equations about θ have S in the
place of X'y: noise of the moments moves t by its part in G times the step, and not by itself
(docs/theory.md, Theorem 83).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from dpmodels.postprocess.identities import BoundNoise
from dpmodels.postprocess.normal_equations import SEARCHED, NormalEquations, estimate
from dpmodels.postprocess.small_samples import Added
from dpmodels.postprocess.weight_caps import CLEAR, noise_of_squares
from dpmodels.released import CoefficientsRelease, Meat, MomentNoise, MomentsRelease
from dpmodels.typing import Floats

# How far X'X of capped and clipped rows may be from that of all weights: a choice.
UNLIKE_GRAM: Final = 0.1
# The noise sd of the fraction of shortened rows from which on it is unknown: a choice.
HIDDEN_SHORTENED = 0.5
# A choice: the fraction of weight beyond a public cap, where noise hides all weights of units.
HIDDEN_BEYOND: Final = 0.5
# Choice: the longest step, in errors of the first estimate.
FARTHEST: Final = 20.0
# Parts of what clipping cut off scores that may have one direction: that of the constant, where
# scores have the sign of their residual, and any other. Choices.
DIRECTED, ACROSS = 0.7, 0.2
# The same in any direction of counts, a choice, and of two levels: residuals end at 1, so that long
# scores are of heavy units with one level, far out on one side (docs/theory.md, Theorem 107).
OF_COUNTS, OF_LEVELS = 0.5, 1.0
# Changes of linear predictors below which a curvature is constant, and the largest that counts.
NO_CHANGE, LONGEST_CHANGE = 1e-6, 0.9
# A choice: edges of a curvature's noise that damp a step along directions.
DAMPED: Final = 0.5


def stepped(
    equations: NormalEquations, release: MomentsRelease, row_norm: float
) -> NormalEquations:
    """Return the equations about the first estimate, with the scores of all weights.

    Where noise makes X'X weak, or the step long, the first estimate may be so far away that
    clipping hides it: then nothing is identified.
    """
    step = score_at_first(release)
    if step is None:
        return equations
    assert release.meat is not None
    assert release.meat.units is not None
    # Longer than noise and a cap can make it.
    scores = release.meat.units
    is_far = bool(np.abs(scores.summed).max() > FARTHEST + 5 * scores.summed_sd)
    is_strong = equations.near_zero or equations.strength >= SEARCHED
    if not is_strong or is_far:
        return replace(equations, hidden=np.linalg.qr(equations.regressors)[0])
    total, errors = step
    about = _about(_residual_last(equations), estimate(equations, release, row_norm))
    dual = np.linalg.pinv(about.regressors).T
    moments, pull = about.moments.copy(), dual @ errors
    score = dual @ total / about.response[-1]
    moments[-1, :-1] = moments[:-1, -1] = score[:-1]
    nothing = np.zeros_like(moments)
    # Of a line that is released first only what was clipped there, which this score was not.
    is_clipped = about.added_rows is None or release.ball is not None
    added = Added(nothing, nothing) if is_clipped else about.added_rows
    assert added is not None
    added = added._replace(pull=added.pull + pull @ pull.T)
    return replace(about, moments=moments, added_rows=added)


def cap_shift(
    release: MomentsRelease | CoefficientsRelease, matrix: Floats, gram: Floats
) -> tuple[Floats, Floats]:
    """Return what the step to all weights took off the parameters, and its error.

    `matrix` brings them to the units they are printed in, `gram` is what the step is divided by.
    """
    step = score_at_first(release)
    if step is None:
        return np.zeros(len(matrix)), np.zeros(len(matrix))
    inverse = matrix @ np.linalg.pinv(gram, hermitian=True)
    return -inverse @ step[0], np.linalg.norm(inverse @ step[1], axis=1)


def score_at_first(release: MomentsRelease | CoefficientsRelease) -> tuple[Floats, Floats] | None:
    """Return the score of all weights at the first estimate, and a root of its error."""
    cap, meat = release.units, release.meat
    if cap is None or meat is None or meat.units is None:
        return None
    scores = meat.units
    across, constant = _directed(release, meat)
    size, noise_sd = len(scores.summed), math.hypot(scores.summed_sd, across * scores.cut)
    total = meat.root @ scores.summed
    missing, bend = _missing_rows(release), _bend_of_rates(release, total)
    relative = math.hypot(UNLIKE_GRAM, _weight_error(release), missing, bend)
    parts = [np.eye(size) * noise_sd, constant * scores.cut, relative * scores.summed]
    return total, meat.root @ np.column_stack(parts)


def _directed(release: MomentsRelease | CoefficientsRelease, meat: Meat) -> tuple[float, Floats]:
    """Return which part of what clipping cut off may have any one direction; more of the constant.

    About a line scores have mostly the sign of their residual along the mean row, and any across.
    """
    if isinstance(release, CoefficientsRelease):
        return OF_LEVELS if release.clip is None else OF_COUNTS, np.zeros(len(meat.root))
    if len(meat.root) < len(release.second):  # Without a constant
        return DIRECTED, np.zeros(len(meat.root))
    constant = meat.root[0] / np.linalg.norm(meat.root[0])
    return ACROSS, constant * math.sqrt(DIRECTED**2 - ACROSS**2)


def _weight_error(release: MomentsRelease | CoefficientsRelease) -> float:
    """Return the relative error of the weight that X'X is divided by."""
    cap = release.units
    assert cap is not None
    if math.isnan(cap.beyond_sd):
        return 0.0 if release.adjacency.person is None else HIDDEN_BEYOND
    return cap.beyond_sd / max(1 - cap.beyond, 0.1)


def _missing_rows(release: MomentsRelease | CoefficientsRelease) -> float:
    """Return the fraction of X'X of all rows that shortened or omitted rows may be.

    So much of the step is its largest error by them (docs/theory.md, Theorem 91): all of it where
    noise hides how many they are. Along released axes each may lack the square of the radius. About
    a line, or coefficients, none: scores count rows as X'X does (Theorems 101 and 105).
    """
    ball = release.ball
    if ball is None or not math.isnan(ball.rows) or isinstance(release, CoefficientsRelease):
        return 0.0
    if ball.shortened_sd > HIDDEN_SHORTENED:
        return 1.0
    fraction = min(max(ball.shortened - ball.shortened_sd, 0.0), 1.0)
    if ball.axes is None:
        return fraction
    return 1 - 1 / (1 + fraction * ball.radius**2)


def _bend_of_rates(release: MomentsRelease | CoefficientsRelease, score: Floats) -> float:
    """Return by how much of itself a step of a log-linear model may be too short.

    That is ``-log(1 - n)/n - 1`` where it changes linear predictors by n, the root mean square over
    the rows of the curvature (docs/theory.md, Theorem 94); 0 of other models.
    """
    if not isinstance(release, CoefficientsRelease) or release.clip is None:
        return 0.0
    bought, change = release.curvature, LONGEST_CHANGE
    assert bought is not None
    rows = float(np.trace(bought.bread))
    if rows > 0:
        step = newton_step(bought.bread, bought.bread_noise, -score)
        change = math.sqrt(max(float(step @ bought.bread @ step), 0.0) / rows)
    change = min(max(change, NO_CHANGE), LONGEST_CHANGE)
    return -math.log1p(-change) / change - 1


def _residual_last(equations: NormalEquations) -> NormalEquations:
    """Turn the columns of a row so that regressors do not have the last one.

    Noise of equal variance in all second moments is the same after a rotation.
    """
    terms = equations.regressors[1:]
    if np.abs(terms[-1]).max(initial=0.0) <= 1e-12 * np.abs(terms).max(initial=0.0):
        return equations
    turn = np.eye(len(terms) + 1)
    turn[1:, 1:] = np.linalg.svd(terms, full_matrices=True)[0].T
    return replace(
        equations,
        moments=turn @ equations.moments @ turn.T,
        regressors=turn @ equations.regressors,
        response=turn @ equations.response,
    )


def _about(equations: NormalEquations, theta: Floats) -> NormalEquations:
    """Return equations whose last column is the residual of coefficients, its products known."""
    residual = equations.residual(theta)
    basis = np.eye(len(residual))
    basis[:, -1] = residual / residual[-1]
    variance = equations.variance.copy()
    variance[-1, :] = variance[:, -1] = 0.0
    variance[-1, -1] = equations.form_sd(np.outer(basis[:, -1], basis[:, -1])) ** 2
    response = equations.response - residual
    response[-1] = residual[-1]
    added = equations.added_rows
    if added is not None:
        added = Added(basis.T @ added.moments @ basis, added.pull)
    bound = equations.bound
    return replace(
        equations,
        moments=basis.T @ equations.moments @ basis,
        variance=variance,
        response=response,
        bound=None if bound is None else _without_last(bound),
        added_rows=added,
        near_zero=True,
    )


def _without_last(bound: BoundNoise) -> BoundNoise:
    last = len(bound.shift) - 1
    remains, shift = (bound.left != last) & (bound.right != last), bound.shift.copy()
    shift[last] = 0.0
    by_variable = ("left", "right", "function", "values")
    parts = {name: getattr(bound, name)[remains] for name in by_variable}
    return replace(bound, **parts, shift=shift)


def squares_of_units(
    meat: Meat, release: MomentsRelease | CoefficientsRelease
) -> tuple[Meat, float]:
    """Return squares of scores within strata, and what they are to be multiplied by.

    With what clipping took off them, the same along all directions: a score that is longer than L
    by c has a square that is larger by 2 L c at least. The sums of strata are taken off where noise
    does not hide them.
    """
    scores, strata = meat.units, None if release.units is None else release.units.scores
    assert scores is not None
    lost = 2 * math.sqrt(meat.most) * scores.cut / len(meat.squares)
    meat = replace(meat, squares=meat.squares + lost * np.eye(len(meat.squares)))
    if strata is None or not strata.factors or scores.by_stratum is None:
        return meat, release.sampling_correction
    n_units, factor = np.array(strata.strata)[:, None], max(strata.factors)
    sums, noise = scores.by_stratum, scores.by_stratum_sd**2
    between = (sums / n_units).T @ sums - noise * np.eye(sums.shape[1]) * (1 / n_units).sum()
    error = noise_of_squares(sums, noise, n_units)
    if not (error < CLEAR * np.diagonal(meat.squares)).all():
        return meat, factor
    noise_sd = math.hypot(meat.sd, float(error.max()))
    return replace(meat, squares=meat.squares - between, sd=noise_sd), factor


def first_point(release: CoefficientsRelease) -> Floats:
    """Return where the scores of all weights are: at the end of a step from the coefficients."""
    bought, gradient = release.curvature, release.gradient
    assert bought is not None
    if bought.end is not None:
        return bought.end
    assert gradient is not None
    return release.coefficients + newton_step(bought.bread, bought.bread_noise, gradient)


def newton_step(curvature: Floats, noise: MomentNoise, gradient: Floats) -> Floats:
    """Return a step down a noisy curvature, damped in directions that its noise may hide."""
    values, axes = np.linalg.eigh(curvature)
    edge = 2 * noise.off * np.sqrt(len(values))
    positive = np.maximum(values, 0.0)
    damped = positive / (positive**2 + (DAMPED * edge) ** 2)
    return np.asarray(-axes @ (damped * (axes.T @ gradient)))
