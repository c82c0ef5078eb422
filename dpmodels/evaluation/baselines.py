"""The two baselines of every study of counts: noise on each cell, and a uniform table."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpmodels.noise import discrete_laplace, source
from dpmodels.typing import Floats, Integers

# Below, all but one draw in e^128 are 0; more noise than requested costs less.
_SMALLEST_SCALE: Final = 2.0**-7


def noisy(counts: Integers, scale: float) -> Floats:
    """Return counts with discrete Laplace noise of a scale in rows, as floats of the same shape."""
    noise = discrete_laplace(max(scale, _SMALLEST_SCALE), counts.size, source())
    return np.asarray(counts + noise.reshape(counts.shape), dtype=np.float64)


def identity(counts: Integers, eps: float) -> Floats:
    """Add noise to every cell: the better baseline if rows are many.

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
    return noisy(counts, 1 / eps)


def uniform(counts: Integers, eps: float) -> Floats:
    """Spread the noisy total evenly: the better baseline if rows are few.

    Theorem
        ε-differentially private where neighbours have one row more or fewer. Inconsistent: the
        deviation of the shape from uniform remains as error at any ε.
    Sensitivity
        A row more or fewer moves the total by 1.
    Noise
        Discrete Laplace of scale 1/ε on the total.
    Numerics
        exact: an integer.
    Source
        Hay et al. (2016), "Principled evaluation of differentially private algorithms using
        DPBench", SIGMOD, where it is the baseline of data-dependent algorithms.
    """
    total = noisy(counts.sum(keepdims=True), 1 / eps)
    return np.broadcast_to(total / counts.size, counts.shape).copy()


BASELINES: Final = {"identity": identity, "uniform": uniform}
