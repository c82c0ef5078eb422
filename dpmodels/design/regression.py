"""The private design of a two-sided formula: rows (x, y), weighted or not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpmodels.arguments import option
from dpmodels.codebook import Codebook
from dpmodels.design.parts import Part
from dpmodels.design.private import NARROWEST, PrivateDesign, Scaling, scaling
from dpmodels.design.rows import Terms, rows_of
from dpmodels.errors import ArgumentError, CodebookError, quoted, shorten
from dpmodels.formula.coding import checked_codebook
from dpmodels.formula.response import TwoSided
from dpmodels.noise.lattice import Lattice, lengths, multiply_columns, to_lattice
from dpmodels.typing import Floats
from dpmodels.variables import Numeric


@dataclass(frozen=True, eq=False, repr=False)
class WeightedDesign(PrivateDesign):
    """Rows times the root of their weight, a public share of the largest.

    Line 0 of a block is the lattice's radius times that root, and never shorter than the rest of
    the row: a row of weight q adds q times what one row of the ball does, and so moves no
    statistic that is additive in squares further than a row without weights can.
    """

    weight: str
    declared: Numeric

    @property
    def facts(self) -> dict[str, str]:
        """Public facts about the rows on the lattice, their weight included."""
        return {**super().facts, "weights": repr(self.weight)}

    @property
    def _beside(self) -> tuple[str, ...]:
        return (self.weight,)

    def _place(
        self,
        augmented: Floats,
        part: Part,
        lattice: Lattice,
        squares: Floats | None,
        extremes: Floats,
    ) -> None:
        weight, declared, rows = part.columns[self.weight], self.declared, augmented[1:]
        factor = self._factor
        multiply_columns(self._coded(part), factor, rows, (self.public.lower, self.public.upper))
        rows -= (self.scaling.centre * factor)[:, None]
        # Rows outside the ball are shrunk as they are without weights.
        rows /= np.fmax(lengths(rows), 1.0)
        share = np.sqrt(np.clip(weight, declared.lower, declared.upper) / declared.upper)
        rows *= share
        ones = np.ones_like(factor)
        complete = to_lattice(rows, ones, 0 * ones, lattice, squares=squares)
        row_lengths = np.ceil(lengths(rows))
        share = np.where(complete, share, 0.0)
        augmented[0] = np.maximum(np.rint(share * lattice.radius), row_lengths)


def joint_design(
    regression: TwoSided,
    codebook: Codebook,
    *,
    scale: str | None = "range",
    row_norm: float | None = None,
    weights: str | None = None,
    center: bool = True,
    emphasis: float = 1.0,
) -> PrivateDesign:
    """Return the design without rows: the columns of the terms, then the response.

    `row_norm` is the longest scaled row of the terms that is not clipped; the response adds to it.
    `emphasis` is the length of the longest scaled response: above 1, less of the noise falls on it
    and more on the terms. CodebookError, ArgumentError from the codebook and the arguments.
    """
    option("scale", scale, ("range", None))
    if isinstance(row_norm, str):
        raise ArgumentError(
            f"row_norm={quoted(row_norm)}: expected a number, the longest scaled row of the terms "
            "that is not clipped, or None; dividing rows by their norm changes the coefficients"
        )
    declared = None if weights is None else _declared(weights, checked_codebook(codebook))
    right = scaling(regression.terms, scale=scale, center=center, row_norm=row_norm)
    left = scaling(regression.response, scale=scale, center=center, row_norm=None)
    others = [replace(left, scale=left.scale / emphasis, row_norm=emphasis * left.row_norm)]
    if regression.known is not None:
        others.insert(0, scaling(regression.known, scale=scale, center=True, row_norm=None))
    lengths = (right.row_norm, right.worst_case) if regression.terms.names else (0.0, 0.0)
    radius, worst = (
        math.hypot(length, *(side.row_norm for side in others)) * (1 + 1e-12) for length in lengths
    )
    scaled = Scaling(
        np.concatenate([right.centre, *(side.centre for side in others)]),
        np.concatenate([right.scale, *(side.scale for side in others)]),
        radius,
        worst,
    )
    public = regression.joint
    if weights is None or declared is None:
        return PrivateDesign(rows_of(Terms(public.codebook)), public, scaled)
    public = replace(public, codebook=public.codebook | {weights: declared})
    return WeightedDesign(rows_of(Terms(public.codebook)), public, scaled, weights, declared)


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
    return PrivateDesign(rows_of(Terms(public.codebook)), public, box_scaling)


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
