"""Eigenvalues and eigenvectors in the order and with the signs tables use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmodels.typing import Floats


@dataclass(frozen=True)
class Eigen:
    """Eigenvalues, largest first, and unit eigenvectors in columns.

    Attributes
    ----------
    values : ndarray, shape (columns,)
        May be negative where noise made them so.
    vectors : ndarray, shape (columns, columns)
        In each, the entry of largest size is positive.
    """

    values: Floats
    vectors: Floats


def eigen(matrix: Floats) -> Eigen:
    """Decompose a symmetric matrix, shape (columns, columns).

    Examples
    --------
    >>> import numpy as np
    >>> eigen(np.diag([1.0, 3.0])).values
    array([3., 1.])
    """
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(len(values))])
    return Eigen(values, vectors * signs)
