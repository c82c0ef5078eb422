"""Numbers of rows by level, as what levels are ranked by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.design.cells import PrivateCells
from dpmodels.mechanisms.count_noise import gaussian_plan, noised_units, quieter_plan
from dpmodels.mechanisms.count_plan import CountFacts, CountPlan
from dpmodels.mechanisms.protocol import Ranked
from dpmodels.mechanisms.selection_plan import Paid, SelectionFacts
from dpmodels.noise import Entropy
from dpmodels.privacy import Adjacency, ApproxDP, Event
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import counts


@dataclass(frozen=True)
class BoughtCounts:
    """The noise of the counts of what is named; None where they are not bought."""

    noise: CountPlan | None

    @property
    def events(self) -> tuple[Event, ...]:
        """What they cost."""
        return () if self.noise is None else self.noise.events

    @property
    def noise_sd(self) -> float:
        """The noise in each of them; 0 for none."""
        return 0.0 if self.noise is None else self.noise.noise_sd


@dataclass(frozen=True)
class LevelScore:
    """Counts of the cells of one table.

    A row is in one cell at most. A row more raises one count by 1: all changes lie in an interval
    of length 1, and none is below 0. A row replaced lowers one by 1 at most and raises one by 1 at
    most: an interval of length 2.

    The counts of what was named are those of some cells of the table, of which a row changes as
    much: 1, or 2 where it is replaced and may leave one for another. A single one it changes by 1.
    """

    size: int

    own_share: ClassVar[float] = 0.0

    def width(self, adjacency: Adjacency) -> int:
        """Return the length of the interval of a neighbour's changes."""
        return 2 if adjacency.n_public else 1

    def bought(self, facts: SelectionFacts, paid: Paid, eps: float) -> BoughtCounts:
        """Plan the counts of what is named, of their share of a budget."""
        own = self.valued_with(facts)
        if own is None:
            return BoughtCounts(None)
        budget = paid(facts.share)
        if isinstance(budget, ApproxDP):
            return BoughtCounts(gaussian_plan(own, budget))
        return BoughtCounts(quieter_plan(own, budget, lambda _: (1, 1.0)))

    def valued_with(self, facts: SelectionFacts) -> CountFacts | None:
        """Return what the noise of these counts is planned from; None where none are bought."""
        own = Adjacency("add-remove") if facts.most == 1 else facts.adjacency
        return CountFacts(1, facts.most, False, own) if facts.share else None

    def measure(self, private: PrivateCells, facts: SelectionFacts) -> Statistic:
        """Count the rows of all cells."""
        return counts(private, 1, count_public=facts.adjacency.n_public)

    def ranked(
        self, exact: NDArray[Any], facts: SelectionFacts, bought: BoughtCounts, entropy: Entropy
    ) -> Ranked:
        """Return the counts, without the incomplete rows."""
        own = facts.adjacency
        unit = own.places if own.counts_persons else 1
        least = None if facts.threshold is None else math.ceil(facts.threshold * unit)
        return Ranked(exact[:-1], self.width(own), not own.n_public, least)

    def valued(
        self,
        exact: NDArray[Any],
        ranked: Ranked,
        places: NDArray[np.int64],
        bought: BoughtCounts,
        entropy: Entropy,
    ) -> dict[str, Any]:
        """Release the counts of what was named, with noise of their own."""
        if bought.noise is None:
            return {}
        values, law = noised_units(bought.noise, exact[places], entropy)
        noise = bought.noise
        return {"values": values, "law": law, "noise_sd": noise.noise_sd, "step": 1 / noise.whole}
