"""Which mechanism counts cells that stand in an order, by public facts alone.

Few bins are read one at a time, many in runs of them: in the count of a bin noise is the least
where each has noise of its own, in sums over runs where sums were released. With V for the
predicted noise variance of the mean range and v for that of a bin, the less of ``V √v`` is taken:
a factor in the noise of ranges weighs twice as much as one in that of bins. Where each bin has its
own noise V grows with the number of bins, else with a power of its logarithm. Running totals by a
square root are among what is compared where the guarantee takes Gaussian noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dpmodels.mechanisms.choose import auto_counts, two_digits
from dpmodels.mechanisms.count_plan import CountFacts
from dpmodels.mechanisms.counts import COUNTS, Factorisation, Tree, Wavelet
from dpmodels.mechanisms.counts.factorisation import MOST_CELLS
from dpmodels.postprocess.hierarchy import range_counts
from dpmodels.postprocess.square_root import SquareRoot
from dpmodels.postprocess.wavelet import mean_variances
from dpmodels.privacy import Guarantee, PureDP

# Bins that are read one at a time: a choice.
FEW = 40


class _Predicted(NamedTuple):
    """Noise variances of a way to count."""

    mean_range: float
    cell: float

    @property
    def weighed(self) -> float:
        return self.mean_range * math.sqrt(self.cell)


def auto_ordered(facts: CountFacts, guarantee: Guarantee) -> tuple[str, str]:
    """Return the name of a mechanism for cells in an order and the reason, as it is printed."""
    flat, plain = auto_counts(facts, guarantee)
    noise = COUNTS[flat]().plan(facts, guarantee).noise_sd
    cells = facts.shape[1]
    if cells <= FEW:
        return flat, plain
    first = _Predicted(noise**2 * range_counts(cells, cells), noise**2)
    others = {"tree": _of_tree(facts, guarantee), "wavelet": _of_wavelets(facts, guarantee)}
    if cells <= MOST_CELLS and not isinstance(guarantee, PureDP):
        others["factorisation"] = _of_root(facts, guarantee)
    name = min(others, key=lambda own: others[own].weighed)
    best = others[name]
    if first.weighed <= best.weighed:
        return flat, plain
    one = 1 if facts.adjacency.rows == "mean" else facts.adjacency.places
    sds = (one * own**0.5 for own in (best.mean_range, first.mean_range, best.cell, first.cell))
    shown = [two_digits(own) for own in sds]
    return name, (
        f"of {cells:,} bins it is sums that are read: of the mean range its noise has an sd of "
        f"{shown[0]} rows, that of {flat} {shown[1]}; of a single bin {shown[2]}, not {shown[3]}."
    )


def _of_tree(facts: CountFacts, guarantee: Guarantee) -> _Predicted:
    tree = Tree()
    plan = tree.plan(facts, guarantee)
    hierarchy, fanout = tree.above(plan)
    noise = plan.noise_sd**2
    own = 1 - 1 / fanout if hierarchy.starts else 1.0
    return _Predicted(noise * range_counts(facts.shape[1], fanout), noise * own)


def _of_wavelets(facts: CountFacts, guarantee: Guarantee) -> _Predicted:
    noise = Wavelet().plan(facts, guarantee).noise_sd ** 2
    return _Predicted(*(noise * own for own in mean_variances(facts.shape[1])))


def _of_root(facts: CountFacts, guarantee: Guarantee) -> _Predicted:
    noise = Factorisation().plan(facts, guarantee).noise_sd ** 2
    return _Predicted(*(noise * own for own in SquareRoot(facts.shape[1]).mean_variances))
