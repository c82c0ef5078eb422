"""Log-likelihood ratios of fitted laws: normal ones of two shapes, and Laplace's.

* Normal, means and covariances learnt: quadratic discriminant analysis. It
  sees a scale or a rotation that depends on a row.
* Laplace, centres and scales of the coordinates learnt:
  ``sum (|x - c| - |x - c'|) / b``, the exact test of independent Laplace noise.
"""

from __future__ import annotations

import numpy as np

from dpmodels.audit.scores.learned import Score, typical
from dpmodels.typing import Floats

_NOISELESS = 1e-12  # a direction without noise is kept
_SHRUNK = 1e-3  # a choice: of a covariance, to its diagonal


def normal(rows: Floats, neighbour: Floats) -> Score:
    """Learn the quadratic discriminant."""
    middle, size = typical(rows, neighbour)
    fits = [_fit((side - middle) / size) for side in (rows, neighbour)]

    def score(values: Floats) -> Floats:
        scaled = (values - middle) / size
        distances = [((scaled - mean) @ root) for mean, root in fits]
        squares = [np.einsum("ij,ij->i", one, one) for one in distances]
        return np.asarray(squares[0] - squares[1])

    return score


def _fit(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean and a root of the inverse covariance, shrunk a little to its diagonal."""
    mean = values.mean(axis=0)
    centred = values - mean
    covariance = centred.T @ centred / max(len(values) - 1, 1)
    covariance += _SHRUNK * (np.diag(np.diag(covariance)) - covariance)
    spread, axes = np.linalg.eigh(covariance)
    spread = np.maximum(spread, max(_NOISELESS * spread[-1], _NOISELESS))
    return mean, np.asarray(axes / np.sqrt(spread))


def laplace(rows: Floats, neighbour: Floats) -> Score:
    """Learn centres and scales, and sum what each coordinate says."""
    centres = [np.median(side, axis=0) for side in (rows, neighbour)]
    pairs = zip((rows, neighbour), centres, strict=True)
    size = np.mean([np.mean(np.abs(side - one), axis=0) for side, one in pairs], axis=0)
    size = np.where(size > 0, size, np.abs(centres[1] - centres[0]) * _NOISELESS + _NOISELESS)
    return lambda values: np.asarray(
        ((np.abs(values - centres[0]) - np.abs(values - centres[1])) / size).sum(axis=1)
    )


def norm(rows: Floats, neighbour: Floats) -> Score:
    """Learn which side is farther from the middle of both, and score by that distance."""
    middle, size = typical(rows, neighbour)

    def length(values: Floats) -> Floats:
        return np.asarray(np.linalg.norm((values - middle) / size, axis=1))

    sign = 1.0 if np.median(length(neighbour)) >= np.median(length(rows)) else -1.0
    return lambda values: sign * length(values)
