"""Change of the curvature along Newton's step, from the released matrices at and along it.

Let g be the known gradient at a released point θ, H the curvature there, H̄ its mean over a first
step w from θ, and v the step ``-H̄⁻¹g``. The curvature falls most along the step: ``H̄ - H`` is
taken for ``a H̄ + (c - a) ggᵀ/|gᵀv|``, with two numbers, of which noise takes little, as
``H̄v = -g``. Along a direction it is taken to fall as ``exp(-λs)`` at the part s of w, as it nearly
does for a logistic regression: ``H/H̄ = λ/(1 - exp(-λ))`` gives λ. Then

- ``H + H̄ - H`` estimates H̄ once more, with noise of its own: both are averaged;
- the gradient is undone at the part s with ``1 - exp(-λs) = p (1 - exp(-λ))``, p the part of w that
  a step of the mean curvature is;
- an error e of the gradient moves the estimate by the inverse of the curvature where the step ends,
  not of the mean one: by ``H̄⁻¹ K e``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import lambertw

from dpmodels.released import BoughtCurvature, CoefficientsRelease, MomentNoise
from dpmodels.typing import Floats

# How much faster the curvature falls along the step than on the whole, and how much of that the
# prior leaves open: measured on simulated rows, where it is 2.5 to 5 times.
ALONG, ALONG_SD, AT_LEAST = 3.5, 1.0, 0.02
# Choices by simulation: the fraction of all that a step without end would undo, up to which the
# curvature is known, and the length of a known gradient in those of its noise, below which the
# curvature hardly changes along the step.
UNDONE, FAINT = 0.8, 0.5
# Slower falls count as this: the curvature is constant then; and no fall is as steep as the other.
SLOWEST, STEEPEST = 1e-6, 1e9


@dataclass(frozen=True)
class NewtonPath:
    """A curvature that changes along the step, in two numbers, and the known gradient."""

    whole: float  # Relative fall of the mean curvature below that at the start, in all directions
    along: float  # The same along the step; both at most 0
    first: Floats  # The step along which the mean curvature was bought, shape (columns,)
    gradient: Floats

    def part(self, step: Floats) -> float:
        """Return the length of a step, in first steps, by what it undoes of the gradient."""
        return float(self.gradient @ step) / min(float(self.gradient @ self.first), -1e-300)

    def length(self, step: Floats) -> float:
        """Return the length of the step to the estimate, in steps of the mean curvature."""
        part, rate = max(self.part(step), 1e-300), _rate(self.along)
        undone = min(-part * math.expm1(-rate), UNDONE)
        return -math.log1p(-undone) / rate / part

    def spread(self, step: Floats) -> Floats:
        """Return K for the step to the estimate."""
        end, drop = self.part(step), -float(self.gradient @ step)
        rates = [_rate(change) * end for change in (self.whole, self.along)]
        whole, along = (math.expm1(rate) / rate for rate in rates)
        direction = np.outer(self.gradient, step) / max(drop, 1e-300)
        return np.asarray(whole * np.eye(len(step)) - (along - whole) * direction)

    def is_faint(self, noise: float) -> bool:
        """Whether the known gradient is far below its unknown part.

        `noise` is the standard deviation of each coordinate of that part.
        """
        size = noise * math.sqrt(len(self.gradient))
        return float(np.linalg.norm(self.gradient)) <= FAINT * size

    def is_short(self, step: Floats) -> bool:
        """Whether the curvature is known as far as a step of the mean curvature leads."""
        return -self.part(step) * math.expm1(-_rate(self.along)) <= UNDONE


def newton_path(release: CoefficientsRelease) -> NewtonPath | None:
    """Return the change of the curvature along a released step, or None."""
    bought, gradient = release.curvature, release.gradient
    if bought is None or bought.end is None or gradient is None:
        return None
    assert bought.first is not None
    assert bought.first_noise is not None
    first = bought.end - release.coefficients
    total, curved = float(np.trace(bought.bread)), float(first @ bought.bread @ first)
    if not (total > 0 and float(gradient @ first) < 0):
        return None
    whole = max(min(1 - float(np.trace(bought.first)) / total, 0.0), -STEEPEST)
    along, prior = ALONG * whole, ALONG_SD * abs(whole) + AT_LEAST
    if curved > 0:
        noise = math.hypot(bought.first_noise.diagonal, bought.bread_noise.diagonal)
        ratio = min(noise * float(first @ first) / curved / prior, STEEPEST)
        fallen = max(1 - float(first @ bought.first @ first) / curved, -STEEPEST)
        along += (fallen - along) / (1 + ratio**2)
    return NewtonPath(whole, min(along, 0.0), first, gradient)


def pooled(bought: BoughtCurvature, path: NewtonPath) -> BoughtCurvature:
    """Return the mean curvature estimated from both released ones."""
    assert bought.first is not None
    assert bought.first_noise is not None
    drop = -float(path.gradient @ path.first)
    fallen = bought.first / (1 - path.whole)
    fallen = fallen + (path.along - path.whole) * np.outer(path.gradient, path.gradient) / drop
    variance, first_variance = bought.bread_noise.off**2, bought.first_noise.off**2
    weight = variance / max(variance + first_variance, 1e-300)
    bread = bought.bread + weight * (fallen - bought.bread)
    quieter, noise = math.sqrt(1 - weight), bought.bread_noise
    diagonal, off = quieter * noise.diagonal, quieter * noise.off
    noise = MomentNoise(math.nan, math.nan, diagonal, off)
    return replace(bought, bread=bread, bread_noise=noise)


def _rate(change: float) -> float:
    """Return λ for a relative fall ``1 - λ/(1 - exp(-λ))``."""
    if change > -SLOWEST:
        return SLOWEST
    ratio = 1 - change
    return max(float(ratio + lambertw(-ratio * math.exp(-ratio)).real), SLOWEST)
