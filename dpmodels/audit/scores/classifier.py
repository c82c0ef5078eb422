"""Learnt classifiers, for a release of which nothing is known.

* Logistic regression on the coordinates, their squares, products and absolute
  values, by a few Newton steps with a small ridge.
* The share of neighbours' runs among the nearest ones.

References
----------
.. [1] Fix, E. and Hodges, J. L. (1951). "Discriminatory analysis:
   nonparametric discrimination, consistency properties." USAF School of
   Aviation Medicine, Report 4.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import expit

from dpmodels.audit.scores.learned import Score, typical
from dpmodels.typing import Floats

# All choices: seconds for twenty thousand runs of a few dozen coordinates.
_NEWTON_STEPS: Final = 8
_RIDGE: Final = 1.0
_MOST_PRODUCTS: Final = 16  # coordinates whose products are taken
_MOST_LEARNT: Final = 5_000  # runs of a side
_MOST_KNOWN: Final = 2_000  # runs of a side that are searched
_NEAREST: Final = 50
_MOST_NEAR: Final = 8  # coordinates that are looked at
_CLIP: Final = 8.0  # of coordinates, in mean distances from their middle


def logistic(rows: Floats, neighbour: Floats) -> Score:
    """Learn a logistic regression on quadratic features."""
    middle, size = typical(rows, neighbour)

    def features(values: Floats) -> Floats:
        scaled = ((values - middle) / size).clip(-_CLIP, _CLIP)
        few = scaled[:, :_MOST_PRODUCTS]
        upper = np.triu_indices(few.shape[1])
        products = few[:, upper[0]] * few[:, upper[1]]
        return np.column_stack([np.ones(len(values)), scaled, np.abs(scaled), products])

    left, right = features(rows[:_MOST_LEARNT]), features(neighbour[:_MOST_LEARNT])
    both = np.concatenate([left, right])
    truth = np.repeat([0.0, 1.0], [len(left), len(right)])
    weights = np.zeros(both.shape[1])
    for _ in range(_NEWTON_STEPS):
        share = expit(both @ weights)
        curve = (both * (share * (1 - share))[:, None]).T @ both + _RIDGE * np.eye(len(weights))
        step = np.linalg.solve(curve, both.T @ (truth - share) - _RIDGE * weights)
        weights = weights + step
        if np.abs(step).max() < 1e-6:
            break
    return lambda values: np.asarray(features(values) @ weights)


def nearest(rows: Floats, neighbour: Floats) -> Score:
    """Learn the neighbour's share among the nearest runs, in scaled coordinates."""
    middle, size = typical(rows, neighbour)
    apart = np.abs(np.median(neighbour, axis=0) - np.median(rows, axis=0)) / size
    kept = np.sort(np.argsort(-apart, kind="stable")[:_MOST_NEAR])
    most = min(len(rows), len(neighbour), _MOST_KNOWN)
    both = np.concatenate([rows[:most], neighbour[:most]])
    tree = cKDTree(((both - middle) / size)[:, kept])

    def score(values: Floats) -> Floats:
        count = min(_NEAREST, 2 * most)
        _, places = tree.query(((values - middle) / size)[:, kept], k=count)
        return np.asarray((np.reshape(places, (len(values), -1)) >= most).mean(axis=1))

    return score
