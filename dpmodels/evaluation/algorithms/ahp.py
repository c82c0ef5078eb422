"""Clusters of cells whose noisy counts are alike, each counted once more as a whole.

Theorem
    ε-differentially private where neighbours have one row more or fewer: 0.85 ε for counts by cell,
    of which the clusters are made, and 0.15 ε for counts of clusters, given them.
Sensitivity
    A row is in one cell and in one cluster: 1 in L1 for either, as clusters are released before
    they are counted.
Noise
    Discrete Laplace. First counts below ``0.35 log(n)`` noise scales are taken for 0; the others,
    sorted, are cut where the squared deviations within a cluster would grow by more than the noise
    of one cluster more, ``2/ε²``, by its cells.
Numerics
    exact: integer noise. Clusters are made of released counts in floats.
Source
    Zhang, Chen, Xu, Meng, Xie (2014), "Towards accurate histogram publication under differential
    privacy", SDM; the two constants are those of the code of Hay et al. (2016), DPBench.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpmodels.evaluation.algorithms.identity import noisy
from dpmodels.typing import Floats, Integers

FIRST: Final = 0.85
_THRESHOLD: Final = 0.35


def ahp(counts: Integers, eps: float) -> Floats:
    """Return for every cell an equal part of the noisy count of its cluster."""
    cells = counts.ravel()
    first, second = 1 / (FIRST * eps), 1 / ((1 - FIRST) * eps)
    rough = noisy(cells, first)
    rough[rough < _THRESHOLD * math.log(cells.size) * first] = 0.0
    order = np.argsort(-rough, kind="stable")
    cluster = np.empty(cells.size, dtype=np.int64)
    cluster[order] = clusters(rough[order], 2 * second**2)
    sizes = np.bincount(cluster)
    sums = np.zeros(sizes.size, dtype=np.int64)
    np.add.at(sums, cluster, cells)
    means = noisy(sums, second) / sizes
    return np.asarray(means[cluster].reshape(counts.shape))


def clusters(values: Floats, noise: float) -> Integers:
    """Return the number of the cluster of each sorted value, cut greedily from the first on.

    >>> clusters(np.array([9.0, 9.0, 2.0, 1.0, 0.0]), 4.0).tolist()
    [0, 0, 1, 1, 1]
    """
    made = np.zeros(values.size, dtype=np.int64)
    size, mean, number = 1, float(values[0]), 0
    for place, value in enumerate(values[1:].tolist(), start=1):
        # Squared deviations that the value adds, and noise over cells that it saves.
        added = (value - mean) ** 2 * size / (size + 1)
        saved = noise / size + noise - noise / (size + 1)
        if added <= saved:
            mean += (value - mean) / (size + 1)
            size += 1
        else:
            size, mean, number = 1, value, number + 1
        made[place] = number
    return made
