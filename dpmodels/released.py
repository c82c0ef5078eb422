"""What has crossed: a released value, the law of its noise, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from dpmodels.outside import (
    Amount,
    AmountOrNan,
    Bounded,
    BoundedOrNan,
    Quantity,
    QuantityOrNan,
    one_of,
)
from dpmodels.privacy import Adjacency, Event, Guarantee


@dataclass(frozen=True)
class Card:
    """What a mechanism promises, in the words its table prints."""

    name: str  # the word that selects it
    theorem: str
    sensitivity: str  # the inequality that the theorem rests on
    noise: str
    numerics: str  # "exact lattice": the guarantee holds to the last bit, or "idealised"
    source: str


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
class Shared:
    """How disjoint sites made one release."""

    protocol: str  # the word that selects it
    sites: tuple[str, ...]  # public names of those that took part
    sees: str  # what the aggregator sees of a site
    holds: str  # against whom the guarantee holds
    numbers: int  # that each site sent; 0 where it sent none
    size: int  # of these, in bytes


@dataclass(frozen=True, kw_only=True)
class Released:
    """What every release has beside its values and the law of their noise.

    Attributes
    ----------
    rows : int or None
        Number of rows read, where that is public: of persons, if each counts as one, else the most
        that they have.
    card : Card
        The mechanism.
    guarantee : Guarantee
        What the release satisfies.
    adjacency : Adjacency
        Between which neighbours.
    events : tuple of Event
        What an accountant composes.
    simulated : bool
        True inside ``dp.simulation``: then nothing here is private.
    shared : Shared or None
        How sites made it; None where the rows were in one place.
    subset : str or None
        The condition on the rows that counted; None where all did.
    """

    rows: int | None
    card: Card
    guarantee: Guarantee
    adjacency: Adjacency
    events: tuple[Event, ...]
    simulated: bool
    shared: Shared | None = None
    subset: str | None = None

    # Fields that the first version had not: no digest is of them where they are None.
    later: ClassVar[frozenset[str]] = frozenset({"subset"})


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
    """

    later: ClassVar[frozenset[str]] = frozenset({"axes"})

    centre: Annotated[Bounded, "variable"]
    radius: Amount
    shortened: Quantity
    shortened_sd: Amount
    axes: Annotated[Bounded, "variable", "variable_"] | None = None


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
    """

    later = Released.later | {"shared", "ball"}

    coefficients: Annotated[Bounded, "column"]
    ridge: Amount
    gradient: Annotated[Bounded, "column"] | None
    gradient_sd: AmountOrNan
    coefficient_sd: AmountOrNan
    curvature: BoughtCurvature | None
    ball: Ball | None = None


@dataclass(frozen=True)
class HeldIn:
    """The range that a release held a measured number in, learnt in an earlier round of the same.

    Attributes
    ----------
    lower, upper : float
        In the unit of the number; numbers outside were brought to them.
    outside, outside_sd : float
        Noisy share of the complete rows in public cells that reach beyond, and its noise's sd.
    """

    lower: Quantity
    upper: Quantity
    outside: Quantity
    outside_sd: Amount


@dataclass(frozen=True, kw_only=True)
class CountsRelease(Released):
    """Released counts of rows, or of parts of rows, in tables of declared levels.

    Attributes
    ----------
    values : ndarray, shape (parts,)
        In rows: one table after another, for each cell its parts, last the incomplete rows. Each
        with independent noise of the same law; may be negative.
    law : {"laplace", "gaussian"}
        Of the noise.
    noise_sd : float
        Its standard deviation, in rows.
    step : float
        What it is a multiple of, in rows.
    paired : bool
        True for the four values of one mean where independent noise is in the last less the first
        part, the middle part and the incomplete rows, and all four add up to the number of rows.
    held : HeldIn or None
        What range the measured number was held in, if not in the declared one.
    """

    later = Released.later | {"held"}
    values: Annotated[Bounded, "part"]
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sd: Amount
    step: Amount
    paired: bool = False
    held: HeldIn | None = None


@dataclass(frozen=True, kw_only=True)
class CellsRelease(Released):
    """Released counts of rows by cell of several numbers, in two rounds.

    Attributes
    ----------
    values : ndarray, shape (counts,)
        In rows: of the first round, number by number, those of its cells and of the incomplete
        rows; then those of the second. Each with independent noise; may be negative.
    ends : ndarray, shape (counts,)
        Of the cells, in the same order; they are one more than the cells of a number.
    sizes : tuple of int
        Cells of each number in the first round, then in the second.
    law : {"laplace", "gaussian"}
        Of the noise.
    noise_sds : tuple of float
        Its standard deviation in either round, in rows.
    """

    later = Released.later | {"shared"}
    values: Annotated[Bounded, "count"]
    ends: Annotated[Bounded, "count"]
    sizes: tuple[int, ...]
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sds: tuple[Amount, Amount]


@dataclass(frozen=True, kw_only=True)
class LevelsRelease(Released):
    """Released levels of variables, with noisy numbers of rows.

    Attributes
    ----------
    values : ndarray, shape (counts,)
        In rows, level by level, variable by variable: whole and above `most`.
    levels : tuple of tuple of str
        Of each variable, sorted.
    scale : float
        Of the discrete Laplace noise, in rows, before it was held within `most`.
    most : int
        What no noise exceeds.
    """

    later = Released.later | {"shared"}
    values: Annotated[Bounded, "count"]
    levels: tuple[tuple[str, ...], ...]
    scale: Amount
    most: int


@dataclass(frozen=True, kw_only=True)
class QuantilesRelease(Released):
    """Released quantiles of a number by group.

    Attributes
    ----------
    values : ndarray, shape (groups, probs, 3)
        The quantile, and the ends of its interval; places in the public range, from 0 to 1. nan
        where rows are too few, and for intervals that were not bought.
    drawn : ndarray, shape (groups, probs)
        The share of the rows that each quantile was drawn at: the one asked for, or one farther
        inside where noise could have taken it out of the rows; nan where rows are too few.
    counts : ndarray, shape (groups,)
        Noisy numbers of complete rows.
    count_sd : ndarray, shape (groups,)
        Noise standard deviation of each of them.
    rank_sd : ndarray, shape (groups, probs)
        Standard deviation of the noise in the rank of each quantile, in rows.
    """

    later = Released.later | {"shared"}

    values: Annotated[BoundedOrNan, "group", "prob", "place"]
    drawn: Annotated[BoundedOrNan, "group", "prob"]
    counts: Annotated[Bounded, "group"]
    count_sd: Annotated[Bounded, "group"]
    rank_sd: Annotated[Bounded, "group", "prob"]


Release = MomentsRelease | SubspaceRelease
AnyRelease = (
    Release | CoefficientsRelease | CountsRelease | QuantilesRelease | CellsRelease | LevelsRelease
)
