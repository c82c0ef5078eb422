"""The common fields of all releases: mechanism, guarantee, cost."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass
from itertools import compress
from typing import ClassVar, Final

from dpmodels.external_files import Amount, AmountOrNan, Quantity
from dpmodels.privacy import Adjacency, Event, Guarantee, Pufferfish

# Choices: which shares of values beyond a bound are many, and how clear in noise sds.
MUCH: Final = 0.05
CLEAR_SDS: Final = 3.0


@dataclass(frozen=True)
class MechanismInfo:
    """The description of a mechanism, as tables print it."""

    name: str  # the option that selects it
    theorem: str
    sensitivity: str  # the inequality that the theorem uses
    noise: str
    numerics: str  # "exact lattice": the guarantee holds to the last bit, or "idealised"
    source: str


@dataclass(frozen=True)
class Shared:
    """How disjoint sites made one release."""

    protocol: str  # the option that selects it
    sites: tuple[str, ...]  # public names of the participants
    sees: str  # what the aggregator learns from a site
    holds: str  # against whom the guarantee holds
    numbers: int  # sent by each site; 0 if it sent none
    size: int  # of these, in bytes


@dataclass(frozen=True)
class Clipping:
    """Noisy numbers of values beyond the declared bounds, in rows, by variable.

    Each has independent noise of standard deviation ``noise_sd`` and may be negative.
    """

    variables: tuple[str, ...]
    below: tuple[Quantity, ...]
    within: tuple[Quantity, ...]
    above: tuple[Quantity, ...]
    noise_sd: Amount

    def among(self, names: Container[str]) -> Clipping:
        """Return the numbers of some of the variables."""
        kept = [name in names for name in self.variables]
        below, within, above = (
            tuple(compress(counts, kept)) for counts in (self.below, self.within, self.above)
        )
        variables = tuple(compress(self.variables, kept))
        return Clipping(variables, below, within, above, self.noise_sd)

    def shares(self) -> tuple[tuple[str, float, float, float], ...]:
        """Return each variable, the shares below and above its bounds, and their noise sd.

        Of the values that are not missing; nan where hardly any may be there.
        """
        rows = zip(self.variables, self.below, self.within, self.above, strict=True)
        return tuple(
            (name, below / values, above / values, self.noise_sd / values)
            if (values := below + within + above) > CLEAR_SDS * self.noise_sd
            else (name, math.nan, math.nan, math.nan)
            for name, below, within, above in rows
        )

    def sides(self) -> tuple[tuple[str, str, float, float], ...]:
        """Return variables, sides, shares of values beyond that bound, and their noise sds."""
        return tuple(
            (name, side, share, noise_sd)
            for name, below, above, noise_sd in self.shares()
            for side, share in (("below", below), ("above", above))
        )

    def much(self) -> tuple[tuple[str, str, float], ...]:
        """Return variables, sides and shares of values beyond a bound, if many and clearly so."""
        return tuple(
            (name, side, min(share, 1.0))
            for name, side, share, noise_sd in self.sides()
            if share > max(MUCH, CLEAR_SDS * noise_sd)
        )


@dataclass(frozen=True)
class ScoreCap:
    """The cap of the weights of units in sums of their scores, which no weight is likely to exceed.

    ``strata`` are noisy numbers of units by stratum and ``factors`` those by which their squared
    scores were multiplied, both empty where strata are not used.
    """

    cap: Amount
    strata: tuple[Quantity, ...] = ()
    factors: tuple[Amount, ...] = ()


@dataclass(frozen=True)
class UnitCap:
    """The released cap of the weights of units of a survey design.

    ``beyond`` is the estimated fraction of all weight that was cut off, ``beyond_sd`` its noise
    standard deviation; ``population`` is the number of units in the population, nan if it is not
    declared. ``scores`` is there where a step by scores of all weights follows.
    """

    later: ClassVar[frozenset[str]] = frozenset({"population", "scores"})

    cap: Amount
    beyond: Quantity
    beyond_sd: AmountOrNan
    population: AmountOrNan = math.nan
    scores: ScoreCap | None = None

    def correction(self, n_units: float) -> float:
        """Return the factor of a sum of squares over n sampled units, 1 if n is not public.

        It is n/(n - 1), and the part of the population that was not sampled where that is known.
        """
        if not n_units > 1:
            return 1.0
        left = 1 - n_units / self.population if n_units < self.population else 1.0
        return left * n_units / (n_units - 1)


@dataclass(frozen=True, kw_only=True)
class Released:
    """The common fields of all releases.

    Attributes
    ----------
    rows : int or None
        Number of rows read, if public: the number of persons if each counts as one, else the
        largest number of rows that they have.
    info : MechanismInfo
        The mechanism.
    guarantee : Guarantee
        The guarantee of the release.
    adjacency : Adjacency
        The neighbouring relation.
    events : tuple of Event
        The privacy events for accountants.
    simulated : bool
        True inside ``dp.simulation``: then nothing here is private.
    shared : Shared or None
        How sites made it; None for rows in one place.
    subset : str or None
        The condition on the rows; None for all rows.
    table : tuple of (str, str) or None
        Public facts on how the table was read, as headings and texts of a report.
    whole : str or None
        Digest of the release of which it is a part at no further cost; None otherwise.
    clipping : Clipping or None
        How many values lie beyond the declared bounds; None if they were not counted.
    units : UnitCap or None
        The cap of weights, where rows of a survey design took places by weight.
    """

    rows: int | None
    info: MechanismInfo
    guarantee: Guarantee | Pufferfish
    adjacency: Adjacency
    events: tuple[Event, ...]
    simulated: bool
    shared: Shared | None = None
    subset: str | None = None
    whole: str | None = None
    table: tuple[tuple[str, str], ...] | None = None
    clipping: Clipping | None = None
    units: UnitCap | None = None

    @property
    def sampling_correction(self) -> float:
        """The factor of sums of squares over the units of a survey design; 1 without one."""
        return 1.0 if self.units is None else self.units.correction(self.rows or math.nan)

    # Fields added after the first version: digests omit them where they are None.
    later: ClassVar[frozenset[str]] = frozenset({"subset", "whole", "table", "clipping", "units"})
