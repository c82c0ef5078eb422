"""Curvature and squared gradients of a fit, bought together for its intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import (
    GAUSSIAN,
    LAPLACE,
    ROOM,
    ROUND_UP,
    SMALLEST_SCALE,
    Law,
    noised_symmetric,
)
from dpmodels.mechanisms.coefficients import RegressionFacts
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.postprocess.solve import newton_step
from dpmodels.released import BoughtCurvature, MomentNoise
from dpmodels.statistics import Statistic
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Logistic
from dpmodels.typing import Floats

# Of the share, what goes to a first look at the curvature, and to both matrices: a choice.
LOOKS = (0.3, 0.7)


class Longest(NamedTuple):
    """How far a row moves both matrices together, in units of what moves one furthest."""

    euclidean: float  # In isometric coordinates
    absolute: float  # In sums of absolute values


# A row of slope q adds 4q(1-q) zzᵀ and q² zzᵀ: their largest norms, proved below.
LOGISTIC = Longest(1.0358, 4 / 3)
# A row may add all of either.
APART = Longest(math.sqrt(2), 2.0)


class Looks(NamedTuple):
    """Noise of a first look at the curvature, and of both matrices, in squared unit lengths."""

    first: float
    both: float


def bought_scales(facts: RegressionFacts, multipliers: Sequence[float], law: Law) -> Looks:
    """Return the noise of both looks.

    A row with curvature ``w ≤ 1`` and slope q adds ``w zzᵀ`` at the first look and
    ``(w zzᵀ, q² zzᵀ)`` at the second. In isometric coordinates that is at most 1 and
    ``√(w² + q⁴)`` long; two rows' are at most √2 times that apart, as the inner product of
    positive matrices is not negative. In absolute values on and above the diagonal it adds at most
    1 and ``w + q²`` times ``(d + 1)/2``, and two rows' are at most twice that apart. For the
    logistic loss w is ``4q(1 - q)``: at most 1.0358 and ``max_q (4q - 3q²) = 4/3``. BudgetError if
    the noise leaves no useful lattice.
    """
    first, both = multipliers
    longest = LOGISTIC if isinstance(facts.loss, Logistic) else APART
    replaced = facts.adjacency.n_public
    if law is LAPLACE:
        alone = (facts.columns + 1) / 2 * (1 + replaced) * ROUND_UP
        looks = Looks(first * alone, both * alone * longest.absolute)
    else:
        alone = math.sqrt(1 + replaced) * ROUND_UP
        looks = Looks(first * alone, both * alone * longest.euclidean)
    try:
        bought_lattice(facts, max(looks), law)
    except BudgetError:
        raise BudgetError(
            "the budget's share for intervals asks for more noise than is meaningful; give a "
            "larger eps, delta or rho, or write inference=False"
        ) from None
    return looks


def bought_lattice(facts: RegressionFacts, scale: float, law: Law) -> Lattice:
    """Return the lattice of weighted rows."""
    return choose_lattice(facts.columns, (ROOM if law is LAPLACE else 1.0) * scale)


def buy_curvature(
    rows: Gradients,
    point: Floats,
    ridge: float,
    facts: RegressionFacts,
    scales: Looks,
    entropy: Entropy,
    law: Law = GAUSSIAN,
) -> BoughtCurvature:
    """Release both matrices half way from a released minimum to where it would be without ridge.

    The mean of the curvature along that way, which takes the ridge's pull off to second order, is
    close to the one half way. Where that is comes from a first look at the point itself.
    """
    unit = facts.loss.smoothness * facts.loss.length
    look, noise = _released(rows.curvature, point, facts, scales.first, entropy, law, unit)
    step = newton_step(-ridge * point, look, noise.off)
    return both_matrices(
        rows, point if step is None else point + step / 2, facts, scales.both, entropy, law
    )


def both_matrices(
    rows: Gradients,
    point: Floats,
    facts: RegressionFacts,
    scale: float,
    entropy: Entropy,
    law: Law = GAUSSIAN,
) -> BoughtCurvature:
    """Release curvature and squared gradients of the log-likelihood at a released point."""
    length = facts.loss.length
    unit = facts.loss.smoothness * length
    bread = _released(rows.curvature, point, facts, scale, entropy, law, unit)
    meat = _released(rows.squares, point, facts, scale, entropy, law, length**2)
    return BoughtCurvature(bread[0], meat[0], bread[1], meat[1])


def _released(
    question: Callable[[Floats, Lattice], Statistic],
    point: Floats,
    facts: RegressionFacts,
    scale: float,
    entropy: Entropy,
    law: Law,
    unit: float,
) -> tuple[Floats, MomentNoise]:
    """Release one matrix of weighted rows, in units of the longest.

    Rounding moves a weighted row by at most ``√d/2`` steps, and so its square by little more than
    ``√d`` over the radius, which the noise is enlarged for.
    """
    lattice = bought_lattice(facts, scale, law)
    steps = scale * (1 + 4 * math.sqrt(facts.columns) / lattice.radius) * lattice.radius**2
    steps = max(steps, SMALLEST_SCALE)
    off = steps if law is LAPLACE else steps / math.sqrt(2)
    own = unit / lattice.steps**2
    exact, _ = question(point, lattice).cross()
    noisy = noised_symmetric(exact, steps, off, entropy, law) * own
    return noisy, MomentNoise(math.nan, math.nan, law.sd * steps * own, law.sd * off * own)
