"""The Bingham law on the unit sphere: the exponential mechanism for one direction."""

from math import isqrt

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.noise.normals import normals, uniforms
from dpmodels.noise.protocol import Entropy
from dpmodels.typing import Floats

# Differences of eigenvalues stay finite.
_LARGEST = 1e300
# Numbers drawn at a time, 8 MB: a choice.
_LARGEST_BATCH = 2**20


def bingham_vector(concentration: Floats, entropy: Entropy) -> Floats:
    """Draw a unit vector x with density proportional to exp(x' A x).

    The density is with respect to the uniform measure on the sphere, and only differences of
    eigenvalues of A matter. The draw is by rejection, so its law is the law itself and no limit of
    a chain, up to floating point (see `dpmodels.noise.normals`). How long it takes depends on A:
    an observer who can time the call is outside this statement.

    A, shape (d, d), may have any signature, and its lower triangle is read; x and -x are equally
    likely.

    Source: Kent, Ganeiber, Mardia (2018), A New Unified Approach for the Simulation of a Wide
    Class of Directional Distributions, Journal of Computational and Graphical Statistics 27(2),
    291-301.

    ArgumentError if `concentration` is not a square matrix of finite numbers.
    """
    values, vectors = np.linalg.eigh(checked_matrix(concentration))
    return bingham_from_eigen(values, vectors, entropy)


def bingham_from_eigen(values: Floats, vectors: Floats, entropy: Entropy) -> Floats:
    """Draw as `bingham_vector` does, where the eigenvalues are known already.

    `values`, shape (d,), are in any order, `vectors`, shape (p, d), orthonormal, one per column;
    with p > d the draw is a unit vector in their span. ArgumentError if `values` are not numbers
    from -1e300 to 1e300.
    """
    direction: Floats = vectors @ bingham_coordinates(values, 1, entropy)[0]
    return direction


def bingham_coordinates(values: Floats, draws: int, entropy: Entropy) -> Floats:
    """Draw independent vectors in the coordinates of the eigenvectors.

    `values`, shape (d,), are in any order; shape (draws, d) comes back. ArgumentError if `values`
    are not numbers from -1e300 to 1e300.
    """
    if not np.abs(values).max() <= _LARGEST:
        raise ArgumentError(
            "The eigenvalues of the concentration are not numbers from -1e300 to 1e300; bound the "
            "statistic and the budget it is multiplied by."
        )
    deficits = values.max() - values
    spread = envelope_spread(deficits)
    # The acceptance is about 0.86 / sqrt(d) at its lowest.
    batch = 2 * draws * (isqrt(values.size) + 1)
    batch = max(1, min(batch, _LARGEST_BATCH // values.size))
    kept: list[Floats] = []
    missing = draws
    while missing > 0:
        kept.append(accepted(deficits, spread, batch, entropy))
        missing -= len(kept[-1])
    return np.concatenate(kept)[:draws]


def accepted(deficits: Floats, spread: float, proposals: int, entropy: Entropy) -> Floats:
    """Make proposals and give those that are kept.

    The proposals are angular central Gaussian, N(0, Omega^-1) scaled to length 1 with Omega = I +
    2 Lambda / b, whose density is proportional to (x' Omega x)^(-d/2). The ratio of the densities
    is a function of u = x' Lambda x alone, exp(-u) (1 + 2u/b)^(d/2), and largest at u = (d - b)/2:
    dividing the envelope out *multiplies* by the power.

    `deficits`, shape (d,), is the diagonal of Lambda: how far each eigenvalue is below the
    largest; shape (kept, d) comes back.
    """
    dimension = deficits.size
    cloud = normals(proposals * dimension, entropy).reshape(proposals, dimension)
    cloud /= np.sqrt(1 + 2 * deficits / spread)
    cloud /= np.linalg.norm(cloud, axis=1, keepdims=True)
    losses = cloud**2 @ deficits
    log_ratio = (dimension - spread) / 2 - losses
    log_ratio += dimension / 2 * np.log((spread + 2 * losses) / dimension)
    kept: Floats = cloud[np.log(uniforms(proposals, entropy)) < log_ratio]
    return kept


def envelope_spread(deficits: Floats) -> float:
    """Solve sum 1 / (b + 2 lambda_i) = 1, which makes the envelope tightest.

    The lambda_i, shape (d,), are eigenvalues below the largest, the smallest of them 0; b is from
    1 to d.
    """
    from scipy.optimize import brentq

    root: float = brentq(lambda b: float(np.sum(1 / (b + 2 * deficits))) - 1, 1, deficits.size + 1)
    return root


def checked_matrix(concentration: Floats) -> Floats:
    """Give the concentration as it is, or refuse it.

    ArgumentError if it is not a square matrix of finite numbers.
    """
    matrix = np.asarray(concentration, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ArgumentError(
            f"concentration has the shape {matrix.shape}; give a square matrix, (d, d)."
        )
    if not np.isfinite(matrix).all():
        raise ArgumentError(
            "concentration holds something that is not a finite number; bound the statistic and "
            "the budget it is multiplied by."
        )
    return matrix
