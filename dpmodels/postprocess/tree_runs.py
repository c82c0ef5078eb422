"""The noise in sums over runs of cells, of counts made of the nodes of a tree, many at once.

A run ends in two nodes of each level, those of its first and its last cell, or in one; all others
hold cells of it alone or none, and what is below them is known by level. The theorems are those of
:mod:`dpmodels.postprocess.hierarchy` and :mod:`dpmodels.postprocess.tree_counts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.postprocess.hierarchy import Hierarchy
from dpmodels.postprocess.protocol import Spread
from dpmodels.typing import Floats, Integers


class Beside(NamedTuple):
    """Sums over what is beside the end nodes, under the same parents, of variances or the like."""

    left: Floats  # Before the first node, outside the run
    first: Floats  # Between both nodes, or after the first where parents differ: in the run
    last: Floats  # Before the last node, where parents differ: in the run
    right: Floats  # After the last node, outside the run


class Ends(NamedTuple):
    """At one level the nodes that runs begin and end in, and the weights there."""

    first: NDArray[np.intp]
    last: NDArray[np.intp]
    weight: Floats  # Of the best count of the first
    weight_last: Floats
    beside: Beside  # Sums of variances
    fourths: Beside  # And of their fourths


def upward(
    hierarchy: Hierarchy, fourths: Sequence[Floats], starts: Integers, stops: Integers
) -> tuple[tuple[Ends, ...], Floats]:
    """Return the ends of runs at all levels, from the top, and the weights of all cells together.

    Runs are of the cells from `starts` up to `stops`, without these; `fourths` are for each level
    what the variances are, of fourth powers.
    """
    one, other = np.asarray(starts), np.asarray(stops) - 1
    first, last = np.ones(one.shape), np.ones(one.shape)
    tops = (np.zeros(1, dtype=np.intp), *hierarchy.starts)
    levels: list[Ends] = []
    for begin, variance, fourth in reversed(
        list(zip(tops, hierarchy.variances, fourths, strict=True))
    ):
        above, above_last = (np.searchsorted(begin, at, side="right") - 1 for at in (one, other))
        beside, four = (
            _beside(own, begin, (one, other), (above, above_last)) for own in (variance, fourth)
        )
        levels.append(Ends(one, other, first, last, beside, four))
        summed, summed_last = first * variance[one], last * variance[other]
        below = np.add.reduceat(variance, begin)
        joined, apart = above == above_last, one != other
        mine = (summed + beside.first + joined * apart * summed_last) / below[above]
        theirs = (summed_last + beside.last) / below[above_last]
        first, last = mine, np.where(joined, mine, theirs)
        one, other = above, above_last
    return tuple(reversed(levels)), first


def downward(
    hierarchy: Hierarchy,
    path: Sequence[Ends],
    passed: Floats,
    found: Spread,
    inside: Floats | float = 1.0,
    outside: Floats | float = 0.0,
) -> Spread:
    """Add the noise of all nodes to what was found elsewhere.

    `passed` is by how much the weight that all cells together keep exceeds theirs; the cells of a
    run have the weight `inside`, all others `outside`.
    """
    passed_last = passed
    for place, level in enumerate(path):
        before, after = outside + passed, outside + passed_last
        sides = Beside(before, inside + passed, inside + passed_last, after)
        weight, weight_last = (
            outside + (inside - outside) * own for own in (level.weight, level.weight_last)
        )
        has, has_last = weight + passed, weight_last + passed_last
        noisy, noisy_last = has, has_last
        if place < len(hierarchy.starts):
            below = np.add.reduceat(hierarchy.variances[place + 1], hierarchy.starts[place])
            mine, theirs = below[level.first], below[level.last]
            noisy, passed = has * mine / (1 + mine), has / (1 + mine) - weight
            noisy_last = has_last * theirs / (1 + theirs)
            passed_last = has_last / (1 + theirs) - weight_last
        ends = np.stack([noisy, (level.first != level.last) * noisy_last])
        found = Spread(
            found.squares + _weighed(level.beside, sides, 2) + (ends**2).sum(axis=0),
            found.fourths + _weighed(level.fourths, sides, 4) + (ends**4).sum(axis=0),
        )
    return found


def _beside(
    values: Floats,
    begin: NDArray[np.intp],
    nodes: tuple[NDArray[np.intp], NDArray[np.intp]],
    above: tuple[NDArray[np.intp], NDArray[np.intp]],
) -> Beside:
    running = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.append(begin[1:], len(values))
    (first, last), (parent, parent_last) = nodes, above
    joined = parent == parent_last
    after = np.where(joined, np.maximum(last, first + 1), ends[parent])
    before = np.where(joined, last, begin[parent_last])
    return Beside(
        running[first] - running[begin[parent]],
        running[after] - running[first + 1],
        running[last] - running[before],
        running[ends[parent_last]] - running[last + 1],
    )


def _weighed(sums: Beside, weights: Beside, power: int) -> Floats:
    parts = [own * weight**power for own, weight in zip(sums, weights, strict=True)]
    return np.asarray(np.sum(parts, axis=0))
