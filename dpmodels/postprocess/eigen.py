"""Symmetric matrices by their eigenvalues: taken apart, put together, the nearest without noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmodels.typing import Floats


@dataclass(frozen=True)
class Eigen:
    """Eigenvalues, largest first, and unit eigenvectors in columns, largest entry positive."""

    values: Floats
    vectors: Floats


def eigen(matrix: Floats) -> Eigen:
    """Decompose a symmetric matrix, shape (columns, columns).

    >>> import numpy as np
    >>> eigen(np.diag([1.0, 3.0])).values
    array([3., 1.])
    """
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(len(values))])
    return Eigen(values, vectors * signs)


def nearest_psd(matrix: Floats, trace_cap: float | None = None) -> Floats:
    """Return the positive semidefinite matrix nearest in Frobenius norm.

    The set is convex and holds the matrix before noise: the error of a released one can only fall.
    `trace_cap` is a positive public upper bound on the trace.

    >>> import numpy as np
    >>> nearest_psd(np.diag([0.9, 0.5, -0.2]), trace_cap=1.0)
    array([[0.7, 0. , 0. ],
           [0. , 0.3, 0. ],
           [0. , 0. , 0. ]])
    """
    values, vectors = np.linalg.eigh(matrix)
    return recompose(psd_values(values, trace_cap), vectors)


def psd_values(values: Floats, trace_cap: float | None = None) -> Floats:
    """Project eigenvalues onto ``values >= 0`` and ``sum <= trace_cap``.

    Beyond the bound it is the projection onto a simplex [1]_: one constant is taken off every value
    before the negative ones become zero.

    .. [1] Held, M., Wolfe, P. and Crowder, H. P. (1974). "Validation of subgradient optimization."
       Mathematical Programming 6, 62-88.

    >>> import numpy as np
    >>> psd_values(np.array([-1.0, 3.0, 2.0]), trace_cap=4.0)
    array([0. , 2.5, 1.5])
    """
    positive = np.maximum(values, 0.0)
    if trace_cap is None or positive.sum() <= trace_cap:
        return positive
    ordered = np.sort(positive)[::-1]
    levels = (np.cumsum(ordered) - trace_cap) / np.arange(1, len(ordered) + 1)
    kept = np.flatnonzero(ordered > levels)[-1]
    held = np.maximum(positive - levels[kept], 0.0)
    # Differences of numbers far above the bound have lost digits of it.
    return np.asarray(held * min(trace_cap / held.sum(), 1.0))


def recompose(values: Floats, vectors: Floats) -> Floats:
    """Return the exactly symmetric matrix of given eigenvalues and eigenvectors."""
    kept = values > 0
    roots = vectors[:, kept] * np.sqrt(values[kept])
    return np.asarray(roots @ roots.T)
