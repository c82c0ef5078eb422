"""A binary tree of noisy counts, of which levels that ranges need more are told more exactly.

Theorem
    ε-differentially private where neighbours have one row more or fewer: the shares of the levels
    add up to ε and depend on no row.
Sensitivity
    A row is in one node of each level: 1 in L1 a level.
Noise
    Discrete Laplace of scale ``1/ε_l`` on level l. If prefix ranges use ``c_l`` nodes of it,
    ``sum c_l/ε_l²`` is least for ``ε_l`` proportional to ``c_l^(1/3)``.
Numerics
    exact: integers on nodes; least squares in floats follows the release.
Source
    Li, Hay, Miklau (2014), "A data- and workload-aware algorithm for range queries under
    differential privacy", PVLDB, whose second stage it is; Cormode et al. (2012), "Differentially
    private spatial decompositions", ICDE, for the cube roots.
"""

from __future__ import annotations

import numpy as np

from dpmodels.evaluation.algorithms.levels import noisy_tree
from dpmodels.typing import Floats, Integers


def greedyh(counts: Integers, eps: float) -> Floats:
    """Return counts by cell of the least squares table of a weighted binary tree."""
    return noisy_tree(counts.ravel(), eps, shares).reshape(counts.shape)


def shares(height: int) -> Floats:
    """Return the shares of the levels, the root first, by the nodes that prefixes use of each.

    Half of all prefixes end in the second half of a node of any level, and use its first; the root
    serves the one that is the whole.
    """
    used = np.full(height + 1, 2.0**height / 2)
    used[0] = 1.0
    weights = np.cbrt(used)
    return np.asarray(weights / weights.sum())
