"""Cells of numbers from noisy fine histograms: where they end, and the rows in them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Floats, Integers

# Noise sds that the rows of a coarse cell exceed, those of a run of fine cells far from others, and
# those of the next run of so many fine cells: choices, by simulated tables.
CLEAR_SDS, SUM_SDS, FAR_SDS, NEAR_SDS, RUN = 6.0, 2.0, 4.5, 1.5, 4
SMALLEST_SD = 0.1
# The part of a density to which one beside it falls at most, with so many noise sds: choices.
STEEP_PART, STEEP_SDS = 0.1, 2.0


@dataclass(frozen=True)
class FineCells:
    """Public fine cells of a variable, whose released counts determine its coarse cells."""

    variable: int  # Its position
    edges: tuple[float, ...]  # Of the fine cells, increasing
    n_cells: int  # How many coarse cells are wanted
    ends: tuple[int, ...] = ()  # Of coarse cells, positions; empty where they are chosen
    sparse: tuple[int, ...] = ()  # Positions of the edges that are used for few rows; empty for all

    @property
    def of_few_rows(self) -> FineCells:
        """The fine cells of a table of few rows."""
        if not self.sparse:
            return self
        edges, ends = (tuple(self.edges[k] for k in self.sparse), map(self.sparse.index, self.ends))
        return replace(self, edges=edges, ends=tuple(ends), sparse=())

    def chosen(self, counts: Floats, sd: float) -> tuple[int, ...]:
        """Return the positions of the edges of coarse cells, from noisy counts of fine cells."""
        if self.ends:
            return self.ends
        return coarse_ends(counts, sd, np.array(self.edges), self.n_cells, self.sparse)


def occupied(counts: Floats, sd: float, groups: tuple[int, ...] = ()) -> tuple[int, int]:
    """Return the first fine cell, and the one after the last, beyond which noise hides all rows.

    With the positions of the ends of groups of cells these are the cells that are counted.
    """
    if groups:
        low, high = occupied(*summed(counts, sd, groups))
        return groups[low], groups[high]
    below = _first(counts, sd)
    above = _first(counts[::-1], sd)
    return (below, len(counts) - above) if below + above < len(counts) else (0, len(counts))


def summed(counts: Floats, sd: float, groups: tuple[int, ...]) -> tuple[Floats, float]:
    """Return the sums of counts by group of cells, and the noise sd of one of mean size."""
    sums = np.add.reduceat(counts, groups[:-1])
    return sums, sd * math.sqrt(len(counts) / len(sums))


def _first(counts: Floats, sd: float) -> int:
    """Return the last cell of the first run of cells that is clear of the noise.

    Runs of cells before it that stand out less are added one after another.
    """
    noise, running = max(sd, SMALLEST_SD), np.concatenate([[0.0], np.cumsum(counts)])
    first, width = len(counts), 1
    while width <= len(counts):
        sums = running[width:] - running[:-width]
        clear = np.nonzero(sums > FAR_SDS * noise * math.sqrt(width))[0]
        first = min(first, int(clear[0]) + width - 1) if len(clear) else first
        width *= 2
    while 0 < first < len(counts):
        run = counts[max(first - RUN, 0) : first]
        if run.sum() <= NEAR_SDS * noise * math.sqrt(len(run)):
            break
        first -= len(run)
    return first


def coarse_ends(
    counts: Floats, sd: float, edges: Floats, n_cells: int, groups: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Merge fine cells from below until each has its part of the rows, clear of the noise.

    Of the part a third is by rows, one by the cube root of their density, by which values that are
    the means of their cells miss the least of the variance, and one by squares about the mean, most
    of which a skewed number has in few rows. The part is set anew for the cells that follow.
    """
    low, high = occupied(counts, sd, groups)
    inside = (np.arange(len(counts)) >= low) & (np.arange(len(counts)) < high)
    rows = np.where(inside & (counts > sd), counts, 0.0)
    middles, spread = (edges[:-1] + edges[1:]) / 2, np.cbrt(rows * np.diff(edges) ** 2)
    squares = rows * (middles - rows @ middles / max(rows.sum(), 1.0)) ** 2
    parts = np.array([rows, spread, squares])
    sizes = (parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-300)).sum(axis=0)
    ends, start = [0], 0
    for k in range(1, len(counts)):
        target = sizes[start:].sum() / max(n_cells - len(ends) + 1, 1)
        is_full = sizes[start:k].sum() + sizes[k] / 2 > target
        if (
            is_full
            and len(ends) < n_cells
            and _clear(counts[start:k], sd)
            and _clear(counts[k:high], sd)
        ):
            ends.append(k)
            start = k
    if len(ends) == 1:
        ends.append(_middle(counts))
    return (*ends, len(counts))


def _clear(counts: Floats, sd: float) -> bool:
    return bool(counts.sum() > max(CLEAR_SDS, SUM_SDS * math.sqrt(len(counts))) * sd)


def _middle(counts: Floats) -> int:
    below = np.cumsum(counts)[:-1]
    return int(np.minimum(below, counts.sum() - below).argmax()) + 1


@dataclass(frozen=True)
class Histogram:
    """A noisy fine histogram of a number in coarse cells; edges, counts and rows are by cell.

    Released rows of coarse cells that are not in occupied fine cells are read as in the nearest of
    these, or beyond.
    """

    edges: Floats
    counts: Floats  # Noisy numbers of rows
    sd: float  # Noise sd of each
    ends: tuple[int, ...]  # Positions of the edges of coarse cells
    rows: Floats | None = None  # Released, of the coarse cells
    step: float = 0.0  # Between values; 0 of real numbers
    groups: tuple[int, ...] = ()  # Ends of groups of cells that tails are read from; empty for all
    rows_sd: float = 0.0  # Noise sd of each of `rows`
    is_light: bool = False  # Whether laws of tails heavier than the counts before count less

    @cached_property
    def points(self) -> tuple[Floats, Floats]:
        """Two points in each fine cell, for rows whose density is a line through its neighbours."""
        widths, middles = np.diff(self.edges), (self.edges[:-1] + self.edges[1:]) / 2
        rows = np.where(self.is_occupied, np.maximum(self.counts, 0.0), 0.0)
        slopes = np.gradient(rows / widths, middles) if len(middles) > 1 else np.zeros(1)
        variances = np.maximum(widths**2 - self.step**2, 0.0) / 12
        # Of a density that is 0 at one end of a cell, a sixth of its width.
        away = variances * slopes * widths / np.maximum(rows, max(self.sd, SMALLEST_SD))
        away = np.clip(away, -2 * variances / widths, 2 * variances / widths)
        apart = np.sqrt(variances - away**2)
        return middles + away - apart, middles + away + apart

    @cached_property
    def cell(self) -> Integers:
        """The coarse cell of each fine cell."""
        return np.repeat(np.arange(len(self.ends) - 1), np.diff(self.ends))

    @cached_property
    def is_hidden(self) -> NDArray[np.bool_]:
        """By coarse cell, whether noise hides its rows."""
        sd = max(self.sd, SMALLEST_SD)
        counts = np.split(self.counts, self.ends[1:-1])
        inside = np.split(self.is_occupied, self.ends[1:-1])
        return np.array([not _clear(of[at], sd) for of, at in zip(counts, inside, strict=True)])

    @cached_property
    def range(self) -> tuple[int, int]:
        """The fine cells beyond which noise hides all rows."""
        return occupied(self.counts, self.sd, self.groups)

    @cached_property
    def is_occupied(self) -> NDArray[np.bool_]:
        """By fine cell, whether it is in the range."""
        positions, (low, high) = np.arange(len(self.counts)), self.range
        return (positions >= low) & (positions < high)

    @cached_property
    def steep(self) -> Integers:
        """The fine cells, clear of the noise, beside which the density falls to next to none."""
        sd, widths = max(self.sd, SMALLEST_SD), np.diff(self.edges)
        largest = np.pad((self.counts + STEEP_SDS * sd) / widths, 1, constant_values=np.inf)
        falls = np.minimum(largest[:-2], largest[2:]) < STEEP_PART * self.counts / widths
        is_clear = (self.counts > CLEAR_SDS * sd) & ~self.is_hidden[self.cell]
        return np.flatnonzero(falls & is_clear & self.is_occupied)

    @cached_property
    def outside(self) -> Floats:
        """Released rows below and above the range, beside its ends, shape (2, fine cells).

        Those of a cell that goes on beyond both ends are divided as its parts there.
        """
        result, (low, high) = np.zeros((2, len(self.counts))), self.range
        if self.rows is None:
            return result
        for side, nearest in enumerate((low, high - 1)):
            cell = self.cell[nearest]
            first, last = (self.edges[end] for end in self.ends[cell : cell + 2])
            parts = np.maximum([self.edges[low] - first, last - self.edges[high]], 0.0)
            if parts[side] > 0:
                inside = self.counts[self.is_occupied & (self.cell == cell)].sum()
                result[side, nearest] = (self.rows[cell] - inside) * parts[side] / parts.sum()
        return result

    @cached_property
    def weights(self) -> Floats:
        """Rows by fine cell, 0 far from all rows; the widths where noise hides the coarse cell."""
        rows = np.where(self.is_occupied, self.counts, 0.0) + self.outside.sum(axis=0)
        return np.where(self.is_hidden[self.cell], np.diff(self.edges), rows)

    @cached_property
    def positive(self) -> Floats:
        """Weights that are not negative, with a positive sum in each coarse cell."""
        return np.maximum(self.weights, 0.0)

    def sums(self, values: Floats) -> Floats:
        """Return the sums by coarse cell of numbers by fine cell, the last axis."""
        return np.asarray(np.add.reduceat(values, self.ends[:-1], axis=-1))

    @cached_property
    def noise_slopes(self) -> Floats:
        """By fine cell, what its noise of one sd adds to the mean of f, over f less the mean."""
        slope = self.sd / self.sums(self.weights)
        return np.where(self.is_hidden, 0.0, slope)[self.cell] * self.is_occupied
