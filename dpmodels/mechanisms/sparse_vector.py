"""The first of several private numbers that is above its public threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpmodels.noise import Entropy, discrete_laplace
from dpmodels.privacy import Adjacency


class SparseScales(NamedTuple):
    """Scales of the Laplace noise, in units of the numbers' sensitivity."""

    threshold: float
    number: float


def sparse_scales(adjacency: Adjacency, eps: float) -> SparseScales:
    """Return the noise of one ε-differentially private search.

    Under ``add-remove`` the numbers are taken to be monotone: a row more raises none of them,
    or lowers none.

    The threshold's noise, of scale ``1/ε₁``, is drawn once for all numbers;
    every number has its own, of scale ``c/ε₂`` with ε = ε₁ + ε₂.

    *Proof*, for numbers that one row changes by at most 1. Fix the noise
    of the numbers before the first that is above; the answer is k if the
    threshold's noise r exceeds all of theirs and the k-th number with its
    noise v is at least the threshold with r. For neighbouring rows take r + 1
    and v + 2 instead: the numbers before stay below, as none rose by more than
    1, and the k-th stays above. This has at least ``exp(-ε₁ - ε₂)`` times the
    probability for c = 2; "none" only needs r + 1. Where all numbers rise, the
    k-th among them, r + 1 and v + 1 will do; where all fall, r and v + 1: so
    c = 1 for monotone numbers. The variance of ``r - v`` is least at
    ``ε₂ = c^⅔ ε₁``.

    Source: Lyu, M., Su, D. and Li, N. (2017). "Understanding the sparse vector technique for
    differential privacy." Proceedings of the VLDB Endowment 10(6), 637-648. Algorithm 1,
    Theorems 2 and 5.
    """
    factor = 2.0 if adjacency.n_public else 1.0
    ratio = factor ** (2 / 3)
    # One part in 10^12 covers the rounding.
    return SparseScales(
        (1 + ratio) / eps * (1 + 1e-12), factor * (1 + ratio) / (ratio * eps) * (1 + 1e-12)
    )


def first_above(
    numbers: Sequence[int], thresholds: Sequence[int], scales: SparseScales, entropy: Entropy
) -> int:
    """Return the place of the first number above its threshold, privately.

    That is how many come before it, all of them where none is above; the scales are times the
    numbers' sensitivity.
    """
    common = int(discrete_laplace(scales.threshold, 1, entropy)[0])
    own = discrete_laplace(scales.number, len(numbers), entropy).tolist()
    above = [
        number + noise >= threshold + common
        for number, noise, threshold in zip(numbers, own, thresholds, strict=True)
    ]
    return int(np.argmax([*above, True]))
