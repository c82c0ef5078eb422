"""Released counts by table, as all descriptions use them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.digest import origin
from dpmodels.errors import ArgumentError, did_you_mean, quoted
from dpmodels.formula.tally import CAPPED_PARTS, MIXED_PARTS
from dpmodels.inference.means import GroupMoments
from dpmodels.inference.proportions import Noise
from dpmodels.inference.sampled import Cut, Sample, SampledMoments, StratumSums
from dpmodels.inference.sampled_cells import SampledCells, UnitMoments, squares_and_products
from dpmodels.postprocess.far_points import parts_joined
from dpmodels.postprocess.protocol import OrderedCounts, balanced
from dpmodels.released import (
    CappedWeights,
    CountsRelease,
    QuantilesRelease,
    RunsRelease,
    SumsRelease,
)
from dpmodels.results.base import Result
from dpmodels.results.bins import OrderedGroup
from dpmodels.results.call import DescribedCall, TableCall, n_public_rows
from dpmodels.typing import DataArray, Floats


@dataclass(frozen=True, repr=False, eq=False)
class OneTable(Result):
    """A description with one table."""

    call: DescribedCall

    @property
    def _facts(self) -> TableCall:
        return self.call.tables[0]


@dataclass(frozen=True, repr=False, eq=False)
class Binned(OneTable):
    """Counts by group and bins of one number or of two."""

    release: CountsRelease | SumsRelease | RunsRelease

    if TYPE_CHECKING:

        @property
        def ordered(self) -> OrderedCounts:
            """Counts by group and bin as arrays, and the noise in sums of them."""

    @property
    def counts(self) -> DataArray:
        """Consistent counts, by group and bin: whole, not negative, adding up."""
        return self._facts.by_cell(self.ordered.whole[:-1], "count")

    @property
    def released(self) -> DataArray:
        """Unbiased counts, which may be negative and agree with a public total."""
        return self._facts.by_cell(self.ordered.cells, "released")

    @property
    def ncomplete(self) -> float:
        """Number of complete rows within the breaks: the sum of `counts`."""
        return float(self.ordered.whole[:-1].sum())

    @property
    def nincomplete(self) -> float:
        """Number of rows without a value, or outside the breaks; not negative."""
        return float(self.ordered.whole[-1])

    def group(self, place: int) -> OrderedGroup:
        """Return the counts of one group, by its place among the levels."""
        return OrderedGroup(self.ordered, self.release, place)

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        groups = map(self.group, range(len(self.ordered.cells)))
        intervals = (
            group.share_interval(level) if population else group.noise_interval(level)
            for group in groups
        )
        lower, upper = (np.concatenate(ends) for ends in zip(*intervals, strict=True))
        return interval_frame(self._facts, (lower, upper))

    def _line(self) -> dict[str, object]:
        return described_line(self.release, self.ncomplete, self._facts.cells)


class Counted(NamedTuple):
    """One table of a release."""

    parts: Floats  # shape (cells, parts): noisy, agreeing with the public number of rows
    incomplete: float  # noisy number of incomplete rows
    incomplete_sd: float
    noise: Noise  # of each part
    effect: int  # design effect: rows that may be one person's
    clustered: bool  # whether the parts are of persons, in several cells
    weighted_moments: Callable[[Floats, Noise], SampledMoments] | None = None
    cap: float = 1.0  # weight of a unit whose parts have the sum 1

    @property
    def moments(self) -> GroupMoments:
        """The moments by group, with the effective number of rows."""
        if self.weighted_moments is not None:
            return self.weighted_moments(self.parts, self.noise)
        return GroupMoments(*self.sampled, self.clustered)

    @property
    def per_count(self) -> float:
        """Rows, or weight, of each of `moments.counts`."""
        return self.effect * self.cap

    @property
    def sampled(self) -> tuple[Floats, Noise]:
        """The parts and their noise divided by `effect`, for sampling errors."""
        return self.parts / self.effect, self.noise.divided(self.effect)


def require_factors(declared: Sequence[str], names: str | Iterable[str]) -> tuple[str, ...]:
    """Return factors in the order of the table; ArgumentError if one is not in it."""
    factors = (names,) if isinstance(names, str) else tuple(names)
    for name in factors:
        if name not in declared:
            options = ", ".join(map(repr, declared))
            raise ArgumentError(f"factor {quoted(name)} is not in the table; it has {options}")
    return tuple(name for name in declared if name in factors)


def shares_within(counts: DataArray, conditions: Sequence[str] = ()) -> DataArray:
    """Return shares of all counts, or of those of each level of some factors; nan without any."""
    total = counts.sum([name for name in counts.dims if name not in conditions])
    return (counts / total.where(total > 0)).rename("proportion")


def counted(call: DescribedCall, release: CountsRelease) -> Counted:
    """Read the one table of a release, made to agree with the number of rows where public."""
    (facts,) = call.tables
    values = balanced(release.values, release.rows)
    is_fitted = facts.sampled is not None and facts.sampled.fitted
    points, of_parts = release.held and release.held.points, None
    if points:
        of_parts = parts_joined(points, facts.degree, clustered=bool(facts.clustered))
    size = facts.size if of_parts is None else facts.cells * len(of_parts) + 1
    shared = 0 if release.rows is None or is_fitted else size
    noise = Noise(release.law, release.noise_sd, shared, release.step, release.paired)
    ones = np.ones((1, facts.degree + 1 if release.paired else 1))
    sd = float(np.sqrt(noise.product(ones, ones)[0]))
    parts = values[:-1].reshape(facts.cells, facts.parts)
    noise = noise._replace(joined=of_parts)
    effect, clustered = release.adjacency.design_effect, bool(facts.clustered)
    counts = Counted(parts, float(values[-1]), sd, noise, effect, clustered)
    if facts.sampled is None or release.weights is None:
        return counts
    moments = partial(_sampled_moments, facts, release.weights, float(values.sum()))
    return counts._replace(weighted_moments=moments, cap=release.weights.cap)


def sampled_cells(
    call: DescribedCall, release: CountsRelease, *, running: bool = False
) -> SampledCells:
    """Return the weighted counts of the one table of a release; `running` is that of its tally."""
    table, weights, (facts,) = counted(call, release), release.weights, call.tables
    assert weights is not None
    capped = np.array(weights.capped).reshape(facts.cells, -1)
    n_units = float(balanced(release.values, release.rows).sum())
    sample, products = _sample(facts, weights, n_units), capped[:, 1:]
    if running:
        products, strata = squares_and_products(products), sample.strata
        if strata is not None:
            parts = squares_and_products(strata.parts)
            sample = replace(sample, strata=replace(strata, parts=parts))
    facts_of_cells = (table.parts[:, 0], table.noise, _cut(weights, capped[:, :1]), products)
    return SampledCells(*facts_of_cells, running=running, **vars(sample))


def _sampled_moments(
    facts: TableCall, weights: CappedWeights, n_units: float, parts: Floats, noise: Noise
) -> SampledMoments:
    kind = UnitMoments if facts.parts == MIXED_PARTS else SampledMoments
    cut = _cut(weights, np.array(weights.capped).reshape(facts.cells, -1))
    sample = vars(_sample(facts, weights, n_units))
    return kind(parts, noise, degree_of_mean=facts.degree, cut=cut, **sample)


def _cut(weights: CappedWeights, parts: Floats) -> Cut:
    cap = weights.cap
    mean, sd = weights.mean_excess / cap, weights.mean_excess_sd / cap
    return Cut(parts, weights.capped_sd, mean, sd, weights.square_excess / cap**2)


def _sample(facts: TableCall, weights: CappedWeights, n_units: float) -> Sample:
    sampled = facts.sampled
    assert sampled is not None
    size = sampled.population[0] if len(sampled.population) == 1 else math.inf
    strata = None
    if sampled.strata:
        lines = np.array(weights.by_stratum).reshape(sampled.strata, -1)
        sizes = np.full(sampled.strata, math.inf)
        if len(sampled.population) == sampled.strata > 1:
            sizes, size = np.array(sampled.population), math.inf
        parts = lines[:, :-1].reshape(sampled.strata, facts.cells, -1)
        strata = StratumSums(parts, lines[:, -1], weights.by_stratum_sd, sizes)
    fpc = 1 - n_units / size if size > n_units else 1.0
    return Sample(
        n_units=max(n_units, 2.0),
        n_strata=max(sampled.strata, 1),
        fpc=fpc,
        several=sampled.units,
        strata=strata,
    )


def design_frame(
    moments: SampledMoments, shifts: tuple[Floats, Floats], cap: float, facts: TableCall
) -> pd.DataFrame:
    """Return what a survey design did to the estimates, by group."""
    columns = {
        "weight": cap * moments.sizes,
        "deff": moments.design_effect,
        "effective_n": moments.effective,
        "df": moments.independent - 1,
        "cap": np.full(facts.cells, cap),
        "capped": moments.cut_share,
        "capped_sd": moments.cut_share_sd,
        "shift": shifts[0],
        "shift_sd": shifts[1],
    }
    return pd.DataFrame(columns, index=facts.index)


def taken(call: DescribedCall, release: CountsRelease, number: int) -> CountsRelease:
    """Return the counts of one table of a release, as if requested alone."""
    start = sum(table.size for table in call.tables[:number])
    values = release.values[start : start + call.tables[number].size]
    weights = release.weights and _weights_of(call.tables, release.weights, number)
    return replace(release, values=values, weights=weights, whole=origin(release))


def _weights_of(
    tables: tuple[TableCall, ...], weights: CappedWeights, number: int
) -> CappedWeights:
    first = CAPPED_PARTS * sum(table.cells for table in tables[:number])
    last = first + CAPPED_PARTS * tables[number].cells
    start = sum(table.stratum_parts for table in tables[:number])
    stop = start + tables[number].stratum_parts
    capped, by_stratum = weights.capped[first:last], weights.by_stratum[start:stop]
    return replace(weights, capped=capped, by_stratum=by_stratum)


def interval_frame(facts: TableCall, ends: tuple[Floats, Floats]) -> pd.DataFrame:
    """Label the ends of intervals by group."""
    return pd.DataFrame({"lower": ends[0], "upper": ends[1]}, index=facts.index)


def described_line(
    release: CountsRelease | QuantilesRelease | SumsRelease | RunsRelease,
    complete: float,
    groups: int,
) -> dict[str, object]:
    """Return the columns of glance() of a description."""
    n_rows = np.nan if n_public_rows(release) is None else n_public_rows(release)
    return {"nobs": n_rows, "ncomplete": complete, "ngroups": groups}


# Frames by group.


def by_group(
    facts: TableCall, group: object, columns: Callable[[int], Mapping[str, object]]
) -> pd.DataFrame:
    """Return columns of one group, or of each with its levels; `columns` takes a position."""
    groups = _groups(facts)
    if groups is None:
        return pd.DataFrame(columns(place_of(facts, group)))
    places = range(len(groups)) if group is None else [place_of(facts, group)]
    frames = [pd.DataFrame(columns(place)) for place in places]
    for place, frame in zip(places, frames, strict=True):
        key = groups[place] if isinstance(groups[place], tuple) else (groups[place],)
        for at, (name, value) in enumerate(zip(groups.names, key, strict=True)):
            frame.insert(at, name, value)
    return pd.concat(frames, ignore_index=True)


def place_of(facts: TableCall, group: object) -> int:
    """Return the place of a group among those of all factors but the last."""
    groups = _groups(facts)
    if groups is None:
        if group is None:
            return 0
        raise ArgumentError("group= was given, but the formula has no groups; leave it out")
    try:
        return int(groups.get_loc(group))  # type: ignore[arg-type]
    except (KeyError, TypeError, pd.errors.InvalidIndexError):
        factors = ", ".join(facts.factors[:-1])
        wrong = f"group={quoted(group)}{did_you_mean(group, groups)} is not one of the groups of"
        problem = f"{wrong} {factors}" if group is not None else f"there are groups of {factors}"
        raise ArgumentError(f"{problem}; write one of them, such as group={groups[0]!r}") from None


def _groups(facts: TableCall) -> pd.Index | None:
    return facts.groups.index if facts.factors[1:] else None
