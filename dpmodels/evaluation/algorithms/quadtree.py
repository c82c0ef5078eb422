"""A tree of squares in squares, of which finer levels are told more exactly.

Theorem
    ε-differentially private where neighbours have one row more or fewer: the shares of the levels
    add up to ε and depend on no row.
Sensitivity
    A row is in one square of each level: 1 in L1 a level.
Noise
    Discrete Laplace of scale ``1/ε_i`` on level i from the root on, ``ε_i`` proportional to
    ``2^(i/3)``, down to single cells.
Numerics
    exact: integers on squares; least squares in floats follows the release.
Source
    Cormode, Procopiuc, Srivastava, Shen, Yu (2012), "Differentially private spatial
    decompositions", ICDE.
"""

from __future__ import annotations

import numpy as np

from dpmodels.evaluation.algorithms.levels import noisy_tree
from dpmodels.typing import Floats, Integers


def quadtree(counts: Integers, eps: float) -> Floats:
    """Return counts by cell of the least squares table of a tree of squares."""
    return noisy_tree(counts, eps, shares)


def shares(height: int) -> Floats:
    """Return the shares of the levels, the root first."""
    weights = np.cbrt(2.0) ** np.arange(height + 1)
    return np.asarray(weights / weights.sum())
