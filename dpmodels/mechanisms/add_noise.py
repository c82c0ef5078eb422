"""Integer noise: its scales in augmented moments, the lattices that hold it, and its addition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.mechanisms.release_terms import release_terms
from dpmodels.noise import Entropy, discrete_gaussian, discrete_laplace
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.privacy import ZCDP, Guarantee, split_gaussian
from dpmodels.released import Ball, Card, MomentNoise, MomentsRelease
from dpmodels.statistics import moment_sensitivity, moment_weights
from dpmodels.statistics.moments import absolute_sensitivity, absolute_weights
from dpmodels.typing import Floats, Integers

# From this scale on discrete Gaussian noise is as private as continuous noise of a multiplier
# smaller by 2**-35 (docs/theory.md, lemma of Theorem 10), which the calibration allows for.
SMALLEST_SCALE = 2.0**20
# From this scale on the discrete law's variance is that of the continuous one to 1e-7.
SMALLEST_LAPLACE = 2.0**10
# Units of a row in a count: its noise has more than 2**20 steps from a multiplier of 1/16 up; and
# fewer where noise is so large that its steps would leave 64 bits.
UNITS, MOST_STEPS = 2**24, 2.0**50
# Times the scale, what a lattice has to hold: a draw outside int64 has probability exp(-256).
ROOM = 4.0
# Cover the rounding of some thousand products and quotients of floats.
ROUND_UP, ROUND_DOWN = 1 + 1e-12, 1 - 1e-12


class Scaled(NamedTuple):
    """A lattice and the scales of the noise on it, in lattice steps."""

    lattice: Lattice
    steps: MomentNoise


def gaussian_scales(facts: Facts, multiplier: float) -> Scaled:
    """Return the noise of one Gaussian release of the augmented moments.

    `multiplier` is the noise scale over the sensitivity in isometric coordinates. BudgetError if
    the noise leaves no useful lattice.
    """
    weights = moment_weights(facts.adjacency, centred=facts.centred)
    sigma = multiplier * moment_sensitivity(facts.adjacency, weights) * ROUND_UP
    mean = sigma / weights.mean if facts.centred else math.nan
    scales = (sigma / weights.count, mean, sigma, sigma / math.sqrt(2))
    lattice = choose_lattice(facts.columns, float(np.nanmax(scales)))
    return Scaled(lattice, in_steps(lattice, scales, SMALLEST_SCALE))


def laplace_scales(facts: Facts, multiplier: float) -> Scaled:
    """Return the noise of one Laplace release of the augmented moments.

    `multiplier` is the noise scale over the L1 sensitivity, the second moment taken on and above
    the diagonal. BudgetError if the noise leaves no useful lattice.
    """
    weights = absolute_weights(facts.adjacency, facts.columns, centred=facts.centred)
    sensitivity = absolute_sensitivity(facts.adjacency, facts.columns, weights)
    scale = multiplier * sensitivity * ROUND_UP
    mean = scale / weights.mean if facts.centred else math.nan
    scales = (scale / weights.count, mean, scale, scale)
    lattice = choose_lattice(facts.columns, ROOM * float(np.nanmax(scales)))
    return Scaled(lattice, in_steps(lattice, scales, SMALLEST_LAPLACE))


def in_steps(lattice: Lattice, scales: Sequence[float], smallest: float) -> MomentNoise:
    """Return four scales, given in squared units of the ball, in steps of a lattice."""
    # A nan, of a part not released, stays nan: max keeps its first.
    return MomentNoise(*(max(scale * lattice.radius**2, smallest) for scale in scales))


def lattice_for(lattice: Lattice, steps: MomentNoise, sigma: float, smallest: float) -> Scaled:
    """Return the same noise on the finest lattice that holds noise of scale `sigma` too.

    `sigma` is in units of the squared unit length, `steps` and `smallest` in lattice steps.
    BudgetError if `sigma` leaves no useful lattice.
    """
    other = choose_lattice(lattice.columns, sigma)
    if other.bits >= lattice.bits:
        return Scaled(lattice, steps)
    shrink = (other.radius / lattice.radius) ** 2
    # A nan stays nan: max keeps its first.
    return Scaled(other, MomentNoise(*(max(step * shrink, smallest) for step in astuple(steps))))


def laplace_multipliers(
    guarantee: Guarantee, shares: Sequence[float] = (1.0,)
) -> tuple[float, ...]:
    """Return multipliers of Laplace releases that together satisfy a guarantee.

    An (eps, delta) guarantee leaves its delta unused. A release of multiplier m costs ``1/m`` of
    eps, or ``1/(2m²)`` of rho; `shares` are of the budget in its own unit.
    """
    if isinstance(guarantee, ZCDP):
        return split_gaussian(math.sqrt(0.5 / guarantee.rho) * ROUND_UP, shares)
    total = math.fsum(shares)
    return tuple(total / (share * guarantee.eps) * ROUND_UP for share in shares)


def _normal_tail(chance: float) -> float:
    return -float(ndtri(chance))


def _laplace_tail(chance: float) -> float:
    return -math.log(2 * chance)


class Law(NamedTuple):
    """A law of integer noise with one scale."""

    draw: Callable[[float, int, Entropy], Integers]  # Takes scale, size and entropy
    sd: float  # Standard deviation in units of the scale, for scales of many steps
    smallest: float = SMALLEST_SCALE  # Scale that counts as many steps
    # What noise of scale 1 exceeds with a small probability.
    beyond: Callable[[float], float] = _normal_tail


GAUSSIAN = Law(discrete_gaussian, 1.0)
LAPLACE = Law(discrete_laplace, math.sqrt(2), SMALLEST_LAPLACE, _laplace_tail)


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


def row_units(scale: float) -> int:
    """Return how many units a row of a count is of, for noise of a scale in rows."""
    return max(int(min(UNITS, MOST_STEPS / scale)), 1)


def noised_rows(
    exact: NDArray[Any], scale: float, entropy: Entropy, law: Law = GAUSSIAN
) -> tuple[Floats, float]:
    """Return noisy numbers of rows, and the scale of their noise, in rows; least of many steps."""
    units = row_units(scale)
    drawn = max(scale, law.smallest / units)
    return add_noise(exact * units, drawn * units, entropy, law) / units, drawn


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
