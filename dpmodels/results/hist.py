"""The result of a private histogram of one number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd

from dpmodels.arguments import between, fraction, lists_values
from dpmodels.errors import NotAvailable
from dpmodels.external_files import array
from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.inference.proportions import count_interval
from dpmodels.postprocess.ordered import ordered
from dpmodels.postprocess.protocol import OrderedCounts
from dpmodels.released import CountsRelease
from dpmodels.results.base import Derivation, checked_level
from dpmodels.results.bins import Bins, OrderedGroup, Ranges
from dpmodels.results.count_tables import Binned, by_group, place_of
from dpmodels.results.estimate_table import EstimateTable, axis_title, count_table, counted_as
from dpmodels.results.table import TableResult
from dpmodels.typing import Axes, DataArray, Floats
from dpmodels.verbs import documented

# A choice: bars that a picture shows.
MAX_BARS = 200


@dataclass(frozen=True, repr=False, eq=False)
class HistResult(Binned):
    """A private histogram: released values and public facts only.

    Parameters
    ----------
    breaks : ndarray, shape (bins + 1,)
        Public ends of the bins, each but the first open at its lower end; of whole numbers and
        of days since 1970-01-01 half a step beside them.
    variable : str
        What is counted.

    Notes
    -----
    `counts` are whole, not negative and add up; of many bins sums over runs of
    them stay near the unbiased ones. :meth:`noise_int` is of counts,
    :meth:`conf_int` of the bins' shares of all counted rows. :meth:`between`,
    :meth:`cdf` and :meth:`quantile` are of one group, or of each by itself:
    their shares are of the group's counted rows.
    """

    breaks: Annotated[Floats, array, "edge"]
    variable: str

    @property
    def table(self) -> TableResult:
        """The counts as a table, rounded without regard to the order of the bins.

        NotAvailable where sums of bins were released.
        """
        if isinstance(self.release, CountsRelease):
            return self._derive(TableResult, "table")
        raise NotAvailable(
            f"table is not available: {self.release.info.name!r} released sums of bins, not "
            "independent counts; write counts, released or tidy()"
        )

    derivations: ClassVar = {"table": lambda self: Derivation(self.call, TableResult)}

    @property
    def _shape(self) -> tuple[int, int]:
        """Groups and bins."""
        n_bins = self._facts.shape[-1]
        return self._facts.cells // n_bins, n_bins

    @cached_property
    def ordered(self) -> OrderedCounts:
        """Counts by group and bin as arrays, and the noise in sums of them."""
        return ordered(self.release, self._shape)

    @cached_property
    def bins(self) -> Bins:
        """The public bins."""
        number = one_measured(parse_sides(self.call.formula, self.call.codebook), "the result")[0]
        return Bins(self.breaks, number)

    @property
    def density(self) -> DataArray:
        """Share of the group's counted rows by unit of the variable; nan without rows."""
        return self._facts.by_cell(self._density, "density")

    @property
    def _density(self) -> Floats:
        counts = self.ordered.whole[:-1].reshape(self._shape)
        totals = counts.sum(axis=1, keepdims=True)
        shares = np.divide(counts, totals, out=np.full(self._shape, np.nan), where=totals > 0)
        return np.asarray(shares / np.diff(self.breaks))

    @property
    def mids(self) -> Floats:
        """Middles of the bins."""
        return np.asarray((self.breaks[1:] + self.breaks[:-1]) / 2)

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        if not isinstance(self.release, CountsRelease):
            return super()._interval(level, population=population)
        return self.table.conf_int(level) if population else self.table.noise_int(level)

    @property
    def noise_sd(self) -> Floats:
        """Noise standard deviation of the unbiased count of each bin, shape (bins,)."""
        return self.group(0).noise_sd

    def half(self, level: float = 0.95) -> float:
        """Return half the length of the longest noise interval of a bin."""
        fraction("level", level)
        if isinstance(self.release, CountsRelease):
            return float(count_interval(np.zeros(1), self.table._counted.noise, level)[1][0])
        return self.group(0).half_width(level)

    def _estimates(self) -> EstimateTable:
        n_groups, facts = self._shape[0], self._facts
        low, high = self.bins.ends
        further = {"low": np.tile(low, n_groups), "high": np.tile(high, n_groups)}
        further |= {"released": self.ordered.cells.ravel(), "density": self._density.ravel()}
        sd = np.nan if self.ordered.unlawful else np.tile(self.noise_sd, n_groups)
        index = facts.index.set_names([*facts.factors[:-1], "bin"])
        counts, label = self.ordered.whole[:-1], facts.variable
        return count_table(self, index, counts, noise_sd=sd, further=further, labels=label)

    @documented
    def between(
        self, lo: object, hi: object, *, group: object = None, level: float = 0.95
    ) -> pd.DataFrame:
        """Return how many rows are in ranges, and what share of the group's.

        Parameters
        ----------
        lo, hi : float, day or sequence of these
            Ends of one range or of several, within the breaks: above `lo`, up to and with `hi`;
            of whole numbers and days `lo` belongs to the range too, and so do rows at the very
            first break.

        Returns
        -------
        DataFrame
            A row a range: ``low, high``; ``count``, of the whole counts, and ``released``, the
            unbiased number, with its ``noise_sd``; ``noise_low, noise_high`` about that, for the
            number in these rows, noise only; ``proportion`` and ``conf_low, conf_high`` for the
            population's share, noise and sampling. nan where the mechanism's noise has no known
            law.

        Raises
        ------
        ArgumentError
            For ranges that are reversed, of no width or outside the breaks, and for values that are
            not numbers or days.

        Notes
        -----
        An end within rounding of a break, as bin names round, is moved to it, unless both ends are
        near the same break. Rows are assumed to lie evenly within a bin; intervals do not rely on
        it: they allow for all and none of the rows of a bin that a range ends in.

        Examples
        --------
        >>> import dpmodels as dp
        >>> rows = {"age": list(range(100)) * 200}
        >>> with dp.simulation(seed=1):
        ...     fit = dp.dp_hist(
        ...         "~ age", rows, codebook=dp.codebook(age=(0, 100)), eps=1.0, breaks=100,
        ...         mechanism="tree",
        ...     )
        >>> found = fit.between([18, 65], [65, 100])
        >>> found[["low", "high"]].to_numpy().tolist()
        [[18.0, 65.0], [65.0, 100.0]]
        >>> found["count"].round(-2).tolist()
        [9400.0, 6800.0]
        """
        checked_level(level)
        ranges = self.bins.ranges(lo, hi)
        ends = dict(zip(("low", "high"), self.bins.written(ranges), strict=True))
        return self._by_group(group, lambda counts: {**ends, **counts.ranges(ranges, level)})

    def cdf(self, *, group: object = None, level: float = 0.95) -> pd.DataFrame:
        """Return the distribution function at the upper ends of the bins, with its bands.

        Parameters
        ----------
        group, level
            As for :meth:`between`; the bands are of each point by itself.

        Returns
        -------
        DataFrame
            A row a bin: ``at``, its upper end; ``cdf``, the share of the group's rows up to there,
            by the whole counts; ``noise_low, noise_high`` for these rows, noise only; ``conf_low,
            conf_high`` for the population, noise and sampling.
        """
        checked_level(level)
        at = self.bins.ends[1]
        return self._by_group(group, lambda counts: {"at": at, **counts.running(level)})

    @documented
    def quantile(
        self,
        probs: float | Iterable[float] = (0.25, 0.5, 0.75),
        *,
        group: object = None,
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Return quantiles, by inverting the distribution function.

        Parameters
        ----------
        probs : float or sequence of float
            In [0, 1].

        Returns
        -------
        DataFrame
            A row a prob: ``prob, estimate``, from the whole counts, evenly within a bin;
            ``noise_low, noise_high`` for the quantile of these rows, noise only; ``conf_low,
            conf_high`` for the population's, noise and sampling. Intervals end at breaks. nan
            where there is no row.

        Raises
        ------
        ArgumentError
            If a prob is not within 0 and 1.
        """
        checked_level(level)
        values = list(probs) if lists_values(probs) else [probs]
        probabilities = [between("probs", prob, 0, 1, ", such as 0.5") for prob in values]
        return self._by_group(group, lambda counts: self._quantiles(counts, probabilities, level))

    def _quantiles(
        self, counts: OrderedGroup, probs: list[float], level: float
    ) -> dict[str, object]:
        places = np.array([counts.quantile(prob) for prob in probs])
        columns: dict[str, object] = {"prob": probs, "estimate": self.bins.inside(places)}
        ends = np.array([counts.quantile_ranges(prob, level) for prob in probs]).reshape(-1, 2, 2)
        for name, (start, stop) in zip(("noise", "conf"), ends.transpose(1, 2, 0), strict=True):
            low = np.where(np.isnan(start), np.nan, np.fmin(start, np.floor(places)))
            ranges = Ranges(low, np.where(np.isnan(stop), np.nan, np.fmax(stop, np.ceil(places))))
            columns[f"{name}_low"], columns[f"{name}_high"] = self.bins.written(ranges)
        return columns

    def _by_group(
        self, group: object, columns: Callable[[OrderedGroup], Mapping[str, object]]
    ) -> pd.DataFrame:
        return by_group(self._facts, group, lambda place: columns(self.group(place)))

    @documented
    def plot(
        self,
        ax: Axes | None = None,
        group: object = None,
        level: float = 0.95,
        caption: bool = True,
    ) -> Axes:
        """Draw the bins with their noise intervals; many bins in runs of them.

        Parameters
        ----------
        group : level or tuple of levels, optional
            Which group; needed where there are any.
        level : float
            Coverage of the noise bars, in (0, 1).

        Raises
        ------
        ArgumentError
            If the group is not one of the declared ones.
        """
        from dpmodels.plots.bars import hist

        place, runs = place_of(self._facts, group), self.bins.parts(MAX_BARS)
        sums = self.group(place).ranges(runs, checked_level(level))
        bars = np.column_stack([sums["noise_low"], sums["noise_high"]])
        if isinstance(self.release, CountsRelease) and len(bars) == self._shape[1]:
            bars = self.noise_int(level).to_numpy()[place * len(bars) :][: len(bars)]
        axes = hist(
            *(self.bins.at(np.append(runs.start, runs.stop[-1])), sums["count"], bars),
            self._named(group),
            counted=counted_as(self.release.adjacency),
            **self._picture(ax, caption),
        )
        return self._dated(axes)

    def plot_cdf(
        self,
        ax: Axes | None = None,
        group: object = None,
        level: float = 0.95,
        caption: bool = True,
    ) -> Axes:
        """Draw the distribution function with its noise band, and that for the population.

        Parameters and errors are those of :meth:`plot`; the bands are of each point by itself.
        """
        from dpmodels.plots.curves import distribution

        place_of(self._facts, group)
        cdf = self.cdf(group=group, level=level)
        bands = cdf[["noise_low", "noise_high", "conf_low", "conf_high"]].to_numpy().T
        shares, picture = cdf["cdf"].to_numpy(), self._picture(ax, caption)
        return self._dated(distribution(self.breaks, shares, bands, self._named(group), **picture))

    def _named(self, group: object) -> str:
        title = axis_title(self.variable, self.call.codebook)
        return title if group is None else f"{title}, {group}"

    def _dated(self, axes: Axes) -> Axes:
        if self.bins.number.date:
            axes.xaxis_date()
        return axes

    def _size(self) -> str:
        return f"{len(self.mids):,} bins"
