"""Scores: from a released vector to one number, larger where the neighbour is likelier.

Each is learnt on separate runs: atoms, classifiers, linear and quadratic forms. `SCORES` names all
of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import expit

from dpmodels.typing import Floats, Integers

# From values of shape (m, k) to numbers of shape (m,).
Score = Callable[[Floats], Floats]
# From values of the rows and of the neighbour, shapes (m, k) each, to a score.
Learner = Callable[[Floats, Floats], Score]

_BITS = 20  # a choice: six digits of the spread, coarser than the rounding of a sum


def typical(rows: Floats, neighbour: Floats) -> tuple[Floats, Floats]:
    """Return the median and the mean deviation of each coordinate over both tables: shapes (k,)."""
    pooled = np.concatenate([rows, neighbour])
    middle = np.median(pooled, axis=0)
    size = np.mean(np.abs(pooled - middle), axis=0)
    return middle, np.where(size > 0, size, 1.0)


def coarsened(rows: Floats, neighbour: Floats) -> Callable[[Floats], Floats]:
    """Return a function that rounds each coordinate to a power of two below 2**-20 of its spread.

    Rounded values have the distribution of the real numbers, without the artefacts of
    arithmetic in the lowest bits; integers are unchanged.

    >>> rounded = coarsened(np.array([[0.0], [1.0]]), np.array([[2.0], [3.0]]))
    >>> float(rounded(np.array([[1 + 2.0**-40]]))[0, 0])
    1.0
    """
    _, size = typical(rows, neighbour)
    unit = np.exp2(np.floor(np.log2(size)) - _BITS)
    return lambda values: np.asarray(np.rint(values / unit) * unit)


# Repeated values: the information in a distribution with atoms or with too few bits.
#
# Every run falls into a cell, and the score of a cell is the log ratio of its
# frequencies on both tables; a new cell scores 0. Releases with different supports
# have cells that one table cannot reach: outputs that are impossible under the
# neighbour.
#
# * The released values themselves, all of them or one coordinate: constants,
#   strings, counts, reused noise.
# * The lowest set bit of a floating-point number, with its binade: sums with
#   floating-point noise leave other bits empty for other exact values.
#
# References
# ----------
# Mironov, I. (2012). "On significance of the least significant bits for
# differential privacy." CCS 2012.

_MOST_COLUMNS: Final = 16  # a choice
_NO_BIT: Final = 1074  # the cell of zero, which has no bit: that of the smallest double

Cells = Integers


def repeats(rows: Floats, neighbour: Floats) -> Score:
    """Score the released values by their frequencies on both tables."""
    looked = _looked_up(*_table(_whole(rows), _whole(neighbour))[:2])
    return lambda values: looked(_whole(values))


def repeated_coordinate(rows: Floats, neighbour: Floats) -> Score:
    """Score the values of the most informative coordinate."""
    return _best_column(lambda column: column.view(np.int64), rows, neighbour)


def low_bits(rows: Floats, neighbour: Floats) -> Score:
    """Score the position of the lowest bit of a coordinate, given its binade."""
    return _best_column(_bits, rows, neighbour)


def _whole(values: Floats) -> Cells:
    """Return equal hashes for lines that are equal to the last bit."""
    weights = np.random.default_rng(7).integers(1, 2**62, size=values.shape[1], dtype=np.int64) | 1
    return np.asarray((np.ascontiguousarray(values).view(np.int64) * weights).sum(axis=1))


def _bits(column: Floats) -> Cells:
    _, binade = np.frexp(column)
    pattern = column.view(np.int64) & (2**52 - 1) | 2**52
    lowest = pattern & -pattern
    _, exponent = np.frexp(lowest.astype(np.float64))
    return np.where(column == 0, _NO_BIT, binade.astype(np.int64) * 64 + exponent) * 2 + (
        column < 0
    )


def _best_column(cells: Callable[[Floats], Cells], rows: Floats, neighbour: Floats) -> Score:
    tables = [
        _table(*(cells(np.ascontiguousarray(side[:, column])) for side in (rows, neighbour)))
        for column in range(min(rows.shape[1], _MOST_COLUMNS))
    ]
    best = max(range(len(tables)), key=lambda column: tables[column][2])
    looked = _looked_up(*tables[best][:2])
    return lambda values: looked(cells(np.ascontiguousarray(values[:, best])))


def _table(left: Cells, right: Cells) -> tuple[Cells, Floats, float]:
    """Return the repeated cells, their log ratios, and the total variation between the tables."""
    distinct, codes = np.unique(np.concatenate([left, right]), return_inverse=True)
    sides = np.split(codes, [len(left)])
    counts = np.stack([np.bincount(side, minlength=len(distinct)) for side in sides])
    repeated = counts.sum(axis=0) > 1
    distinct, counts = distinct[repeated], counts[:, repeated]
    rates = (counts + 0.5) / np.array([[len(left) + 1], [len(right) + 1]])
    distance = float(np.abs(counts[0] / len(left) - counts[1] / len(right)).sum()) / 2
    return distinct, np.log(rates[1] / rates[0]), distance


def _looked_up(table: Cells, ratios: Floats) -> Callable[[Cells], Floats]:
    def look(cells: Cells) -> Floats:
        if not len(table):
            return np.zeros(len(cells))
        positions = np.searchsorted(table, cells).clip(0, len(table) - 1)
        return np.where(table[positions] == cells, ratios[positions], 0.0)

    return look


# Learnt classifiers, for any release.
#
# * Logistic regression on the coordinates, their squares, products and absolute
#   values, by a few Newton steps with a small ridge.
# * The fraction of the neighbour's runs among the nearest runs.
#
# References
# ----------
# .. [1] Fix, E. and Hodges, J. L. (1951). "Discriminatory analysis:
#    nonparametric discrimination, consistency properties." USAF School of
#    Aviation Medicine, Report 4.

# All choices: seconds for twenty thousand runs of a few dozen coordinates.
_NEWTON_STEPS: Final = 8
_RIDGE: Final = 1.0
_MOST_PRODUCTS: Final = 16  # coordinates whose products are taken
_MOST_LEARNT: Final = 5_000  # runs of a side
_MOST_KNOWN: Final = 2_000  # runs of a side that are searched
_NEAREST: Final = 50
_MOST_NEAR: Final = 8  # coordinates that are looked at
_CLIP: Final = 8.0  # of coordinates, in mean distances from their middle


def logistic(rows: Floats, neighbour: Floats) -> Score:
    """Learn a logistic regression on quadratic features."""
    middle, size = typical(rows, neighbour)

    def features(values: Floats) -> Floats:
        scaled = ((values - middle) / size).clip(-_CLIP, _CLIP)
        leading = scaled[:, :_MOST_PRODUCTS]
        upper = np.triu_indices(leading.shape[1])
        products = leading[:, upper[0]] * leading[:, upper[1]]
        return np.column_stack([np.ones(len(values)), scaled, np.abs(scaled), products])

    left, right = features(rows[:_MOST_LEARNT]), features(neighbour[:_MOST_LEARNT])
    design = np.concatenate([left, right])
    labels = np.repeat([0.0, 1.0], [len(left), len(right)])
    weights = np.zeros(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        fitted = expit(design @ weights)
        curve = (design * (fitted * (1 - fitted))[:, None]).T @ design + _RIDGE * np.eye(
            len(weights)
        )
        step = np.linalg.solve(curve, design.T @ (labels - fitted) - _RIDGE * weights)
        weights = weights + step
        if np.abs(step).max() < 1e-6:
            break
    return lambda values: np.asarray(features(values) @ weights)


def nearest(rows: Floats, neighbour: Floats) -> Score:
    """Learn the fraction of the neighbour's runs among the nearest runs, in scaled coordinates."""
    middle, size = typical(rows, neighbour)
    separation = np.abs(np.median(neighbour, axis=0) - np.median(rows, axis=0)) / size
    columns = np.sort(np.argsort(-separation, kind="stable")[:_MOST_NEAR])
    n_runs = min(len(rows), len(neighbour), _MOST_KNOWN)
    pooled = np.concatenate([rows[:n_runs], neighbour[:n_runs]])
    tree = cKDTree(((pooled - middle) / size)[:, columns])

    def score(values: Floats) -> Floats:
        count = min(_NEAREST, 2 * n_runs)
        _, indices = tree.query(((values - middle) / size)[:, columns], k=count)
        return np.asarray((np.reshape(indices, (len(values), -1)) >= n_runs).mean(axis=1))

    return score


# Projections on a direction: the optimal test for Gaussian noise of known or learnt shape.
#
# For noise ``N(0, C)`` and means that differ by m the log-likelihood ratio is linear, with
# the weights ``C⁻¹m``; for independent noise of equal scale these are m.
#
# References
# ----------
# Fisher, R. A. (1936). "The use of multiple measurements in taxonomic problems."
# Annals of Eugenics 7, 179-188.

# A direction without noise is not dropped: it separates the tables perfectly.
_NOISELESS = 1e-12


def difference(rows: Floats, neighbour: Floats) -> Score:
    """Learn the projection on the difference of the means."""
    middle, size = typical(rows, neighbour)
    weights = (neighbour.mean(axis=0) - rows.mean(axis=0)) / size
    return lambda values: np.asarray(((values - middle) / size) @ weights)


def whitened(rows: Floats, neighbour: Floats) -> Score:
    """Learn the projection of linear discriminant analysis."""
    middle, size = typical(rows, neighbour)
    left, right = (rows - middle) / size, (neighbour - middle) / size
    mean_difference = right.mean(axis=0) - left.mean(axis=0)
    covariance = (_covariance(left) + _covariance(right)) / 2
    spread, axes = np.linalg.eigh(covariance)
    spread = np.maximum(spread, max(_NOISELESS * spread[-1], _NOISELESS))
    weights = axes @ ((axes.T @ mean_difference) / spread)
    return lambda values: np.asarray(((values - middle) / size) @ weights)


def coordinate(rows: Floats, neighbour: Floats) -> Score:
    """Learn the coordinate with the largest Kolmogorov distance."""
    gaps = [_gap(*columns) for columns in zip(rows.T, neighbour.T, strict=True)]
    best = int(np.abs(gaps).argmax())
    sign = float(np.sign(gaps[best]) or 1.0)
    return lambda values: sign * values[:, best]


def _gap(left: Floats, right: Floats) -> float:
    left, right = np.sort(left), np.sort(right)
    points = np.concatenate([left, right])
    below = np.searchsorted(left, points, side="right") / len(left)
    gaps = below - np.searchsorted(right, points, side="right") / len(right)
    return float(gaps[np.abs(gaps).argmax()])


def _covariance(values: Floats) -> Floats:
    centred = values - values.mean(axis=0)
    return np.asarray(centred.T @ centred / max(len(values) - 1, 1))


# Log-likelihood ratios of fitted distributions: normal ones of two shapes, and Laplace.
#
# * Normal, means and covariances learnt: quadratic discriminant analysis. It
#   detects a scale or a rotation that depends on a row.
# * Laplace, centres and scales of the coordinates learnt:
#   ``sum (|x - c| - |x - c'|) / b``, the optimal test for independent Laplace noise.

_SHRUNK = 1e-3  # a choice: of a covariance, to its diagonal


def normal(rows: Floats, neighbour: Floats) -> Score:
    """Learn the quadratic discriminant."""
    middle, size = typical(rows, neighbour)
    fits = [_fit((side - middle) / size) for side in (rows, neighbour)]

    def score(values: Floats) -> Floats:
        scaled = (values - middle) / size
        distances = [((scaled - mean) @ root) for mean, root in fits]
        squares = [np.einsum("ij,ij->i", distance, distance) for distance in distances]
        return np.asarray(squares[0] - squares[1])

    return score


def _fit(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean and a root of the inverse covariance, shrunk a little to its diagonal."""
    covariance = _covariance(values)
    covariance += _SHRUNK * (np.diag(np.diag(covariance)) - covariance)
    spread, axes = np.linalg.eigh(covariance)
    spread = np.maximum(spread, max(_NOISELESS * spread[-1], _NOISELESS))
    return values.mean(axis=0), np.asarray(axes / np.sqrt(spread))


def laplace(rows: Floats, neighbour: Floats) -> Score:
    """Learn centres and scales, and sum the log-likelihood ratios of the coordinates."""
    centres = [np.median(side, axis=0) for side in (rows, neighbour)]
    pairs = zip((rows, neighbour), centres, strict=True)
    size = np.mean([np.mean(np.abs(side - centre), axis=0) for side, centre in pairs], axis=0)
    size = np.where(size > 0, size, np.abs(centres[1] - centres[0]) * _NOISELESS + _NOISELESS)
    return lambda values: np.asarray(
        ((np.abs(values - centres[0]) - np.abs(values - centres[1])) / size).sum(axis=1)
    )


def norm(rows: Floats, neighbour: Floats) -> Score:
    """Learn which table's runs are farther from the common median, and score by distance."""
    middle, size = typical(rows, neighbour)

    def length(values: Floats) -> Floats:
        return np.asarray(np.linalg.norm((values - middle) / size, axis=1))

    sign = 1.0 if np.median(length(neighbour)) >= np.median(length(rows)) else -1.0
    return lambda values: sign * length(values)


SCORES: Final[dict[str, Learner]] = {
    "difference": difference,
    "whitened": whitened,
    "coordinate": coordinate,
    "quadratic": normal,
    "laplace": laplace,
    "norm": norm,
    "logistic": logistic,
    "nearest": nearest,
    "repeats": repeats,
    "repeated coordinate": repeated_coordinate,
    "low bits": low_bits,
}
