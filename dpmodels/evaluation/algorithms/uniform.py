"""The noisy total, spread evenly: the baseline that does best where rows are few.

Theorem
    ε-differentially private where neighbours have one row more or fewer. Inconsistent: whatever is
    not even in the shape stays its error at any ε.
Sensitivity
    A row more or fewer moves the total by 1.
Noise
    Discrete Laplace of scale 1/ε on the total.
Numerics
    exact: an integer.
Source
    Hay et al. (2016), "Principled evaluation of differentially private algorithms using DPBench",
    SIGMOD, where it is the baseline of data-dependent algorithms.
"""

from __future__ import annotations

import numpy as np

from dpmodels.evaluation.algorithms.laplace import noisy
from dpmodels.typing import Floats, Integers


def uniform(counts: Integers, eps: float) -> Floats:
    """Return an equal part of the noisy total for every cell."""
    total = noisy(counts.sum(keepdims=True), 1 / eps)
    return np.broadcast_to(total / counts.size, counts.shape).copy()
