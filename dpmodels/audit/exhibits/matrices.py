"""Second moments and their entries."""

import numpy as np

from dpmodels.typing import Floats


def scatter(rows: Floats) -> Floats:
    """Sum the outer products of the rows: shape (n, d) to (d, d)."""
    return rows.T @ rows


def upper(matrices: Floats) -> Floats:
    """List the entries on and above the diagonal: shape (..., d, d) to (..., d(d+1)/2)."""
    above, across = np.triu_indices(matrices.shape[-1])
    return matrices[..., above, across]


def projectors(angles: Floats) -> Floats:
    """List the entries of u u' for u = (cos, sin) of each angle: shape (runs,) to (runs, 3).

    A direction has no sign, so the projector is what a release of one says.
    """
    across, up = np.cos(angles), np.sin(angles)
    return np.stack([across**2, across * up, up**2], axis=1)
