"""The nearest positive semidefinite matrix, with a public bound on its trace."""

from __future__ import annotations

import numpy as np

from dpmodels.typing import Floats


def nearest_psd(matrix: Floats, trace_cap: float | None = None) -> Floats:
    """Return the positive semidefinite matrix nearest in Frobenius norm.

    Projection onto a convex set that holds the matrix before noise: the error
    of a released matrix can only fall. One eigendecomposition.

    Parameters
    ----------
    matrix : ndarray, shape (columns, columns)
        Symmetric.
    trace_cap : float or None
        Public upper bound on the trace, positive: the squared row bound for a
        second moment divided by the number of rows.

    Examples
    --------
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

    Parameters
    ----------
    values : ndarray, shape (columns,)
        Eigenvalues in any order.
    trace_cap : float or None
        Public upper bound on their sum, positive.

    Notes
    -----
    Beyond the bound it is the projection onto a simplex [1]_: one constant is
    taken off every value before the negative ones become zero.

    References
    ----------
    .. [1] Held, M., Wolfe, P. and Crowder, H. P. (1974). "Validation of
       subgradient optimization." Mathematical Programming 6, 62-88.

    Examples
    --------
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
    return np.asarray(np.maximum(positive - levels[kept], 0.0))


def recompose(values: Floats, vectors: Floats) -> Floats:
    """Return the exactly symmetric matrix of given eigenvalues and eigenvectors.

    Parameters
    ----------
    values : ndarray, shape (columns,)
        None negative.
    vectors : ndarray, shape (columns, columns)
        Orthonormal columns.
    """
    kept = values > 0
    roots = vectors[:, kept] * np.sqrt(values[kept])
    return np.asarray(roots @ roots.T)
