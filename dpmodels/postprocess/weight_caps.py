"""The cap of sampling weights, from released numbers of units by their weight."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmodels.postprocess.ranges import CellNoise
from dpmodels.postprocess.tails import excess_above
from dpmodels.typing import Floats

# Cells per octave of weights, and of ranges of more than so many octaves: choices.
PER_OCTAVE, FEWER, MANY_OCTAVES = 4, 2, 12


class WeightCap(NamedTuple):
    """A cap, and by how much the weights above it exceed it: mean, error, and mean square."""

    cap: float
    mean_excess: float
    mean_excess_sd: float
    square_excess: float


def weight_edges(lower: float, upper: float) -> Floats:
    """Return the edges of public cells of weights, shape (cells + 1,), the first below `lower`."""
    octaves = math.log2(upper / lower)
    per_octave = PER_OCTAVE if octaves <= MANY_OCTAVES else FEWER
    n_cells = max(math.ceil(octaves * per_octave - 1e-9), 1)
    inner = upper * 2.0 ** (-np.arange(n_cells, 0, -1) / per_octave)
    return np.append(inner, upper)


def best_cap(
    edges: Floats, counts: Floats, noise: CellNoise, price: float, moved: float, side: float
) -> WeightCap:
    """Return the cap under which a weighted sum has the least predicted error.

    `price` is the noise of the sum for a cap of 1, `moved` what it moves by for each unit of weight
    that is cut off, and `side` how many times as much noise the sums of capped units have. With the
    excess ``E(c)`` and its mean ``e(c)`` estimated from the released counts the cap minimises
    ``(price c)² + max(moved E(c), side price e(c))²`` over the edges of the cells.
    """
    excesses = [excess_above(edges, counts, noise, float(cap)) for cap in edges[1:]]
    errors = [
        math.hypot(price * float(cap), max(moved * excess.total, side * price * excess.mean))
        for cap, excess in zip(edges[1:], excesses, strict=True)
    ]
    best = int(np.argmin(errors))
    return WeightCap(float(edges[best + 1]), *excesses[best][1:])
