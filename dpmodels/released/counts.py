"""Released counts of rows by cell, and of levels that nobody declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.outside import Amount, Bounded, Quantity, one_of
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
