"""Random rotations in the planes of two eigenvectors, which leave the matrix Bingham law as it is.

A frame V (orthonormal columns) has density proportional to exp(tr V' A V). In
the coordinates of the eigenvectors of A, rotating V in the plane of
eigenvectors i and j by an angle t changes the exponent by
-(a_i - a_j) h sin²(t - t*), where h and t* come from the Gram matrix of the
two rows of V. Given everything but the angle, t is von Mises at twice the
angle. Each angle is proposed from the wrapped Cauchy envelope of that law and
accepted or kept by the rule of Metropolis and Hastings; the acceptance is at
least 0.65 whatever the concentration, so no pair of eigenvalues, however far
apart or close, is a slow one.

References
----------
Best, Fisher (1979), Efficient Simulation of the von Mises Distribution,
Applied Statistics 28(2), 152-157 (the envelope).
Hoff (2009), Simulation of the Matrix Bingham-von Mises-Fisher Distribution,
Journal of Computational and Graphical Statistics 18(2), 438-456 (the chain
over columns, in whose place this one stands).
"""

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.normals import uniforms
from dpmodels.noise.protocol import Entropy
from dpmodels.typing import Floats


def rounds(dimension: int) -> NDArray[np.intp]:
    """Arrange all pairs of coordinates in rounds of disjoint pairs, as in a tournament.

    Shape (rounds, 2, pairs): d - 1 rounds of d/2 pairs for an even d, d rounds of (d - 1)/2 for
    an odd one.
    """
    circle = dimension - 1 + dimension % 2
    start = np.arange(circle)[:, None]
    step = np.arange(1, (circle + 1) // 2)
    pairs = np.stack([(start + step) % circle, (start - step) % circle], axis=1)
    if dimension % 2:
        return pairs
    last = np.stack([start, np.full_like(start, circle)], axis=1)
    return np.concatenate([pairs, last], axis=2)


def sweep(
    frames: Floats,
    values: Floats,
    schedule: NDArray[np.intp],
    entropy: Entropy,
) -> None:
    """Rotate frames once in every coordinate plane, in place.

    The planes are taken in a fresh random order: in a fixed one the chain
    would meet its own recent moves again. How many words are read and how
    many rotations are made depends on the shapes alone.

    `frames`, shape (d, chains, k), are in eigenvector coordinates, `values`, shape (d,), fall,
    and `schedule` is what `rounds` gives for d.
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


def _turn(
    x: Floats,
    y: Floats,
    gap: Floats,
    tangent: Floats,
    level: Floats,
) -> Floats:
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
    turned: Floats = np.where(level < log_ratio, peak + offset, 0.0)
    return turned
