"""Where rows lie, from released counts and rough moments: spreads, axes and a radius.

All lengths are in units of the scaled columns. Everything here is made of released values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmodels.released import MomentNoise
from dpmodels.typing import Floats

# A choice: a column may reach so many times as far as its rows are told of, but no cell is.
BEYOND = 8.0
# Of a told spread: rough moments of shortened rows say no less of it.
SHORTENED = 0.1
# Of correlations, the least variance of a direction: on the lattice thinner ones are rounding.
THINNEST = 1e-6
# A choice: tails fall off at least as this power of the length, or no variance could be told.
SLOWEST = 3.0


@dataclass(frozen=True)
class Cells:
    """Released numbers of rows by size, up to each radius.

    `counts` has the shape (radii,) or (columns, radii), `sd` is the noise of each of them.
    """

    radii: Floats
    counts: Floats
    sd: float

    @property
    def told(self) -> Floats:
        """The counts that are told from noise, 0 for the others.

        The largest of k normal variables seldom exceeds ``√(2 log k) + 1``.
        """
        faint = self.sd * (math.sqrt(2 * math.log(self.counts.size)) + 1)
        return np.where(self.counts > faint, self.counts, 0.0)

    def beyond(self, radius: float) -> tuple[float, float]:
        """Return the share of the rows that are longer than one of the radii, and its noise."""
        rows, longer = max(float(self.counts.sum()), 1.0), self.radii > radius
        return float(self.counts[longer].sum()) / rows, self.sd * math.sqrt(longer.sum()) / rows


class Spreads(NamedTuple):
    """How far rows are from a centre, column by column, each of the shape (columns,)."""

    # The root mean square of the rows in told cells; the largest radius where there are none.
    told: Floats
    # The same with the rows that no cell may tell of, as many as the noise of one, farther out.
    safe: Floats
    reach: Floats  # The largest told radius


def spreads(cells: Cells, rows: float, farthest: Floats) -> Spreads:
    """Return spreads by column; `farthest`, shape (columns,), is how far a row can be."""
    detected = cells.told
    any_detected = detected.any(axis=1)
    # Rows of a cell are about half-way between its ends.
    middles = cells.radii * math.sqrt(float(cells.radii[0] / cells.radii[1]))
    mean = (detected @ middles**2) / np.maximum(detected.sum(axis=1), 1.0)
    rms = np.where(any_detected, np.sqrt(mean), cells.radii[-1])
    reach = np.where(
        any_detected, np.where(detected > 0, cells.radii, 0.0).max(axis=1), cells.radii[-1]
    )
    hidden = min(cells.sd / rows, 1.0) * np.minimum(farthest, BEYOND * reach) ** 2
    return Spreads(rms, np.sqrt(rms**2 + hidden), reach)


class Shape(NamedTuple):
    """An ellipsoid about the rows: they are ``centre + axes @ u``, u of about equal spread."""

    centre: Floats
    covariance: Floats  # What rows are taken to have, with no direction lost in noise
    axes: Floats  # Shape (columns, columns), invertible


def shape(
    count: float,
    mean: Floats,
    second: Floats,
    noise: MomentNoise,
    spread_by_column: Spreads,
    centre: Floats,
) -> Shape:
    """Return axes along which rows spread equally, as far as rough moments tell.

    `mean` and `second` are means over rows in units of the told spreads about `centre`, `noise`
    that of their sums over rows. A column's length is then multiplied by the root of how many
    spreads it reaches: of lengths that have one sum of squares of ``reach / weight``, these leave
    the least sum of squares of ``weight``, which the noise in the coefficients grows with.
    """
    size = len(centre)
    lost = size * (noise.mean / count) ** 2
    square = float(mean @ mean)
    shift = mean * max(1 - lost / square, 0.0) if square > 0 else mean
    scatter = second - np.outer(mean, mean)
    min_variance = max(2 * noise.diagonal / count, SHORTENED)
    sds = np.sqrt(np.maximum(np.diagonal(scatter), min_variance))
    correlation = np.clip(scatter / np.outer(sds, sds), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    edge = 2 * noise.off * math.sqrt(size) / count / float(np.mean(sds**2))
    values = np.maximum(values, max(edge, THINNEST))
    root = _response_apart((vectors * values) @ vectors.T)
    longer = np.sqrt(np.maximum(spread_by_column.reach / spread_by_column.safe, 1.0))
    return Shape(
        centre + shift * spread_by_column.told,
        (vectors * values) @ vectors.T * np.outer(spread_by_column.safe, spread_by_column.safe),
        spread_by_column.safe[:, None] * root * (longer / np.exp(np.log(longer).mean())),
    )


def _response_apart(correlation: Floats) -> Floats:
    """Return a root of a correlation matrix whose last column is of the response alone.

    The length of a row is then that of its terms and of its residual, each for itself: where
    residuals are symmetric, shortening by it leaves the line where it is, also where their spread
    depends on the terms.
    """
    values, vectors = np.linalg.eigh(correlation[:-1, :-1])
    roots = np.sqrt(np.maximum(values, THINNEST))
    along = (correlation[-1, :-1] @ vectors / roots) @ vectors.T
    rest = max(float(correlation[-1, -1] - along @ along), THINNEST)
    root = np.zeros_like(correlation)
    root[:-1, :-1] = (vectors * roots) @ vectors.T
    root[-1] = np.append(along, math.sqrt(rest))
    return root


def tail(cells: Cells) -> Floats:
    """Return told numbers of rows by length, and those to be feared beyond the last told cell.

    They fall off by the power of the length by which the told ones do from their median on, times
    what the cells beyond leave possible: their own size and one sd of it.
    """
    counts = cells.told
    occupied = np.flatnonzero(counts)
    if not len(occupied) or occupied[-1] == len(counts) - 1:
        return counts
    last = int(occupied[-1])
    longer = np.cumsum(counts[::-1])[::-1]
    median = int(np.flatnonzero(longer >= longer[0] / 2)[-1])
    power = math.inf
    if last > median:
        falls = math.log(longer[median] / counts[last])
        power = max(falls / math.log(cells.radii[last] / cells.radii[median]), SLOWEST)
    ahead = counts[last] * (cells.radii[last + 1 :] / cells.radii[last]) ** -power
    square = float(ahead @ ahead)
    if square > 0:
        size = (float(cells.counts[last + 1 :] @ ahead) + cells.sd * math.sqrt(square)) / square
        counts[last + 1 :] = min(max(size, 0.0), 1.0) * ahead
    return counts


class Radius(NamedTuple):
    """A radius, and the error of a coordinate of X'y by noise and by what is cut off."""

    length: float
    error: float


def radius(cells: Cells, columns: int, off: float, bias_fraction: float) -> Radius | None:
    """Return where noise and what is cut off the squares of the rows are least.

    `off` is the noise sd of an entry in the unit ball; the fraction `bias_fraction` of the squares
    cut off biases the coefficients in one direction. None where no cell is detected.
    """
    if not cells.told.any():
        return None
    squares = cells.radii**2
    cut = np.maximum(squares - squares[:, None], 0.0) @ tail(cells)
    errors = np.hypot(off * squares, bias_fraction / math.sqrt(columns) * cut)
    best = int(np.argmin(errors))
    return Radius(float(cells.radii[best]), float(errors[best]))


def sensitivity_to_noise(covariance: Floats, axes: Floats) -> float:
    """Return how far noise in moments along axes moves the coefficients.

    The root mean square over the coefficients of the last column on the others, each in its own
    standard error, for the same noise in every entry of the second moment of u where the rows are
    ``axes @ u``; up to a factor that is the same for all axes.
    """
    terms, response = covariance[:-1, :-1], covariance[:-1, -1]
    if not len(response):
        return float(np.linalg.norm(axes))
    inverse = np.linalg.inv(terms)
    residual = np.append(-inverse @ response, 1.0)
    variances = np.square(inverse @ axes[:-1]).sum(axis=1) / np.diagonal(inverse)
    return math.sqrt(float(variances.mean())) * float(np.linalg.norm(axes.T @ residual))
