"""Released counts of rows: by cell, in margins, by runs, as sums, and in quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.outside import Amount, Bounded, BoundedOrNan, Quantity, one_of
from dpmodels.privacy import Quilt
from dpmodels.released.terms import Released


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
    quilt : Quilt or None
        Of a Pufferfish guarantee, what the scale of the noise follows from.
    """

    later = Released.later | {"held", "quilt"}
    values: Annotated[Bounded, "part"]
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sd: Amount
    step: Amount
    paired: bool = False
    held: HeldIn | None = None
    quilt: Quilt | None = None


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


# Released margins of one table.


@dataclass(frozen=True, kw_only=True)
class MarginsRelease(Released):
    """Released components of margins: see :mod:`dpmodels.postprocess.residuals`.

    Attributes
    ----------
    values : ndarray, shape (component cells,)
        In rows: one component after another, the smaller first; that of no variable is the number
        of rows, exact where it is public.
    law : {"laplace", "gaussian"}
        Of the noise.
    noise_sds : tuple of float
        In rows: where the noise is Gaussian, of a cell of each component that has noise, before it
        was centred; else of a count of each margin that is in no other, to which all were fitted.
    """

    later = Released.later | {"shared"}

    values: Annotated[Bounded, "residual"]
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sds: tuple[Amount, ...]


# Released quantiles of a number by group.


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


# Released counts of runs of cells, which were chosen by the counts before them.


@dataclass(frozen=True, kw_only=True)
class RunsRelease(Released):
    """Released counts of rows in runs of the cells of a table that stand in an order.

    The cells of a group are halved and halved again; a run is what is then in one of the parts.
    Counts were made in steps, of runs of one length each, and decided what the next step counted.

    Attributes
    ----------
    values : ndarray, shape (parts,)
        In rows, step by step; last the incomplete rows. The noise of each is independent given all
        before it; may be negative.
    starts : ndarray, shape (parts,)
        The first cell of each run, the cells of all groups in a row; of the incomplete rows their
        number.
    sizes, levels : tuple of int
        Of each step, how many counts it made, and how often the cells were halved.
    noise_sds : tuple of float
        Of each step, the standard deviation of the noise, in rows.
    shape : tuple of int
        Groups, then cells of each.
    law : {"laplace", "gaussian"}
        Of the noise.
    noise_sd : float
        Standard deviation of the noise in a run that was cut, in rows.
    step : float
        What it is a multiple of, in rows.
    """

    later = Released.later | {"shared"}
    values: Annotated[Bounded, "part"]
    starts: Annotated[Bounded, "part"]
    sizes: tuple[int, ...]
    levels: tuple[int, ...]
    noise_sds: tuple[Amount, ...]
    shape: tuple[int, ...]
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sd: Amount
    step: Amount


# Released sums of the cells of a table that stand in an order.


@dataclass(frozen=True, kw_only=True)
class SumsRelease(Released):
    """Released sums of rows over cells of a row or a plane, from which all counts are made.

    Attributes
    ----------
    values : ndarray, shape (parts,)
        In rows: of each group in turn all its sums, last the incomplete rows. Each with independent
        noise of the same law; may be negative.
    sums : {"tree", "wavelet", "grid", "factorisation"}
        Which ones: ``"tree"`` those of the nodes above the cells, level by level from the top, the
        cells last; ``"grid"`` those of the blocks of a plane, likewise; ``"wavelet"`` that of all
        cells, then differences of neighbouring ones, level by level from the top;
        ``"factorisation"`` for each cell the sum of it and of those before it
        with the weights of :func:`dpmodels.postprocess.square_root.coefficients`.
    shape : tuple of int
        Groups, then cells of each variable.
    fanout : int
        Children of a node, at most, of a block along each axis; 2 where there are no nodes.
    law : {"laplace", "gaussian"}
        Of the noise.
    noise_sd : float
        Its standard deviation, in rows.
    step : float
        What it is a multiple of, in rows.
    """

    later = Released.later | {"shared"}
    values: Annotated[Bounded, "part"]
    sums: Annotated[str, one_of("tree", "wavelet", "grid", "factorisation")]
    shape: tuple[int, ...]
    fanout: int
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sd: Amount
    step: Amount
