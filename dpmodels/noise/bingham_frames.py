"""Orthonormal frames: the exponential mechanism for a subspace, at once or column by column.

Both draw k orthonormal columns. `matrix_bingham` has the density exp(tr V' A V), one exponential
mechanism for all of V, and for 1 < k < d - 1 is the state of a Markov chain. `sequential_bingham`
is k exponential mechanisms, one for each column, and has its law exactly. The columns of the one
spend one budget together, those of the other one budget each.
"""

import operator
from dataclasses import dataclass
from math import isqrt
from typing import SupportsIndex

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.noise.lattice import one_blas_thread
from dpmodels.noise.uniform import Entropy, normals, uniforms
from dpmodels.typing import Floats, Indices

# Public, and the same for every matrix. `benchmarks/bingham_mixing.py` measures what it buys.
SWEEPS = 128


@dataclass(frozen=True, slots=True)
class Convergence:
    """What is public about how a frame was drawn.

    Nothing here, and nothing about the number of steps taken, depends on the concentration. A
    convergence diagnostic of the run itself (R-hat, effective draws) would be a second function of
    the private matrix beyond the frame that was paid for, and stopping by one would bend the law
    of the frame. So the length of the chain is fixed beforehand, and whether it is long enough is
    measured on public spectra, by `benchmarks/bingham_mixing.py`.
    """

    sweeps: int  # Passes over all planes of two eigenvectors; 0 for an exact draw
    rotations: int  # Random rotations made in all; 0 for an exact draw

    @property
    def exact(self) -> bool:
        """Whether the frame has its law without the limit of a chain."""
        return self.sweeps == 0

    def __str__(self) -> str:
        if self.exact:
            return "exact draw"
        return (
            f"in the limit of the chain ({self.sweeps:,} sweeps, {self.rotations:,} rotations, "
            f"from a uniform frame)"
        )


def matrix_bingham(concentration: Floats, k: int, entropy: Entropy) -> tuple[Floats, Convergence]:
    """Draw k orthonormal columns V with density proportional to exp(tr V' A V).

    The density is with respect to the uniform measure on frames. It does not change when V is
    multiplied from the right by an orthogonal matrix: the draw is a random subspace with a random
    basis, and no column comes first.

    For k = 1, d - 1 and d the law is that of one Bingham vector, of the vector orthogonal to the
    frame (concentration -A), and uniform: exact draws. For other k the frame is the end of a chain
    of 128 sweeps of random plane rotations (`sweep`) that starts at a uniform frame, and any
    privacy guarantee holds in the limit of that chain. What is known of the distance is measured,
    not proved: the uniform start was forgotten within 20 sweeps at a concentration of 1e6 and
    within 44 at 1e12, and from there on six sweeps or fewer were worth one independent draw on
    every spectrum tried (over 500, ranges 0.1 to 1e8, d up to 116).

    A, shape (d, d), is symmetric, and its lower triangle is read; the columns have shape (d, k).

    Source: McSherry, Talwar (2007), Mechanism Design via Differential Privacy. Chaudhuri, Sarwate,
    Sinha (2013), A Near-Optimal Algorithm for Differentially-Private Principal Components, Journal
    of Machine Learning Research 14, 2905-2943.

    ArgumentError if `concentration` is not a square matrix of finite numbers, or `k` not an
    integer from 1 to d.
    """
    matrix = checked_matrix(concentration)
    dimension, count = len(matrix), _checked_count(k, len(matrix))
    with one_blas_thread():
        if count == 1:
            return bingham_vector(matrix, entropy)[:, None], Convergence(0, 0)
        if count == dimension:
            return uniform_frames(dimension, 1, count, entropy)[:, 0], Convergence(0, 0)
        if count == dimension - 1:
            direction = bingham_vector(-matrix, entropy)
            frame = uniform_frames(count, 1, count, entropy)[:, 0]
            return _straightened(_complement(direction) @ frame), Convergence(0, 0)
        values, vectors = np.linalg.eigh(matrix)
        frames, schedule = uniform_frames(dimension, 1, count, entropy), rounds(dimension)
        for _ in range(SWEEPS):
            sweep(frames, values[::-1], schedule, entropy)
        frame = _straightened(vectors[:, ::-1] @ frames[:, 0])
    return frame, Convergence(SWEEPS, SWEEPS * dimension * (dimension - 1) // 2)


def sequential_bingham(concentration: Floats, k: int, entropy: Entropy) -> Floats:
    """Draw orthonormal columns one after another, each an exact Bingham vector.

    Column j has density exp(x' A x) on the unit sphere of the orthogonal complement of columns 1
    to j - 1. Each column is an exponential mechanism of its own, so A is to carry one column's
    share of the budget. For k = d the last column is determined but for its sign and costs
    nothing.

    A, shape (d, d), is symmetric, and its lower triangle is read; the columns have shape (d, k).

    Source: Amin, Dick, Kulesza, Munoz, Vassilvitskii (2019), Differentially Private Covariance
    Estimation.

    ArgumentError if `concentration` is not a square matrix of finite numbers, or `k` not an
    integer from 1 to d.
    """
    rest = checked_matrix(concentration)
    basis = np.eye(len(rest))
    columns: list[Floats] = []
    with one_blas_thread():
        for _ in range(_checked_count(k, len(rest))):
            direction = bingham_vector(rest, entropy)
            columns.append(basis @ direction)
            complement = _complement(direction)
            rest, basis = complement.T @ rest @ complement, basis @ complement
    return _straightened(np.stack(columns, axis=1))


def uniform_frames(dimension: int, chains: int, k: int, entropy: Entropy) -> Floats:
    """Draw independent frames from the uniform (Haar) measure.

    They have shape (dimension, chains, k).

    Source: Mezzadri (2007), How to Generate Random Matrices from the Classical Compact Groups,
    Notices of the AMS 54(5), 592-604.
    """
    cloud = normals(chains * dimension * k, entropy).reshape(chains, dimension, k)
    frames, triangles = np.linalg.qr(cloud)
    # The signs make the result uniform.
    signs = np.sign(np.diagonal(triangles, axis1=-2, axis2=-1))
    return np.asarray((frames * signs[..., None, :]).transpose(1, 0, 2).copy())


def _complement(direction: Floats) -> Floats:
    """Give a basis, (m, m - 1), orthogonal to a unit vector: a reflection less its first column."""
    normal = direction.copy()
    normal[0] += np.copysign(1.0, direction[0])
    return np.eye(direction.size)[:, 1:] - np.outer(normal, normal[1:] / abs(normal[0]))


def _straightened(frame: Floats) -> Floats:
    """Undo rounding with a Newton step to the nearest frame, which prefers no column."""
    return np.asarray(1.5 * frame - 0.5 * frame @ (frame.T @ frame))


def _checked_count(k: SupportsIndex, dimension: int) -> int:
    try:
        count = operator.index(k)
    except TypeError:
        raise ArgumentError(f"k is of type {type(k).__name__}; write an integer.") from None
    if not 1 <= count <= dimension:
        raise ArgumentError(f"k is {count}; write a number of columns from 1 to {dimension}.")
    return count


def rounds(dimension: int) -> Indices:
    """Arrange all pairs of coordinates in rounds of disjoint pairs, as in a tournament.

    Shape (rounds, 2, pairs): d - 1 rounds of d/2 pairs for an even d, d rounds of (d - 1)/2 for an
    odd one.
    """
    circle = dimension - 1 + dimension % 2
    start = np.arange(circle)[:, None]
    step = np.arange(1, (circle + 1) // 2)
    pairs = np.stack([(start + step) % circle, (start - step) % circle], axis=1)
    if dimension % 2:
        return pairs
    last = np.stack([start, np.full_like(start, circle)], axis=1)
    return np.concatenate([pairs, last], axis=2)


def sweep(frames: Floats, values: Floats, schedule: Indices, entropy: Entropy) -> None:
    """Rotate frames once in every plane of two eigenvectors, in place.

    In the coordinates of the eigenvectors of A, rotating V in the plane of eigenvectors i and j by
    an angle t changes the exponent of the density exp(tr V' A V) by -(a_i - a_j) h sin²(t - t*),
    where h and t* come from the Gram matrix of the two rows of V. Given everything but the angle,
    t is von Mises at twice the angle. Each angle is proposed from the wrapped Cauchy envelope of
    that law and accepted or kept by the rule of Metropolis and Hastings; the acceptance is at
    least 0.65 whatever the concentration, so no pair of eigenvalues, however far apart or close,
    is a slow one.

    The planes are taken in a fresh random order: in a fixed one the chain would meet its own
    recent moves again. How many words are read and how many rotations are made depends on the
    shapes alone.

    `frames`, shape (d, chains, k), are in eigenvector coordinates, `values`, shape (d,), fall, and
    `schedule` is what `rounds` gives for d.

    Sources: Best, Fisher (1979), Efficient Simulation of the von Mises Distribution, Applied
    Statistics 28(2), 152-157, for the envelope. Hoff (2009), Simulation of the Matrix Bingham-von
    Mises-Fisher Distribution, Journal of Computational and Graphical Statistics 18(2), 438-456,
    for the chain over columns, in whose place this one stands.
    """
    labels = np.argsort(entropy.words(values.size))[schedule]
    upper, lower = labels.min(axis=1), labels.max(axis=1)
    gaps = (values[upper] - values[lower])[..., None]
    shape = (*upper.shape, frames.shape[1])
    tangents = np.tan(np.pi * (uniforms(upper.size * shape[2], entropy) - 0.5)).reshape(shape)
    levels = np.log(uniforms(upper.size * shape[2], entropy)).reshape(shape)
    for i, j, gap, tangent, level in zip(upper, lower, gaps, tangents, levels, strict=True):
        x, y = frames[i], frames[j]
        angle = _turn(x, y, gap, tangent, level)[..., None]
        cosine, sine = np.cos(angle), np.sin(angle)
        frames[i] = cosine * x + sine * y
        frames[j] = cosine * y - sine * x


def _turn(x: Floats, y: Floats, gap: Floats, tangent: Floats, level: Floats) -> Floats:
    """Draw the angles by which pairs of rows turn; 0 where the proposal is refused."""
    along = np.einsum("...k,...k->...", x, x) - np.einsum("...k,...k->...", y, y)
    across = 2 * np.einsum("...k,...k->...", x, y)
    peak = np.arctan2(across, along) / 2
    pull = gap * np.hypot(along, across)
    # The root of 1/b + 1/(b + 2 pull) = 1, in a form that loses no digits.
    spread = 1 + 1 / (pull + np.hypot(1, pull))
    offset = np.arctan(np.sqrt(spread / (spread + 2 * pull)) * tangent)
    before, after = pull * np.sin(peak) ** 2, pull * np.sin(offset) ** 2
    log_ratio = before - after + np.log((spread + 2 * after) / (spread + 2 * before))
    return np.where(level < log_ratio, peak + offset, 0.0)


# The Bingham law on the unit sphere: the exponential mechanism for one direction.

# Differences of eigenvalues stay finite.
_LARGEST = 1e300
# Numbers drawn at a time, 8 MB: a choice.
_LARGEST_BATCH = 2**20


def bingham_vector(concentration: Floats, entropy: Entropy) -> Floats:
    """Draw a unit vector x with density proportional to exp(x' A x).

    The density is with respect to the uniform measure on the sphere, and only differences of
    eigenvalues of A matter. The draw is by rejection, so its law is the law itself and no limit of
    a chain, up to floating point (see `dpmodels.noise.uniform`). How long it takes depends on A:
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
    return np.asarray(vectors @ bingham_coordinates(values, 1, entropy)[0])


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
    batches: list[Floats] = []
    missing = draws
    while missing > 0:
        batches.append(accepted(deficits, spread, batch, entropy))
        missing -= len(batches[-1])
    return np.concatenate(batches)[:draws]


def accepted(deficits: Floats, spread: float, proposals: int, entropy: Entropy) -> Floats:
    """Make proposals and return the accepted ones.

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
    return cloud[np.log(uniforms(proposals, entropy)) < log_ratio]


def envelope_spread(deficits: Floats) -> float:
    """Solve sum 1 / (b + 2 lambda_i) = 1, which makes the envelope tightest.

    The lambda_i, shape (d,), are eigenvalues below the largest, the smallest of them 0; b is from
    1 to d.
    """
    from scipy.optimize import brentq

    size = deficits.size
    return float(brentq(lambda b: float(np.sum(1 / (b + 2 * deficits))) - 1, 1, size + 1))


def checked_matrix(concentration: Floats) -> Floats:
    """Give the concentration as it is, or refuse it.

    ArgumentError if it is not a square matrix of finite numbers.
    """
    matrix = np.asarray(concentration, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ArgumentError(
            f"concentration has the shape {matrix.shape}; expected a square matrix, (d, d)."
        )
    if not np.isfinite(matrix).all():
        raise ArgumentError(
            "concentration has an entry that is not a finite number; bound the statistic and "
            "the budget it is multiplied by."
        )
    return matrix
