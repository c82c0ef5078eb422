"""The result of a private histogram of two numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError, quoted
from dpmodels.external_files import array
from dpmodels.formula.sides import measured, parse_sides
from dpmodels.inference.proportions import SumNoise
from dpmodels.postprocess.ordered import ordered
from dpmodels.postprocess.plane import Blocks, block_sizes, block_starts, detected_density
from dpmodels.postprocess.protocol import OrderedCounts
from dpmodels.released import SumsRelease
from dpmodels.results.base import checked_level
from dpmodels.results.bins import Bins, Ranges, Rectangles
from dpmodels.results.call import TableCall
from dpmodels.results.count_tables import Binned, by_group, place_of
from dpmodels.results.estimate_table import EstimateTable, count_table, counted_as
from dpmodels.typing import Axes, DataArray, Floats
from dpmodels.verbs import documented

# Choices: blocks along an axis, the finest first, and the share of pictures in which noise alone is
# drawn somewhere.
BLOCKS_PER_AXIS, ALARM = (256, 64, 16, 4), 0.05


@dataclass(frozen=True, repr=False, eq=False)
class PlaneResult(Binned):
    """A private histogram of two numbers: released values and public facts only.

    Parameters
    ----------
    along, across : ndarray, shape (bins + 1,)
        Public ends of the bins of the first number and of the second, as in HistResult.
    variables : tuple of str
        The two numbers.

    Notes
    -----
    `counts` are whole, not negative and add up. Their sums are too small over crowded cells among
    empty ones: quote `released`, which intervals are about. :meth:`noise_int` is of counts,
    :meth:`conf_int` of the cells' shares of all counted rows. :meth:`between` is of one group, or
    of each by itself.
    """

    along: Annotated[Floats, array, "edge_along"]
    across: Annotated[Floats, array, "edge"]
    variables: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Bins of the first number and of the second."""
        return len(self.along) - 1, len(self.across) - 1

    @property
    def cells(self) -> int:
        """The number of cells of one group."""
        return math.prod(self.shape)

    @cached_property
    def ordered(self) -> OrderedCounts:
        """Counts by group and cell as arrays, row by row, and the noise in sums of them."""
        n_groups = self._facts.cells // self.cells
        return ordered(self.release, (n_groups, *self.shape))

    @cached_property
    def bins(self) -> tuple[Bins, Bins]:
        """The public bins of both numbers."""
        parsed = parse_sides(self.call.formula, self.call.codebook)
        first, second = map(measured, parsed.described)
        return Bins(self.along, first), Bins(self.across, second)

    @property
    def noise_sd(self) -> DataArray:
        """Noise standard deviation of the unbiased count of each cell, the same in all groups."""
        axes_table = TableCall(self._facts.factors[-2:], self._facts.levels[-2:])
        return axes_table.by_cell(self.group(0).noise_sd, "noise_sd")

    @documented
    def between(
        self, first: object, second: object, *, group: object = None, level: float = 0.95
    ) -> pd.DataFrame:
        """Return how many rows are in rectangles, and what share of the group's.

        Parameters
        ----------
        first, second : pair
            Lower and upper end along each axis, within the breaks: above the lower, up to and with
            the upper; of whole numbers and days the lower belongs to the rectangle too, and so do
            rows at the very first break. For several rectangles sequences of ends.

        Returns
        -------
        DataFrame
            A row a rectangle: its ends; ``count``, of the whole counts, and ``released``, the
            unbiased number, with its ``noise_sd``; ``noise_low, noise_high`` about that, for the
            number in these rows, noise only; ``proportion`` and ``conf_low, conf_high`` for the
            population's share, noise and sampling.

        Raises
        ------
        ArgumentError
            For rectangles that are reversed, of no width or outside the breaks.

        Notes
        -----
        Rows are assumed to lie evenly within a cell; intervals do not rely on it: they allow for
        all and none of the rows of a cell that a rectangle cuts.

        Examples
        --------
        >>> import dpmodels as dp
        >>> rows = {"lon": list(range(100)) * 20, "lat": list(range(50)) * 40}
        >>> cb = dp.codebook(lon=(0, 100), lat=(0, 50))
        >>> with dp.simulation(seed=1):
        ...     fit = dp.dp_hist("~ lon + lat", rows, codebook=cb, eps=1.0, breaks=(20, 10))
        >>> fit.between((0, 50), (0, 50))[["count"]].round(-2).to_numpy().tolist()
        [[1000.0]]
        """
        checked_level(level)
        cells = self._rectangles(first, second)
        ends: dict[str, object] = {}
        for name, bins, ranges in zip(self.variables, self.bins, cells[:2], strict=True):
            ends[f"{name}_low"], ends[f"{name}_high"] = bins.written(ranges)

        def columns(place: int) -> dict[str, object]:
            return {**ends, **self.group(place).ranges(cells, level)}

        return by_group(self._facts.groups, group, columns)

    def _rectangles(self, first: object, second: object) -> Rectangles:
        pairs = []
        for name, ends in zip(("first", "second"), (first, second), strict=True):
            if not isinstance(ends, tuple | list) or len(ends) != 2:
                expected = "expected a pair, the lower and the upper end, such as (0, 5)"
                raise ArgumentError(f"between(): {name}={quoted(ends)}: {expected}")
            pairs.append(ends)
        along, across = (bins.ranges(*pair) for bins, pair in zip(self.bins, pairs, strict=True))
        lengths = {len(along.start), len(across.start)}
        if len(lengths - {1}) > 1:
            raise ArgumentError(
                f"between(): {len(along.start)} ranges along one axis and {len(across.start)} "
                "along the other; write as many of one as of the other, or one for all"
            )
        along, across = (
            Ranges(*(np.resize(end, max(lengths)) for end in ranges)) for ranges in (along, across)
        )
        return Rectangles(along, across, self.shape)

    def _estimates(self) -> EstimateTable:
        n_groups, factors = len(self.ordered.cells), self._facts.factors[:-2]
        further: dict[str, object] = {}
        sizes = ((1, self.shape[1]), (self.shape[0], 1))
        for name, bins, (tiles, repeats) in zip(self.variables, self.bins, sizes, strict=True):
            for end, ends in zip(("low", "high"), bins.ends, strict=True):
                further[f"{name}_{end}"] = np.tile(np.repeat(ends, repeats), tiles * n_groups)
        further["released"] = self.ordered.cells.ravel()
        sd = np.tile(self.noise_sd.to_numpy().ravel(), n_groups)
        index = self._facts.index.set_names([*factors, *(f"{name}_bin" for name in self.variables)])
        return count_table(self, index, self.ordered.whole[:-1], noise_sd=sd, further=further)

    @documented
    def plot(self, ax: Axes | None = None, group: object = None, *, caption: bool = True) -> Axes:
        """Draw counts by cell as a map, as finely as the noise allows.

        Where a cell is not detected above the noise the block around it is drawn, less the cells
        detected in it; where no block is detected the map is blank.

        Parameters
        ----------
        group : level or tuple of levels, optional
            Which group; needed where there are any.

        Raises
        ------
        ArgumentError
            If the group is not one of the declared ones.
        """
        from dpmodels.plots.coefficients import plane

        finest = self.blocks((BLOCKS_PER_AXIS[0],) * 2)
        ends = [
            bins.at(np.append(run.start, run.stop[-1]))
            for bins, run in zip(self.bins, finest, strict=True)
        ]
        return plane(
            ends,
            self._identified_counts(finest, place_of(self._facts.groups, group)),
            self.variables,
            counted=counted_as(self.release.adjacency),
            **self._picture(ax, caption),
        )

    def _identified_counts(self, finest: tuple[Ranges, Ranges], place: int) -> Floats:
        """Return counts where they are detected above the noise, in blocks as large as needed."""
        alarm = ALARM / sum(n_blocks**2 for n_blocks in BLOCKS_PER_AXIS)
        levels = []
        for n_blocks in BLOCKS_PER_AXIS:
            runs = self.blocks((n_blocks, n_blocks))
            starts = tuple(
                np.searchsorted(fine.start, run.start)
                for fine, run in zip(finest, runs, strict=True)
            )
            width = self.noise_width(runs, 1 - 2 * alarm)
            levels.append(Blocks(starts, tuple(len(axis.start) for axis in finest), width))
        along, across = (axis.stop - axis.start for axis in finest)
        return detected_density(self.sums(finest, place), np.outer(along, across), levels)

    def blocks(self, max_blocks: tuple[int, int]) -> tuple[Ranges, Ranges]:
        """Return runs of bins along both axes, at most so many.

        Released blocks of one level, merged if needed, as their sums have little noise. Of cells
        that were released separately, runs of a power of two.
        """
        if isinstance(self.release, SumsRelease):
            side = self.release.fanout
            sizes = np.array(block_sizes(self.shape, side))
            fitting = np.flatnonzero((sizes <= max_blocks).all(axis=1)).tolist()
            edges = block_starts(self.shape, side, max(fitting, default=0))
            steps = [-(-len(axis) // limit) for axis, limit in zip(edges, max_blocks, strict=True)]
        else:
            edges = tuple(map(np.arange, self.shape))
            least = (-(-bins // limit) for bins, limit in zip(self.shape, max_blocks, strict=True))
            steps = [2 ** (step - 1).bit_length() for step in least]
        first, second = (
            Ranges(axis[::step].astype(float), np.append(axis[::step][1:], bins).astype(float))
            for axis, step, bins in zip(edges, steps, self.shape, strict=True)
        )
        return first, second

    def sums(self, runs: tuple[Ranges, Ranges], place: int = 0, *, whole: bool = False) -> Floats:
        """Return unbiased counts, or whole ones, of blocks of cells of one group."""
        group = self.group(place)
        cells = (group.whole if whole else group.cells).reshape(self.shape)
        for axis, along in enumerate(runs):
            cells = np.add.reduceat(cells, along.start.astype(int), axis=axis)
        return np.asarray(cells)

    def noise_width(self, runs: tuple[Ranges, Ranges], level: float | None = None) -> float:
        """Return a bound on the noise of a block, or its standard deviation.

        The larger of a block at the end and one in the middle; a bound with probability `level`. 0
        where the noise has no known law, so that all counts are drawn.
        """
        if self.ordered.unlawful:
            return 0.0
        first, second = (Ranges(*(end[[0, len(end) // 2]] for end in run)) for run in runs)
        blocks = Rectangles(first, second, self.shape)
        spread = blocks.spread(self.ordered, np.ones(()), np.zeros(()))
        if level is None:
            return float((self.release.noise_sd * np.sqrt(spread.squares)).max())
        noise = SumNoise(self.release.law, self.release.noise_sd, self.release.step)
        return float(noise.widths(spread, np.zeros(()), level).max())

    def _size(self) -> str:
        return f"{self.shape[0]:,} by {self.shape[1]:,} cells"
