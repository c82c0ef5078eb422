"""Clipping: a radius found privately, noisy increments between radii, and what a ball cut off.

The radius is found by the sparse vector technique.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from dpmodels.design import Scaling
from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.add_noise import NoisyMoments, noise_of, noised_symmetric
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy, discrete_laplace
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.postprocess.denoise import Increment, accumulate
from dpmodels.privacy import Adjacency, split_gaussian
from dpmodels.released import MomentNoise, Tails
from dpmodels.statistics import Passes, Statistic, clipped
from dpmodels.statistics.clipped import trace_weight
from dpmodels.typing import Floats, Objects, Scalars

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
        INCREMENTS, multipliers, clipped.doublings(shells(facts.columns)), strict=True
    ):
        sensitivity = clipped.increment_sensitivity(facts.adjacency, lattice, step)
        # The noise off the diagonal, the smallest, is held to the least scale.
        scales[name] = max(
            multiplier * add_noise.ROUND_UP * sensitivity, math.sqrt(2) * add_noise.SMALLEST_SCALE
        )
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


def noised_shells(exact: Scalars, outermost: int, plan: Plan, entropy: Entropy) -> list[Increment]:
    """Release increments and their traces, in units of the ball.

    `exact`, shape (levels, columns + 1, columns + 1), is as from
    :func:`dpmodels.statistics.clipped_moments`; the plan's scales are those of `shell_scales`.
    """
    chosen = [outermost + level for level in shells(plan.facts.columns)]
    units = [4.0**level * plan.lattice.steps**2 for level in (*chosen[1:], chosen[-1])]
    weight, released = trace_weight(plan.facts.adjacency), []
    for part, name, unit in zip(clipped.increments(exact, chosen), INCREMENTS, units, strict=True):
        sigma = plan.scales[name]
        off = sigma / math.sqrt(2)
        matrix = noised_symmetric(part, sigma, off, entropy) / unit
        trace: Scalars = np.array([sum(np.diagonal(part).tolist())], dtype=object)
        noisy = add_noise.add_noise(trace, sigma / weight, entropy) / unit
        released.append(Increment(matrix, float(noisy[0]), off / unit))
    return released


def shell_noise(facts: Facts, multiplier: float) -> tuple[Lattice, MomentNoise, dict[str, float]]:
    """Return the noise of one Gaussian release of count, sum and increments together.

    That is a lattice, the noise of count, sum and the sum of increments, and that of each
    increment. `multiplier` is the noise scale over the L2 sensitivity of all of them. BudgetError
    if the noise leaves no useful lattice.
    """
    first = add_noise.COUNT_SHARE[facts.centred]
    shares = (first, *((1 - first) * share for share in SHARES))
    counting, *shell_multipliers = split_gaussian(multiplier, shares)
    count = add_noise.gaussian_count(facts, counting * add_noise.ROUND_UP)
    lattice = shell_lattice(facts, shell_multipliers, count.rows, np.nan_to_num(count.total))
    scales = shell_scales(facts, lattice, shell_multipliers)
    levels = shells(facts.columns)
    diagonal = math.hypot(
        *(s / 4.0**at for s, at in zip(scales.values(), (*levels[1:], levels[-1]), strict=True))
    )
    steps = add_noise.in_steps(lattice, (*count, math.nan, math.nan), add_noise.SMALLEST_SCALE)
    steps = replace(steps, diagonal=diagonal, off=diagonal / math.sqrt(2))
    return lattice, steps, scales


def accumulated(
    statistic: Statistic, plan: Plan, entropy: Entropy, rule: str | None = "auto"
) -> tuple[NoisyMoments, Floats, int]:
    """Release count, sum and increments of clipped moments with the noise of a plan.

    The noisy second moment is the sum of the increments; an estimate that is closer and the number
    of rows follow.
    """
    exact, n_rows = statistic.cross()
    count, total = add_noise.noised_count(exact[0], plan, entropy)
    noisy = noised_shells(exact, 0, plan, entropy)
    second = sum((part.matrix for part in noisy[1:]), noisy[0].matrix)
    estimate = accumulate(noisy, rule, add_noise.trace_cap(plan.facts, n_rows))
    return NoisyMoments(count, total, second, noise_of(plan)), estimate, n_rows


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
        (1 + ratio) / eps * add_noise.ROUND_UP,
        factor * (1 + ratio) / (ratio * eps) * add_noise.ROUND_UP,
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
        THRESHOLD: max(scales.threshold * unit, add_noise.SMALLEST_LAPLACE),
        NUMBER: max(scales.number * unit, add_noise.SMALLEST_LAPLACE),
    }


def lost(exact: Objects) -> list[int]:
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
    exact: Objects,
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
    exact: Scalars, plan: Plan, entropy: Entropy, law: add_noise.Law = add_noise.GAUSSIAN
) -> float:
    """Release the trace of the second moment, in units of the ball; at least its noise.

    One row changes it by at most the squared radius of the ball, for either adjacency.
    """
    trace: Scalars = np.array([sum(np.diagonal(exact)[1:].tolist())], dtype=object)
    scale = plan.scales[TRACE]
    released = float(add_noise.add_noise(trace, scale, entropy, law)[0])
    return max(released, law.sd * scale) / plan.lattice.steps**2


def likely_cap(
    trace: float, cap: float | None, level: int, plan: Plan, law: add_noise.Law = add_noise.GAUSSIAN
) -> float:
    """Return a bound on the trace of rows clipped to ``2**-level``, in units of the ball.

    With two standard deviations of its noise the released trace is likely to be one; `cap` is the
    public bound for rows that are not clipped.
    """
    likely = trace + 2 * law.sd * plan.scales[TRACE] / plan.lattice.steps**2
    return likely if cap is None else min(likely, cap * 4.0**-level)


FOURTH, BEYOND = "fourth moments", "beyond"
# Of what the search for the ball leaves of the budget: choices. The rest has 1.2 times the noise.
TAIL_SHARES: Final = {FOURTH: 0.07, BEYOND: 0.25}


def fourth_scale(multiplier: float, radius: float) -> float:
    """Return the scale of the noise in fourth moments, in lattice steps."""
    return max(multiplier * add_noise.ROUND_UP * radius**2, math.sqrt(2) * add_noise.SMALLEST_SCALE)


def noised_tails(passes: Passes, public: Scaling, plan: Plan, entropy: Entropy) -> Tails:
    """Read the rows twice: for their fourth moments, and for increments beyond their ball.

    Where the `public` ball lies within that of the rows nothing was clipped.
    """
    scaling, reach = passes.scaling, passes.reach
    limits = tuple((reach / scaling.row_norm).tolist())
    unit = clipped.square_unit(plan.facts.adjacency, plan.lattice, limits)
    exact, _ = passes.measured(clipped.fourth_moments, limits, unit).cross()
    scale = plan.scales[FOURTH]
    length = (unit * plan.lattice.steps**2) ** 2
    squares = noised_symmetric(exact, scale, scale / math.sqrt(2), entropy) / length
    farthest = scaling.distance_of(public)
    if farthest <= scaling.row_norm * add_noise.ROUND_UP:
        return Tails(squares, scale / length, 0.0, 0.0, scaling.row_norm)
    beyond, sd = _beyond(passes, farthest, plan, entropy)
    return Tails(squares, scale / length, beyond, sd, farthest)


def tails_about_mean(passes: Passes, noisy: NoisyMoments, plan: Plan, entropy: Entropy) -> Tails:
    """Read all rows once more, for their fourth moments about the released mean.

    The ball about that mean contains every row, so that none is clipped.
    """
    public, count = passes.scaling, max(noisy.count, 1.0)
    assert noisy.total is not None
    mean = add_noise.shrunk(noisy.total / count, noisy.noise.mean / count)
    centred = replace(public, centre=public.centre + mean * public.row_norm * public.scale)
    centred = replace(centred, row_norm=centred.distance_of(public))
    tails = noised_tails(passes.rescaled(centred), public, plan, entropy)
    return replace(tails, about=centred.centre)


def _beyond(passes: Passes, farthest: float, plan: Plan, entropy: Entropy) -> tuple[float, float]:
    """Return the noisy sum of the increments of rows beyond their ball, and its noise."""
    limits = tuple(np.minimum(passes.reach / farthest, 1.0).tolist())
    units = add_noise.row_units(plan.scales[BEYOND])
    scale = max(plan.scales[BEYOND] * units, add_noise.SMALLEST_SCALE)
    inner = passes.scaling.row_norm / farthest
    outer = passes.rescaled(replace(passes.scaling, row_norm=farthest))
    exact, _ = outer.measured(clipped.increments_beyond, inner, limits, units).cross()
    return float(add_noise.add_noise(exact, scale, entropy)[0]) / units, scale / units
