"""Noise on every cell: the baseline that does best where rows are many.

Theorem
    ε-differentially private where neighbours have one row more or fewer.
Sensitivity
    A row is in one cell: 1 in L1.
Noise
    Discrete Laplace of scale 1/ε on each count.
Numerics
    exact: integers.
Source
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data
    analysis", TCC.
"""

from __future__ import annotations

from dpmodels.evaluation.algorithms.laplace import noisy
from dpmodels.typing import Floats, Integers


def identity(counts: Integers, eps: float) -> Floats:
    """Return noisy counts by cell."""
    return noisy(counts, 1 / eps)
