"""Location of the rows from released counts and rough moments: spreads, axes and a radius.

All lengths are in units of the scaled columns. All inputs are released values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmodels.released import MomentNoise
from dpmodels.typing import Floats

# Assumed reach of undetected rows, in multiples of the largest detected radius: a choice.
BEYOND = 8.0
# Smallest variance from rough moments of clipped rows, in units of the detected spread.
SHORTENED = 0.1
# Smallest variance of a direction of correlations; smaller ones are rounding on the lattice.
THINNEST = 1e-6
# Slowest power of the length by which tails fall off; variances need it. A choice.
SLOWEST = 3.0


@dataclass(frozen=True)
class Cells:
    """Released counts of rows by size, up to each radius.

    `counts` has the shape (radii,) or (columns, radii), `sd` is the noise sd of each count.
    """

    radii: Floats
    counts: Floats
    sd: float
    # How many times farther the noise reaches than normal noise of that sd.
    tail: float = 1.0

    @property
    def detected(self) -> Floats:
        """The counts that exceed their noise, 0 for the others.

        The largest of k normal variables seldom exceeds ``√(2 log k) + 1``.
        """
        faint = self.sd * self.tail * (math.sqrt(2 * math.log(self.counts.size)) + 1)
        return np.where(self.counts > faint, self.counts, 0.0)

    @property
    def falling(self) -> tuple[int, int, Floats] | None:
        """The median cell of the detected counts, the last one, and counts from each cell on.

        None if nothing is detected, or no cell is beyond the last.
        """
        counts = self.detected
        occupied = np.flatnonzero(counts)
        if not len(occupied) or occupied[-1] == len(counts) - 1:
            return None
        longer = np.cumsum(counts[::-1])[::-1]
        median = int(np.flatnonzero(longer >= longer[0] / 2)[-1])
        return median, int(occupied[-1]), longer

    def beyond(self, radius: float) -> tuple[float, float]:
        """Return the fraction of rows longer than one of the radii, and its noise sd."""
        rows, longer = max(float(self.counts.sum()), 1.0), self.radii > radius
        return float(self.counts[longer].sum()) / rows, self.sd * math.sqrt(longer.sum()) / rows


class Spreads(NamedTuple):
    """Distances of rows from a centre by column, each of shape (columns,)."""

    # Root mean square of the rows in detected cells; the largest radius if there are none.
    detected: Floats
    # The same plus rows hidden farther out, as many as the noise sd of one cell.
    safe: Floats
    reach: Floats  # Largest detected radius


def spreads(cells: Cells, rows: float, farthest: Floats) -> Spreads:
    """Return spreads by column; `farthest`, shape (columns,), is the largest possible distance."""
    detected = cells.detected
    any_detected = detected.any(axis=1)
    # Rows of a cell are about half-way between its bounds.
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
    covariance: Floats  # Estimate for the rows, with every eigenvalue above the noise
    axes: Floats  # Shape (columns, columns), invertible


def shape(
    count: float,
    mean: Floats,
    second: Floats,
    noise: MomentNoise,
    spread_by_column: Spreads,
    centre: Floats,
) -> Shape:
    """Return axes along which rows have about equal spread, from rough moments.

    `mean` and `second` are means over rows in units of the detected spreads about `centre`, `noise`
    is that of their sums over rows. Each column's length is then multiplied by the root of its
    reach in spreads: for a given sum of squares of ``reach / weight`` these weights minimise the
    sum of squares of ``weight``, and so the noise in the coefficients.
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
        centre + shift * spread_by_column.detected,
        (vectors * values) @ vectors.T * np.outer(spread_by_column.safe, spread_by_column.safe),
        spread_by_column.safe[:, None] * root * (longer / np.exp(np.log(longer).mean())),
    )


def _response_apart(correlation: Floats) -> Floats:
    """Return a root of a correlation matrix whose last column affects the response only.

    The norm of a row then depends on its terms and its residual separately: for symmetric residuals
    clipping by the norm leaves the regression line unchanged, also under heteroscedasticity.
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
    """Return detected counts by length, and assumed ones beyond the last detected cell.

    These fall off by the same power of the length as detected counts beyond their median, times the
    largest size that the cells beyond allow: their estimate plus one sd.
    """
    counts, falling = cells.detected, cells.falling
    if falling is None:
        return counts
    median, last, longer = falling
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
    """A clipping radius, and the error of a coordinate of X'y from noise and clipping."""

    length: float
    error: float


def radius(cells: Cells, columns: int, off: float, bias_fraction: float) -> Radius | None:
    """Return the radius with the smallest error from noise and clipping.

    `off` is the noise sd of an entry in the unit ball; the fraction `bias_fraction` of the squares
    cut off biases the coefficients in one direction. None where no cell is detected.
    """
    if not cells.detected.any():
        return None
    squares = cells.radii**2
    cut = np.maximum(squares - squares[:, None], 0.0) @ tail(cells)
    errors = np.hypot(off * squares, bias_fraction / math.sqrt(columns) * cut)
    best = int(np.argmin(errors))
    return Radius(float(cells.radii[best]), float(errors[best]))


def sensitivity_to_noise(covariance: Floats, axes: Floats) -> float:
    """Return the effect of noise in moments along axes on the coefficients.

    The root mean square over the coefficients of the last column on the others, each in units of
    its standard error, for equal noise in every entry of the second moment of u where the rows are
    ``axes @ u``; up to a factor that is the same for all axes.
    """
    terms, response = covariance[:-1, :-1], covariance[:-1, -1]
    if not len(response):
        return float(np.linalg.norm(axes))
    inverse = np.linalg.inv(terms)
    residual = np.append(-inverse @ response, 1.0)
    variances = np.square(inverse @ axes[:-1]).sum(axis=1) / np.diagonal(inverse)
    return math.sqrt(float(variances.mean())) * float(np.linalg.norm(axes.T @ residual))
