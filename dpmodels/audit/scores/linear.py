"""Projections on a direction: the exact test of Gaussian noise of known or of learnt shape.

For noise ``N(0, C)`` and means m apart the log-likelihood ratio is linear, with
the weights ``C⁻¹m``; for independent noise of equal scale these are m.

References
----------
Fisher, R. A. (1936). "The use of multiple measurements in taxonomic problems."
Annals of Eugenics 7, 179-188.
"""

from __future__ import annotations

import numpy as np

from dpmodels.audit.scores.learned import Score, typical
from dpmodels.typing import Floats

# A direction without noise is kept: it tells the two sides apart at once.
_NOISELESS = 1e-12


def difference(rows: Floats, neighbour: Floats) -> Score:
    """Learn the projection on the difference of the means."""
    middle, size = typical(rows, neighbour)
    weights = (neighbour.mean(axis=0) - rows.mean(axis=0)) / size
    return lambda values: np.asarray(((values - middle) / size) @ weights)


def whitened(rows: Floats, neighbour: Floats) -> Score:
    """Learn the projection that linear discriminant analysis finds."""
    middle, size = typical(rows, neighbour)
    left, right = (rows - middle) / size, (neighbour - middle) / size
    apart = right.mean(axis=0) - left.mean(axis=0)
    within = (_covariance(left) + _covariance(right)) / 2
    spread, axes = np.linalg.eigh(within)
    spread = np.maximum(spread, max(_NOISELESS * spread[-1], _NOISELESS))
    weights = axes @ ((axes.T @ apart) / spread)
    return lambda values: np.asarray(((values - middle) / size) @ weights)


def coordinate(rows: Floats, neighbour: Floats) -> Score:
    """Find the coordinate whose distributions are farthest apart, by Kolmogorov's distance."""
    best, sign, found = 0, 1.0, -1.0
    for column in range(rows.shape[1]):
        gap = _gap(rows[:, column], neighbour[:, column])
        if abs(gap) > found:
            best, sign, found = column, float(np.sign(gap) or 1.0), abs(gap)
    return lambda values: sign * values[:, best]


def _gap(left: Floats, right: Floats) -> float:
    """Return the largest difference of two distribution functions, above zero to the right."""
    left, right = np.sort(left), np.sort(right)
    places = np.concatenate([left, right])
    below = np.searchsorted(left, places, side="right") / len(left)
    gaps = below - np.searchsorted(right, places, side="right") / len(right)
    return float(gaps[np.abs(gaps).argmax()])


def _covariance(values: Floats) -> Floats:
    centred = values - values.mean(axis=0)
    return np.asarray(centred.T @ centred / max(len(values) - 1, 1))
