"""Centre and radius of a ball that holds most rows, found in turns by noisy sums and counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpmodels.design import Scaling
from dpmodels.mechanisms.add_noise import GAUSSIAN, ROUND_UP, Law, noised_rows
from dpmodels.mechanisms.noisy_count import CountNoise
from dpmodels.mechanisms.noisy_mean import noisy_mean
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.mechanisms.row_lengths import FRACTIONS, Lengths, faintest
from dpmodels.noise import Entropy
from dpmodels.released import Ball
from dpmodels.statistics import Passes
from dpmodels.statistics.norms import norm_counts
from dpmodels.typing import Floats

MOMENTS = "moments"
# About their mean rows that are cut off lie in many directions: of the second moment they take
# about half as much in Frobenius norm as in trace. A choice.
SCATTERED = 0.5
# The error of a denoised matrix is a quarter to a half of what its noise could be, on simulated
# rows: a radius is chosen by the half, since rows that are cut off are lost for good.
TYPICAL, DEAR = 0.25, 0.5


class Found(NamedTuple):
    """Rows held where the turns say."""

    held: Passes
    public: Passes  # Held where the codebook says
    ball: Ball | None  # None where it is the codebook's
    lengths: Lengths | None  # The last ones; None where rows are all of one

    def at(self, radius: float) -> Found:
        """Return the same with another radius, about the same centre."""
        assert self.lengths is not None
        held = _within(self.held, radius)
        own = held.scaling
        if radius >= self.public.scaling.row_norm:
            return self._replace(held=self.public, ball=None)
        ball = Ball(own.centre, radius, *self.lengths.beyond(radius))
        return self._replace(held=held, ball=ball)


def shares(
    facts: Facts, turns: tuple[tuple[float, float], ...], least: float
) -> Mapping[str, float]:
    """Divide a budget: of each turn to the sum of the rows and to their lengths, then to moments.

    The last lengths have at least the share `least`/(`least` + f), with f the Frobenius norm of
    unit noise in the moments: few columns have little noise, against which numbers of rows that
    are not told of count more. Without a mean there is one turn, of lengths alone.
    """
    *first, (of_sum, of_lengths) = turns
    norm = math.sqrt(facts.columns * (facts.columns + 1) / 2)
    last = max(of_lengths, least / (least + norm))
    if not facts.centred:
        return {"lengths 1": last, MOMENTS: 1 - last}
    parts = dict[str, float]()
    for turn, (one, other) in enumerate((*first, (of_sum, last)), start=1):
        parts |= {f"sum {turn}": one, f"lengths {turn}": other}
    return {**parts, MOMENTS: 1 - math.fsum(parts.values())}


def turn_scales(
    multipliers: Mapping[str, float], moved: float, noise: Callable[[float], CountNoise]
) -> dict[str, float]:
    """Return the scales of the noise in each turn's number of rows, their sum and their lengths.

    One row moves numbers of rows by length by `moved`; `noise` is that of number and sum for a
    multiplier.
    """
    scales = dict[str, float]()
    for name, own in multipliers.items():
        what, _, turn = name.partition(" ")
        if what == "lengths":
            scales[name] = own * moved * ROUND_UP
        elif what == "sum":
            rows, total = noise(own)
            scales |= {f"rows {turn}": rows * ROUND_UP, name: total * ROUND_UP}
    return scales


def found(statistic: Passes, plan: Plan, entropy: Entropy, law: Law = GAUSSIAN) -> Found:
    """Move the ball to the mean of the rows and draw it in, turn by turn.

    Rows of one length are not held in another ball, nor are rows in a ball that is no smaller.
    """
    public, turns = statistic.scaling, sum("lengths" in name for name in plan.scales)
    if public.unit:
        return Found(statistic, statistic, None, None)
    held = statistic
    for turn in range(1, turns + 1):
        if f"sum {turn}" in plan.scales:
            held = _about_the_mean(held, turn, plan, entropy, law)
        seen = _lengths(held, public, turn, plan, entropy, law)
        if turn < turns:
            size = law.sd * math.sqrt(plan.facts.columns)
            radius = seen.radius(plan.scales[f"sum {turn + 1}"] * size)
        else:
            radius = float(seen.radii[np.argmin(moments_error(seen, plan, DEAR, law))])
        held = _within(held, radius)
    return Found(held, statistic, None, seen).at(radius)


class MatrixNoise(NamedTuple):
    """How large planned noise in the second moment is, in units of the ball."""

    frobenius: float  # Root of the expected squared Frobenius norm
    edge: float  # Of the eigenvalues, about

    def error(self, times: Floats, trace: Floats, part: float) -> Floats:
        """Return about what the error is of a denoised matrix with so many times the noise.

        Eigenvalues below the noise's edge are lost, those above keep noise of its order: a `part`
        of ``√(edge · trace)``, and no more than the noise.
        """
        lost = part * np.sqrt(times * self.edge * np.maximum(trace, 0.0))
        return np.asarray(np.minimum(times * self.frobenius, lost))


def matrix_noise(plan: Plan, law: Law = GAUSSIAN) -> MatrixNoise:
    """Return the size of the noise of a plan's steps."""
    columns, steps = plan.facts.columns, plan.steps
    both = math.hypot(steps.diagonal, math.sqrt(columns - 1) * steps.off)
    unit = law.sd * math.sqrt(columns) / plan.lattice.steps**2
    return MatrixNoise(unit * both, 2 * unit * steps.off)


def moments_error(seen: Lengths, plan: Plan, part: float, law: Law = GAUSSIAN) -> Floats:
    """Return about what the error of the denoised second moment is at each radius.

    The largest radius is told best where no row is told of.
    """
    squares = seen.squares()
    if not squares.any():
        return -seen.radii
    cut = (squares[-1] - squares) * (SCATTERED if plan.facts.centred else 1.0)
    error = matrix_noise(plan, law).error(seen.radii**2, squares, part)
    return np.asarray(np.hypot(error, cut))


def _about_the_mean(passes: Passes, turn: int, plan: Plan, entropy: Entropy, law: Law) -> Passes:
    """Move the centre to the noisy mean of the rows in their ball, shrunk by what is noise."""
    noise = CountNoise(plan.scales[f"rows {turn}"], plan.scales[f"sum {turn}"])
    mean, _ = noisy_mean(passes, plan.lattice, noise, entropy, law)
    held = passes.scaling
    return passes.rescaled(replace(held, centre=held.centre + mean * held.row_norm * held.scale))


def _lengths(
    passes: Passes, public: Scaling, turn: int, plan: Plan, entropy: Entropy, law: Law
) -> Lengths:
    """Return noisy numbers of rows by their distance from the centre."""
    limits = tuple(int(end) for end in (FRACTIONS[:-1] * plan.lattice.radius) ** 2)
    away = np.linalg.norm((passes.scaling.centre - public.centre) / public.scale)
    farthest = public.row_norm + float(away)
    exact, _ = _within(passes, farthest).measured(norm_counts, limits).cross()
    counts, scale = noised_rows(exact, plan.scales[f"lengths {turn}"], entropy, law)
    return Lengths(FRACTIONS * farthest, counts, law.sd * scale, faintest(law, scale))


def _within(passes: Passes, radius: float) -> Passes:
    return passes.rescaled(replace(passes.scaling, row_norm=radius))
