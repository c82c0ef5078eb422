"""Eigenvalues released apart from the eigenvectors, the matrix of both, and bounds on their sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels import arguments
from dpmodels.mechanisms.add_noise import GAUSSIAN, ROUND_UP, Law, add_noise
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.postprocess.eigen import psd_values, recompose
from dpmodels.privacy import Adjacency
from dpmodels.statistics.moments import eigenvalue_sensitivity
from dpmodels.typing import Floats

EIGENVALUES = "eigenvalues"


def checked_share(share: object) -> None:
    """Refuse, with an ArgumentError, a share that leaves nothing for one of two parts."""
    arguments.share("share", share, ", the eigenvalues' part of the budget; write share=0.5")


def eigenvalue_scale(
    adjacency: Adjacency, lattice: Lattice, multiplier: float, norm: int, smallest: float
) -> float:
    """Return the scale of noise in eigenvalues rounded to integers, in lattice steps.

    `multiplier` is the noise scale over the sensitivity, taken in L1 or L2 norm.

    Rounding moves two vectors of d eigenvalues apart by at most ``d^(1/norm)``.
    """
    between = eigenvalue_sensitivity(adjacency, norm) * lattice.radius**2
    rounded = between + lattice.columns ** (1 / norm)
    return float(max(multiplier * rounded * ROUND_UP, smallest))


def noised_eigenvalues(
    exact: NDArray[Any], plan: Plan, entropy: Entropy, law: Law = GAUSSIAN
) -> Floats:
    """Release the eigenvalues of the second moment, in units of the ball, largest first.

    `exact`, shape (columns + 1, columns + 1), is as from :func:`dpmodels.statistics.moments`.
    """
    values = np.linalg.eigvalsh(exact[1:, 1:].astype(np.float64))[::-1]
    whole = np.array([round(value) for value in values.tolist()], dtype=object)
    released = add_noise(whole, plan.scales[EIGENVALUES], entropy, law)
    return np.sort(released)[::-1] / plan.lattice.steps**2


def recombined(values: Floats, second: Floats, cap: float | None) -> Floats:
    """Return the matrix of released eigenvalues and another matrix' eigenvectors.

    `values`, shape (columns,), largest first, are brought to the nearest that are not negative
    with a sum of at most `cap`; the eigenvectors of `second`, released too, are taken in the order
    of its eigenvalues.
    """
    vectors = np.linalg.eigh(second).eigenvectors[:, ::-1]
    return recompose(psd_values(values, cap), vectors)


def trace_cap(facts: Facts, rows: int) -> float | None:
    """Return the number of rows read, at least 1, where it is public, else None.

    Each row of the unit ball adds at most 1 to the trace.
    """
    return float(max(rows, 1)) if facts.adjacency.n_public else None
