"""Curvature and squared gradients of a fit, bought together for its intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
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
from dpmodels.released import BoughtCurvature, MomentNoise
from dpmodels.statistics import Statistic
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Logistic
from dpmodels.statistics.multinomial import Multinomial
from dpmodels.typing import Floats


class Longest(NamedTuple):
    """How far a row moves both matrices together, in units of what moves one furthest."""

    euclidean: float  # In isometric coordinates
    absolute: float  # In sums of absolute values
    bread: float = 1.0  # The largest curvature, in units of a row's square


# A row of slope q adds 4q(1-q) zzᵀ and q² zzᵀ: their largest norms, proved below.
LOGISTIC = Longest(1.0358, 4 / 3)
# Of a category of several levels; in absolute values nothing is proved.
MULTINOMIAL = Longest(math.sqrt(1.6), math.inf, 0.5)
# A row may add all of either.
APART = Longest(math.sqrt(2), 2.0)


def bought_scale(facts: RegressionFacts, multiplier: float, law: Law) -> float:
    """Return the noise of both matrices, in squared unit lengths.

    A row with curvature ``w ≤ 1`` and slope q adds ``(w zzᵀ, q² zzᵀ)``. In isometric coordinates
    that is at most ``√(w² + q⁴)`` long; two rows' are at most √2 times that apart, as the inner
    product of positive matrices is not negative. In absolute values on and above the diagonal it
    adds at most ``w + q²`` times ``(d + 1)/2``, and two rows' are at most twice that apart. For the
    logistic loss w is ``4q(1 - q)``: at most 1.0358 and ``max_q (4q - 3q²) = 4/3``.

    The same holds of a person, whose rows take shares ``p`` of its places, 1 in all at the most: in
    units of all its places it adds ``(Σ p w zzᵀ, ttᵀ)``, ``t = Σ p q z``. With ``r = Σ p q`` the
    second is at most r² long, and the first ``Σ p w``, for the logistic loss at most
    ``4r(1 - r)``, as w is concave in q.

    With K levels a row of probabilities p adds ``((diag p - p pᵀ) ⊗ zzᵀ, uuᵀ ⊗ zzᵀ)``, where
    ``u = e_y - p``; in units of 1/2 and 2, their largest norms, and with ``s = Σ p_k²``, the first
    is at most ``2 √(s (1 - s))`` long (:class:`dpmodels.statistics.multinomial.Multinomial`), and
    the second ``|u|²/2 = (1 - 2 p_y + s)/2 ≤ (1 + s)/2``. Their squares add to
    ``(1 + 18 s - 15 s²)/4``, at most 1.6, at s = 3/5. Of a person with shares p of its places the
    first is at most ``Σ p 2 √(s (1 - s))`` long, and the second, by the convexity of squares,
    ``Σ p (1 + s)/2``: both are concave in s, whose mean takes its place.

    BudgetError if the noise leaves no useful lattice.
    """
    longest = _longest(facts)
    replaced = facts.adjacency.n_public
    if law is LAPLACE:
        alone = (facts.columns + 1) / 2 * (1 + replaced) * longest.absolute
    else:
        alone = math.sqrt(1 + replaced) * longest.euclidean
    scale = multiplier * alone * ROUND_UP
    try:
        bought_lattice(facts, scale, law)
    except BudgetError:
        raise BudgetError(
            "the budget's share for intervals asks for more noise than is meaningful; give a "
            "larger eps, delta or rho, or write inference=False"
        ) from None
    return scale


def _longest(facts: RegressionFacts) -> Longest:
    match facts.loss:
        case Logistic():
            return LOGISTIC
        case Multinomial():
            return MULTINOMIAL
    return APART


def bought_lattice(facts: RegressionFacts, scale: float, law: Law) -> Lattice:
    """Return the lattice of weighted rows."""
    return choose_lattice(facts.columns, (ROOM if law is LAPLACE else 1.0) * scale)


def both_matrices(
    rows: Gradients,
    point: Floats,
    facts: RegressionFacts,
    scale: float,
    entropy: Entropy,
    law: Law = GAUSSIAN,
) -> BoughtCurvature:
    """Release curvature and squared gradients of the log-likelihood at a released point.

    The gradients are those of persons where neighbours differ in one. In units of all k places of a
    person both matrices have the same noise; `scale` is that of the curvature in units of one, k
    times as much.
    """
    length, person = facts.loss.length, facts.adjacency.person
    part, places = _longest(facts).bread, facts.adjacency.places
    unit = facts.loss.smoothness * length / part
    bread = _released(rows.curvature, point, facts, scale * part, entropy, law, unit)
    squares, own = rows.squares, 1
    if person is not None:
        squares, own = partial(rows.person_squares, places=places), places
    meat = _released(squares, point, facts, scale / own, entropy, law, (length * own) ** 2)
    return BoughtCurvature(bread[0], meat[0], bread[1], meat[1], person)


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
    ``√d`` over the radius, which the noise is enlarged for. With K levels and d coordinates in all,
    ``√d`` at most an eighth of the radius R, rounding ``p ⊗ z`` moves its square by ``R√d + d/4``,
    and rounding all ``√p_k z`` theirs, which stand in blocks apart, by ``R√(d/K) + d/(4√K)``: in
    units of 1/2, together 3.3 √d over the radius, and of the squared gradients 1.1. A row adds 3.5
    and two add 7 then, where 4 times the length of what they move, 1.26 and 1.78, is allowed for.
    """
    lattice = bought_lattice(facts, scale, law)
    steps = scale * (1 + 4 * math.sqrt(facts.columns) / lattice.radius) * lattice.radius**2
    steps = max(steps, SMALLEST_SCALE)
    off = steps if law is LAPLACE else steps / math.sqrt(2)
    own = unit / lattice.steps**2
    exact, _ = question(point, lattice).cross()
    noisy = noised_symmetric(exact, steps, off, entropy, law) * own
    return noisy, MomentNoise(math.nan, math.nan, law.sd * steps * own, law.sd * off * own)
