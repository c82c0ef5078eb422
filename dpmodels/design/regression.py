"""The private design of a two-sided formula: rows (x, y), weighted or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from dpmodels.arguments import option
from dpmodels.codebook import Codebook
from dpmodels.design.parts import Part
from dpmodels.design.private import NARROWEST, PrivateDesign, Scaling, scaling
from dpmodels.design.rows import Rows, Terms, rows_of
from dpmodels.errors import ArgumentError, CodebookError, quoted, shorten
from dpmodels.formula import Design
from dpmodels.formula.coding import checked_codebook
from dpmodels.formula.response import TwoSided, two_sided
from dpmodels.frames import RowSource
from dpmodels.noise.lattice import Lattice, lengths, to_lattice
from dpmodels.typing import Floats
from dpmodels.variables import Numeric


@dataclass(frozen=True)
class Weight:
    """A variable by which rows are weighted, as shares of the largest weight.

    Of sampling weights those above `cap`, a released number, count as `cap`, and a row whose weight
    is outside its bounds does not count; precision weights are clipped to their bounds.
    """

    name: str
    declared: Numeric
    sampling: bool = False
    cap: float | None = None

    @property
    def largest(self) -> float:
        """The weight that is a share of 1."""
        return float(self.declared.upper) if self.cap is None else self.cap

    def shares(self, weights: Floats) -> Floats:
        """Return shares from 0 to 1, shape (rows,), nan where a row does not count."""
        lower, upper = self.declared.lower, self.declared.upper
        clipped = np.clip(weights, lower, min(upper, self.largest))
        if self.sampling:
            clipped = np.where((weights >= lower) & (weights <= upper), clipped, np.nan)
        return np.asarray(clipped / self.largest)


class WeightedDesign(PrivateDesign):
    """Rows times the root of their weight, a public share of the largest.

    Line 0 of a block is the lattice's radius times that root, and never shorter than the rest of
    the row: a row of weight q adds q times what one row of the ball does, and so moves no
    statistic that is additive in squares further than a row without weights can.
    """

    __slots__ = ("_weight",)

    def __init__(self, public: Design, scaling: Scaling, rows: Rows, weight: Weight) -> None:
        super().__init__(public, scaling, rows)
        self._weight = weight

    def of(self, rows: Rows) -> Self:
        """Return other rows on the same way, their weight included."""
        return type(self)(self.public, self.scaling, rows, self._weight)

    def rescaled(self, scaling: Scaling) -> WeightedDesign:
        """Return the same rows and weights, scaled by released values instead."""
        return type(self)(self.public, scaling, self._rows, self._weight)

    def capped(self, cap: float) -> Self:
        """Return the same rows with weights up to a released number."""
        weight = replace(self._weight, cap=cap)
        return type(self)(self.public, self.scaling, self._rows, weight)

    @property
    def multiplied(self) -> PrivateDesign:
        """The same rows without weights, and their shares as the last line of a block."""
        return MultipliedDesign(self.public, self.scaling, self._rows, self._weight)

    @property
    def recipe(self) -> Callable[[RowSource], PrivateDesign]:
        """A function that binds other rows in the same way, their weight included."""
        return partial(
            _bound, type(self), self.public, self.scaling, self._rows.recipe, self._weight
        )

    @property
    def facts(self) -> dict[str, str]:
        """Public facts about the rows on the lattice, their weight included."""
        weight = self._weight
        cap = {} if weight.cap is None else {"largest weight": repr(weight.cap)}
        return {**super().facts, "weights": repr(weight.name), **cap}

    @property
    def _beside(self) -> tuple[str, ...]:
        return (self._weight.name,)

    def _place(
        self, augmented: Floats, coded: Floats, columns: Mapping[str, Floats], lattice: Lattice
    ) -> None:
        rows = augmented[1:]
        factor = 1.0 / (self.scaling.scale * self.scaling.row_norm)
        np.multiply(coded, factor[:, None], out=rows)
        rows -= (self.scaling.centre * factor)[:, None]
        # Rows outside the ball are shrunk as they are without weights.
        rows /= np.fmax(lengths(rows), 1.0)
        share = np.sqrt(self._weight.shares(columns[self._weight.name]))
        rows *= share
        ones = np.ones_like(factor)
        complete = to_lattice(rows, ones, 0 * ones, lattice)
        row_lengths = np.ceil(lengths(rows))
        share = np.where(complete, share, 0.0)
        augmented[0] = np.maximum(np.rint(share * lattice.radius), row_lengths)


class MultipliedDesign(WeightedDesign):
    """Rows of a :class:`WeightedDesign` without weights, with their shares beside them.

    A block has one more line than those of other designs: how much each row counts, from 0 to 1.
    """

    @property
    def multiplied(self) -> PrivateDesign:
        """The same rows."""
        return self

    def _augmented(self, part: Part, lattice: Lattice) -> Floats:
        augmented = np.empty((len(self.public.names) + 2, part.rows))
        coded = part.coded
        if coded is None:
            coded = augmented[1:-1]
            self._evaluate(part, coded)
        PrivateDesign._place(self, augmented[:-1], coded, part.columns, lattice)
        share = self._weight.shares(part.columns[self._weight.name])
        counts = (augmented[0] > 0) & (share > 0)
        augmented[:, ~counts] = 0.0
        augmented[-1] = np.where(counts, share, 0.0)
        return augmented


def private_regression(
    formula: str,
    data: object,
    codebook: Codebook,
    *,
    weights: str | None = None,
    **words: Any,
) -> PrivateDesign:
    """Bind a two-sided formula to data without reading a row; `words` as of :func:`joint_design`.

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, FrameError
        From the formula, the codebook, the arguments and the column names.
    """
    regression = two_sided(formula, codebook, excluded=() if weights is None else (str(weights),))
    return joint_design(regression, codebook, weights=weights, **words).bind(data)


def joint_design(
    regression: TwoSided,
    codebook: Codebook,
    *,
    scale: str | None = "range",
    row_norm: float | None = None,
    weights: str | Weight | None = None,
    center: bool = True,
    emphasis: float = 1.0,
) -> PrivateDesign:
    """Return the design without rows, to which data can be bound.

    Parameters
    ----------
    regression : TwoSided
        The formula; names of the design are those of its terms, then that of the response.
    codebook : Codebook
        Public bounds and levels.
    scale : {"range", None}
        Divide columns by their public half-range, or not at all.
    row_norm : float, optional
        The longest scaled row of the terms that is not clipped; the response adds to it.
    weights : str or Weight, optional
        A non-negative number of the codebook, or sampling weights with their bounds; rows count in
        proportion to it.
    center : bool
        Whether columns are centred at public points.
    emphasis : float
        Length of the longest scaled response: above 1, less of the noise falls on it and
        more on the terms.

    Raises
    ------
    CodebookError, ArgumentError
        From the codebook and the arguments.
    """
    option("scale", scale, ("range", None))
    if isinstance(row_norm, str):
        raise ArgumentError(
            f"row_norm={quoted(row_norm)}: expected a number, the longest scaled row of the terms "
            "that is not clipped, or None; dividing rows by their norm changes the coefficients"
        )
    if weights is None or isinstance(weights, Weight):
        weight = weights
    else:
        weight = Weight(weights, _declared(weights, checked_codebook(codebook)))
    scaled = _joint_scaling(regression, scale, row_norm, center, emphasis)
    public = regression.joint
    if weight is None:
        return PrivateDesign(public, scaled, rows_of(Terms(public.codebook)))
    public = replace(public, codebook=public.codebook | {weight.name: weight.declared})
    return WeightedDesign(public, scaled, rows_of(Terms(public.codebook)), weight)


def box_design(regression: TwoSided) -> PrivateDesign:
    """Return the design without rows whose columns are each from -1 to 1; no row is clipped.

    A column is counted from the middle of its public range, in half-ranges; the response is last.
    CodebookError if a column has one value only.
    """
    public = regression.joint
    half = (public.upper - public.lower) / 2
    for name, width in zip(public.names, half.tolist(), strict=True):
        if not width > NARROWEST:
            raise CodebookError(
                f"{shorten(name)!r} has one value within its declared bounds, so it has no "
                "association; declare wider bounds or two levels, or leave it out"
            )
    longest = math.sqrt(len(half)) * (1 + 1e-12)
    centre = (public.lower + public.upper) / 2
    box_scaling = Scaling(centre, half, longest, longest)
    return PrivateDesign(public, box_scaling, rows_of(Terms(public.codebook)))


def _bound(
    kind: type[WeightedDesign],
    public: Design,
    scaling: Scaling,
    rows: Callable[[RowSource], Rows],
    weight: Weight,
    source: RowSource,
) -> PrivateDesign:
    return kind(public, scaling, rows(source), weight)


def _declared(weights: object, book: Codebook) -> Numeric:
    if not isinstance(weights, str):
        raise ArgumentError(
            f'weights={quoted(weights)}: expected the name of a variable, such as weights="w"'
        )
    declared = book.select([weights])[weights]
    if isinstance(declared, Numeric) and declared.lower >= 0:
        return declared
    raise CodebookError(
        f"weights={weights!r} is declared as {declared.describe()}; weights must not be negative: "
        f"declare {weights}=(0, upper)"
    )


def _joint_scaling(
    regression: TwoSided, scale: str | None, row_norm: float | None, center: bool, emphasis: float
) -> Scaling:
    """Scale each side by itself; the ball contains every combination of their rows."""
    right = scaling(regression.terms, scale=scale, center=center, row_norm=row_norm)
    left = scaling(regression.response, scale=scale, center=center, row_norm=None)
    others = [replace(left, scale=left.scale / emphasis, row_norm=emphasis * left.row_norm)]
    if regression.known is not None:
        others.insert(0, scaling(regression.known, scale=scale, center=True, row_norm=None))
    lengths = (right.row_norm, right.worst_case) if regression.terms.names else (0.0, 0.0)
    radius, worst = (
        math.hypot(length, *(side.row_norm for side in others)) * (1 + 1e-12) for length in lengths
    )
    return Scaling(
        np.concatenate([right.centre, *(side.centre for side in others)]),
        np.concatenate([right.scale, *(side.scale for side in others)]),
        radius,
        worst,
    )
