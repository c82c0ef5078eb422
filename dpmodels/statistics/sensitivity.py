"""How far one row moves the moments: the inequality every Gaussian release rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmodels.privacy import Adjacency


@dataclass(frozen=True)
class MomentWeights:
    """Weights of the parts of the moments, relative to the second moment's 1.

    Attributes
    ----------
    count : float
        Weight of the number of complete rows.
    mean : float
        Weight of the sum of the rows; 0 where it is not released.
    """

    count: float
    mean: float


def moment_weights(adjacency: Adjacency, *, centred: bool) -> MomentWeights:
    """Choose the weights: what the mean and the count cost the second moment.

    Parameters
    ----------
    adjacency : Adjacency
        Who is a neighbour.
    centred : bool
        Whether the sum of the rows is released.

    Notes
    -----
    A mean weight of √½ is the constant 1/2 in front of each row. Under
    ``replace`` the count may then weigh as much as
    ``2(1 + mean²/2)² - 1 - mean²`` allows at no cost, since two complete rows
    differ in everything but the count. Under ``add-remove`` a count weight of
    1/2 costs 8 to 12 % of the noise scale.
    """
    mean = math.sqrt(0.5) if centred else 0.0
    if adjacency.n_public:
        return MomentWeights(math.sqrt(2 * (1 + mean**2 / 2) ** 2 - 1 - mean**2), mean)
    return MomentWeights(0.5, mean)


def moment_sensitivity(adjacency: Adjacency, weights: MomentWeights) -> float:
    """Return the L2 sensitivity of the weighted moments in isometric coordinates.

    Notes
    -----
    A row ``x`` of the unit ball adds ``a(x) = (w₀, w₁ x, svec(x xᵀ))``, an
    incomplete row adds 0, and ``‖svec(S)‖₂ = ‖S‖_F``.

    *Add or remove one row*: ``‖a(x)‖² ≤ w₀² + w₁² + 1``.

    *Replace one row*: against an incomplete row the same; between complete
    rows ``‖a(x) - a(y)‖² = w₁²(‖x‖² + ‖y‖² - 2t) + ‖x‖⁴ + ‖y‖⁴ - 2t²`` with
    ``t = ⟨x, y⟩``, which increases in both norms, so
    ``≤ 2w₁²(1 - t) + 2 - 2t² ≤ 2(1 + w₁²/2)²``, attained at ``t = -w₁²/2``
    for ``w₁² ≤ 2``.
    """
    alone = weights.count**2 + weights.mean**2 + 1
    if not adjacency.n_public:
        return math.sqrt(alone)
    between = 2 * (1 + weights.mean**2 / 2) ** 2
    return math.sqrt(max(alone, between))
