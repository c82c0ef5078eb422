"""Which variables a graphical model joins: chosen from released pairs only.

The weight of a pair is the part of its dependence that stands above the noise: over its k cells
``Σ max(|D| − 1.5 sd, 0)``, D the released table less the product of its margins over the number of
rows; less what noise alone gives: its mean and 3 standard deviations, ``(.0586 k + 3 · .2056 √k)
sd``, or of many pairs what one of them is expected to exceed by noise. Cliques grow greedily: each
variable joins the part of an earlier clique to which its weights have the largest sum, and edges of
weight 0 are not taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.special import gammaincinv

from dpmodels.errors import ArgumentError
from dpmodels.postprocess.graphical.measurements import Residuals
from dpmodels.postprocess.residuals import Sizes, Term, cells, largest, subsets
from dpmodels.typing import Floats

# Cells of a clique, and variables of it that a new one may join: choices.
MOST_CELLS = 20_000
WIDTH = 4
# Noise sds that a cell's dependence must exceed, and standard deviations of the sum that the excess
# must: choices, by simulated tables.
THRESHOLD, CLEAR_SDS = 1.5, 3.0
# Edges that noise alone is expected to give if all columns are independent: a choice, by simulated
# tables (benchmarks/synth.py, "constants").
FALSE_EDGES = 1.0
# Mean and standard deviation of max(|z| - 1.5, 0), z standard normal.
MEAN_EXCESS, SD_EXCESS = 0.0586, 0.2056


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of a chordal graph, each after the one it meets.

    Attributes
    ----------
    sizes : tuple of int
        Levels of each variable.
    cliques : tuple of Term
        Every variable is in one of them.
    parents : tuple of int
        Position of an earlier clique that contains the separator; -1 for the first.
    separators : tuple of Term
        What each clique has in common with all earlier ones; ``()`` where that is nothing.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Term, ...]
    parents: tuple[int, ...]
    separators: tuple[Term, ...]

    @cached_property
    def edges(self) -> tuple[Term, ...]:
        """Pairs of variables that are in one clique."""
        return tuple(sorted({pair for term in self.cliques for pair in combinations(term, 2)}))

    def clique_of(self, term: Term) -> int | None:
        """Return the position of the first clique that contains a term; None if none does."""
        positions = (k for k, clique in enumerate(self.cliques) if set(term) <= set(clique))
        return next(positions, None)


def pair_weights(released: Residuals) -> Floats:
    """Return how far each pair is from independence above its noise, in rows.

    A symmetric matrix, shape (variables, variables), with 0 where a pair was not released.
    """
    n_variables = len(released.sizes)
    weights = np.zeros((n_variables, n_variables))
    for left, right in released.pairs:
        table = released.table((left, right))
        sd = math.sqrt(released.cell_variance((left, right)))
        rows, columns = (np.maximum(table.sum(axis=axis), 0.0) for axis in (1, 0))
        even = np.outer(rows, columns) / max(float(rows.sum()), 1.0)
        excess = float(np.maximum(np.abs(table - even) - THRESHOLD * sd, 0.0).sum())
        by_noise = excess_by_noise(table.size, len(released.pairs)) * sd
        weights[left, right] = weights[right, left] = max(excess - by_noise, 0.0)
    return weights


def excess_by_noise(n_cells: int, n_pairs: int) -> float:
    """Return the sum of excesses over cells, in noise sds, that dependence has to exceed.

    The sum has about the gamma distribution with its mean and variance.
    """
    mean, sd = MEAN_EXCESS * n_cells, SD_EXCESS * math.sqrt(n_cells)
    quantile = gammaincinv((mean / sd) ** 2, 1 - min(FALSE_EDGES / n_pairs, 1.0)) * sd**2 / mean
    return max(mean + CLEAR_SDS * sd, float(quantile))


def choose_structure(
    released: Residuals, most_cells: int = MOST_CELLS, width: int = WIDTH
) -> JunctionTree:
    """Choose a graph from released pairs, by :func:`pair_weights`."""
    return grown(pair_weights(released), released.sizes, most_cells, width)


def grown(
    weights: Floats, sizes: tuple[int, ...], most_cells: int = MOST_CELLS, width: int = WIDTH
) -> JunctionTree:
    """Grow a chordal graph greedily: each variable joins a part of an earlier clique.

    A variable without an edge of positive weight is a clique of its own.
    """
    cliques: list[Term] = []
    parts: list[Term] = []
    gains = np.zeros((0, len(sizes)))
    is_waiting = np.ones(len(sizes), dtype=bool)
    while is_waiting.any():
        candidates = np.where(is_waiting, gains, 0.0)
        if candidates.size and candidates.max() > 0:
            at, i = divmod(int(candidates.argmax()), len(sizes))
            part = parts[at]
        else:
            among = np.where(np.outer(is_waiting, is_waiting), weights, 0.0)
            best = among.max(axis=1) if among.any() else is_waiting
            i, part = int(best.argmax()), ()
        is_waiting[i] = False
        clique = tuple(sorted((*part, i)))
        cliques.append(clique)
        new = [subset for subset in subsets(clique)[1:] if i in subset and len(subset) <= width]
        parts += new
        gains = np.vstack([gains, *(_gain(subset, weights, sizes, most_cells) for subset in new)])
    return junction_tree(cliques, sizes)


def _gain(part: Term, weights: Floats, sizes: Sizes, most_cells: int) -> Floats:
    """Return by variable what joining a part would add; 0 where that is not allowed."""
    joined = weights[list(part)]
    fits = np.array(sizes) * cells(part, sizes) <= most_cells
    return np.where(fits & (joined.min(axis=0) > 0), joined.sum(axis=0), 0.0)


def structure_of(
    terms: Iterable[Term], sizes: tuple[int, ...], most_cells: int = MOST_CELLS
) -> JunctionTree:
    """Return the junction tree of declared terms, with edges added until it is chordal.

    Variables that no term mentions are cliques of their own. ArgumentError if a clique has more
    than `most_cells` cells.
    """
    neighbours: dict[int, set[int]] = {i: set() for i in range(len(sizes))}
    for term in terms:
        for i in term:
            neighbours[i] |= set(term) - {i}
    cliques: list[Term] = []
    while neighbours:
        i = min(neighbours, key=lambda j: _fill(j, neighbours, sizes))
        joined = neighbours.pop(i)
        cliques.append(tuple(sorted((i, *joined))))
        for j in joined:
            neighbours[j] |= joined
            neighbours[j] -= {i, j}
    size = max(cells(clique, sizes) for clique in cliques)
    if size > most_cells:
        raise ArgumentError(
            f"structure= joins variables in a table of {size:,} cells; at most {most_cells:,} are "
            "fitted. Write fewer terms, or cut numbers into fewer cells"
        )
    return junction_tree(cliques[::-1], sizes)


def _fill(i: int, neighbours: dict[int, set[int]], sizes: Sizes) -> tuple[int, int, int]:
    """Return how many edges eliminating a variable adds, then the cells of the table it makes.

    In a chordal graph there is always a variable that adds none.
    """
    pairs = combinations(sorted(neighbours[i]), 2)
    added = sum(k not in neighbours[j] for j, k in pairs)
    return added, cells((i, *neighbours[i]), sizes), i


def junction_tree(cliques: Iterable[Term], sizes: Sizes) -> JunctionTree:
    """Order the cliques of a chordal graph so that each meets all earlier ones in one of them.

    They are taken by a spanning tree of largest separators, which has this property.
    """
    waiting = list(largest(cliques))
    ordered, parents = [waiting.pop(-1)], [-1]
    separators: list[Term] = [()]
    closest = {clique: (len(set(clique) & set(ordered[0])), 0) for clique in waiting}
    while closest:
        clique = max(closest, key=lambda term: (closest[term][0], cells(term, sizes), term))
        _, parent = closest.pop(clique)
        parents.append(parent)
        separators.append(tuple(sorted(set(clique) & set(ordered[parent]))))
        for term, (size, _) in closest.items():
            shared = len(set(term) & set(clique))
            if shared > size:
                closest[term] = (shared, len(ordered))
        ordered.append(clique)
    return JunctionTree(tuple(sizes), tuple(ordered), tuple(parents), tuple(separators))
