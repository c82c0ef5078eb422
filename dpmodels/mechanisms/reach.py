"""How far the rows reach: a clipping radius found privately."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.mechanisms.laplacian import SMALLEST_LAPLACE
from dpmodels.mechanisms.noised import GAUSSIAN, Law, noised
from dpmodels.mechanisms.protocol import Plan
from dpmodels.mechanisms.sparse_vector import SparseScales, first_above, sparse_scales
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency

# The smallest radius is 2**-8: below it too little is left of a lattice of 2**16.
HALVINGS = 8
THRESHOLD, NUMBER, TRACE = "search threshold", "search number", "trace"


def reach_scales(adjacency: Adjacency, eps: float, lattice: Lattice) -> dict[str, float]:
    """Return the scales of the noise of a private search, by name, in lattice steps squared.

    The squared radius of the lattice is the sensitivity, see `lost`.
    """
    unit = lattice.radius**2
    found = sparse_scales(adjacency, eps)
    return {
        THRESHOLD: max(found.threshold * unit, SMALLEST_LAPLACE),
        NUMBER: max(found.number * unit, SMALLEST_LAPLACE),
    }


def lost(exact: NDArray[Any]) -> list[int]:
    """Return what clipping to ``2**-t``, t = 1, 2, ..., takes off the sum of squares.

    `exact`, shape (levels, columns + 1, columns + 1), is as from
    :func:`dpmodels.statistics.clipped_moments`, of more than `HALVINGS` levels.

    The numbers are ``⌊tr L_0 - tr L_t / 4**t⌋``. A row adds ``‖x‖²``, where its
    magnified self is outside the ball, less what is left of it, which is no
    longer; and nothing where it is inside: between 0 and R². So one row changes
    each by at most the integer R², before rounding down as well as after; a
    row more lowers none.
    """
    traces = [sum(np.diagonal(level)[1:].tolist()) for level in exact[: HALVINGS + 1]]
    return [
        (4**level * traces[0] - trace) // 4**level for level, trace in enumerate(traces) if level
    ]


def reach(
    exact: NDArray[Any],
    error: Callable[[float], float],
    plan: Plan,
    entropy: Entropy,
    caution: float = 0.0,
) -> int:
    """Return the level of the smallest radius at which clipping takes little off.

    `exact` is as for `lost`; `error` takes a radius and returns the error of a release at it
    that clipping is compared with, public and in units of the ball. `caution` is how much of
    the search's own noise is taken off what clipping may lose, where a radius too small is
    worse than one too large.
    """
    unit, scales = plan.lattice.steps**2, SparseScales(plan.scales[THRESHOLD], plan.scales[NUMBER])
    less = caution * sum(scales)
    allowed = [int(error(2.0**-level) * unit - less) for level in range(1, HALVINGS + 1)]
    return first_above(lost(exact), allowed, scales, entropy)


def noised_trace(exact: NDArray[Any], plan: Plan, entropy: Entropy, law: Law = GAUSSIAN) -> float:
    """Release the trace of the second moment, in units of the ball; at least its noise.

    One row changes it by at most the squared radius of the ball, for either
    adjacency.
    """
    trace: NDArray[Any] = np.array([sum(np.diagonal(exact)[1:].tolist())], dtype=object)
    scale = plan.scales[TRACE]
    released = float(noised(trace, scale, entropy, law)[0])
    return max(released, law.sd * scale) / plan.lattice.steps**2


def likely_cap(
    trace: float, cap: float | None, level: int, plan: Plan, law: Law = GAUSSIAN
) -> float:
    """Return a bound on the trace of rows clipped to ``2**-level``, in units of the ball.

    With two standard deviations of its noise the released trace is likely to be one; `cap` is
    the public bound for rows that are not clipped.
    """
    likely = trace + 2 * law.sd * plan.scales[TRACE] / plan.lattice.steps**2
    return likely if cap is None else min(likely, cap * 4.0**-level)
