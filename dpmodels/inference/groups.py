"""Which released eigenvalues noise cannot tell apart, and how far noise alone reaches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.special import gammaincinv

from dpmodels.typing import Floats

# A choice: how often noise stays within what is said of its reach.
LEVEL = 0.95
# Shape, scale and shift of the gamma law in `tracy_widom`, from its source.
_SHAPE, _SCALE, _SHIFT = 46.446, 0.186054, 9.84801


def alike(values: Floats, pair_variance: Floats, slack: float = 1.0) -> NDArray[np.bool_]:
    """Tell which eigenvalues (largest first) noise around one common value explains.

    Starting from all components, a group is cut at its widest gap for as long as an eigenvalue lies
    farther from the group's mean than `slack` times what the noise of that many equal eigenvalues
    reaches in 95 % of releases. `pair_variance` is the noise variance of the matrix' entries in the
    eigenvector basis; it and what comes back have shape (components, components).
    """
    noise = np.maximum(np.diagonal(pair_variance, 1), 1e-200)
    gaps = -np.diff(values) / np.sqrt(noise)
    labels = np.zeros(len(values), dtype=np.intp)
    waiting = [slice(0, len(values))]
    while waiting:
        own = waiting.pop()
        labels[own] = own.start
        spread = np.abs(values[own] - values[own].mean())
        if (spread > slack * _reach_about_mean(pair_variance[own, own])).any():
            cut = own.start + 1 + int(np.argmax(gaps[own.start : own.stop - 1]))
            waiting += [slice(own.start, cut), slice(cut, own.stop)]
    return np.asarray(labels[:, None] == labels[None, :])


def _reach_about_mean(block: Floats) -> Floats:
    """Return how far equal eigenvalues are spread from their mean.

    The mean takes its own noise away: 1.8 over the number of columns fits what was simulated for 2
    to 50 of them within 2 %.
    """
    size = len(block)
    entry = np.sqrt(block.sum(axis=1) / (size + 1))
    return np.asarray(entry * (noise_edge(size, LEVEL) - 1.8 / size))


def reach_of_noise(
    pair_variance: Floats, together: NDArray[np.bool_], level: float = LEVEL
) -> Floats:
    """Return a quantile of the largest eigenvalue of the noise in each group, shape (components,).

    Where the noise is not the same in all directions, as that of a mean far from the public centre
    or of columns divided by small standard deviations, a component is measured by the noise in its
    own row. The largest of all noise then exceeds its own 95 % quantile in 0 to 5 % of releases:
    simulated for 1 to 50 columns, means anywhere in the public ball and divisors up to 10 times
    apart.
    """
    size = together.sum(axis=1)
    entry = np.sqrt((together * pair_variance).sum(axis=1) / (size + 1))
    return np.asarray(entry * noise_edge(size, level))


def tracy_widom(level: float) -> float:
    """Return a quantile of the Tracy-Widom law of real symmetric matrices.

    By a shifted gamma law [1]_: within 0.01 at 90, 95 and 99 %.

    .. [1] Chiani, M. (2014). "Distribution of the largest eigenvalue for real Wishart and Gaussian
       random matrices and a simple approximation for the Tracy-Widom distribution." Journal of
       Multivariate Analysis 129, 69-81.
    """
    return float(gammaincinv(_SHAPE, level)) * _SCALE - _SHIFT


def noise_edge(size: npt.ArrayLike, level: float) -> Floats:
    """Return a quantile of the largest eigenvalue of Gaussian noise.

    The noise has variance 1 off the diagonal and 2 on it. Centre and scale are those of [1]_, which
    serve from a single column on.

    .. [1] Johnstone, I. M. and Ma, Z. (2012). "Fast approach to the Tracy-Widom law at the edge of
       GOE and GUE." Annals of Applied Probability 22(5), 1962-1988.
    """
    columns = np.asarray(size, dtype=np.float64)
    return np.asarray(2 * np.sqrt(columns - 0.5) + tracy_widom(level) * columns ** (-1 / 6))
