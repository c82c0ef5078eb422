"""Released counts of rows: by cell, in margins, by runs, as sums, and in quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.external_files import Amount, Bounded, BoundedOrNan, Quantity, one_of
from dpmodels.privacy import Quilt
from dpmodels.released.terms import Released


@dataclass(frozen=True)
class HeldIn:
    """The range to which a release clipped a variable, estimated in an earlier round of it.

    Attributes
    ----------
    lower, upper : float
        In the unit of the variable; values outside were clipped to them.
    outside, outside_sd : float
        Noisy fraction of the complete rows in public cells that extend beyond, and its noise sd.
    below, above, below_square, above_square : float
        Bounds on the mean distance of values beyond each end from it, over all complete rows, and
        on the mean squared distance; see :mod:`dpmodels.postprocess.ranges`.
    shape : float
        Shape of the heavier tail that was cut off, by the counts before it: 0 of an exponential
        tail, 1/a of a Pareto tail of index a; 1 where too few rows show it.
    points : tuple of float or None
        Positions in the range, from 0 to 1: the ends of a shorter one, whose parts were released,
        then points beyond it with numbers of rows. None for parts of the range itself.
    """

    lower: Quantity
    upper: Quantity
    outside: Quantity
    outside_sd: Amount
    below: Amount = 0.0
    above: Amount = 0.0
    below_square: Amount = 0.0
    above_square: Amount = 0.0
    shape: Amount = 0.0
    points: tuple[Quantity, ...] | None = None


@dataclass(frozen=True)
class CappedWeights:
    """The cap of sampling weights, and sums of units beside those of the table.

    Attributes
    ----------
    cap : float
        Total weights of units above it were capped at it.
    mean_excess, mean_excess_sd, square_excess : float
        By how much total weights above the cap exceed it, on average, the error of this, and the
        mean of its square.
    capped : tuple of float
        By cell the capped units: their shares, as Bernstein parts of degree 2 of their positions
        where a number is measured.
    by_stratum : tuple of float
        For each stratum its parts of the table, then the rest of its units; empty without strata.
    capped_sd, by_stratum_sd : float
        Noise standard deviation of each of these sums, in units.
    """

    cap: Amount
    mean_excess: Amount
    mean_excess_sd: Amount
    square_excess: Amount
    capped: tuple[Quantity, ...]
    by_stratum: tuple[Quantity, ...]
    capped_sd: Amount
    by_stratum_sd: Amount

    @property
    def has_excess(self) -> bool:
        """Whether weights may exceed the cap; their estimated mean excess may be 0 by noise."""
        return self.mean_excess > 0 or self.mean_excess_sd > 0


@dataclass(frozen=True, kw_only=True)
class CountsRelease(Released):
    """Released counts of rows, or of parts of rows, in tables of declared levels.

    Attributes
    ----------
    values : ndarray, shape (parts,)
        In rows: one table after another, for each cell its parts, last the incomplete rows. All
        have independent noise of the same distribution; may be negative.
    law : {"laplace", "gaussian"}
        Distribution of the noise.
    noise_sd : float
        Its standard deviation, in rows.
    step : float
        Lattice step of the values, in rows.
    paired : bool
        True for the four values of one mean with independent noise in the last minus the first
        part, the middle part and the incomplete rows; all four add up to the number of rows.
    held : HeldIn or None
        The range to which the variable was clipped, if not the declared one.
    quilt : Quilt or None
        For a Pufferfish guarantee, the quilt that determines the scale of the noise.
    weights : CappedWeights or None
        Of a survey design, whose values are shares of capped weights.
    """

    later = Released.later | {"held", "quilt", "weights"}
    values: Annotated[Bounded, "part"]
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sd: Amount
    step: Amount
    paired: bool = False
    held: HeldIn | None = None
    quilt: Quilt | None = None
    weights: CappedWeights | None = None


@dataclass(frozen=True, kw_only=True)
class CellsRelease(Released):
    """Released counts of rows by cell of several numeric variables, in two rounds.

    Attributes
    ----------
    values : ndarray, shape (counts,)
        In rows: for the first round, variable by variable, its cells and the incomplete rows; then
        for the second. All have independent noise; may be negative.
    ends : ndarray, shape (counts,)
        Edges of the cells, in the same order; each variable has one more edge than cells.
    sizes : tuple of int
        Cells of each variable in the first round, then in the second.
    law : {"laplace", "gaussian"}
        Distribution of the noise.
    noise_sds : tuple of float
        Its standard deviation in each round, in rows.
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
        In rows, level by level, variable by variable: integers above `most`.
    levels : tuple of tuple of str
        Sorted levels of each variable.
    scale : float
        Scale of the discrete Laplace noise, in rows, before truncation to `most`.
    most : int
        Bound on the noise.
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
        of rows, exact if public.
    law : {"laplace", "gaussian"}
        Distribution of the noise.
    noise_sds : tuple of float
        In rows: for Gaussian noise, that of a cell of each noisy component before centring; else
        that of a count of each maximal margin, to which all were fitted.
    """

    later = Released.later | {"shared"}

    values: Annotated[Bounded, "residual"]
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sds: tuple[Amount, ...]


@dataclass(frozen=True, kw_only=True)
class GraphRelease(Released):
    """Released components of margins, in one round or two: all pairs, then those of a graph.

    Before these rounds come counts of fine cells of numbers, which determine their coarse cells.

    Attributes
    ----------
    values : ndarray, shape (component cells,)
        In rows: the components of each round one after another, as in :class:`MarginsRelease`.
    margins : tuple of tuple of tuple of int
        By round, the margins whose components were released; those of the second round were chosen
        from the first.
    noise_sds : tuple of float
        In rows: round after round, that of a cell of each noisy component before centring.
    histograms : ndarray, shape (fine cells,), or None
        In rows: by number the counts of its fine cells, and of its missing or unlisted values.
    histogram_sd : float
        Noise sd of each, in rows.
    cells : tuple of tuple of int
        By number, the positions of the edges of its coarse cells among those of the fine ones.
    """

    later = Released.later | {"shared", "histograms", "histogram_sd", "cells"}

    values: Annotated[Bounded, "residual"]
    margins: tuple[tuple[tuple[int, ...], ...], ...]
    noise_sds: tuple[Amount, ...]
    histograms: Annotated[Bounded, "fine"] | None = None
    histogram_sd: Amount | None = None
    cells: tuple[tuple[int, ...], ...] | None = None


# Released quantiles of a number by group.


@dataclass(frozen=True, kw_only=True)
class QuantilesRelease(Released):
    """Released quantiles of a number by group.

    Attributes
    ----------
    values : ndarray, shape (groups, probs, 3)
        The quantile and the bounds of its interval, as positions in the public range, from 0 to 1.
        nan with too few rows, and for intervals that were not requested.
    drawn : ndarray, shape (groups, probs)
        The probability at which each quantile was drawn: the requested one, or one farther inside
        if noise could move it out of the rows; nan with too few rows.
    counts : ndarray, shape (groups,)
        Noisy numbers of complete rows.
    count_sd : ndarray, shape (groups,)
        Noise standard deviation of each count.
    rank_sd : ndarray, shape (groups, probs)
        Standard deviation of the noise in the rank of each quantile, in rows.
    """

    later = Released.later | {"shared"}

    values: Annotated[BoundedOrNan, "group", "prob", "place"]
    drawn: Annotated[BoundedOrNan, "group", "prob"]
    counts: Annotated[Bounded, "group"]
    count_sd: Annotated[Bounded, "group"]
    rank_sd: Annotated[Bounded, "group", "prob"]


# Released counts of runs of cells, chosen by the previous counts.


@dataclass(frozen=True, kw_only=True)
class RunsRelease(Released):
    """Released counts of rows in runs of ordered cells.

    The cells of a group are halved repeatedly; a run is one of the parts. The counts of a step are
    of runs of one length, and decide which runs the next step counts.

    Attributes
    ----------
    values : ndarray, shape (parts,)
        In rows, step by step; last the incomplete rows. The noise of each is independent given all
        earlier values; may be negative.
    starts : ndarray, shape (parts,)
        The first cell of each run, numbered over all groups; for the incomplete rows the number of
        cells.
    sizes, levels : tuple of int
        The number of counts of each step, and how often the cells were halved.
    noise_sds : tuple of float
        The standard deviation of the noise of each step, in rows.
    shape : tuple of int
        Groups, then cells of each.
    law : {"laplace", "gaussian"}
        Distribution of the noise.
    noise_sd : float
        Standard deviation of the noise in a run that was divided, in rows.
    step : float
        Lattice step of the values, in rows.
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


# Released sums of ordered cells.


@dataclass(frozen=True, kw_only=True)
class SumsRelease(Released):
    """Released sums of rows over cells of a line or a plane, which determine all counts.

    Attributes
    ----------
    values : ndarray, shape (parts,)
        In rows: all sums of each group in turn, last the incomplete rows. All have independent
        noise of the same distribution; may be negative.
    sums : {"tree", "wavelet", "grid", "factorisation"}
        ``"tree"``: sums of the nodes above the cells, level by level from the top, the cells last;
        ``"grid"``: sums of the blocks of a plane, likewise; ``"wavelet"``: the sum of all cells,
        then differences of neighbouring sums, level by level from the top; ``"factorisation"``: for
        each cell the weighted sum of it and the previous cells, with the weights of
        :func:`dpmodels.postprocess.square_root.coefficients`.
    shape : tuple of int
        Groups, then cells of each variable.
    fanout : int
        Largest number of children of a node, along each axis for a block; 2 without nodes.
    law : {"laplace", "gaussian"}
        Distribution of the noise.
    noise_sd : float
        Its standard deviation, in rows.
    step : float
        Lattice step of the values, in rows.
    """

    later = Released.later | {"shared"}
    values: Annotated[Bounded, "part"]
    sums: Annotated[str, one_of("tree", "wavelet", "grid", "factorisation")]
    shape: tuple[int, ...]
    fanout: int
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sd: Amount
    step: Amount
