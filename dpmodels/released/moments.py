"""Released moments of rows, or directions of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from dpmodels.outside import Amount, AmountOrNan, Bounded, Quantity, QuantityOrNan
from dpmodels.released.terms import Released


@dataclass(frozen=True)
class MomentNoise:
    """Standard deviations of the independent noise in released moments, in their own units.

    Of the number of rows, of each coordinate of their sum, of each diagonal and each off-diagonal
    entry of their second moment. ``mean`` is nan where no sum was released, ``diagonal`` and
    ``off`` where the error of the second moment has no known law.
    """

    count: AmountOrNan
    mean: AmountOrNan
    diagonal: AmountOrNan
    off: AmountOrNan


@dataclass(frozen=True)
class Ball:
    """Where a release held the rows, learnt in earlier rounds of the same release.

    Attributes
    ----------
    centre : ndarray, shape (columns,)
        In the units of the coded columns.
    radius : float
        In the units of the scaled columns.
    shortened, shortened_sd : float
        Noisy share of the complete rows that were longer, and were brought to the surface, or left
        out of a regression with bounded gradients, and the standard deviation of its noise.
    axes : ndarray, shape (columns, columns) or None
        Of an ellipsoid: a row of the unit ball times ``radius * axes`` is a scaled row about the
        centre. None for a ball.
    about_line : bool
        Whether the last axis is the residual of a line near the estimate, the others whitened
        terms, and both were held apart: to ``radius / √2`` each, a row's number with its terms.
    """

    later: ClassVar[frozenset[str]] = frozenset({"axes", "about_line"})

    centre: Annotated[Bounded, "variable"]
    radius: Amount
    shortened: Quantity
    shortened_sd: Amount
    axes: Annotated[Bounded, "variable", "variable_"] | None = None
    about_line: bool = False


@dataclass(frozen=True)
class Meat:
    """Released squares of the scores of rows, or of persons, shape (parameters, parameters).

    ``squares`` is their noisy sum in units of ``root``, R: a score is ``R s``, and ``R Rᵀ`` about
    the covariance of their sum, with the noise of the moments. ``sd`` is the most that the noise of
    ``uᵀ squares u`` has for a standard deviation, u of length 1; ``most`` the most that one of them
    adds: longer ones were shortened. ``share`` is the part of the budget that bought it, ``person``
    by what column scores of rows, as often as each takes a place, were added before.
    """

    later: ClassVar[frozenset[str]] = frozenset({"person"})

    squares: Annotated[Bounded, "parameter", "parameter_"]
    root: Annotated[Bounded, "parameter", "parameter_"]
    sd: Amount
    most: Amount
    share: Amount
    person: str | None = None


@dataclass(frozen=True, kw_only=True)
class MomentsRelease(Released):
    """Released augmented moments of rows in the unit ball.

    Attributes
    ----------
    count : float
        Noisy number of complete rows.
    total : ndarray, shape (columns,) or None
        Noisy sum of the rows; None where it was not released.
    second : ndarray, shape (columns, columns)
        Noisy sum of ``x xᵀ``; symmetric, not necessarily positive.
    noise : MomentNoise
        The law of the noise in the three of them.
    estimate : ndarray, shape (columns, columns) or None
        Of the same release: an estimate of the second moment that is closer than ``second``, with
        an error of unknown law.
    ball : Ball or None
        Where the rows were held, if not where the codebook says.
    meat : Meat or None
        Squares of the scores of least squares of the last column, where they were bought.
    """

    later = Released.later | {"ball", "meat"}

    count: Quantity
    total: Annotated[Bounded, "variable"] | None
    second: Annotated[Bounded, "variable", "variable_"]
    noise: MomentNoise
    estimate: Annotated[Bounded, "variable", "variable_"] | None = None
    ball: Ball | None = None
    meat: Meat | None = None


@dataclass(frozen=True, kw_only=True)
class SubspaceRelease(Released):
    """Released orthonormal directions of rows in the unit ball.

    Attributes
    ----------
    frame : ndarray, shape (columns, components)
        Orthonormal columns, in the order of `variances` where those were bought; the order means
        nothing where the mechanism only knows the space they span.
    variances : ndarray, shape (components,) or None
        Noisy sums of squares of the rows along the directions, where bought.
    variance_sd : float
        Noise standard deviation of each of them; nan where not bought.
    count : float
        Noisy number of complete rows where `variances` were bought, else nan.
    ordered : bool
        Whether the directions mean something one by one.
    limit : str
        What the guarantee rests on besides the theorem; empty where nothing.
    expected_loss : float
        What the captured sum of squares is expected to fall short by, approximately, in units of
        the squared row norm; nan where theory gives nothing.
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
    """Released matrices, shape (columns, columns), that intervals of coefficients are made from.

    The bread is the noisy sum of the curvatures of the rows' losses, the meat that of the squares
    of their gradients, added before by the column ``person`` if that is given, as often as each
    takes a place; ``count`` and ``mean`` of the laws of their noise are nan.
    """

    later: ClassVar[frozenset[str]] = frozenset({"person"})

    bread: Annotated[Bounded, "column", "column_"]
    meat: Annotated[Bounded, "column", "column_"]
    bread_noise: MomentNoise
    meat_noise: MomentNoise
    person: str | None = None


@dataclass(frozen=True)
class Tuning:
    """How one of several ridges was chosen by rows that no candidate was tried on.

    Attributes
    ----------
    ridges : tuple of float
        Of all candidates, in the order they were given.
    chosen : int
        The place of the one that was drawn, from 0.
    score : str
        What each candidate's predictions of the held-out rows were judged by; no score is released.
    held_out : float
        Share of the rows that judge.
    told_apart : float
        By how many misses of 1 a total has to be worse to be drawn twenty times as seldom.
    share : float
        Of the budget, for trials and draw; the fit had the rest.
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
        In units of the ball; the constant's first where there is one.
    ridge : float
        Weight of ``|coefficients|**2 / 2`` in the sum that they minimise.
    gradient : ndarray, shape (columns,), or None
        The gradient of the sum of losses at the coefficients, as far as it is known; None where it
        is not.
    gradient_sd : float
        Noise standard deviation of each coordinate of what is not known of it; nan where nothing is
        known.
    coefficient_sd : float
        Noise standard deviation of each coefficient, on top of that; nan where it has no known law.
    curvature : BoughtCurvature or None
        Where it was bought.
    ball : Ball or None
        Where the rows were that count, if not where the codebook says; the coefficients are in its
        units then.
    tuning : Tuning or None
        How the ridge was chosen, where it was.
    """

    later = Released.later | {"shared", "ball", "tuning"}

    coefficients: Annotated[Bounded, "column"]
    ridge: Amount
    gradient: Annotated[Bounded, "column"] | None
    gradient_sd: AmountOrNan
    coefficient_sd: AmountOrNan
    curvature: BoughtCurvature | None
    ball: Ball | None = None
    tuning: Tuning | None = None
