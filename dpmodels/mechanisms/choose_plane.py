"""Which mechanism counts the cells of a plane, by public facts alone.

As for cells in a row: with V for the predicted noise variance of the mean rectangle and v for that
of a cell, the less of ``V √v`` is taken, and of few cells the one with less noise in each.
"""

from __future__ import annotations

import math

from dpmodels.mechanisms.choose import auto_counts, two_digits
from dpmodels.mechanisms.count_plan import CountFacts
from dpmodels.mechanisms.counts import COUNTS, Grid
from dpmodels.postprocess.plane import rectangle_counts
from dpmodels.privacy import Guarantee

# Cells that are read one at a time: a choice.
FEW = 64


def auto_plane(facts: CountFacts, guarantee: Guarantee) -> tuple[str, str]:
    """Return the name of a mechanism for cells in a plane and the reason, as it is printed."""
    flat, plain = auto_counts(facts, guarantee)
    sides = facts.shape[1:]
    grid = Grid()
    plan = grid.plan(facts, guarantee)
    side, noise = grid.side_of(plan), COUNTS[flat]().plan(facts, guarantee).noise_sd
    means = [
        own * math.sqrt(rectangle_counts(sides, blocks))
        for own, blocks in ((plan.noise_sd, side), (noise, max(sides)))
    ]
    first, other = (mean**2 * own for mean, own in zip(means, (plan.noise_sd, noise), strict=True))
    if math.prod(sides) <= FEW or other <= first:
        return flat, plain
    one = 1 if facts.adjacency.rows == "mean" else facts.adjacency.places
    shown = [two_digits(one * own) for own in (*means, plan.noise_sd, noise)]
    return "grid", (
        f"of {math.prod(sides):,} cells it is sums that are read: of the mean rectangle its noise "
        f"has an sd of {shown[0]} rows, that of {flat} {shown[1]}; of a single cell about "
        f"{shown[2]}, not {shown[3]}."
    )
