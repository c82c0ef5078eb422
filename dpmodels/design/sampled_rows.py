"""Rows of a survey design: each takes places of its unit in proportion to its weight.

A unit is a row, or all rows of a sampling unit, and has :data:`SLOTS` places. Let c be a cap. A row
of weight w takes ``floor(SLOTS w / max(c, W))`` of them, W the sum of the weights of its unit, and
so all rows of a unit at most :data:`SLOTS`: what holds of a person with so many rows holds of a
unit, whatever the weights. With a cap that divides :data:`SLOTS` whole weights count exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmodels.design.parts import Part
from dpmodels.errors import PrivacyError
from dpmodels.formula.sampling import STEPS, Sampling
from dpmodels.typing import Floats, Integers

# A choice: divisible by whole numbers up to 10 and by 60 in all.
SLOTS: Final = 5_040
# Steps of a weight are rounded, by less than this in places where it is whole.
_NEARLY: Final = 1e-4
_ROUND_DOWN: Final = 1 - 1e-9


@dataclass(frozen=True)
class SampledPlaces:
    """Public facts, and the released cap from which places follow; no row counts without one."""

    sampling: Sampling
    cap: float | None = None
    factors: tuple[float, ...] = ()  # of squares by stratum, where strata are used

    @property
    def facts(self) -> dict[str, str]:
        """Facts about the rows, as comparable texts."""
        cap = {} if self.cap is None else {"largest weight of a unit": repr(self.cap)}
        return {**self.sampling.facts, **cap}

    def shares(self, weights: Integers, totals: Integers) -> Floats:
        """Return places before they are rounded, shape (rows,)."""
        assert self.cap is not None
        cap = self.cap / self.sampling.upper * STEPS
        return np.asarray(weights * (SLOTS / np.maximum(totals, cap)))


def unit_strata(parts: Iterator[tuple[Part, Integers]], sampled: SampledPlaces) -> NDArray[np.intp]:
    """Return the stratum of each numbered unit, or -1; rows outside a subset have one too."""
    largest, n_units = np.iinfo(np.intp).max, 0
    strata = np.zeros(0, dtype=np.intp)
    for part, _ in parts:
        assert part.persons is not None
        n_units = max(n_units, int(part.persons.max(initial=-1)) + 1)
        room = max(n_units, 2 * len(strata)) - len(strata) if n_units > len(strata) else 0
        strata = np.pad(strata, (0, room), constant_values=largest)
        stratum = sampled.sampling.stratum(part.columns, part.rows)
        counted = sampled.sampling.weights(part.columns, part.rows) > 0
        np.minimum.at(strata, part.persons[counted], stratum[counted])
    strata = strata[:n_units]
    return np.where(strata < largest, strata, -1)


class UnitTotals:
    """Sums of the weights of units, by number, and which of them have too many places."""

    __slots__ = ("_is_over", "totals")

    def __init__(self, totals: Integers) -> None:
        self.totals = totals
        self._is_over = np.zeros(len(totals), dtype=np.bool_)

    def __repr__(self) -> str:
        return "<UnitTotals, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("weights of units cannot be pickled or copied")

    def places(self, part: Part, weights: Integers, sampled: SampledPlaces) -> Integers:
        """Return the places that rows of sampling units take."""
        assert part.persons is not None
        shares = sampled.shares(weights, self.totals[part.persons])
        is_over = self._is_over[part.persons]
        rounded = np.floor(np.where(is_over, shares * _ROUND_DOWN, shares + _NEARLY))
        return np.asarray(rounded.astype(np.int64))

    def settle(self, parts: Iterator[tuple[Part, Integers]], sampled: SampledPlaces) -> None:
        """Find the units whose places, rounded up where they are nearly whole, are too many."""
        taken = np.zeros(len(self.totals), dtype=np.int64)
        self._is_over = taken > SLOTS
        for part, weights in parts:
            assert part.persons is not None
            np.add.at(taken, part.persons, self.places(part, weights, sampled))
        self._is_over = taken > SLOTS


def unit_totals(parts: Iterator[tuple[Part, Integers]], n_units: int) -> UnitTotals:
    """Add up the weights of sampling units."""
    totals = np.zeros(n_units, dtype=np.int64)
    for part, weights in parts:
        assert part.persons is not None
        np.add.at(totals, part.persons, weights)
    return UnitTotals(totals)


def row_places(weights: Integers, sampled: SampledPlaces) -> Integers:
    """Return the places of rows that are units."""
    shares = sampled.shares(weights, weights)
    return np.asarray(np.minimum(np.floor(shares + _NEARLY), SLOTS).astype(np.int64))


def in_places(part: Part, places: Integers) -> Part:
    """Return the rows that take places, sorted by how many they take."""
    order = np.argsort(places, kind="stable")
    order = order[np.count_nonzero(places == 0) :]
    return part._replace(places=places).at(order)


def weighted_parts(parts: Iterator[Part], sampling: Sampling) -> Iterator[tuple[Part, Integers]]:
    """Yield parts of units with their weights in steps, 0 for rows that do not count."""
    for part in parts:
        weights = sampling.weights(part.columns, part.rows)
        if part.counted is not None:
            weights = np.where(part.counted, weights, 0)
        yield part, weights


def numbered(parts: Iterator[Part]) -> Iterator[Part]:
    """Yield parts whose rows are units of their own."""
    at = 0
    for part in parts:
        yield part._replace(persons=np.arange(at, at + part.rows), places=None)
        at += part.rows


Weighted = Callable[[], Iterator[tuple[Part, Integers]]]


def sampled_parts(
    weighted: Weighted, totals: UnitTotals | None, sampled: SampledPlaces
) -> Iterator[Part]:
    """Yield rows with the places that they take under a released cap."""
    for part, weights in weighted():
        if totals is None:
            places = row_places(weights, sampled)
        else:
            places = totals.places(part, weights, sampled)
        yield in_places(part._replace(counted=None), places)
