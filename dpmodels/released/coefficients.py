"""Released coefficients of a linear predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from dpmodels.outside import Amount, AmountOrNan, Bounded
from dpmodels.released.moments import Ball, MomentNoise
from dpmodels.released.terms import Released


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
