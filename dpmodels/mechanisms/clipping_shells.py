"""Noisy increments of the second moment between clipping radii."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.mechanisms.add_noise import (
    COUNT_SHARE,
    ROUND_UP,
    SMALLEST_SCALE,
    NoisyMoments,
    add_noise,
    gaussian_count,
    in_steps,
    noise_of,
    noised_count,
    noised_symmetric,
    trace_cap,
)
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.postprocess.denoise import Increment, accumulate
from dpmodels.privacy import split_gaussian
from dpmodels.released import MomentNoise
from dpmodels.statistics import Statistic
from dpmodels.statistics.clipped import (
    doublings,
    increment_sensitivity,
    increments,
    trace_weight,
)
from dpmodels.typing import Floats

# Of the budget, from the outside in: a choice.
SHARES = (0.5, 0.3, 0.2)
# The names of their scales in a plan.
INCREMENTS = ("increment 0", "increment 1", "increment 2")
# Rounding at 2**-16 is far below the noise, and the sums fit 64 bits.
MOST_BITS = 16
# Up to so many columns the noise is small enough for closer radii: see `shells`.
FEW = 16


def shells(columns: int) -> tuple[int, ...]:
    """Return how often the outer radius is halved for each of three radii.

    The more columns, the more noise, and the further in rows have to be gathered for a good guess
    of the shape further out: 1, 1/2 and 1/8 take up to half off the error of 1, 1/2 and 1/4 at 50
    columns and more where many rows are short, and cost up to a tenth of it at 10.
    """
    return (0, 1, 2) if columns <= FEW else (0, 1, 3)


def shell_scales(facts: Facts, lattice: Lattice, multipliers: Sequence[float]) -> dict[str, float]:
    """Return the scale of the noise in each increment, by name, in lattice steps squared.

    `multipliers` are noise scales over the sensitivity, for each radius of `shells`.
    """
    scales = {}
    for name, multiplier, step in zip(
        INCREMENTS, multipliers, doublings(shells(facts.columns)), strict=True
    ):
        sensitivity = increment_sensitivity(facts.adjacency, lattice, step)
        # The noise off the diagonal, the smallest, is held to the least scale.
        scales[name] = max(multiplier * ROUND_UP * sensitivity, math.sqrt(2) * SMALLEST_SCALE)
    return scales


def shell_lattice(facts: Facts, multipliers: Sequence[float], *extra_scales: float) -> Lattice:
    """Return a lattice on which all noise fits 64-bit integers.

    `extra_scales` are of other noise, in units of the squared unit length. BudgetError if the noise
    leaves no useful lattice.
    """
    finest = Lattice(MOST_BITS, facts.columns)
    widest = max(shell_scales(facts, finest, multipliers).values()) / trace_weight(facts.adjacency)
    # Twice the scale: more than rounding at the surface adds on a coarser lattice.
    sigma = max(2 * widest / finest.radius**2, *extra_scales)
    return Lattice(min(choose_lattice(facts.columns, sigma).bits, MOST_BITS), facts.columns)


def noised_shells(
    exact: NDArray[np.generic], outermost: int, plan: Plan, entropy: Entropy
) -> list[Increment]:
    """Release increments and their traces, in units of the ball.

    `exact`, shape (levels, columns + 1, columns + 1), is as from
    :func:`dpmodels.statistics.clipped_moments`; the plan's scales are those of `shell_scales`.
    """
    chosen = [outermost + level for level in shells(plan.facts.columns)]
    units = [4.0**level * plan.lattice.steps**2 for level in (*chosen[1:], chosen[-1])]
    weight, released = trace_weight(plan.facts.adjacency), []
    for part, name, unit in zip(increments(exact, chosen), INCREMENTS, units, strict=True):
        sigma = plan.scales[name]
        off = sigma / math.sqrt(2)
        matrix = noised_symmetric(part, sigma, off, entropy) / unit
        trace: NDArray[np.generic] = np.array([sum(np.diagonal(part).tolist())], dtype=object)
        noisy = add_noise(trace, sigma / weight, entropy) / unit
        released.append(Increment(matrix, float(noisy[0]), off / unit))
    return released


class ShellNoise(NamedTuple):
    """A lattice, and the noise on it of the count, the sum and all increments."""

    lattice: Lattice
    steps: MomentNoise  # Of the second moment, the sum of the increments
    scales: dict[str, float]


def shell_noise(facts: Facts, multiplier: float) -> ShellNoise:
    """Return the noise of one Gaussian release of count, sum and increments together.

    `multiplier` is the noise scale over the L2 sensitivity of all of them. BudgetError if the
    noise leaves no useful lattice.
    """
    first = COUNT_SHARE[facts.centred]
    shares = (first, *((1 - first) * share for share in SHARES))
    counting, *shell_multipliers = split_gaussian(multiplier, shares)
    count = gaussian_count(facts, counting * ROUND_UP)
    lattice = shell_lattice(facts, shell_multipliers, count.rows, np.nan_to_num(count.total))
    scales = shell_scales(facts, lattice, shell_multipliers)
    levels = shells(facts.columns)
    diagonal = math.hypot(
        *(s / 4.0**at for s, at in zip(scales.values(), (*levels[1:], levels[-1]), strict=True))
    )
    steps = in_steps(lattice, (*count, math.nan, math.nan), SMALLEST_SCALE)
    steps = replace(steps, diagonal=diagonal, off=diagonal / math.sqrt(2))
    return ShellNoise(lattice, steps, scales)


class Accumulated(NamedTuple):
    """Noisy moments, the second the sum of increments; and an estimate that is closer."""

    moments: NoisyMoments
    estimate: Floats
    rows: int


def accumulated(
    statistic: Statistic, plan: Plan, entropy: Entropy, rule: str | None = "auto"
) -> Accumulated:
    """Release count, sum and increments of clipped moments with the noise of a plan."""
    exact, n_rows = statistic.cross()
    count, total = noised_count(exact[0], plan, entropy)
    noisy = noised_shells(exact, 0, plan, entropy)
    second = sum((part.matrix for part in noisy[1:]), noisy[0].matrix)
    estimate = accumulate(noisy, rule, trace_cap(plan.facts, n_rows))
    return Accumulated(NoisyMoments(count, total, second, noise_of(plan)), estimate, n_rows)
