"""Exact integers plus integer noise of planned scales, and their hand-over."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.mechanisms.protocol import Plan
from dpmodels.mechanisms.release_terms import release_terms
from dpmodels.noise import Entropy, discrete_gaussian, discrete_laplace
from dpmodels.released import Ball, Card, MomentNoise, MomentsRelease
from dpmodels.typing import Floats, Integers


class Law(NamedTuple):
    """A law of integer noise with one scale."""

    draw: Callable[[float, int, Entropy], Integers]  # Takes scale, size and entropy
    sd: float  # Standard deviation in units of the scale, for scales of many steps


GAUSSIAN = Law(discrete_gaussian, 1.0)
LAPLACE = Law(discrete_laplace, math.sqrt(2))


@dataclass(frozen=True)
class NoisyMoments:
    """Noisy number of rows, their sum (or None) and second moment, in units of the ball."""

    count: float
    total: Floats | None
    second: Floats
    noise: MomentNoise


def add_noise(exact: NDArray[Any], scale: float, entropy: Entropy, law: Law = GAUSSIAN) -> Floats:
    """Add noise to Python integers; float only after the sum."""
    sums: NDArray[Any] = exact + law.draw(scale, exact.size, entropy).astype(object)
    return sums.astype(np.float64)


def noised_symmetric(
    exact: NDArray[Any], diagonal: float, off: float, entropy: Entropy, law: Law = GAUSSIAN
) -> Floats:
    """Add independent noise on and above the diagonal of a symmetric integer matrix."""
    size = len(exact)
    sums = np.empty((size, size))
    upper = np.triu_indices(size, 1)
    sums[upper] = add_noise(exact[upper], off, entropy, law)
    sums.T[upper] = sums[upper]
    np.fill_diagonal(sums, add_noise(np.diagonal(exact), diagonal, entropy, law))
    return sums


def noised_moments(
    exact: NDArray[Any], plan: Plan, entropy: Entropy, law: Law = GAUSSIAN
) -> NoisyMoments:
    """Release the augmented moments with noise of the plan's steps.

    `exact`, shape (columns + 1, columns + 1), is as from :func:`dpmodels.statistics.moments`.
    """
    steps = plan.steps
    count, total = noised_count(exact, plan, entropy, law)
    second = noised_symmetric(exact[1:, 1:], steps.diagonal, steps.off, entropy, law)
    return NoisyMoments(count, total, second / plan.lattice.steps**2, noise_of(plan, law))


def noised_count(
    exact: NDArray[Any], plan: Plan, entropy: Entropy, law: Law = GAUSSIAN
) -> tuple[float, Floats | None]:
    """Release the number of rows and, where the plan has noise for it, their sum.

    `exact` are augmented moments, shape (columns + 1, columns + 1); no sum is released where the
    scale of its noise is nan.
    """
    lattice, steps = plan.lattice, plan.steps
    count = add_noise(exact[:1, 0], steps.count, entropy, law) / lattice.radius**2
    if math.isnan(steps.mean):
        return float(count[0]), None
    total = add_noise(exact[0, 1:], steps.mean, entropy, law) / (lattice.radius * lattice.steps)
    return float(count[0]), np.asarray(total)


def noise_of(plan: Plan, law: Law = GAUSSIAN) -> MomentNoise:
    """Return the standard deviations that a plan's steps come to, in units of the ball."""
    lattice, steps = plan.lattice, plan.steps
    unit, longer = lattice.steps**2, lattice.radius * lattice.steps
    return MomentNoise(
        law.sd * steps.count / lattice.radius**2,
        law.sd * steps.mean / longer,
        law.sd * steps.diagonal / unit,
        law.sd * steps.off / unit,
    )


def hand_over(
    card: Card,
    plan: Plan,
    noisy: NoisyMoments,
    rows: int,
    estimate: Floats | None = None,
    ball: Ball | None = None,
) -> MomentsRelease:
    """Make the release of noisy moments; the number of rows read goes along where public."""
    return MomentsRelease(
        count=noisy.count,
        total=noisy.total,
        second=noisy.second,
        noise=noisy.noise,
        estimate=estimate,
        ball=ball,
        **release_terms(card, plan, rows),
    )
