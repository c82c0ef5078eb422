"""Whether increments between radii would serve better than moments in one ball."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpmodels.mechanisms.ball_rounds import TYPICAL, matrix_noise, moments_error
from dpmodels.mechanisms.clipping_shells import INCREMENTS, shells
from dpmodels.mechanisms.protocol import Plan
from dpmodels.mechanisms.row_lengths import Lengths


class Gain(NamedTuple):
    """The predicted error of increments over that of moments, and the radius they would have."""

    ratio: float
    radius: float


def increments_gain(seen: Lengths, plan: Plan) -> Gain:
    """Compare both at the radius that is best for each, as far as released lengths tell."""
    noise, levels = matrix_noise(plan), shells(plan.facts.columns)
    held = [seen.squares(2.0**-level) for level in levels]
    parts = [*(outer - inner for outer, inner in pairwise(held)), held[-1]]
    rings = zip(INCREMENTS, (*levels[1:], levels[-1]), parts, strict=True)
    errors = [
        noise.error(
            seen.radii**2 * plan.scales[name] / 4.0**level / plan.steps.diagonal, part, TYPICAL
        )
        for name, level, part in rings
    ]
    one = moments_error(seen, plan, TYPICAL)
    many = np.linalg.norm([*errors, held[0][-1] - held[0]], axis=0)
    place = int(np.argmin(many))
    if not held[0].any():
        return Gain(1.0, float(seen.radii[-1]))
    return Gain(float(many[place] / one.min()), float(seen.radii[place]))
