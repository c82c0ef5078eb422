"""Released moments of rows, or directions of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from dpmodels.external_files import Amount, AmountOrNan, Bounded, Quantity, QuantityOrNan
from dpmodels.released.terms import Released


@dataclass(frozen=True)
class MomentNoise:
    """Standard deviations of the independent noise in released moments, in their units.

    For the number of rows, each coordinate of their sum, each diagonal and each off-diagonal
    entry of their second moment. ``mean`` is nan without a released sum, ``diagonal`` and ``off``
    if the error of the second moment has no known distribution.
    """

    count: AmountOrNan
    mean: AmountOrNan
    diagonal: AmountOrNan
    off: AmountOrNan


@dataclass(frozen=True)
class Ball:
    """The ball to which a release clipped the rows, estimated in earlier rounds of it.

    Attributes
    ----------
    centre : ndarray, shape (columns,)
        In the units of the coded columns.
    radius : float
        In the units of the scaled columns.
    shortened, shortened_sd : float
        Noisy fraction of the complete rows outside, which were clipped, or left out of a
        regression with bounded gradients, and its noise standard deviation.
    axes : ndarray, shape (columns, columns) or None
        For an ellipsoid: a row of the unit ball times ``radius * axes`` is a scaled row about the
        centre. None for a ball.
    rows : float
        Of moments about a released line, the noisy number of complete rows; nan of others. The
        last axis is then the residual of the line, the others are whitened terms, and both are
        clipped separately: to ``radius / √2`` each, the constant 1 of a row with its terms. Of
        weighted rows it is their noisy weight.
    kept, kept_sd : float
        About a line, the noisy fraction of residuals that were not cut, and how far it may be from
        that along a direction of the terms.
    shift : float
        What standard errors allow for clipping: the standard deviation of a coordinate of the mean
        score, in units of the last axis.
    spread : ndarray, shape (columns,) or None
        About a line, likely standard deviations of the whitened terms, and 1.
    skew : ndarray, shape (columns,) or None
        What standard errors allow for residuals that are cut on one side more than on the other:
        standard deviations of the mean score, of the constant first, all of which move together,
        in units of the last axis.
    one_sided : float
        About a line, the noisy fraction of rows below it less that of rows above it.
    """

    later: ClassVar[frozenset[str]] = frozenset(
        {"axes", "rows", "kept", "kept_sd", "shift", "spread", "skew", "one_sided"}
    )

    centre: Annotated[Bounded, "variable"]
    radius: Amount
    shortened: Quantity
    shortened_sd: Amount
    axes: Annotated[Bounded, "variable", "variable_"] | None = None
    rows: QuantityOrNan = math.nan
    kept: QuantityOrNan = math.nan
    kept_sd: QuantityOrNan = math.nan
    shift: QuantityOrNan = math.nan
    spread: Annotated[Bounded, "variable"] | None = None
    skew: Annotated[Bounded, "variable"] | None = None
    one_sided: QuantityOrNan = math.nan


@dataclass(frozen=True)
class UnitScores:
    """Noisy sums of the scores of units of a survey design, in the units of :class:`Meat`.

    ``summed`` is that of all units, ``by_stratum`` that of the units of each stratum, None where
    strata are not used; ``summed_sd`` and ``by_stratum_sd`` are the noise standard deviations of
    each entry. ``cut`` is the estimated sum of the lengths by which scores were shortened.
    """

    summed: Annotated[Bounded, "parameter"]
    summed_sd: Amount
    cut: Amount = 0.0
    by_stratum: Annotated[Bounded, "stratum", "parameter"] | None = None
    by_stratum_sd: Amount = 0.0


@dataclass(frozen=True)
class Meat:
    """The released meat of a sandwich covariance, shape (parameters, parameters).

    ``squares`` is the noisy sum of the squared scores of rows or persons, in units of ``root``, R:
    a score is ``R s``, and ``R Rᵀ`` approximates the covariance of their sum, including the noise
    of the moments. ``sd`` bounds the noise standard deviation of ``uᵀ squares u`` for unit vectors
    u; ``most`` bounds the contribution of one score: longer ones were clipped. ``share`` is its
    fraction of the budget, ``person`` the column by which scores of rows, with their
    multiplicities, were summed first. ``units`` are sums of scores of a survey design.
    """

    later: ClassVar[frozenset[str]] = frozenset({"person", "units"})

    squares: Annotated[Bounded, "parameter", "parameter_"]
    root: Annotated[Bounded, "parameter", "parameter_"]
    sd: Amount
    most: Amount
    share: Amount
    person: str | None = None
    units: UnitScores | None = None


@dataclass(frozen=True)
class Tails:
    """What short intervals of second moments are computed from, if they were requested.

    ``fourth`` are noisy sums of ``y_i² y_j²`` over the rows y clipped to the ball, in units of its
    radius, and ``fourth_sd`` the noise standard deviation on their diagonal, √½ of that off it.
    ``beyond`` is the noisy sum of :func:`dpmodels.statistics.clipped.increments_beyond` with noise
    of ``beyond_sd``; ``farthest``, in units of the scaled columns, bounds a row's distance from the
    ball's centre. Where ``about``, shape (columns,) and in the units of the coded columns, is
    there, the fourth moments are of all rows about that point, in units of ``farthest``.
    """

    later: ClassVar[frozenset[str]] = frozenset({"about"})

    fourth: Annotated[Bounded, "variable", "variable_"]
    fourth_sd: Amount
    beyond: Quantity
    beyond_sd: Amount
    farthest: Amount
    about: Annotated[Bounded, "variable"] | None = None


@dataclass(frozen=True, kw_only=True)
class MomentsRelease(Released):
    """Released augmented moments of rows in the unit ball.

    Attributes
    ----------
    count : float
        Noisy number of complete rows.
    total : ndarray, shape (columns,) or None
        Noisy sum of the rows; None if it was not released.
    second : ndarray, shape (columns, columns)
        Noisy sum of ``x xᵀ``; symmetric, not necessarily positive.
    noise : MomentNoise
        Noise standard deviations of these three.
    estimate : ndarray, shape (columns, columns) or None
        From the same release: an estimate of the second moment that is closer than ``second``,
        with an error of unknown distribution.
    ball : Ball or None
        The ball to which the rows were clipped, if not that of the codebook.
    meat : Meat or None
        Squared scores of the least squares of the last column, if requested.
    centres : tuple of (str, float) or None
        Public points that numbers were centred at inside products, by the number's code; None
        where columns are as the formula writes them.
    lumped : tuple of (str, tuple of str) or None
        Variables and their levels that were merged into "Other", by noisy numbers of rows; None
        where merging was not requested.
    lumped_sd : float or None
        Noise standard deviation of these numbers.
    tails : Tails or None
        Fourth moments and increments beyond the ball, if intervals were requested.
    """

    later = Released.later | {"ball", "meat", "centres", "lumped", "lumped_sd", "tails"}

    count: Quantity
    total: Annotated[Bounded, "variable"] | None
    second: Annotated[Bounded, "variable", "variable_"]
    noise: MomentNoise
    estimate: Annotated[Bounded, "variable", "variable_"] | None = None
    ball: Ball | None = None
    meat: Meat | None = None
    centres: tuple[tuple[str, float], ...] | None = None
    lumped: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    lumped_sd: Amount | None = None
    tails: Tails | None = None


@dataclass(frozen=True, kw_only=True)
class SubspaceRelease(Released):
    """Released orthonormal directions of rows in the unit ball.

    Attributes
    ----------
    frame : ndarray, shape (columns, components)
        Orthonormal columns, in the order of `variances` if those were requested; the order is
        arbitrary if the mechanism estimates only the space they span.
    variances : ndarray, shape (components,) or None
        Noisy sums of squares of the rows along the directions, if requested.
    variance_sd : float
        Noise standard deviation of each of them; nan if not requested.
    count : float
        Noisy number of complete rows if `variances` were requested, else nan.
    ordered : bool
        Whether the single directions are meaningful.
    limit : str
        An assumption of the guarantee besides the theorem; empty without one.
    expected_loss : float
        Approximate expected loss of the captured sum of squares, in units of the squared row norm;
        nan if theory gives no value.
    """

    frame: Annotated[Bounded, "variable", "component"]
    variances: Annotated[Bounded, "component"] | None
    variance_sd: AmountOrNan
    count: QuantityOrNan
    ordered: bool
    limit: str
    expected_loss: QuantityOrNan


# Released coefficients of a linear predictor.


@dataclass(frozen=True)
class BoughtCurvature:
    """Released matrices, shape (columns, columns), for the intervals of coefficients.

    The bread is the noisy sum of the curvatures of the rows' losses, the meat that of their squared
    gradients, first summed by the column ``person`` if given, with their multiplicities; ``count``
    and ``mean`` of their noise are nan. Where ``end``, shape (columns,), is there, a step from the
    released coefficients leads to it: the bread is the mean curvature along that step, the meat
    stands at its end, and ``first`` is the noisy curvature at the coefficients that the step came
    from. With ``score``, a noisy gradient at the end, bread and meat are of that point.
    """

    later: ClassVar[frozenset[str]] = frozenset(
        {"person", "first", "first_noise", "end", "score", "score_sd"}
    )

    bread: Annotated[Bounded, "column", "column_"]
    meat: Annotated[Bounded, "column", "column_"]
    bread_noise: MomentNoise
    meat_noise: MomentNoise
    person: str | None = None
    first: Annotated[Bounded, "column", "column_"] | None = None
    first_noise: MomentNoise | None = None
    end: Annotated[Bounded, "column"] | None = None
    score: Annotated[Bounded, "column"] | None = None
    score_sd: Amount | None = None


@dataclass(frozen=True)
class Tuning:
    """How one of several ridges was chosen, by validation on held-out rows.

    Attributes
    ----------
    ridges : tuple of float
        All candidates, in the given order.
    chosen : int
        The position of the drawn candidate, from 0.
    score : str
        The criterion for predictions of the held-out rows; no score is released.
    held_out : float
        Fraction of held-out rows.
    told_apart : float
        Difference of total scores, in errors of 1, that makes a candidate twenty times less likely.
    share : float
        Fraction of the budget for trials and draw; the fit uses the rest.
    """

    ridges: tuple[Amount, ...]
    chosen: int
    score: str
    held_out: Amount
    told_apart: Amount
    share: Amount


@dataclass(frozen=True, kw_only=True)
class CoefficientsRelease(Released):
    """Released coefficients of a linear predictor of rows in the unit ball.

    Attributes
    ----------
    coefficients : ndarray, shape (columns,)
        In units of the ball; the constant first if there is one.
    ridge : float
        Weight of ``|coefficients|**2 / 2`` in the minimised sum.
    gradient : ndarray, shape (columns,), or None
        The known part of the gradient of the sum of losses at the coefficients; None if unknown.
    gradient_sd : float
        Noise standard deviation of each coordinate of its unknown part; nan if unknown.
    coefficient_sd : float
        Additional noise standard deviation of each coefficient; nan without a known distribution.
    curvature : BoughtCurvature or None
        The matrices for intervals, if requested.
    ball : Ball or None
        The ball of the rows used, if not that of the codebook; it sets the units of the
        coefficients.
    tuning : Tuning or None
        How the ridge was chosen, if it was.
    clip : float or None
        The bound on residuals in units of the response, where it was chosen by released values.
    meat : Meat or None
        Under a survey design sums and squares of the scores of all weights, at the end of Newton's
        step from the coefficients, where the curvature is.
    """

    later = Released.later | {"shared", "ball", "tuning", "clip", "meat"}

    coefficients: Annotated[Bounded, "column"]
    ridge: Amount
    gradient: Annotated[Bounded, "column"] | None
    gradient_sd: AmountOrNan
    coefficient_sd: AmountOrNan
    curvature: BoughtCurvature | None
    ball: Ball | None = None
    tuning: Tuning | None = None
    clip: Amount | None = None
    meat: Meat | None = None
