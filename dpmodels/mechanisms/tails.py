"""Purchase of fourth moments within a ball, and of what clipping to it took off."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from dpmodels.design import Scaling
from dpmodels.mechanisms.add_noise import (
    ROUND_UP,
    SMALLEST_SCALE,
    NoisyMoments,
    add_noise,
    noised_symmetric,
    row_units,
    shrunk,
)
from dpmodels.mechanisms.protocol import Plan
from dpmodels.noise import Entropy
from dpmodels.released import Tails
from dpmodels.statistics import Passes
from dpmodels.statistics.tails import fourth_moments, increments_beyond, square_unit

FOURTH, BEYOND = "fourth moments", "beyond"
# Of what the search for the ball leaves of the budget: choices. The rest has 1.2 times the noise.
TAIL_SHARES: Final = {FOURTH: 0.07, BEYOND: 0.25}


def tail_scales(multipliers: dict[str, float], radius: float) -> dict[str, float]:
    """Return the scales of the noise: of fourth moments in lattice steps, of increments in rows."""
    fourth = fourth_scale(multipliers[FOURTH], radius)
    return {FOURTH: fourth, BEYOND: multipliers[BEYOND] * ROUND_UP}


def fourth_scale(multiplier: float, radius: float) -> float:
    """Return the scale of the noise in fourth moments, in lattice steps."""
    return max(multiplier * ROUND_UP * radius**2, math.sqrt(2) * SMALLEST_SCALE)


def noised_tails(passes: Passes, public: Scaling, plan: Plan, entropy: Entropy) -> Tails:
    """Read the rows twice: for their fourth moments, and for increments beyond their ball.

    Where the `public` ball lies within that of the rows nothing was clipped.
    """
    scaling, reach = passes.scaling, passes.reach
    limits = tuple((reach / scaling.row_norm).tolist())
    unit = square_unit(plan.facts.adjacency, plan.lattice, limits)
    exact, _ = passes.measured(fourth_moments, limits, unit).cross()
    scale = plan.scales[FOURTH]
    length = (unit * plan.lattice.steps**2) ** 2
    squares = noised_symmetric(exact, scale, scale / math.sqrt(2), entropy) / length
    farthest = distance_of(scaling, public)
    if farthest <= scaling.row_norm * ROUND_UP:
        return Tails(squares, scale / length, 0.0, 0.0, scaling.row_norm)
    beyond, sd = _beyond(passes, farthest, plan, entropy)
    return Tails(squares, scale / length, beyond, sd, farthest)


def tails_about_mean(passes: Passes, noisy: NoisyMoments, plan: Plan, entropy: Entropy) -> Tails:
    """Read all rows once more, for their fourth moments about the released mean.

    The ball about that mean contains every row, so that none is clipped.
    """
    public, count = passes.scaling, max(noisy.count, 1.0)
    assert noisy.total is not None
    mean = shrunk(noisy.total / count, noisy.noise.mean / count)
    centred = replace(public, centre=public.centre + mean * public.row_norm * public.scale)
    centred = replace(centred, row_norm=distance_of(centred, public))
    tails = noised_tails(passes.rescaled(centred), public, plan, entropy)
    return replace(tails, about=centred.centre)


def distance_of(scaling: Scaling, public: Scaling) -> float:
    """Return the distance from a centre of the farthest point of the codebook's ball."""
    away = np.linalg.norm((scaling.centre - public.centre) / public.scale)
    return public.row_norm + float(away)


def _beyond(passes: Passes, farthest: float, plan: Plan, entropy: Entropy) -> tuple[float, float]:
    """Return the noisy sum of the increments of rows beyond their ball, and its noise."""
    limits = tuple(np.minimum(passes.reach / farthest, 1.0).tolist())
    units = row_units(plan.scales[BEYOND])
    scale = max(plan.scales[BEYOND] * units, SMALLEST_SCALE)
    inner = passes.scaling.row_norm / farthest
    outer = passes.rescaled(replace(passes.scaling, row_norm=farthest))
    exact, _ = outer.measured(increments_beyond, inner, limits, units).cross()
    return float(add_noise(exact, scale, entropy)[0]) / units, scale / units
