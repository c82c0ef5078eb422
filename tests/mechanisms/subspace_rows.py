"""Statistics of chosen rows, and the laws on spheres by numeric integration."""

import numpy as np
from scipy.special import i0e, i1e

from dpmodels.mechanisms import Facts
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency
from dpmodels.statistics import Statistic

REPLACE, ADD_REMOVE = adjacency("replace"), adjacency("add-remove")
RELATIONS = (REPLACE, ADD_REMOVE)
GUARANTEES = (PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1))


def facts(columns, components=0, relation=REPLACE, centred=False):
    return Facts(columns, relation, centred=centred, components=components)


def statistic(rows, bits=20, times=None, incomplete=0):
    """Exact moments of rows of the unit ball, each of them so many times."""
    rows = np.atleast_2d(np.asarray(rows, dtype=float))
    lattice = Lattice(bits, rows.shape[1])
    integers = np.trunc(rows * lattice.radius).astype(np.int64)
    times = np.ones(len(rows), dtype=object) if times is None else np.array(times, dtype=object)
    augmented = np.column_stack([np.full(len(rows), 2**bits), integers]).astype(object)
    exact = (augmented * times[:, None]).T @ augmented
    return Statistic("augmented moments", exact, int(times.sum()) + incomplete)


def nothing(columns, bits=20, rows=0):
    """Moments of incomplete rows."""
    return Statistic("moments", np.zeros((columns + 1,) * 2, dtype=object), rows)


def ball(rng, rows, columns):
    """Rows of which half lie on the sphere."""
    points = rng.normal(size=(rows, columns))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points[::2] *= rng.random((len(points[::2]), 1))
    return points


def circle(points=20_000):
    """Unit vectors that stand for equal parts of the circle."""
    angles = (np.arange(points) + 0.5) * 2 * np.pi / points
    return np.stack([np.cos(angles), np.sin(angles)])


def sphere(points=600):
    """Unit vectors (3, n) that stand for equal parts of the sphere, by its height and longitude."""
    heights = (np.arange(points) + 0.5) * 2 / points - 1
    angles = (np.arange(points) + 0.5) * 2 * np.pi / points
    height, angle = (grid.ravel() for grid in np.meshgrid(heights, angles))
    flat = np.sqrt(1 - height**2)
    return np.stack([flat * np.cos(angle), flat * np.sin(angle), height])


def log_density(matrix, points):
    """Logarithm of the Bingham density on equal parts, with its normaliser."""
    exponents = np.einsum("in,ij,jn->n", points, matrix, points)
    largest = exponents.max()
    return exponents - largest - np.log(np.mean(np.exp(exponents - largest)))


def mean_square_in_the_plane(gap):
    """E sin² of the angle to the leading axis, where the density is exp(gap cos²)."""
    return (1 - i1e(gap / 2) / i0e(gap / 2)) / 2
