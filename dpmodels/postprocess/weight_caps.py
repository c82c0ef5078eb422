"""The cap of sampling weights, from released numbers of units by their weight."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmodels.postprocess.ranges import CellNoise
from dpmodels.postprocess.tails import excess_above
from dpmodels.typing import Floats

# Cells per octave of weights, and of totals of units, which vary less: choices.
PER_OCTAVE, OF_TOTALS = 4, 8
# Noise sds from which cells are occupied, and how many times as large weights may be as those that
# are detected: choices.
CLEAR, BEYOND = 3.0, 4.0


class WeightCap(NamedTuple):
    """A cap, and by how much the weights above it exceed it: mean, error, and mean square."""

    cap: float
    mean_excess: float
    mean_excess_sd: float
    square_excess: float


def weight_edges(lower: float, upper: float, per_octave: int = PER_OCTAVE) -> Floats:
    """Return the edges of public cells of weights, shape (cells + 1,), the first below `lower`."""
    n_cells = max(math.ceil(math.log2(upper / lower) * per_octave - 1e-9), 1)
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
    edges, counts = _occupied(edges, counts, noise)
    excesses = [excess_above(edges, counts, noise, float(cap)) for cap in edges[1:]]
    errors = [
        math.hypot(price * float(cap), max(moved * excess.total, side * price * excess.mean))
        for cap, excess in zip(edges[1:], excesses, strict=True)
    ]
    best = int(np.argmin(errors))
    return WeightCap(float(edges[best + 1]), *excesses[best][1:])


def _occupied(edges: Floats, counts: Floats, noise: CellNoise) -> tuple[Floats, Floats]:
    """Leave out cells far above those in which units are detected."""
    beyond, n_cells = np.cumsum(counts[::-1])[::-1], np.arange(len(counts), 0, -1)
    detected = np.flatnonzero(beyond > CLEAR * noise.sd * np.sqrt(n_cells))
    if not detected.size:
        return edges, counts
    n_left = int(np.searchsorted(edges[1:], BEYOND * edges[detected[-1] + 1])) + 1
    return edges[: n_left + 1], counts[:n_left]
