"""A clipping radius, found privately by the sparse vector technique."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.mechanisms.add_noise import GAUSSIAN, ROUND_UP, SMALLEST_LAPLACE, Law, add_noise
from dpmodels.mechanisms.protocol import Plan
from dpmodels.noise import Entropy, discrete_laplace
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency

# The smallest radius is 2**-8: below it too little is left of a lattice of 2**16.
HALVINGS = 8
THRESHOLD, NUMBER, TRACE = "search threshold", "search number", "trace"


class SparseScales(NamedTuple):
    """Scales of the Laplace noise, in units of the numbers' sensitivity."""

    threshold: float
    number: float


def sparse_scales(eps: float, *, monotone: bool, answers: int = 1) -> SparseScales:
    """Return the noise of one ε-differentially private search for so many numbers.

    Numbers are `monotone` where a row more raises none of them, or lowers none: then they are so
    under ``add-remove``.

    The threshold's noise, of scale ``1/ε₁``, is drawn once for all numbers; every number has its
    own, of scale ``c a/ε₂`` for a `answers`, with ε = ε₁ + ε₂.

    *Proof*, for numbers that one row changes by at most 1, and one answer. Fix the noise of the
    numbers before the first that is above; the answer is k if the threshold's noise r exceeds
    all of theirs and the k-th number with its noise v is at least the threshold with r. For
    neighbouring rows take r + 1 and v + 2 instead: the numbers before stay below, as none rose by
    more than 1, and the k-th stays above. This has at least ``exp(-ε₁ - ε₂)`` times the
    probability for c = 2; "none" only needs r + 1. Where all numbers rise, the k-th among them,
    r + 1 and v + 1 will do; where all fall, r and v + 1: so c = 1 for monotone numbers. Of several
    answers each has its own v, and all share r: what each v is moved by costs ε₂/a. The variance
    of ``r - v`` is least at ``ε₂ = (c a)^⅔ ε₁``.

    Source: Lyu, M., Su, D. and Li, N. (2017). "Understanding the sparse vector technique for
    differential privacy." Proceedings of the VLDB Endowment 10(6), 637-648. Algorithm 1, Theorems
    2 and 5.
    """
    factor = answers * (1.0 if monotone else 2.0)
    ratio = factor ** (2 / 3)
    # One part in 10^12 covers the rounding.
    return SparseScales(
        (1 + ratio) / eps * ROUND_UP, factor * (1 + ratio) / (ratio * eps) * ROUND_UP
    )


def first_above(
    numbers: Sequence[int], thresholds: Sequence[int], scales: SparseScales, entropy: Entropy
) -> int:
    """Return the place of the first number above its threshold, privately.

    That is how many come before it, all of them where none is above; the scales are times the
    numbers' sensitivity.
    """
    common = int(discrete_laplace(scales.threshold, 1, entropy)[0])
    noises = discrete_laplace(scales.number, len(numbers), entropy).tolist()
    above = [
        number + noise >= threshold + common
        for number, noise, threshold in zip(numbers, noises, thresholds, strict=True)
    ]
    return int(np.argmax([*above, True]))


def reach_scales(adjacency: Adjacency, eps: float, lattice: Lattice) -> dict[str, float]:
    """Return the scales of the noise of a private search, by name, in lattice steps squared.

    The squared radius of the lattice is the sensitivity, see `lost`.
    """
    unit = lattice.radius**2
    scales = sparse_scales(eps, monotone=not adjacency.n_public)
    return {
        THRESHOLD: max(scales.threshold * unit, SMALLEST_LAPLACE),
        NUMBER: max(scales.number * unit, SMALLEST_LAPLACE),
    }


def lost(exact: NDArray[np.object_]) -> list[int]:
    """Return what clipping to ``2**-t``, t = 1, 2, ..., takes off the sum of squares.

    `exact`, shape (levels, columns + 1, columns + 1), is as from
    :func:`dpmodels.statistics.clipped_moments`, of more than `HALVINGS` levels.

    The numbers are ``⌊tr L_0 - tr L_t / 4**t⌋``. A row adds ``‖x‖²``, where its magnified self is
    outside the ball, less what is left of it, which is no longer; and nothing where it is inside:
    between 0 and R². So one row changes each by at most the integer R², before rounding down as
    well as after; a row more lowers none.
    """
    traces = [sum(np.diagonal(level)[1:].tolist()) for level in exact[: HALVINGS + 1]]
    return [
        (4**level * traces[0] - trace) // 4**level for level, trace in enumerate(traces) if level
    ]


def clipping_radius(
    exact: NDArray[np.object_],
    error: Callable[[float], float],
    plan: Plan,
    entropy: Entropy,
    caution: float = 0.0,
) -> int:
    """Return the level of the smallest radius at which clipping takes little off.

    `exact` is as for `lost`; `error` takes a radius and returns the error of a release at it that
    clipping is compared with, public and in units of the ball. `caution` is how much of the
    search's own noise is taken off what clipping may lose, where a radius too small is worse than
    one too large.
    """
    unit, scales = plan.lattice.steps**2, SparseScales(plan.scales[THRESHOLD], plan.scales[NUMBER])
    less = caution * sum(scales)
    allowed = [int(error(2.0**-level) * unit - less) for level in range(1, HALVINGS + 1)]
    return first_above(lost(exact), allowed, scales, entropy)


def noised_trace(
    exact: NDArray[np.generic], plan: Plan, entropy: Entropy, law: Law = GAUSSIAN
) -> float:
    """Release the trace of the second moment, in units of the ball; at least its noise.

    One row changes it by at most the squared radius of the ball, for either adjacency.
    """
    trace: NDArray[np.generic] = np.array([sum(np.diagonal(exact)[1:].tolist())], dtype=object)
    scale = plan.scales[TRACE]
    released = float(add_noise(trace, scale, entropy, law)[0])
    return max(released, law.sd * scale) / plan.lattice.steps**2


def likely_cap(
    trace: float, cap: float | None, level: int, plan: Plan, law: Law = GAUSSIAN
) -> float:
    """Return a bound on the trace of rows clipped to ``2**-level``, in units of the ball.

    With two standard deviations of its noise the released trace is likely to be one; `cap` is the
    public bound for rows that are not clipped.
    """
    likely = trace + 2 * law.sd * plan.scales[TRACE] / plan.lattice.steps**2
    return likely if cap is None else min(likely, cap * 4.0**-level)
