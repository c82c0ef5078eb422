"""Public centre, public scale and the radius of the ball that holds every row."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmodels.arguments import real, truth, word
from dpmodels.errors import ArgumentError, said
from dpmodels.formula import Block, Design
from dpmodels.typing import Floats

SCALES = ("range", "sd", None)
# Fourth powers of the radius, and rows divided by a column's scale, stay finite.
SHORTEST, LONGEST = 1e-60, 1e60
# Columns of a smaller half-range are not divided by it: their squares would overflow.
NARROWEST = 1e-150


@dataclass(frozen=True)
class Scaling:
    """How coded columns are brought into the ball: ``(x - centre) / scale``."""

    # Shape (columns,): a public point; zeros when the second moment about the origin is asked.
    centre: Floats
    scale: Floats  # Shape (columns,): positive public divisors, in each column's unit
    row_norm: float  # Radius of the ball that every scaled row is held in
    worst_case: float  # The radius that follows from the codebook alone
    unit: bool = False  # Whether every scaled row is divided by its own norm; the radius is 1

    def facts(self, names: tuple[str, ...]) -> dict[str, str]:
        """State how coded columns are brought into the ball, as texts that can be compared."""
        ends = zip(names, self.centre.tolist(), self.scale.tolist(), strict=True)
        columns = {f"scaling of {name!r}": f"(x - {at!r}) / {by!r}" for name, at, by in ends}
        return {**columns, "row_norm": "unit" if self.unit else repr(float(self.row_norm))}


def scaling(
    design: Design, *, scale: str | None, center: bool, row_norm: float | str | None
) -> Scaling:
    """Choose centre, scale and radius from public facts.

    `scale` is "range" (each column by its public half-range; "sd" does the same before release) or
    None; with `center` each block of columns is moved to the public point from which its rows are
    nearest; `row_norm` is a smaller radius than the codebook's worst case, or "unit" to divide
    each scaled row by its own norm, about the origin of the columns. ArgumentError if ``scale``,
    ``center`` or ``row_norm`` is none of these.
    """
    word("scale", scale, SCALES)
    truth("center", center)
    unit = isinstance(row_norm, str) and row_norm == "unit"
    half = (design.upper - design.lower) / 2
    divisor = np.ones_like(half) if scale is None else np.where(half > NARROWEST, half, 1.0)
    centre, squares, start = np.zeros_like(half), 0.0, 0
    for block in design.blocks:
        own = slice(start, start + len(block.names))
        centre[own], radius = _nearest(block, divisor[own], center and not unit)
        squares += radius * radius
        start = own.stop
    if unit:
        return Scaling(centre, divisor, 1.0, 1.0, unit=True)
    # The outermost rounding of a square root and a sum of squares.
    worst = math.sqrt(squares) * (1 + 1e-12) or 1.0
    return Scaling(centre, divisor, _radius(row_norm, worst), worst)


def _nearest(block: Block, divisor: Floats, free: bool) -> tuple[Floats, float]:
    """Return a public centre for a block and the scaled distance of its farthest row."""
    points = block.points / divisor
    candidates = [np.zeros(len(divisor))]
    if free:
        outer = points[points.any(axis=1)] if points.any() else points
        candidates += [(points.max(axis=0) + points.min(axis=0)) / 2]
        candidates += [points.mean(axis=0), outer.mean(axis=0)]
    with np.errstate(over="ignore"):
        radii = [float(np.sqrt(((points - one) ** 2).sum(axis=1)).max()) for one in candidates]
    best = int(np.argmin(radii))
    return candidates[best] * divisor, radii[best]


def _radius(row_norm: object, worst: float) -> float:
    radius = worst if row_norm is None else min(real(row_norm), worst)
    if not SHORTEST <= radius <= LONGEST:
        raise ArgumentError(
            f"row_norm={said(row_norm)}: expected a number from {SHORTEST:g} to {LONGEST:g}, "
            'the longest scaled row to keep whole, "unit" to divide each row by its norm, or None '
            f"for the codebook's worst case, {worst:.4g}, where that lies in between"
        )
    return radius
