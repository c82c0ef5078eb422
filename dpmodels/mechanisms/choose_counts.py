"""Which mechanism counts, by public facts alone: cells, one mean, bins, planes and running totals.

The one with less noise, on a ledger of eps and delta at equal price (`at_equal_price`); for one
mean of a public number of rows ``paired`` if it has less in the sum. Means and variances of a
number that may lie anywhere within its bounds: ``rounds`` if the public number of rows is enough to
find a range.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dpmodels.mechanisms import counts, protocol
from dpmodels.mechanisms.choose import (
    at_equal_price,
    price_reason,
    printed_rows,
    rows_of_one,
    two_digits,
)
from dpmodels.mechanisms.count_noise import one_mean
from dpmodels.mechanisms.counts.ranges import range_shares
from dpmodels.mechanisms.counts.tree import MOST_CELLS
from dpmodels.mechanisms.scalar.paired import Paired
from dpmodels.postprocess.hierarchy import prefix_variances, range_counts
from dpmodels.postprocess.plane import rectangle_counts
from dpmodels.postprocess.square_root import SquareRoot
from dpmodels.postprocess.wavelet import mean_variances
from dpmodels.privacy import Guarantee, PureDP
from dpmodels.typing import Floats


def auto_counts(
    facts: protocol.CountFacts, guarantee: Guarantee, n_rows: int | None = None
) -> tuple[str, str]:
    """Return the name of a mechanism for counts, or for one mean, and the reason.

    `n_rows` is None where no range is to be found: where the variable is not a number,
    where rows are read once, or where how many there are is private or not known beforehand.
    """
    shares = None if n_rows is None else range_shares(facts, guarantee, n_rows)
    if n_rows is not None and shares is not None:
        share = f"{'' if len(shares) == 1 else 'up to '}{100 * sum(shares):.0f}%"
        return "rounds", (
            f"{share} of the budget estimates a range of the values, for which "
            f"{printed_rows(n_rows, facts.adjacency)} is large enough; noise is proportional to it."
        )
    unit_rows = rows_of_one(facts.adjacency)
    strategies: tuple[protocol.CountMechanism, ...] = (counts.Geometric(), counts.Gaussian())
    if isinstance(guarantee, PureDP):
        strategies = strategies[:1]
    plans = [strategy.plan(facts, guarantee) for strategy in strategies]
    noises = [plan.noise_sd for plan in plans]
    if len(plans) == 1:
        place, reason = 0, "it needs no delta."
    else:
        priced = at_equal_price(noises, plans)
        place = priced.index(min(priced))
        second = strategies[1 - place].info.name
        reason = (
            f"{price_reason(noises, place)}its noise in a released count has an sd of "
            f"{two_digits(unit_rows * noises[place])}; that of {second} would have "
            f"{two_digits(unit_rows * noises[1 - place])}."
        )
    best = strategies[place].info.name
    if not one_mean(facts):
        return best, reason
    # Of the sum of t - 1/2: half of one noise variable, or of the difference of two.
    unpaired_sd = noises[place] / math.sqrt(2)
    pair = Paired().plan(facts, guarantee)
    paired_sd = pair.noise_sd / 2
    unpaired, paired = at_equal_price([unpaired_sd, paired_sd], [plans[place], pair])
    if unpaired <= paired:
        return best, reason
    return "paired", (
        f"its noise in the sum has an sd of {two_digits(unit_rows * paired_sd)} ranges; that of "
        f"{best} would have {two_digits(unit_rows * unpaired_sd)}."
    )


# Which mechanism counts cells that stand in an order, by public facts alone.
#
# Few bins are read one at a time, many in runs of them: in the count of a bin noise is the least
# where each has noise of its own, in sums over runs where sums were released. With V for the
# predicted noise variance of the mean range and v for that of a bin, the less of ``V √v`` is taken:
# a factor in the noise of ranges weighs twice as much as one in that of bins. Where each bin has
# its own noise V grows with the number of bins, else with a power of its logarithm. Running totals
# by a square root are among what is compared where the guarantee takes Gaussian noise.

# Bins that are read one at a time: a choice.
FEW = 40
# More cells are counted in runs if they have fewer rows on average than so many noise sds of a
# count. Choices, by uniform, smooth, spiky, sparse, rough and zero-inflated rows.
FEW_TO_POOL, POOLED_BELOW = 100, 1.75


class _Predicted(NamedTuple):
    mean_range: float
    cell: float

    @property
    def weighed(self) -> float:
        return self.mean_range * math.sqrt(self.cell)


def auto_ordered(
    facts: protocol.CountFacts, guarantee: Guarantee, n_rows: int | None = None
) -> tuple[str, str]:
    """Return the name of a mechanism for cells in an order and the reason, as it is printed.

    `n_rows` is None where it is private or not known yet.
    """
    flat, plain = auto_counts(facts, guarantee)
    noise = counts.COUNTS[flat]().plan(facts, guarantee).noise_sd
    cells = facts.shape[1]
    if cells <= FEW:
        return flat, plain
    if _few_rows(facts, noise, n_rows):
        return "partition", _reason_of_runs(facts)
    first = _Predicted(noise**2 * range_counts(cells, cells), noise**2)
    candidates = {"tree": _of_tree(facts, guarantee), "wavelet": _of_wavelets(facts, guarantee)}
    if cells <= MOST_CELLS and not isinstance(guarantee, PureDP):
        candidates["factorisation"] = _of_root(facts, guarantee)
    name = min(candidates, key=lambda candidate: candidates[candidate].weighed)
    best = candidates[name]
    if first.weighed <= best.weighed:
        return flat, plain
    unit_rows = rows_of_one(facts.adjacency)
    sds = (
        unit_rows * variance**0.5
        for variance in (best.mean_range, first.mean_range, best.cell, first.cell)
    )
    texts = [two_digits(sd) for sd in sds]
    return name, (
        f"with {cells:,} bins, sums of ranges matter most: in the mean range its noise sd is "
        f"{texts[0]} rows ({flat}: {texts[1]}), in a single bin {texts[2]} ({texts[3]})."
    )


def _few_rows(facts: protocol.CountFacts, noise: float, n_rows: int | None) -> bool:
    """Whether cells have fewer rows on average than the noise that each would have alone."""
    cells = math.prod(facts.shape)
    if n_rows is None or cells <= FEW_TO_POOL:
        return False
    return n_rows <= POOLED_BELOW * cells * noise


def _reason_of_runs(facts: protocol.CountFacts) -> str:
    return (
        f"there are few rows for noise in each of {math.prod(facts.shape):,} cells: it counts "
        "runs of cells, split where the rows are."
    )


def _of_tree(facts: protocol.CountFacts, guarantee: Guarantee) -> _Predicted:
    tree = counts.Tree()
    plan = tree.plan(facts, guarantee)
    hierarchy, fanout = tree.above(plan)
    noise = plan.noise_sd**2
    cell_factor = 1 - 1 / fanout if hierarchy.starts else 1.0
    return _Predicted(noise * range_counts(facts.shape[1], fanout), noise * cell_factor)


def _of_wavelets(facts: protocol.CountFacts, guarantee: Guarantee) -> _Predicted:
    noise = counts.Wavelet().plan(facts, guarantee).noise_sd ** 2
    return _Predicted(*(noise * variance for variance in mean_variances(facts.shape[1])))


def _of_root(facts: protocol.CountFacts, guarantee: Guarantee) -> _Predicted:
    noise = counts.Factorisation().plan(facts, guarantee).noise_sd ** 2
    return _Predicted(*(noise * variance for variance in SquareRoot(facts.shape[1]).mean_variances))


# Which mechanism counts the cells of a plane, by public facts alone.
#
# As for cells in a row: with V for the predicted noise variance of the mean rectangle and v for
# that of a cell, the less of ``V √v`` is taken, and of few cells the one with less noise in each.

# Cells that are read one at a time: a choice.
FEW_CELLS = 64


def auto_plane(
    facts: protocol.CountFacts, guarantee: Guarantee, n_rows: int | None = None
) -> tuple[str, str]:
    """Return the name of a mechanism for cells in a plane and the reason, as for a line."""
    flat, plain = auto_counts(facts, guarantee)
    sides = facts.shape[1:]
    grid = counts.Grid()
    plan = grid.plan(facts, guarantee)
    side, noise = grid.side_of(plan), counts.COUNTS[flat]().plan(facts, guarantee).noise_sd
    if _few_rows(facts, noise, n_rows):
        return "partition", _reason_of_runs(facts)
    means = [
        sd * math.sqrt(rectangle_counts(sides, blocks))
        for sd, blocks in ((plan.noise_sd, side), (noise, max(sides)))
    ]
    grid_product, flat_product = (
        mean**2 * sd for mean, sd in zip(means, (plan.noise_sd, noise), strict=True)
    )
    if math.prod(sides) <= FEW_CELLS or flat_product <= grid_product:
        return flat, plain
    unit_rows = rows_of_one(facts.adjacency)
    texts = [two_digits(unit_rows * sd) for sd in (*means, plan.noise_sd, noise)]
    return "grid", (
        f"with {math.prod(sides):,} cells, sums of rectangles matter most: in the mean rectangle "
        f"its noise sd is {texts[0]} rows ({flat}: {texts[1]}), in a single cell about "
        f"{texts[2]} ({texts[3]})."
    )


# Which mechanism counts over time, by public facts alone: what has the quieter running totals.


def auto_running(facts: protocol.CountFacts, guarantee: Guarantee) -> tuple[str, str]:
    """Return the name of a mechanism for running totals and the reason, as it is printed."""
    if isinstance(guarantee, PureDP):
        return "tree", "it needs no delta."
    cells = facts.shape[1]
    if cells > MOST_CELLS:
        return "tree", f"{cells:,} periods are more than the {MOST_CELLS:,} of factorisation."
    unit_rows = rows_of_one(facts.adjacency)
    totals_sd = {
        "factorisation": unit_rows * _choose_running_of_root(facts, guarantee),
        "tree": unit_rows * _choose_running_of_tree(facts, guarantee),
    }
    best, second = sorted(totals_sd, key=lambda name: totals_sd[name])
    return best, (
        f"the root mean square noise in its running totals is {totals_sd[best]:.3g}; with "
        f"{second} it would be {totals_sd[second]:.3g}."
    )


def _choose_running_of_root(facts: protocol.CountFacts, guarantee: Guarantee) -> float:
    root = SquareRoot(facts.shape[1])
    total_variance = root.whole_variance(facts.shape[0])
    variances = _given_n(facts, root.prefix_variances, root.with_last, total_variance)
    return counts.Factorisation().plan(facts, guarantee).noise_sd * math.sqrt(variances.mean())


def _choose_running_of_tree(facts: protocol.CountFacts, guarantee: Guarantee) -> float:
    tree = counts.Tree()
    plan = tree.plan(facts, guarantee)
    hierarchy, _ = tree.above(plan)
    prefixes, added = prefix_variances(hierarchy)
    of_all = hierarchy.whole_variance
    total_variance = facts.shape[0] * of_all + 1
    variances = _given_n(facts, prefixes**2 * of_all + added, prefixes * of_all, total_variance)
    return plan.noise_sd * math.sqrt(variances.mean())


def _given_n(
    facts: protocol.CountFacts, variances: Floats, with_all: Floats, total_variance: float
) -> Floats:
    """Take off what a public number of rows tells, by covariances with the released one."""
    return variances - with_all**2 / total_variance if facts.adjacency.n_public else variances
