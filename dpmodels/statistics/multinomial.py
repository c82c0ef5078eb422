"""The loss of a linear predictor for each level of a category, with its constants.

A row ``(z, y)`` with z in the unit ball and a level y of K costs ``-log p_y`` at the parameters
``θ_1 .. θ_K``, where p is proportional to ``exp⟨θ_k, z⟩``: those that differ by one vector for all
levels are the same model. Its gradient is ``(p - e_y) ⊗ z``, whose coordinates add to 0 over the
levels, and its curvature ``(diag p - p pᵀ) ⊗ z zᵀ``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmodels.statistics.losses import exp
from dpmodels.typing import Floats


@dataclass(frozen=True)
class Multinomial:
    """The negative log-likelihood of a multinomial logit.

    A gradient is at most ``|p - e_y| |z| ≤ √2`` long, as ``|p - e_y|² = (1 - p_y)² + Σ p_k²`` over
    the other levels, which is at most ``2 (1 - p_y)²``. Two are at most twice that apart, which
    rows come near whose levels are both all but excluded at a parameter. The curvature has the
    Frobenius norm ``√(s - 2 Σ p_k³ + s²)`` at most, ``s = Σ p_k²``, and ``s² ≤ Σ p_k³``: at most
    ``√(s (1 - s)) ≤ 1/2``.
    """

    levels: int  # K, the reference first

    name = "multinomial"
    length = math.sqrt(2)
    smoothness = 0.5 / math.sqrt(2)

    def chances(self, linear: Floats) -> Floats:
        """Return the probability of each level, shape (levels, rows), as `linear`.

        The same bits for a row wherever it stands: levels are added one after the other.
        """
        weights = exp(linear - linear.max(axis=0))
        total = np.zeros(linear.shape[1])
        for own in weights:
            total += own
        return np.asarray(weights / total)

    def pull(self, linear: Floats, chosen: Floats) -> Floats:
        """Return ``e_y - p`` in units of its largest length; `chosen` are the lines of e_y."""
        return np.asarray((chosen - self.chances(linear)) / self.length)
